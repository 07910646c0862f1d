"""Bags on a Dask cluster: the bits of one process on any number of workers, and when workers die."""

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from threading import Timer

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids import cluster, kept, learn, recipe, scheduler, sources, worker
from countinggrids.cli import app
from countinggrids.engine import Threads
from countinggrids.features.text import Document
from countinggrids.shortlist import Windows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

OPTIONS = {"max_iter": 12, "tol": 9.0, "anneal": (0.5, 1.5, 1), "random_state": 0}
LOCAL = {"processes": True, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}


def model(**options):
    return cg.CountingGrid((6, 6), (3, 3), **OPTIONS | options)


@pytest.fixture
def X(rng, monkeypatch):  # noqa: N802
    """Sparse bags, cut into many shares."""
    monkeypatch.setattr(sources, "SHARE_BAGS", 15)
    monkeypatch.setattr(sources, "BAGS_PER_FEATURE", 0)
    return sp.csr_array(rng.poisson(0.3, (150, 40)).astype(np.float32))


@pytest.fixture(scope="module")
def two_workers():
    with distributed.LocalCluster(n_workers=2, **LOCAL) as local:
        yield local


@pytest.fixture
def client(two_workers):
    with distributed.Client(two_workers) as client:
        yield client


def odd_blocks(X):
    return [dask.delayed(X[a:b]) for a, b in [(0, 1), (1, 64), (64, 64), (64, 150)]]


FORMS = {
    "dense array": lambda X: da.from_array(X.toarray(), chunks=(31, 13)),
    "sparse array": lambda X: da.from_array(X.toarray(), chunks=(64, 40)).map_blocks(sp.csr_matrix),
    "integers": lambda X: da.from_array(X.toarray().astype(np.int64), chunks=(7, 40)),
    "delayed blocks of odd sizes": odd_blocks,
    "an empty block of another kind": lambda X: [dask.delayed(X[:0]), dask.delayed(X.toarray())],
    "futures": lambda X: distributed.get_client().scatter([X[:50], X[50:]]),
}


def same(given, wanted):
    return given.pi_.tobytes() == wanted.pi_.tobytes() and given.history_.tobytes() == wanted.history_.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_two_workers_give_the_bits_of_one_process(X, client, form):
    weights = np.arange(150) % 4
    wanted = model().fit(X, sample_weight=weights)
    assert same(model().fit(FORMS[form](X), sample_weight=weights), wanted)


def test_one_worker_gives_the_bits_of_one_process_and_comes_back_when_killed(X):
    """With the only worker goes the grid of the iteration, which is sent again."""
    how = LOCAL | {"n_workers": 1, "threads_per_worker": 2}
    with distributed.LocalCluster(**how) as local, distributed.Client(local) as client:
        [process] = client.run(os.getpid).values()
        # The second iteration is the last that is sent alone: the worker dies while it makes the others in one go.
        callbacks = None, killer(process, at=2, after=0.005)
        given = [model().fit(odd_blocks(X), callback=callback) for callback in callbacks]
        assert list(client.run(os.getpid).values()) != [process]
    assert all(same(each, model().fit(X)) for each in given)


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


def test_bags_stay_on_the_workers(X, client, monkeypatch):
    """What goes out and comes back in an iteration is as large as the grid, whatever the bags."""
    table = cluster.read(model(), odd_blocks(X), is_fitting=True)
    monkeypatch.setattr(cluster._Fetched, "__iter__", lambda self: pytest.fail("bags were brought here"))
    moved = []
    gather = client.gather
    monkeypatch.setattr(client, "gather", lambda future, **how: moved.append(future) or gather(future, **how))
    shares = table.shares(np.ones(150, "f4"), 40, model()._geometry())
    assert shares.total(counted, Threads(1), np.zeros(5)) == 150
    assert len(moved) == 1


def test_the_grid_stays_on_the_workers(X, client, monkeypatch):
    """Only what is asked for, and every so often the grid, comes here."""
    fetched = []
    fetch = kept.Kept.fetched
    monkeypatch.setattr(kept.Kept, "fetched", lambda self, held: fetched.append(len(held.steps)) or fetch(self, held))
    monkeypatch.setattr(kept, "LONGEST", 5)
    options = {"anneal": (0.5, 1.1, 1), "tol": 1e-9, "max_iter": 12}
    with pytest.warns(ConvergenceWarning):
        given = model(**options).fit(odd_blocks(X), callback=lambda now: now.number == 9 and now.pi.sum() < 0)
    assert fetched == [5, 4, 5, 2]
    with pytest.warns(ConvergenceWarning):
        assert same(given, model(**options).fit(X))


def test_nothing_stays_on_the_workers_when_a_fit_has_ended(X, client):
    gc.collect()
    gc.disable()  # what is let go must not wait for it
    try:
        model().fit(odd_blocks(X))
        deadline = time.monotonic() + 10
        while client.futures and time.monotonic() < deadline:  # Dask lets go in a thread of its own
            time.sleep(0.02)
        assert not client.futures
    finally:
        gc.enable()


@pytest.fixture
def one_worker(monkeypatch):
    """Connect to one worker, which makes twenty iterations in one go; give how many each time."""
    sent, stepped = [], kept.Kept._stepped
    monkeypatch.setattr(kept, "AT_ONCE", 1e9)
    monkeypatch.setattr(kept, "MOST_AT_ONCE", 20)
    monkeypatch.setattr(kept, "ROWS", 1)
    monkeypatch.setattr(
        kept.Kept, "_stepped", lambda self, held, steps: sent.append(len(steps)) or stepped(self, held, steps)
    )
    how = LOCAL | {"n_workers": 1, "processes": False, "host": None}
    with distributed.LocalCluster(**how) as local, distributed.Client(local):
        yield sent


@pytest.fixture
def few(X):
    """Bags that one worker has all of."""
    return X[:100]


def whole(X):
    return [dask.delayed(X)]


def test_one_worker_makes_iterations_in_one_go_until_the_objective_settles(few, one_worker):
    options = {"anneal": (0.2, 1.05, 1), "tol": 1e-4, "max_iter": 100}
    wanted = model(**options).fit(few)
    assert same(model(**options).fit(whole(few)), wanted)
    assert len(wanted.history_) > 30
    assert one_worker[:3] == [1, 1, 20]
    assert len(one_worker) <= 8  # a row ends where a phase does, and none is made again


def test_who_looks_at_every_grid_sees_every_grid(few, one_worker):
    def fit(X):
        seen = []
        with pytest.warns(ConvergenceWarning):
            model(tol=0, max_iter=30).fit(X, callback=lambda now: seen.append(now.pi.copy()))
        return seen

    given, wanted = fit(whole(few)), fit(few)
    assert [pi.tobytes() for pi in given] == [pi.tobytes() for pi in wanted]
    assert one_worker.count(1) >= 25  # after the first look nothing is passed over any more


@pytest.mark.parametrize("at", [1, 2, 3, 7, 22, 23])
def test_a_fit_that_is_stopped_between_has_the_grid_of_that_iteration(few, one_worker, at):
    def fit(X):
        return model(tol=0, max_iter=30).fit(X, callback=lambda now: now.number == at)

    assert same(fit(whole(few)), fit(few))


def test_an_iteration_that_was_begun_in_vain_changes_nothing(X, client):
    table = cluster.read(model(), odd_blocks(X), is_fitting=True)
    geometry, rng = model()._geometry(), np.random.RandomState(0)
    shares = [each.shares(np.ones(150, "f4"), 40, geometry) for each in (table, sources.Table.of(X))]
    warm, cold = (learn.Step(geometry, beta, recipe.Eta(0.1), "uniform", np.inf) for beta in (0.5, 1.0))
    start = model()._start(rng, geometry, 40)
    grids = []
    for each in shares:
        grid, _ = learn.iterate(each, start, iter([warm, warm]), Threads(1))
        grid, _ = learn.iterate(each, grid, iter([cold]), Threads(1))
        grids.append(grid.fetched())
    assert grids[0].pi.tobytes() == grids[1].pi.tobytes()


def test_a_grid_that_does_not_arrive_is_sent_again(X, client, monkeypatch):
    async def never(*_, **how):
        monkeypatch.undo()
        await asyncio.sleep(60)

    shares = cluster.read(model(), odd_blocks(X), is_fitting=True).shares(np.ones(150, "f4"), 40, model()._geometry())
    monkeypatch.setattr(kept, "SENDING", 0.2)
    monkeypatch.setattr(client, "_scatter", never)
    assert shares.total(counted, Threads(1), np.zeros(5)) == 150


def test_large_grids_have_more_time_to_arrive():
    assert sys.getsizeof(Windows(np.zeros((100, 30, 40), "f4"), np.zeros((30, 40), "f4"))) >= 4 * 101 * 1200


class Count(int):
    def plus(self, other):
        return Count(self + other)


def counted(share, engine, zeros):
    return Count(share.weights.size)


def test_sums_do_not_change_their_parts():
    parts = [sources.em.Statistics(np.ones((2, 3)), np.ones(3), 1.0) for _ in range(8)]
    total = worker.added(parts)
    assert (total.seen == 8).all()
    assert all((part.seen == 1).all() and (part.usage == 1).all() for part in parts)


def test_neighbouring_shares_lie_together_and_threads_count():
    class Client:
        def nthreads(self):
            return {"b": 1, "a": 3}

    homes = [home["workers"][0] for home in scheduler.homes(Client(), 8)]
    assert homes == list("aaaaaabb")


def test_no_worker_sends_the_grid_to_too_many_others():
    class Client:
        def __init__(self):
            self.fetched, self.places = [], {}

        def submit(self, function, copy, workers, **_):
            self.fetched.append(copy)
            self.places[len(self.fetched)] = workers[0]
            return len(self.fetched)

    client = Client()
    homes = [{"workers": [f"w{share // 2}"], "allow_other_workers": True} for share in range(2 * 100)]
    copies = kept._copies(client, 0, homes)
    assert list(copies) == [f"w{number}" for number in range(100)]
    assert max(Counter([*copies.values(), *client.fetched]).values()) <= 2 * kept.FETCHERS
    assert client.places == {number: f"w{number}" for number in range(1, 13)}
    assert all(copy < number for number, copy in enumerate(client.fetched, 1))
    assert kept._copies(client, 0, [{}]) == {"": 0}


def test_many_workers_hand_the_grid_on(X, monkeypatch):
    monkeypatch.setattr(kept, "FETCHERS", 2)
    how = LOCAL | {"n_workers": 5, "processes": False, "host": None}
    with distributed.LocalCluster(**how) as local, distributed.Client(local):
        assert same(model().fit(odd_blocks(X)), model().fit(X))


def killer(process, at, after=0.02):
    """Make a callback that kills a process in the middle of an iteration."""

    def callback(now):
        if now.stage == "learning" and now.number == at:
            Timer(after, os.kill, (process, signal.SIGKILL)).start()

    return callback


def start(*arguments):
    return subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def programs(tmp_path):
    """Start a scheduler and two workers as programs; give the scheduler's address and the workers."""
    told = tmp_path / "scheduler.json"
    local = ["--scheduler-file", str(told), "--host", "127.0.0.1", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", *local, "--nthreads", "1", "--no-nanny"]
    running = [start("distributed.cli.dask_scheduler", *local, "--port", "0")]
    try:
        running += [start(*worker, "--name", name) for name in ("one", "two")]
        deadline = time.monotonic() + 30
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(told), timeout=30) as client:
            client.wait_for_workers(2, timeout=30)
            address = client.scheduler.address
        yield address, running[1:]
    finally:
        for each in running:
            each.kill()
            each.wait()


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(X, programs):
    address, workers = programs
    with distributed.Client(address) as client:
        given = model(anneal=(0.5, 1.1, 1)).fit(odd_blocks(X), callback=killer(workers[0].pid, at=4))
        assert len(client.nthreads()) == 1
    assert workers[0].wait(5) == -signal.SIGKILL
    assert same(given, model(anneal=(0.5, 1.1, 1)).fit(X))


@pytest.mark.parametrize("is_sent_to", [True, False])
def test_a_worker_that_dies_while_the_grid_is_sent_changes_nothing(X, programs, monkeypatch, is_sent_to):
    """It no longer answers when the grid goes out, to it or to the other one, and is gone a little later."""
    monkeypatch.setattr(kept, "LONGEST", 1)  # the grid goes out in every iteration
    address, workers = programs
    dying = workers[0]

    def stop(now):
        if now.stage == "learning" and now.number == 4:
            os.kill(dying.pid, signal.SIGSTOP)
            places = [process for _, process in sorted(processes.items())]
            distributed.utils_comm._round_robin_counter[0] = places.index(dying.pid) + (not is_sent_to)
            Timer(1, os.kill, (dying.pid, signal.SIGKILL)).start()

    began = time.monotonic()
    with distributed.Client(address) as client:
        processes = client.run(os.getpid)
        given = model(anneal=(0.5, 1.1, 1)).fit(odd_blocks(X), callback=stop)
    assert time.monotonic() - began < kept.SENDING
    assert dying.wait(5) == -signal.SIGKILL
    assert same(given, model(anneal=(0.5, 1.1, 1)).fit(X))


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


def with_entry(X, value):
    X = X.toarray()
    X[3, 5] = value
    return X


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
