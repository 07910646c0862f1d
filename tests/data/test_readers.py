"""Bags in blocks, in files or mapped: the same model to the last bit as from one table in memory."""

import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from cases import with_entry
from countinggrids.core.geometry import Geometry
from countinggrids.data import chunks, collection_file, container, readers
from countinggrids.features.text import Document
from countinggrids.kernels.counts import as_counts
from countinggrids.kernels.tuning import Tuning

MODEL = cg.CountingGrid((6, 6), (3, 3), max_iter=12, tol=9.0, random_state=0)


@pytest.fixture
def X(rng, monkeypatch):  # noqa: N802
    """Sparse bags, cut into many chunks."""
    monkeypatch.setattr(chunks, "CHUNK_BAGS", 7)
    monkeypatch.setattr(chunks, "BAGS_PER_FEATURE", 0)
    return sp.csr_array(rng.poisson(0.3, (150, 40)).astype(np.float32))


class Again:
    """Blocks that are made anew each time they are gone through."""

    def __init__(self, X, ends):
        self.X, self.ends = X, ends

    def __iter__(self):
        return (self.X[a:b] for a, b in zip([0, *self.ends], [*self.ends, self.X.shape[0]], strict=True))


def mapped(X, tmp_path):
    path = tmp_path / "mapped.safetensors"
    container.write(path, {"format": "table", "version": 1}, {n: getattr(X, n) for n in ("data", "indices", "indptr")})
    arrays = container.read(path, "table", 1)[1]
    return sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=X.shape, copy=False)


def in_files(X, tmp_path):
    paths = [tmp_path / "a.npz", str(tmp_path / "b.npz"), tmp_path / "c.npy"]
    sp.save_npz(paths[0], X[:31])
    sp.save_npz(paths[1], X[31:90])
    np.save(paths[2], X[90:].toarray())
    return paths


def as_collection(X, tmp_path):
    words = " ".join(f"w{i:02d}" for i in range(X.shape[1]))
    collection = cg.Collection.from_texts([Document(words)] * X.shape[0])
    cg.Collection(X, collection.vocabulary, collection.items, 1).save(tmp_path / "bags.cg")
    return tmp_path / "bags.cg"


FORMS = {
    "list of blocks": lambda X, _: [X[:1], X[1:64], X[64:64], X[64:].toarray()],
    "blocks made anew": lambda X, _: Again(X, [50, 51, 130]),
    "integer blocks of another format": lambda X, _: Again(sp.csc_array(X).astype(np.int16).tolil(), [9]),
    "mapped": mapped,
    "files": in_files,
    "collection file": as_collection,
}


@pytest.mark.parametrize("form", FORMS)
def test_any_source_gives_the_bits_of_a_table_in_memory(X, tmp_path, form):
    weights = np.arange(150) % 4
    wanted = cg.CountingGrid(**MODEL.get_params()).fit(X, sample_weight=weights)
    source = FORMS[form](X, tmp_path)
    given = cg.CountingGrid(**MODEL.get_params()).fit(source, sample_weight=weights)
    assert given.pi_.tobytes() == wanted.pi_.tobytes()
    for name in ("transform", "predict", "locate", "score_samples", "perplexity"):
        np.testing.assert_array_equal(getattr(given, name)(source), getattr(wanted, name)(X))


def test_sparse_products_from_a_map_give_the_same_bits_too(X, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "as_counts", partial(as_counts, tuning=Tuning(small_product=0)))
    wanted = cg.CountingGrid(**MODEL.get_params()).fit(X).pi_
    assert cg.CountingGrid(**MODEL.get_params()).fit(mapped(X, tmp_path)).pi_.tobytes() == wanted.tobytes()


def test_partial_fit_takes_blocks(X):
    wanted = cg.CountingGrid((6, 6), 3, random_state=0).partial_fit(X).pi_
    given = cg.CountingGrid((6, 6), 3, random_state=0).partial_fit([X[:20], X[20:]]).pi_
    np.testing.assert_array_equal(given, wanted)


def test_chunks_are_cut_by_the_numbers_of_bags_and_features_alone():
    def cuts(n_bags, n_features):
        table = readers.Table([], [n_bags], n_features, "float32", is_held=True)
        return chunks.Chunks(table, None, n_features, Geometry.of((4, 4), 2)).rows

    assert [len(cuts(*size)) for size in [(2000, 200), (5000, 5000), (10**6, 50_000), (10**7, 200)]] == [1, 1, 20, 64]


def test_some_bags_are_taken_in_one_pass(X, tmp_path):
    rows = np.array([0, 3, 31, 89, 90, 149])
    table = readers.read(MODEL, in_files(X, tmp_path), is_fitting=True)
    np.testing.assert_array_equal(table.take(rows).toarray(), X[rows].toarray())


def test_long_ends_do_not_bring_the_indices_into_memory(X, tmp_path):
    facts = {"format": "collection", "version": collection_file.VERSION, "shape": X.shape}
    arrays = {"counts.data": X.data, "counts.indices": X.indices, "counts.indptr": X.indptr.astype(np.int64)}
    container.write(tmp_path / "bags.cg", facts, arrays)
    table = readers.load(tmp_path / "bags.cg")
    assert container.is_mapped(table.indices)
    assert container.is_mapped(table.data)


def test_what_was_read_of_a_map_is_let_go(tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.ones((2000, 2500), np.float32))

    def resident():
        with open("/proc/self/smaps") as file:
            text = file.read()
        return int(re.search(rf"{path}\n(?:.*\n)*?Rss: +(\d+) kB", text)[1])

    table = np.load(path, mmap_mode="r")
    table.sum()
    assert resident() > 15_000
    container.let_go(table)
    assert resident() < 1_000
    assert table[1999, 2499] == 1


def test_only_arrays_in_files_are_mapped(tmp_path, X):
    assert not container.is_mapped(X.data)
    assert container.is_mapped(mapped(X, tmp_path).data)
    np.save(tmp_path / "x.npy", X.toarray())
    assert container.is_mapped(np.load(tmp_path / "x.npy", mmap_mode="r")[3:])


class Shrinking(Again):
    """Blocks that have fewer bags every time."""

    def __iter__(self):
        self.X = self.X[:-1]
        return super().__iter__()


MISTAKES = {
    "a generator": (
        lambda X: (X for _ in range(2)),
        "X is a generator, which can be read once, and must be readable again; "
        "pass a list of blocks, or an object whose __iter__ starts anew.",
    ),
    "a missing file in the middle": (
        lambda X: [__file__, "gone.npz", __file__],
        "gone.npz must be a file of counts; correct the path.",
    ),
    "another number of columns": (
        lambda X: [X, X, X[:, :39]],
        "block 2 has 39 columns and must have 40, as the blocks before it; "
        "build all blocks with the same sections and vocabulary.",
    ),
    "NaN": (
        lambda X: [X, with_entry(X, np.nan)],
        "block 1 has NaN in row 3, column 5 and must have finite counts of at least 0; replace missing counts by 0.",
    ),
    "negative counts": (
        lambda X: [X, sp.csr_array(with_entry(X, -2))],
        "block 1 has -2 in row 3, column 5 and must have finite counts of at least 0; check how block 1 was made.",
    ),
    "text": (
        lambda X: [X, np.array([["a", "b"]])],
        "block 1 of dtype <U1 with 2 axes must be counts of shape (n_bags, n_columns); pass arrays or sparse matrices",
    ),
    "no blocks": (lambda X: Again(X[:0], []), "X has n_samples=0 and must have at least 2 bags"),
    "nothing counted": (lambda X: [0 * X[:9], 0 * X], "X has no counts"),
    "blocks that change": (
        lambda X: Shrinking(X, [30, 60]),
        "block 2 has shape (88, 40) and had (89, 40) before; blocks must be the same in every pass; "
        "pass blocks that do not change while the model reads them.",
    ),
    "indices outside the table": (
        lambda X: [X, sp.csr_array((X.data, X.indices + 7, X.indptr), shape=(150, 60))[:, :40], broken(X)],
        "block 2 is damaged",
    ),
    "a file of something else": (lambda X: __file__, "is damaged or no file of countinggrids"),
}


def broken(X):
    X = X.copy()
    X.indices[4] = 1000
    return X


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_block_is_named(X, mistake):
    source, message = MISTAKES[mistake]
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
        cg.CountingGrid(**MODEL.get_params()).fit(source(X))


def test_new_bags_must_have_the_columns_that_were_fitted(X):
    model = cg.CountingGrid(**MODEL.get_params()).fit([X, X])
    with pytest.raises(
        ValueError, match="X has 39 features, but CountingGrid is expecting 40 features as input; build"
    ):
        model.predict([X[:, :39]])
