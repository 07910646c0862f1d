"""What the workers of a cluster do: the E step of the shares they have, sums, and the M step."""

import ctypes
import os
import sys
import time
import weakref
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache, reduce
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from countinggrids import em, learn
from countinggrids.blockwise import threads_here
from countinggrids.engine import Threads, one_blas_thread
from countinggrids.geometry import Geometry
from countinggrids.shortlist import Windows

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Which limits of the allocator are set, as malloc.h numbers them."""


class Made(NamedTuple):
    """A grid on a worker, with the objectives of the iterations that made it and the seconds that each took."""

    grid: em.Grid
    objectives: tuple[float, ...] = ()
    seconds: float = np.inf  # unless one worker made all of it


def worked(shares: list[em.Bags], common: tuple[Any, ...], function: Callable[..., Any], engine: Threads) -> Any:
    """Work on shares one after the other, with the threads that this worker has, and add up what they give."""
    _keep_memory()
    with one_blas_thread():
        return _here(engine).total(function, shares, *common)


def gathered(shares: list[em.Bags], given: Made, step: learn.Step, engine: Threads) -> em.Statistics:
    """Make the E step of some shares."""
    with one_blas_thread():
        windows, _ = _LAST.of(given.grid, step, _here(engine))
    statistics: em.Statistics = worked(shares, (windows, step.geometry), em.gather, engine)
    return statistics


def concluded(parts: list[em.Statistics], given: Made, step: learn.Step, engine: Threads) -> Made:
    """Make the M step."""
    grid, statistics, engine = given.grid, added(parts), _here(engine)
    with one_blas_thread():
        if step.geometry.matched == step.geometry.painted:
            statistics = statistics._replace(h=_LAST.of(grid, step, engine)[1])
        grid, objective = learn.conclude(grid, statistics, step, engine)
        return Made(grid, (objective,))


def iterated(shares: list[em.Bags], made: Made, steps: list[learn.Step], previous: float, engine: Threads) -> Made:
    """Make iterations on all shares, until the objective settles where it may."""
    objectives: list[float] = []
    began = time.perf_counter()
    for step in steps:
        made = concluded([gathered(shares, made, step, engine)], made, step, engine)
        objectives += made.objectives
        if step.limit < np.inf and step.has_settled(objectives[-1], previous):
            break
        previous = objectives[-1]
    return Made(made.grid, tuple(objectives), (time.perf_counter() - began) / len(objectives))


def told(made: Made) -> tuple[Any, ...]:
    """Give what the caller hears: all but the grid."""
    return made[1:]


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
    processor then went into getting it again. The first two are the limits that glibc comes to if left alone. Who has
    set others keeps them.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") == "65536" and sys.platform == "linux":
        set_limit = getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)
        set_limit(M_MMAP_THRESHOLD, 2**25)
        set_limit(M_TRIM_THRESHOLD, 2**26)
        set_limit(M_TOP_PAD, 2**26)  # or what a thread has got from the system is given back as soon as it is free


def added(parts: list[Any]) -> Any:
    """Add parts up from left to right; none is changed, for another worker may ask for it again."""
    return reduce(lambda total, part: total.plus(part), parts[1:], deepcopy(parts[0])) if len(parts) > 1 else parts[0]
