"""Iterations on workers: what stays there, what is made in one go, and what a worker's death changes (nothing)."""

import asyncio
import gc
import os
import signal
import sys
import time
from collections import Counter
from functools import reduce
from threading import Timer
from typing import NamedTuple

import dask
import distributed
import numpy as np
import pytest
from fits import LOCAL, model, odd_blocks, same
from sklearn.exceptions import ConvergenceWarning

from countinggrids import cluster, kept, learn, recipe, restarts, scheduler, sources, worker
from countinggrids.engine import Threads, added_up
from countinggrids.shortlist import Windows


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


def test_sums_go_to_the_worker_of_the_m_step(X, client, monkeypatch):
    sent, submit = {}, client.submit

    def noted(function, *given, **how):
        sent.setdefault(function, set()).update(how.get("workers", [None]))
        return submit(function, *given, **how)

    monkeypatch.setattr(client, "submit", noted)
    model().fit(odd_blocks(X))
    assert len(sent[worker.gathered]) == 2
    assert sent[kept._same] == sent[worker.concluded] == {min(client.nthreads())}


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
    start = restarts.first_grid(model(), rng, geometry, 40)
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


@pytest.mark.parametrize(
    ("n_shares", "n_workers", "n_moved"), [(5, 1, 0), (16, 2, 0), (48, 2, 1), (64, 2, 0), (64, 3, 10)]
)
def test_sums_are_those_of_one_process_and_few_of_them_move(monkeypatch, n_shares, n_workers, n_moved):
    class Part(NamedTuple):
        terms: str
        place: str

    def plus(total, part):
        return f"({total}+{part})"

    class Client:
        moved = 0

        def submit(self, function, parts, *_, workers, **how):
            self.moved += sum(part.place != workers[0] for part in parts)
            return Part(reduce(plus, [part.terms for part in parts]), workers[0])

    monkeypatch.setattr(scheduler, "reaches_workers", lambda client: True)
    places = [str(share * n_workers // n_shares) for share in range(n_shares)]
    shares = [Part(str(share), place) for share, place in enumerate(places)]
    made = kept.Kept(Client(), shares)
    parts = made._sums([{"workers": [place]} for place in places], None, worker.gathered)
    assert made.client.moved == n_moved
    assert reduce(plus, [part.terms for part in parts]) == added_up((share.terms for share in shares), plus)


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
