"""Shares of the bags that workers of a cluster keep, and the iterations on them.

The E step runs where the bags lie, what it gives is added up in the tree of one process, and the M step runs on one
worker. The others fetch the grid from there. So the bits are those of one process, and the caller hears of an
iteration no more than its objective.
"""

import ctypes
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from itertools import takewhile
from threading import Lock
from typing import Any

from countinggrids import em, learn, scheduler
from countinggrids.blockwise import threads_here
from countinggrids.engine import FAN, Threads, one_blas_thread
from countinggrids.geometry import Geometry
from countinggrids.shortlist import Windows

ATTEMPTS = 3
"""How often work is sent out: a grid is lost where all workers that hold it die."""
SENDING, SLOWEST = 60.0, 1e6
"""Seconds, and bytes a second more, in which a grid must have gone out, or it is sent again."""
FETCHERS = 8
"""Workers that fetch a grid from the same other one."""
LONGEST = 20
"""Iterations after which the grid comes here: where a worker dies, those since then may have to be made again."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Which limits of the allocator are set, as malloc.h numbers them."""


@dataclass(eq=False)
class Held:
    """A grid that lies on a worker.

    Parameters
    ----------
    kept : the shares it was learnt from
    base : the last grid that was in this process
    engine : of this process
    steps : what was made of it since
    made : the grid and its last objective, on a worker; None where it is the base itself
    objective : the last objective alone
    ahead : the iteration after it, if that was begun already
    """

    kept: "Kept"
    base: em.Grid
    engine: Threads
    steps: tuple[learn.Step, ...] = ()
    made: Any = field(default=None, repr=False)
    objective: Any = field(default=None, repr=False)
    ahead: "Held | None" = field(default=None, repr=False)

    def fetched(self) -> em.Grid:
        """Bring the grid here."""
        return self.kept.fetched(self)


class Kept:
    """Shares of the bags that workers keep from one iteration to the next."""

    def __init__(self, client: Any, futures: list[Any]):
        self.client, self.futures = client, futures
        self.is_direct = scheduler.reaches_workers(client)

    def total(self, function: Callable[..., Any], engine: Threads, *common: Any) -> Any:
        """Add up function(share, engine, *common) over the shares, where they lie, and bring the sum here."""

        def work(is_again: bool) -> Any:
            sent, homes = self._sent(common), list(scheduler.homes(self.client, len(self.futures)))
            parts = self._sums(homes, sent, _worked, function, engine)
            return self.client.gather(self._added(parts), direct=self.is_direct)

        return self._attempted(work)

    def iterate(
        self, grid: em.Grid | Held, step: learn.Step, engine: Threads, then: learn.Step | None
    ) -> tuple[Any, float]:
        """Make an iteration on the workers; they begin with the next while this process waits for the objective."""
        held = grid if isinstance(grid, Held) else Held(self, grid, engine)

        def work(is_again: bool) -> tuple[Held, float]:
            before = self._again(held) if is_again else held
            begun, before.ahead = before.ahead, None
            now = begun if begun is not None and begun.steps[-1] is step else self._stepped(before, step)
            if then is not None and len(now.steps) < LONGEST:
                now.ahead = self._stepped(now, then)
            return now, float(now.objective.result())

        now, objective = self._attempted(work)
        return (now if len(now.steps) < LONGEST else now.fetched()), objective

    def fetched(self, held: Held) -> em.Grid:
        """Bring a grid here."""

        def work(is_again: bool) -> em.Grid:
            made = (self._again(held) if is_again else held).made
            grid: em.Grid = self.client.gather(made, direct=self.is_direct)[0]
            return grid

        return held.base if held.made is None else self._attempted(work)

    def _attempted(self, work: Callable[[bool], Any]) -> Any:
        """Do what may be lost with a worker, again where need be; it is told whether it is done again."""
        from distributed import CancelledError

        lost: BaseException | None = None
        for number in range(ATTEMPTS):
            try:
                with scheduler.explained(self.client):
                    return work(number > 0)
            except scheduler.ClusterError:
                raise
            except (CancelledError, OSError) as error:
                lost, self.is_direct = error, scheduler.reaches_workers(self.client)
        raise scheduler.ClusterError(
            f"an iteration was lost {ATTEMPTS} times ({type(lost).__name__}: {lost}); wanted a scheduler and workers "
            "that stay; look into their logs, and go on from a checkpoint"
        ) from lost

    def _again(self, held: Held) -> Held:
        """Make a grid that was lost once more, from the last one that was here."""
        return reduce(self._stepped, held.steps, Held(self, held.base, held.engine))

    def _stepped(self, held: Held, step: learn.Step) -> Held:
        """Send out one iteration."""
        given = self._sent((held.base, 0.0)) if held.made is None else held.made
        homes = list(scheduler.homes(self.client, len(self.futures)))
        if len(homes) <= FAN and all(home == homes[0] for home in homes):  # in one go: every task takes Dask some time
            made = self.client.submit(_iterated, self.futures, given, step, held.engine, pure=False, **homes[0])
        else:
            parts = self._sums(homes, given, _gathered, step, held.engine)
            made = self.client.submit(_concluded, parts, given, step, held.engine, pure=False)
        objective = self.client.submit(_objective, made, pure=False, priority=2)  # before work on the next iteration
        return Held(self, held.base, held.engine, (*held.steps, step), made, objective)

    def _sent(self, common: tuple[Any, ...]) -> Any:
        """Send something as large as a grid to one worker.

        Where a worker dies while it is sent to, Dask may wait for its answer for ever. So it goes to one, and workers
        fetch it from each other: Dask's own broadcast tries a dead worker again and again.
        """
        from dask.sizeof import sizeof

        patience = SENDING + sizeof(common) / SLOWEST
        how = {"hash": False, "direct": self.is_direct, "timeout": scheduler.PATIENCE}
        [sent] = self.client.sync(self.client._scatter, [common], **how, callback_timeout=patience)
        return sent

    def _sums(self, homes: list[dict[str, Any]], given: Any, function: Callable[..., Any], *common: Any) -> list[Any]:
        """Work on all shares with what is given, where they lie, and add up until few sums are left."""
        copies = _copies(self.client, given, homes)

        def work(start: int, stop: int) -> Any:
            home, shares = homes[start], self.futures[start:stop]
            return self.client.submit(function, shares, copies[_name(home)], *common, pure=False, **home)

        groups = []
        for first in range(0, len(homes), FAN):
            group = homes[first : first + FAN]
            # The first shares are added up where they lie; the sum of later ones alone would be in another order.
            start = first + len(list(takewhile(group[0].__eq__, group)))
            groups.append([work(first, start), *(work(i, i + 1) for i in range(start, first + len(group)))])
        while len(groups) > 1:
            sums = [self._added(group) for group in groups]
            groups = [sums[i : i + FAN] for i in range(0, len(sums), FAN)]
        return groups[0]

    def _added(self, parts: list[Any]) -> Any:
        # Before work on other shares, or what all of them give would be held.
        return parts[0] if len(parts) == 1 else self.client.submit(_added, parts, pure=False, priority=1)


def _worked(shares: list[em.Bags], common: tuple[Any, ...], function: Callable[..., Any], engine: Threads) -> Any:
    """Work on shares one after the other, with the threads that this worker has, and add up what they give."""
    _keep_memory()
    with one_blas_thread():
        return _here(engine).total(function, shares, *common)


def _gathered(shares: list[em.Bags], given: tuple[em.Grid, float], step: learn.Step, engine: Threads) -> em.Statistics:
    """Make the E step of some shares."""
    with one_blas_thread():
        windows, _ = _LAST.of(given[0], step, _here(engine))
    statistics: em.Statistics = _worked(shares, (windows, step.geometry), em.gather, engine)
    return statistics


def _concluded(
    parts: list[em.Statistics], given: tuple[em.Grid, float], step: learn.Step, engine: Threads
) -> tuple[em.Grid, float]:
    """Make the M step."""
    grid, statistics, engine = given[0], _added(parts), _here(engine)
    with one_blas_thread():
        if step.geometry.matched == step.geometry.painted:
            statistics = statistics._replace(h=_LAST.of(grid, step, engine)[1])
        return learn.conclude(grid, statistics, step, engine)


def _iterated(
    shares: list[em.Bags], given: tuple[em.Grid, float], step: learn.Step, engine: Threads
) -> tuple[em.Grid, float]:
    """Make the E step of all shares, and the M step."""
    return _concluded([_gathered(shares, given, step, engine)], given, step, engine)


def _objective(made: tuple[em.Grid, float]) -> float:
    return made[1]


def _here(engine: Threads) -> Threads:
    return replace(engine, n_threads=threads_here())


class _Last:
    """The windows of the last grid on this worker, worked out once for all that is done there, and gone with it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.grid: Any = lambda: None
        self.known: tuple[Geometry, float, Windows, Any] | None = None

    def of(self, grid: em.Grid, step: learn.Step, engine: Threads) -> tuple[Windows, Any]:
        """Give what `em.windows_of` gives."""
        with self.lock:
            known = self.known
            if known is None or self.grid() is not grid.pi or known[:2] != (step.geometry, step.beta):
                self.known = known = None  # or two would be held at a time
                known = step.geometry, step.beta, *em.windows_of(grid, step.geometry, step.beta, engine)
                self.grid, self.known = weakref.ref(grid.pi, self._forget), known
            return known[2:]

    def _forget(self, grid: Any) -> None:
        if self.grid is grid:
            self.known = None


_LAST = _Last()


@lru_cache
def _keep_memory() -> None:
    """Let a worker keep the memory that the next iteration wants again.

    Dask has the allocator of its workers give everything back at once; a quarter of an iteration's time on the
    processor then went into getting it again. These are the limits that glibc comes to if left alone. Who has set
    others keeps them.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") == "65536" and sys.platform == "linux":
        set_limit = getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)
        set_limit(M_MMAP_THRESHOLD, 2**25)
        set_limit(M_TRIM_THRESHOLD, 2**26)


def _added(parts: list[Any]) -> Any:
    """Add parts up from left to right; none is changed, for another worker may ask for it again."""
    return reduce(lambda total, part: total.plus(part), parts[1:], deepcopy(parts[0])) if len(parts) > 1 else parts[0]


def _copies(client: Any, sent: Any, homes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say which copy of a grid the worker of each home takes, so that no worker sends it to too many others."""
    workers = list(dict.fromkeys(map(_name, homes)))
    copies = [sent]
    for number in range(1, -(-len(workers) // FETCHERS)):
        home = {"workers": [workers[number]], "allow_other_workers": True}
        copies.append(client.submit(_same, copies[number // FETCHERS], pure=False, **home))
    return {worker: copies[number // FETCHERS] for number, worker in enumerate(workers)}


def _name(home: dict[str, Any]) -> str:
    return str(home.get("workers", [""])[0])


def _same(grid: Any) -> Any:
    return grid
