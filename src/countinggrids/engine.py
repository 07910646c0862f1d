"""Where the work of an iteration runs: a map over shares of the bags, and a sum in a fixed order.

A share is a number of consecutive bags, cut without regard to threads or workers. What the shares give is added up in
one fixed tree. So the result is the same to the last bit wherever the shares are worked on.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, reduce
from threading import Lock
from typing import Any

FAN, HIGHER = 8, 4
"""Parts that are added up from left to right at the lowest level of the tree and at every other: few sums are held and
few moved."""


@dataclass(frozen=True)
class Threads:
    """Runs pieces of work on the threads of this process, BLAS held to one thread each.

    Parameters
    ----------
    n_threads : how many threads
    block_entries : bags times cells that a block may have; the posterior of one block is held at a time
    chunk_entries : bags times cells that one piece of an E step has, small enough to stay in cache
    """

    n_threads: int
    block_entries: int = 2**23
    chunk_entries: int = 2**20

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]:
        """Apply a function to items and give the results in order.

        This thread works too, and does not wait for helpers that have not begun: to wake one takes as long as a small
        piece of work.
        """
        if self.n_threads == 1:
            return map(function, *items)
        pieces = list(zip(*items, strict=False))
        results: list[Any] = [None] * len(pieces)
        todo = enumerate(pieces)

        def work() -> None:
            for number, piece in todo:
                results[number] = function(*piece)

        pool = _pool(self.n_threads - 1, os.getpid())
        helpers = [pool.submit(work) for _ in range(min(self.n_threads, len(pieces)) - 1)]
        try:
            work()
        finally:
            list(todo)  # where this thread has failed, helpers shall find nothing more to do
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
        return iter(results)

    def total(self, function: Callable[..., Any], shares: Iterable[Any], *common: Any) -> Any:
        """Add up function(share, engine, *common) over the shares, one after the other.

        Shares that lie elsewhere have a `total` of their own, and are worked on there.
        """
        if hasattr(shares, "total"):
            return shares.total(function, self, *common)
        return added_up((function(share, self, *common) for share in shares), lambda total, part: total.plus(part))

    def place(self, values: Any) -> Any:
        """Put an array where the work is done: here, NumPy's stay as they are."""
        return values

    def ready(self, bags: Any) -> Any:
        """Bring bags into a form that can be multiplied here."""
        return bags

    def hold(self, shares: Iterable[Any]) -> Iterable[Any]:
        """Bring shares that are gone through many times to where the work is done."""
        return shares


def added_up(parts: Iterable[Any], plus: Callable[[Any, Any], Any]) -> Any:
    """Add parts in a fixed tree: FAN after FAN from left to right, then the sums HIGHER after HIGHER, and so on.

    Only one sum a level of the tree is held at a time.
    """
    sums: list[list[Any]] = []
    for part in parts:
        _push(sums, 0, part, plus)
        del part  # or it would be held while the next one is made
    rest = [level[0] for level in sums if level]
    return reduce(lambda lower, higher: plus(higher, lower), rest)


def _push(sums: list[list[Any]], level: int, part: Any, plus: Callable[[Any, Any], Any]) -> None:
    """Add a part to the sum of its level, given as [sum, number of parts]; a full sum goes one level up."""
    if level == len(sums):
        sums.append([])
    here = sums[level]
    here[:] = [plus(here[0], part), here[1] + 1] if here else [part, 1]
    if here[1] == (HIGHER if level else FAN):
        full = here[0]
        here.clear()
        _push(sums, level + 1, full, plus)


def default() -> Threads:
    """Make the engine for this machine.

    The number of threads is COUNTINGGRIDS_THREADS, or OMP_NUM_THREADS (which joblib sets in its workers), or the
    number of cores this process may use.
    """
    if _chosen:
        return _chosen[-1]
    for name in ("COUNTINGGRIDS_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return Threads(int(value))
    return Threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


_chosen: list[Threads] = []


@contextmanager
def use(engine: Threads) -> Iterator[None]:
    """Let every fit and score inside the `with` block run on this engine."""
    _chosen.append(engine)
    try:
        yield
    finally:
        _chosen.pop()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, so that its own splitting neither competes with ours nor changes a sum's order.

    The limit belongs to the whole process: the first fit to enter sets it, the last to leave lifts it.
    """
    with _limit.lock:
        if _limit.users == 0:
            _limit.set()
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if _limit.users == 0:
                _limit.lift()


class _Limit:
    """The one limit of this process; it may be set in one thread and lifted in another."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.controller: Any = None
        self.limiter: Any = None

    def set(self) -> None:
        self.controller = _controller(len(sys.modules))
        self._hand_over()
        self.limiter = self.controller.limit(limits=1, user_api="blas")

    def lift(self) -> None:
        self._hand_over()
        self.limiter.restore_original_limits()
        self._hand_over()

    def _hand_over(self) -> None:
        """Let this thread, or whoever comes next, change the limit: threadpoolctl listens to one thread only."""
        for library in self.controller.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_limit = _Limit()


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:
    """Find the libraries that have threads of their own; again when more modules were imported, for they bring some."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="countinggrids")
