"""Files of ours that were written with care by somebody hostile: digests and lengths are right, the content is not."""

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import countinggrids as cg
import sandbox
from countinggrids.cli import app
from countinggrids.data import collection_file, container, readers
from countinggrids.features import LabelMaps
from countinggrids.features.text import Document
from countinggrids.models import storage
from countinggrids.training import checkpoints

X = np.random.default_rng(0).poisson(0.7, (24, 12))
FIT = {"grid": (8, 8), "window": (4, 4), "max_iter": 12, "tol": 1e-2, "random_state": 3}
RUN = CliRunner()


def rewrite(path, form, version, facts=None, arrays=None):
    """Write a file again with other facts or arrays; None leaves one out."""
    known, stored = container.read(path, form, version)
    there = {name: np.array(stored[name]) for name in stored} | (arrays or {})
    container.write(path, known | (facts or {}), {name: array for name, array in there.items() if array is not None})


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model"
    cg.CountingGrid((4, 4), 2, random_state=0).partial_fit(X).save(path)
    return path


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "bags.cg"
    words = [f"w{i}" for i in range(12)]
    cg.Collection.from_texts([Document(" ".join(np.repeat(words, row)), "t", time=1.0) for row in X]).save(path)
    return path


def parameters_with(path, **changes):
    return {"parameters": container.read(path, storage.FORMAT, storage.VERSION)[0]["parameters"] | changes}


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"n_iter": -1}, {}),
        ({"n_features_in": 1e400}, {}),
        ({"feature_names": ["a", "b"]}, {}),
        ({"feature_names": 7}, {}),
        ({"stream": [float("nan"), 1]}, {}),
        ({"stream": [1.0, 10**400]}, {}),
        ({"stream": [1.0]}, {}),
        ({}, {"history": np.zeros((2, 2))}),
        ({}, {"history": np.zeros(3, bool)}),
        ({}, {"pi": None}),
        ({}, {"log_prior": np.zeros(16, np.float32)}),
        ({}, {"stream.counts": np.zeros((3, 4, 4), np.float32)}),
        ({}, {"stream.usage": np.full((4, 4), np.nan)}),
        ({"fit_weight": 1.0}, {}),
        ({}, {"parameter.eta": np.ones(5)}),
        ({}, {"parameter.init": np.ones((4, 4, 5))}),
    ],
)
def test_models_with_impossible_parts_are_refused(model, facts, arrays):
    rewrite(model, storage.FORMAT, storage.VERSION, facts, arrays)
    with pytest.raises(ValueError, match=f"{model} is inconsistent"):
        cg.load(model)


@pytest.mark.parametrize(
    "change",
    [
        {"anneal": [0.5]},
        {"anneal": "quick"},
        {"eta": {"a": 1}},
        {"max_iter": 0},
        {"location_prior": 3},
        {"dtype": "object"},
    ],
    ids=str,
)
def test_models_with_impossible_options_are_refused(model, change):
    rewrite(model, storage.FORMAT, storage.VERSION, parameters_with(model, **change))
    with pytest.raises(ValueError, match=f"{model} is inconsistent"):
        cg.load(model)


def test_huge_numbers_of_sections_are_refused_at_once(model):
    change = {"grid": [10**18] * 2, "window": [10**18 - 1] * 2, "matched": [10**17] * 2, "painted": [1, 1], "groups": 1}
    rewrite(model, storage.FORMAT, storage.VERSION, {"geometry": change})
    done = sandbox.run("import sys, countinggrids as cg; cg.load(sys.argv[1])", model, seconds=30)
    assert "is inconsistent (sections" in done.stderr


@pytest.mark.parametrize(
    "change",
    [{"window": [3, 10**400]}, {"window": [9, 9]}, {"grid": 7}, {"groups": 0}, {"groups": 10**9}, {"painted": None}],
    ids=lambda change: next(iter(change)),
)
def test_models_of_impossible_shapes_are_refused(model, change):
    geometry = container.read(model, storage.FORMAT, storage.VERSION)[0]["geometry"]
    rewrite(model, storage.FORMAT, storage.VERSION, {"geometry": geometry | change})
    with pytest.raises(ValueError, match=f"{model} is inconsistent"):
        cg.load(model)


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"fit_weight": -1.0}, {}),
        ({"fit_weight": "all"}, {}),
        ({}, {"fit.tokens": np.zeros((4, 4))}),
        ({}, {"fit.tokens": np.full((1, 4, 4), -1.0)}),
        ({}, {"fit.usage": np.full((4, 4), np.nan)}),
        ({}, {"fit.totals": np.zeros(3)}),
        ({}, {"fit.totals": None}),
        ({}, {"fit.extra": np.zeros(3)}),
    ],
    ids=str,
)
def test_fits_that_no_model_goes_on_from_are_refused(tmp_path, facts, arrays):
    path = tmp_path / "model"
    cg.CountingGrid((4, 4), 2, max_iter=20, tol=9.0).fit(X).save(path)
    rewrite(path, storage.FORMAT, storage.VERSION, facts, arrays)
    with pytest.raises(ValueError, match=f"{path} is inconsistent"):
        cg.load(path)


def test_columns_that_do_not_fill_the_sections_are_refused(tmp_path):
    path = tmp_path / "model"
    cg.CountingGrid((4, 4), 2, 2, max_iter=20, tol=9.0).fit(X).save(path)
    rewrite(path, storage.FORMAT, storage.VERSION, {"n_features_in": 13})
    with pytest.raises(ValueError, match="there are 13 columns"):
        cg.load(path)


COUNTS = {
    "ends that fall": {"counts.indptr": np.r_[0, 500, np.arange(23)]},
    "ends beyond the entries": {"counts.indptr": np.r_[0, np.full(24, 10**9)]},
    "a negative end": {"counts.indptr": np.r_[0, -5, np.full(23, 9)]},
    "too few ends": {"counts.indptr": np.arange(4)},
    "no ends": {"counts.indptr": np.zeros(0, np.int64)},
    "ends that are no integers": {"counts.indptr": np.zeros(25)},
    "columns that are no integers": {"counts.indices": np.zeros(9)},
    "columns for others": {"counts.indices": np.zeros(3, np.int32)},
    "counts in two axes": {"counts.data": np.zeros((3, 3), np.float32)},
}


@pytest.mark.parametrize("what", COUNTS)
def test_collections_whose_counts_are_no_matrix_are_refused(collection, what):
    rewrite(collection, collection_file.FORMAT, collection_file.VERSION, arrays=COUNTS[what])
    for load in (cg.Collection.load, readers.load):
        with pytest.raises(ValueError, match="is inconsistent"):
            load(collection)


@pytest.mark.parametrize(
    "shape", [[24], [24, 12, 1], "24", [24.0, 12.0], [-1, 12], [2**70, 12], [True, 12], None], ids=str
)
def test_collections_of_impossible_shapes_are_refused(collection, shape):
    rewrite(collection, collection_file.FORMAT, collection_file.VERSION, {"shape": shape})
    for load in (cg.Collection.load, readers.load):
        with pytest.raises(ValueError, match="is inconsistent"):
            load(collection)


USES = """
import sys, numpy as np, countinggrids as cg
from countinggrids.backends.dask import arrays
path = sys.argv[1]
model = cg.CountingGrid((4, 4), 2, max_iter=3, tol=9.0)
uses = [lambda: cg.Collection.load(path).coarsen(1).counts, lambda: model.fit(path)]
uses += [lambda: [block.compute() @ np.ones(block.compute().shape[1]) for block in arrays.of_file(path)]]
for use in uses:
    try:
        use()
        print("used", flush=True)
    except ValueError as error:
        print("refused", flush=True)
"""


@pytest.mark.parametrize("column", [12, 500_000_000, -1, -500_000_000])
def test_columns_outside_the_table_never_reach_compiled_code(collection, column):
    indices = np.array(container.read(collection, collection_file.FORMAT, collection_file.VERSION)[1]["counts.indices"])
    indices[5] = column
    rewrite(collection, collection_file.FORMAT, collection_file.VERSION, arrays={"counts.indices": indices})
    done = sandbox.run(USES, collection)
    assert (done.returncode, done.stdout.split()) == (0, ["refused"] * 3), done.stderr


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"columns": "title"}, {}),
        ({"columns": [["title"]]}, {}),
        ({"root": None}, {}),
        ({"sections": [0, 1]}, {}),
        ({"steps": 5}, {}),
        ({"steps": [{}]}, {}),
        ({}, {"item.time": np.zeros((24, 1))}),
        ({}, {"item.time": np.zeros(3)}),
        ({}, {"item.title.ends": np.zeros(24)}),
        ({}, {"item.title.ends": np.arange(24, dtype=np.uint64)[::-1]}),
        ({}, {"item.title.bytes": np.zeros(24)}),
        ({}, {"vocabulary.names.bytes": np.full(40, 255, np.uint8)}),
        ({}, {"vocabulary.colors": np.zeros((3, 3), np.uint8)}),
        ({}, {"vocabulary.patches": np.zeros((12, 2, 2), np.uint8)}),
    ],
)
def test_collections_with_impossible_parts_are_refused(collection, facts, arrays):
    rewrite(collection, collection_file.FORMAT, collection_file.VERSION, facts, arrays)
    with pytest.raises(ValueError, match="is inconsistent"):
        cg.Collection.load(collection)


def test_a_number_that_is_a_text_is_no_number(collection):
    texts = container.Texts.pack(["soon"] * 24)
    arrays = {"item.time": None, "item.time.bytes": texts.packed, "item.time.ends": texts.ends}
    rewrite(collection, collection_file.FORMAT, collection_file.VERSION, arrays=arrays)
    with pytest.raises(ValueError, match=r"is inconsistent \(could not convert string to float"):
        cg.Collection.load(collection)


def test_a_damaged_text_is_named_when_it_is_read(collection):
    rewrite(
        collection,
        collection_file.FORMAT,
        collection_file.VERSION,
        arrays={"item.title.bytes": np.full(24, 255, np.uint8)},
    )
    with pytest.raises(ValueError, match="text 3 in the file is damaged"):
        cg.Collection.load(collection).items.row(3)


@pytest.mark.parametrize("change", [{"ngram_range": 7}, {"stop_words": 0.5}, {"unknown": 1}], ids=str)
def test_extractors_with_impossible_options_are_refused(collection, change):
    steps = container.read(collection, collection_file.FORMAT, collection_file.VERSION)[0]["steps"]
    steps[0]["parameters"] |= change
    rewrite(collection, collection_file.FORMAT, collection_file.VERSION, {"steps": steps})
    with pytest.raises(ValueError, match="is inconsistent"):
        cg.Collection.load(collection)


class Killed(Exception):  # noqa: N818
    pass


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "TIME_FRACTION", 1.0)
    stages = []

    def callback(now):
        stages.append(now.stage)
        if stages.count("learning") == 3:
            raise Killed

    path = tmp_path / "fit.checkpoint"
    with pytest.raises(Killed):
        cg.CountingGrid(**FIT).fit(X, callback=callback, checkpoint=path)
    return path


CHECKPOINTS = {
    "a phase too late": ({}, {"running.place": np.array([500.0, -1.0])}),
    "a phase below zero": ({}, {"running.place": np.array([-3.0, -1.0])}),
    "no phase": ({}, {"running.place": np.zeros(0)}),
    "a phase that is not a number": ({}, {"running.place": np.array([np.nan, 0])}),
    "a phase without end": ({}, {"running.place": np.array([np.inf, 0])}),
    "a smaller grid": (
        {},
        {"running.pi": np.ones((12, 3, 3), np.float32), "running.log_prior": np.zeros((3, 3), np.float32)},
    ),
    "a grid of another type": ({}, {"running.pi": np.ones((12, 8, 8))}),
    "a grid without a prior": ({}, {"running.log_prior": None}),
    "a grid of zeros": ({}, {"running.pi": np.zeros((12, 8, 8), np.float32)}),
    "a grid of large numbers": ({}, {"running.pi": np.full((12, 8, 8), 1e30, np.float32)}),
    "a grid of negative numbers": ({}, {"running.pi": np.full((12, 8, 8), -1, np.float32)}),
    "a prior of zeros": ({}, {"running.log_prior": np.zeros((8, 8), np.float32)}),
    "no objectives": ({}, {"running.history": np.zeros(0)}),
    "objectives of fewer grids": ({}, {"finished.0.history": np.zeros((5, 1))}),
    "more iterations than planned": ({}, {"running.history": np.zeros(99)}),
    "another key": ({}, {"rng.key": np.zeros(9, np.uint32)}),
    "a place outside the key": ({"rng": [0, 0.0, 10**9]}, {}),
    "a place before the key": ({"rng": [0, 0.0, -(10**6)]}, {}),
    "no place": ({"rng": [0, 0.0, None]}, {}),
    "no random numbers": ({"rng": []}, {}),
    "more runs than there are": ({"converged": [True] * 9}, {}),
    "no runs": ({"converged": None}, {}),
}


@pytest.mark.parametrize("what", CHECKPOINTS)
def test_checkpoints_that_no_fit_has_written_are_refused(checkpoint, what):
    rewrite(checkpoint, checkpoints.FORMAT, checkpoints.VERSION, *CHECKPOINTS[what])
    with pytest.raises(ValueError, match=rf"{checkpoint} .*delete it to start anew"):
        cg.CountingGrid(**FIT).fit(X, checkpoint=checkpoint)


def test_a_checkpoint_as_it_was_written_is_gone_on_from(checkpoint):
    rewrite(checkpoint, checkpoints.FORMAT, checkpoints.VERSION)
    found = cg.CountingGrid(**FIT).fit(X, checkpoint=checkpoint)
    assert found.pi_.tobytes() == cg.CountingGrid(**FIT).fit(X).pi_.tobytes()


def test_entities_are_refused_in_every_encoding(tmp_path):
    text = '<?xml version="1.0" encoding="{}"?><!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>'
    for encoding in ("utf-8", "utf-16"):
        path = tmp_path / f"{encoding}.xml"
        path.write_bytes(text.format(encoding).encode(encoding))
        with pytest.raises(ValueError, match="it has a document type"):
            LabelMaps().fit([path])


def test_info_tells_what_plain_counts_are(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.coo_array(X))
    np.save(tmp_path / "x.npy", X)
    for name in ("x.npz", "x.npy"):
        result = RUN.invoke(app, ["info", str(tmp_path / name), "--json"])
        assert result.exit_code == 0
        wanted = (
            f'{{"class": "Counts", "bags": 24, "columns": 12, "tokens_per_bag": {X.sum() / 24:.1f}, "empty_bags": 0}}'
        )
        assert result.stdout.strip() == wanted


@pytest.mark.parametrize("arguments", [["export", "MODEL", "FILE", "-o", "OUT"], ["cluster", "FILE", "-o", "OUT"]])
def test_plain_counts_are_not_called_damaged_where_a_collection_is_wanted(tmp_path, model, arguments):
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(X))
    names = {"MODEL": model, "FILE": tmp_path / "x.npz", "OUT": tmp_path / "out.csv"}
    result = RUN.invoke(app, [str(names.get(each, each)) for each in arguments])
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'x.npz'} holds counts alone and must be a file that save() wrote" in result.stderr


def test_errors_are_one_line_also_where_memory_or_a_name_is_the_matter(tmp_path, model, monkeypatch):
    np.save(tmp_path / "a\nb.npy", np.zeros((2, 3, 4)))
    result = RUN.invoke(app, ["locate", str(model), str(tmp_path / "a\nb.npy")])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(readers, "load", fail)
    np.save(tmp_path / "x.npy", X)
    result = RUN.invoke(app, ["locate", str(model), str(tmp_path / "x.npy")])
    assert (result.exit_code, result.stderr) == (2, "Error: not enough memory.\n")
