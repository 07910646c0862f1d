"""Bags on a Dask cluster: the bits of one process for every model and form, the command, and mistakes."""

import re
import time

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
import scipy.sparse as sp
from fits import LOCAL, OPTIONS, model, odd_blocks, same
from sklearn.base import clone
from typer.testing import CliRunner

import countinggrids as cg
from cases import with_entry
from countinggrids.backends.dask import client as clients
from countinggrids.cli import app
from countinggrids.data import chunks
from countinggrids.features.text import Document
from countinggrids.kernels.counts import SparseCounts

FORMS = {
    "dense array": lambda X: da.from_array(X.toarray(), chunks=(31, 13)),
    "sparse array": lambda X: da.from_array(X.toarray(), chunks=(64, 40)).map_blocks(sp.csr_matrix),
    "integers": lambda X: da.from_array(X.toarray().astype(np.int64), chunks=(7, 40)),
    "delayed blocks of odd sizes": odd_blocks,
    "an empty block of another kind": lambda X: [dask.delayed(X[:0]), dask.delayed(X.toarray())],
    "futures": lambda X: distributed.get_client().scatter([X[:50], X[50:]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_two_workers_give_the_bits_of_one_process(X, client, form):
    weights = np.arange(150) % 4
    wanted = model().fit(X, sample_weight=weights)
    assert same(model().fit(FORMS[form](X), sample_weight=weights), wanted)


MODELS = {
    "candidates": cg.CountingGrid((8, 8), (4, 4), max_iter=10, tol=9.0, random_state=0),
    "restarts": model(n_init=3),
    "float64": model(dtype="float64"),
    "sections": cg.CountingGrid((6, 6), (4, 4), (2, 2), **OPTIONS),
    "hybrid": cg.HybridEpitome((6, 6), (2, 2), **OPTIONS),
    "groups": cg.SpatialBagOfWords(5, (2, 2), **OPTIONS),
    "one axis": cg.MixtureOfUnigrams(7, **OPTIONS),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_bits_of_one_process(X, client, name):
    assert same(clone(MODELS[name]).fit(odd_blocks(X)), clone(MODELS[name]).fit(X))


@pytest.mark.parametrize("name", ["sections", "hybrid", "restarts"])
def test_batches_and_partial_fits_have_the_bits_of_one_process(X, client, name):
    stepwise = [clone(MODELS[name]).set_params(batch_size=50) for _ in range(2)]
    assert same(stepwise[0].fit(odd_blocks(X)), stepwise[1].fit([X[:80], X[80:]]))
    online = [clone(MODELS[name]).partial_fit(some).partial_fit(some) for some in (odd_blocks(X), X)]
    assert online[0].pi_.tobytes() == online[1].pi_.tobytes()


def test_large_sparse_bags_have_the_bits_of_one_process(rng, client, monkeypatch):
    """As large as it takes to be multiplied non-zero by non-zero."""
    monkeypatch.setattr(chunks, "CHUNK_BAGS", 200)
    monkeypatch.setattr(chunks, "BAGS_PER_FEATURE", 0)
    X = sp.random_array((600, 2000), density=0.02, format="csr", dtype=np.float32, rng=rng)
    how = OPTIONS | {"max_iter": 6}
    plain = cg.CountingGrid((14, 14), (3, 3), **how).fit(X)
    held = chunks.bags_of(X[:200], np.ones(200, "f4"), 2000, plain.geometry_)
    assert type(held.matched) is type(held.painted) is SparseCounts
    assert same(cg.CountingGrid((14, 14), (3, 3), **how).fit([dask.delayed(X[:390]), dask.delayed(X[390:])]), plain)
    spread = da.concatenate([da.from_array(X[:390]), da.from_array(X[390:])])
    assert plain.transform(spread).compute().tobytes() == plain.transform(X).tobytes()


def test_without_a_cluster_blocks_are_computed_here(X):
    assert same(model().fit(odd_blocks(X)), model().fit(X))
    np.testing.assert_array_equal(model().fit(X).predict(odd_blocks(X)).compute(), model().fit(X).predict(X))


ARRAYS = {
    "dense": lambda X: da.from_array(X.toarray(), chunks=(31, 13)),
    "sparse": lambda X: FORMS["sparse array"](X).map_blocks(sp.csr_array),
    "empty chunks": lambda X: da.concatenate([da.zeros((0, 40)), da.from_array(X.toarray(), chunks=(64, 40))]),
}


@pytest.mark.parametrize("form", ARRAYS)
@pytest.mark.parametrize("name", ["transform", "predict", "locate", "score_samples", "free_energy"])
def test_predictions_for_a_dask_array_have_the_bits_of_those_for_a_table(X, client, form, name):
    fitted, spread = model().fit(X), ARRAYS[form](X)
    wanted, given = getattr(fitted, name)(X), getattr(fitted, name)(spread)
    assert isinstance(given, da.Array)
    assert (given.shape, given.dtype, given.chunks[0]) == (wanted.shape, wanted.dtype, spread.chunks[0])
    assert given.compute().tobytes() == wanted.tobytes()


def test_predictions_for_blocks_of_unknown_length_differ_by_rounding(X, client):
    fitted = model().fit(X)
    for name in ("transform", "score_samples"):
        given, wanted = getattr(fitted, name)(odd_blocks(X)).compute(), getattr(fitted, name)(X)
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)
    assert fitted.score(odd_blocks(X)) == pytest.approx(fitted.score(X))


def test_what_is_computed_from_predictions_is_the_same(X, client):
    fitted, spread = model().fit(X), ARRAYS["dense"](X)
    assert fitted.score(spread) == pytest.approx(fitted.score(X))
    assert fitted.perplexity(spread) == pytest.approx(fitted.perplexity(X))
    np.testing.assert_array_equal(fitted.usage(spread), fitted.usage(X))
    sparse = fitted.set_params(sparse_output=True).transform(spread).compute()
    np.testing.assert_array_equal(sparse.toarray(), fitted.transform(X).toarray())


def test_a_checkpoint_of_one_process_goes_on_on_a_cluster(X, client, tmp_path):
    class Killed(Exception):  # noqa: N818
        pass

    def die(now):
        if now.number == 3:
            raise Killed

    wanted = model().fit(X)
    with pytest.raises(Killed):
        model().fit(X, callback=die, checkpoint=tmp_path / "fit")
    assert same(model().fit(odd_blocks(X), checkpoint=tmp_path / "fit"), wanted)


def test_the_command_learns_on_a_cluster(rng, programs, tmp_path):
    X = sp.csr_array(rng.poisson(0.5, (30, 2 * 2 * 10)).astype(np.float32))
    words = cg.Collection.from_texts([Document(" ".join(f"w{i}" for i in range(10)))] * 30)
    cg.Collection(X, words.vocabulary, words.items, (2, 2)).save(tmp_path / "bags.cg")
    np.save(tmp_path / "bags.npy", X.toarray())
    for name, sections in [("bags.cg", []), ("bags.cg", ["--sections", "1x1"]), ("bags.npy", ["--sections", "2x2"])]:
        models = [tmp_path / f"{place}.model" for place in ("here", "there")]
        for path, where in zip(models, ([], ["--scheduler", programs[0]]), strict=True):
            options = ["-o", str(path), "--grid", "6x6", "--window", "2x2", "--force", *sections, *where]
            result = CliRunner().invoke(app, ["fit", str(tmp_path / name), *options])
            assert result.exit_code == 0, result.stderr
        here, there = map(cg.load, models)
        assert same(here, there)


def test_the_command_says_that_no_scheduler_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(clients, "PATIENCE", 0.5)
    np.save(tmp_path / "bags.npy", np.ones((4, 3)))
    options = ["-o", str(tmp_path / "model"), "--grid", "4x4", "--scheduler", "tcp://127.0.0.1:9"]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "bags.npy"), *options])
    assert result.exit_code == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in result.stderr
    assert not (tmp_path / "model").exists()


MISTAKES = {
    "another number of columns": (
        lambda X: [dask.delayed(X), dask.delayed(X), dask.delayed(X[:, :39])],
        "block 2 has 39 columns and must have 40, as the blocks before it",
    ),
    "a missing file in the middle": (
        lambda X: [dask.delayed(X), dask.delayed(np.load)("gone.npy"), dask.delayed(X)],
        "block 1 of X could not be computed (FileNotFoundError: [Errno 2] No such file or directory: 'gone.npy'); "
        "expected counts; check that every worker has the same files and the same packages.",
    ),
    "NaN": (
        lambda X: da.from_array(with_entry(X, np.nan), chunks=(2, 40)),
        "block 1 has NaN in row 1, column 5 and must have finite counts of at least 0",
    ),
    "negative counts": (
        lambda X: [dask.delayed(X), dask.delayed(with_entry(X, -2))],
        "block 1 has -2 in row 3, column 5 and must have finite counts of at least 0",
    ),
    "text": (
        lambda X: [dask.delayed(np.array([["a", "b"]]))],
        "block 0 of dtype <U1 with 2 axes must be counts",
    ),
    "three axes": (
        lambda X: da.zeros((4, 3, 2)),
        "X is a Dask Array of shape (4, 3, 2); expected (n_bags, n_columns); "
        "pass a Dask array with two axes, or a list of delayed blocks.",
    ),
    "nothing counted": (lambda X: da.zeros((40, 40)), "X has no counts"),
    "one bag": (lambda X: [dask.delayed(X[:1])], "X has n_samples=1 and must have at least 2 bags"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_block_is_named(X, client, mistake):
    make, message = MISTAKES[mistake]
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        model().fit(make(X))


def test_new_bags_must_have_the_columns_that_were_fitted(X, client):
    fitted = model().fit(X)
    with pytest.raises(ValueError, match="X has 39 features, but CountingGrid is expecting 40 features as input"):
        fitted.predict(da.zeros((20, 39)))
    with pytest.raises(ValueError, match="X has NaN in row 18, column 5"):
        fitted.predict(da.concatenate([da.zeros((15, 40)), MISTAKES["NaN"][0](X)])).compute()
    with pytest.raises(ValueError, match="block 1 has NaN in row 3, column 5"):
        fitted.predict([dask.delayed(X), dask.delayed(with_entry(X, np.nan))]).compute()


def hungry(n_bytes):
    held = []
    for _ in range(n_bytes // 2**25):
        held.append(np.ones(2**25, np.uint8))
        time.sleep(0.02)
    return np.ones((10, 40))


def test_workers_out_of_memory_are_named():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=1, memory_limit="400MB", **LOCAL) as local,
        distributed.Client(local),
        pytest.raises(
            clients.ClusterError, match="a task ended every worker that tried it, 1 in all; give each worker"
        ),
    ):
        model().fit([dask.delayed(np.ones((10, 40))), dask.delayed(hungry)(2**30)])


def test_a_device_and_a_cluster_do_not_go_together(X, client):
    with pytest.raises(ValueError, match="device='cpu' must be None for a Dask array on a cluster"):
        model(device="cpu").fit(odd_blocks(X))
