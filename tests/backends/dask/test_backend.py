"""Iterations on workers: what stays there, the order of sums, and that the death of a worker changes nothing."""

import asyncio
import gc
import os
import re
import signal
import time
from functools import reduce
from threading import Timer

import dask
import distributed
import numpy as np
import pytest
from fits import LOCAL, model, odd_blocks, same

import countinggrids as cg
from countinggrids.backends import open_bags
from countinggrids.backends.base import tree_sum
from countinggrids.backends.dask import DaskBackend, backend, table
from countinggrids.backends.dask import client as clients
from countinggrids.core import em
from countinggrids.core.pieces import pieces
from countinggrids.data.table import Table
from countinggrids.training import initialization


def test_one_worker_has_the_bits_of_one_process_and_comes_back_when_killed(X):
    """With the only worker goes the grid of the iteration, which is sent again."""
    how = LOCAL | {"n_workers": 1, "threads_per_worker": 2}
    with distributed.LocalCluster(**how) as local, distributed.Client(local) as client:
        [process] = client.run(os.getpid).values()
        callbacks = None, killer(process, at=2, after=0.005)
        given = [model().fit(odd_blocks(X), callback=callback) for callback in callbacks]
        assert list(client.run(os.getpid).values()) != [process]
    assert all(same(each, model().fit(X)) for each in given)


def test_workers_in_this_process_have_the_bits_of_threads(X):
    """They hand over the arrays themselves, which must not be changed under each other's hands."""
    how = LOCAL | {"n_workers": 3, "processes": False, "host": None}
    with distributed.LocalCluster(**how) as local, distributed.Client(local):
        options = {"anneal": (0.5, 1.1, 1), "batch_size": 50}
        assert same(model(**options).fit(odd_blocks(X)), model(**options).fit([X[:80], X[80:]]))
        assert same(model().fit(odd_blocks(X)), model().fit(X))


def test_bags_stay_on_the_workers(X, client, monkeypatch):
    """What comes back in an iteration is one sum, whatever the bags."""
    monkeypatch.setattr(table._FetchedBlocks, "__iter__", lambda self: pytest.fail("bags were brought here"))
    bags, where = open_bags(model(), odd_blocks(X), is_fitting=True)
    geometry = model()._geometry()
    chunks = where.prepare(bags, np.ones(150, "f4"), 40, geometry)
    grid = initialization.first_grid(model(), np.random.RandomState(0), geometry, 40)
    gathered, result = [], distributed.Future.result
    monkeypatch.setattr(distributed.Future, "result", lambda future: gathered.append(future) or result(future))
    statistics = where.e_step(chunks, grid, geometry, 1.0)
    assert statistics.usage.sum() == pytest.approx(150)
    assert len(gathered) == 1


def test_nothing_stays_on_the_workers_when_a_fit_has_ended(X, client):
    gc.collect()
    gc.disable()  # what is let go must not wait for it
    try:
        model().fit(odd_blocks(X))
        assert_soon(lambda: not client.futures)  # Dask lets go in a thread of its own
    finally:
        gc.enable()


def assert_soon(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_soon_can_fail():
    with pytest.raises(AssertionError):
        assert_soon(lambda: False, seconds=0.1)


def test_ctrl_c_leaves_nothing_running(X, client):
    """Even while the traceback is kept, which holds on to all that the fit had."""
    Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as raised:
        model(anneal=None, tol=0, max_iter=100_000).fit(odd_blocks(X))
    assert_soon(lambda: not any(client.processing().values()))
    del raised
    gc.collect()
    assert_soon(lambda: not client.futures)


def test_ctrl_c_while_blocks_are_computed_leaves_nothing_running(X, client):
    Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as raised:
        model().fit([slow_block(X, 1.0) for _ in range(20)])
    assert_soon(lambda: not any(client.processing().values()))
    assert raised.traceback


def slow_block(X, seconds):
    """Make a delayed block of a function that workers need not import."""

    def sleep():
        time.sleep(seconds)
        return X

    return dask.delayed(sleep)()


def test_a_grid_that_does_not_arrive_is_sent_again(X, client, monkeypatch):
    sent, scatter = [], client.scatter

    async def never():
        await asyncio.sleep(60)

    def stuck(*given, **how):
        sent.append(given)
        return never() if len(sent) == 2 else scatter(*given, **how)

    monkeypatch.setattr(backend, "SENDING", 0.5)
    monkeypatch.setattr(client, "scatter", stuck)
    assert same(model().fit(odd_blocks(X)), model().fit(X))
    n_e_steps = len(model().fit(X).history_) + 1  # the last one is kept for partial_fit
    assert len(sent) == 1 + n_e_steps


def test_sums_do_not_change_their_terms():
    terms = [em.Statistics(np.ones((2, 3)), np.ones(3), 1.0) for _ in range(8)]
    assert (backend._sum(terms).A == 8).all()
    assert all((term.A == 1).all() and (term.usage == 1).all() for term in terms)


class Evaluated:
    """A client that evaluates sums at once, as text, and counts the terms that move between workers."""

    def __init__(self, **n_threads):
        self.n_threads, self.n_moved = n_threads, 0

    def nthreads(self):
        return self.n_threads

    def submit(self, function, *given, workers=("",), **_):
        if function is backend._windows:
            return None
        if function is backend._sum:
            self.n_moved += sum(place != workers[0] for _, place in given[0])
        terms = given[0] if function is backend._statistics else [text for text, _ in given[0]]
        return reduce(plus, terms), workers[0]


def plus(total, term):
    return f"({total}+{term})"


@pytest.mark.parametrize(
    ("n_chunks", "n_workers", "n_moved"), [(1, 2, 0), (5, 1, 0), (16, 2, 1), (48, 2, 2), (64, 2, 1), (64, 3, 12)]
)
def test_sums_are_those_of_one_process_and_few_of_their_terms_move(n_chunks, n_workers, n_moved, monkeypatch):
    client = Evaluated(**{f"w{number}": 1 for number in range(n_workers)})
    where = DaskBackend(client)
    monkeypatch.setattr(where, "_sent", lambda grid: None)
    chunks = [str(number) for number in range(n_chunks)]
    text, _ = where._future_total(chunks, None, None, 1.0)
    assert text == tree_sum(chunks, plus)
    assert client.n_moved == n_moved


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7, 64, 100])
def test_sums_are_those_of_one_process_for_any_number_of_chunks(n_workers, monkeypatch):
    where = DaskBackend(Evaluated(**{f"w{number}": 1 + number % 3 for number in range(n_workers)}))
    monkeypatch.setattr(where, "_sent", lambda grid: None)
    for n_chunks in range(1, 65):
        chunks = [str(number) for number in range(n_chunks)]
        assert where._future_total(chunks, None, None, 1.0)[0] == tree_sum(chunks, plus)


def test_neighboring_chunks_are_kept_together_in_proportion_to_threads():
    assert clients.homes(Evaluated(b=1, a=3), 8) == list("aaaaaabb")
    assert clients.homes(Evaluated(), 2) == ["", ""]


def test_dask_knows_how_large_chunks_are(X):
    backend.register_sizes()
    where = DaskBackend(None).local
    [bags, *_] = where.prepare(Table.of(X), np.ones(150, "f4"), 40, model()._geometry())
    for chunk in (bags, bags.painted.matrix, Table.of(X.toarray()).blocks):
        assert dask.sizeof.sizeof(chunk) >= 4 * 15 * 40 * 0.2


def killer(process, at, after=0.02):
    """Make a callback that kills a process in the middle of an iteration."""

    def callback(now):
        if now.stage == "learning" and now.number == at:
            Timer(after, os.kill, (process, signal.SIGKILL)).start()

    return callback


@pytest.mark.parametrize("options", [{}, {"batch_size": 50}])
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(X, programs, options, tmp_path):
    address, workers, _ = programs
    options = {"anneal": (0.5, 1.1, 1), **options}
    with distributed.Client(address) as client:
        callback = killer(workers[0].pid, at=4)
        given = model(**options).fit(odd_blocks(X), callback=callback, checkpoint=tmp_path / "fit")
        assert_soon(lambda: len(client.nthreads()) == 1)
    assert workers[0].wait(5) == -signal.SIGKILL
    assert same(given, model(**options).fit([X[:80], X[80:]]))


def test_a_worker_killed_while_blocks_are_computed_changes_nothing(X, programs):
    address, workers, _ = programs
    with distributed.Client(address):
        Timer(1.0, os.kill, (workers[0].pid, signal.SIGKILL)).start()
        given = model().fit([slow_block(X[run], 0.4) for run in pieces(150, 25)])
    assert workers[0].wait(5) == -signal.SIGKILL
    assert same(given, model().fit(X))


@pytest.mark.parametrize("is_sent_to", [True, False])
def test_a_worker_that_dies_while_the_grid_is_sent_changes_nothing(X, programs, is_sent_to):
    """It no longer answers when the grid goes out, to it or to the other one, and is gone a little later."""
    address, workers, _ = programs
    dying = workers[0]

    def stop(now):
        if now.stage == "learning" and now.number == 4:
            os.kill(dying.pid, signal.SIGSTOP)
            places = [process for _, process in sorted(processes.items())]
            distributed.utils_comm._round_robin_counter[0] = places.index(dying.pid) + (not is_sent_to)
            Timer(1, os.kill, (dying.pid, signal.SIGKILL)).start()

    began = time.monotonic()
    with distributed.Client(address, direct_to_workers=True) as client:
        processes = client.run(os.getpid)
        given = model(anneal=(0.5, 1.1, 1)).fit(odd_blocks(X), callback=stop)
    assert time.monotonic() - began < backend.SENDING
    assert dying.wait(5) == -signal.SIGKILL
    assert same(given, model(anneal=(0.5, 1.1, 1)).fit(X))


LOST = "the cluster lost the bags or the grid ("


def test_bags_that_cannot_be_computed_again_are_an_error(X):
    """What was scattered is gone with the only worker that had it."""
    with distributed.LocalCluster(n_workers=1, **LOCAL) as local, distributed.Client(local) as client:
        [process] = client.run(os.getpid).values()
        scattered = client.scatter([X[:50], X[50:]])
        with pytest.raises(clients.ClusterError, match=re.escape(LOST)):
            model(anneal=(0.5, 1.1, 1)).fit(scattered, callback=killer(process, at=2, after=0))


def test_a_scheduler_that_dies_is_an_error(X, programs):
    address, _, scheduler = programs
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        distributed.Client(address, timeout=2) as client,
        pytest.raises(clients.ClusterError, match=re.escape(LOST)),
    ):
        model(anneal=(0.5, 1.1, 1)).fit(odd_blocks(X), callback=killer(scheduler.pid, at=2))
    assert client.status == "closed"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_componential_grids_have_the_bits_of_one_process(X, client):
    wanted, given = (cg.ComponentialGrid(12, 3, max_iter=4, random_state=0) for _ in range(2))
    assert same(given.fit(odd_blocks(X)), wanted.fit(X))
    assert given.alpha_ == wanted.alpha_
