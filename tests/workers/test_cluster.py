"""Bags on a Dask cluster: the bits of one process on any number of workers, the command, and mistakes."""

import re
import time

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
import scipy.sparse as sp
from fits import LOCAL, OPTIONS, model, odd_blocks, same
from typer.testing import CliRunner

import countinggrids as cg
from cases import with_entry
from countinggrids import scheduler
from countinggrids.cli import app
from countinggrids.features.text import Document

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


def test_the_search_for_a_layout_looks_at_the_same_bags(X, client):
    model = cg.CountingGrid((8, 8), (4, 4), max_iter=10, tol=9.0, random_state=0)
    assert same(model.fit(odd_blocks(X)), cg.CountingGrid(**model.get_params()).fit(X))


def test_without_a_cluster_blocks_are_computed_here(X):
    assert same(model().fit(odd_blocks(X)), model().fit(X))
    np.testing.assert_array_equal(model().fit(X).predict(odd_blocks(X)).compute(), model().fit(X).predict(X))


def test_sections_batches_and_partial_fits_are_the_same_too(X, client):
    spread = odd_blocks(X)
    hybrid = cg.HybridEpitome((6, 6), (2, 2), **OPTIONS)
    assert same(hybrid.fit(spread), cg.HybridEpitome((6, 6), (2, 2), **OPTIONS).fit(X))
    assert same(model().fit(spread, batch_size=50), model().fit([X[:80], X[80:]], batch_size=50))
    np.testing.assert_array_equal(model().partial_fit(spread).pi_, model().partial_fit(X).pi_)


def test_answers_about_a_dask_array_are_dask_arrays(X, client):
    fitted = model().fit(X)
    spread = da.from_array(X.toarray(), chunks=(31, 13))
    spread = da.concatenate([spread, spread[:0]])
    for name in ("transform", "predict", "locate", "score_samples", "free_energy"):
        wanted, given = getattr(fitted, name)(X), getattr(fitted, name)(spread)
        assert isinstance(given, da.Array)
        assert (given.shape, given.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(given.compute(), wanted, rtol=1e-5, atol=1e-6)
    assert fitted.score(spread) == pytest.approx(fitted.score(X))
    assert fitted.perplexity(odd_blocks(X)) == pytest.approx(fitted.perplexity(X))


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
    monkeypatch.setattr(scheduler, "PATIENCE", 0.5)
    np.save(tmp_path / "bags.npy", np.ones((4, 3)))
    options = ["-o", str(tmp_path / "model"), "--grid", "4x4", "--scheduler", "tcp://127.0.0.1:9"]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "bags.npy"), *options])
    assert result.exit_code == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in result.stderr
    assert not (tmp_path / "model").exists()


MISTAKES = {
    "another number of columns": (
        lambda X: [dask.delayed(X), dask.delayed(X), dask.delayed(X[:, :39])],
        "block 2 has 39 columns and those before it 40; wanted the same in every block; "
        "build all with the same sections and vocabulary",
    ),
    "a missing file in the middle": (
        lambda X: [dask.delayed(X), dask.delayed(np.load)("gone.npy"), dask.delayed(X)],
        "block 1 could not be made (FileNotFoundError: [Errno 2] No such file or directory: 'gone.npy'); "
        "wanted a table of counts; check that every worker sees the same files and has the same packages",
    ),
    "NaN": (
        lambda X: da.from_array(with_entry(X, np.nan), chunks=(2, 40)),
        "block 1 holds NaN at row 1, column 5; wanted finite counts of at least 0; replace missing counts by 0",
    ),
    "negative counts": (
        lambda X: [dask.delayed(X), dask.delayed(with_entry(X, -2))],
        "block 1 holds -2 at row 3, column 5; wanted finite counts of at least 0; check how block 1 was made",
    ),
    "text": (
        lambda X: [dask.delayed(np.array([["a", "b"]]))],
        "block 0 is <U1 with 2 axes; wanted counts, (bags, columns); give arrays or sparse matrices of numbers",
    ),
    "three axes": (
        lambda X: da.zeros((4, 3, 2)),
        "X is a Array of Dask; wanted counts, (bags, columns); "
        "give a Dask array of two axes, or a list of delayed blocks",
    ),
    "nothing counted": (lambda X: da.zeros((40, 40)), "X holds no counts at all"),
    "one bag": (lambda X: [dask.delayed(X[:1])], "X has n_samples=1 bag; wanted at least 2"),
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
    with pytest.raises(ValueError, match="block 1 holds NaN at row 1, column 5"):
        fitted.predict(MISTAKES["NaN"][0](X)).compute()


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
            scheduler.ClusterError, match="wanted workers with enough memory; give each more memory"
        ) as raised,
    ):
        model().fit([dask.delayed(np.ones((10, 40))), dask.delayed(hungry)(2**30)])
    assert "a piece of work ended every worker that tried it, 1 in all" in str(raised.value)


def test_a_device_and_a_cluster_do_not_go_together(X, client):
    told = "device is 'cpu' and X lies on the workers of a cluster; wanted NumPy there; give device=None"
    with pytest.raises(ValueError, match=re.escape(told)):
        model(device="cpu").fit(odd_blocks(X))
