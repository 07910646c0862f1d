"""Threads of this process: an ordered map over pieces of work, with BLAS held to one thread."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any


@dataclass(frozen=True)
class Threads:
    """Run pieces of work on the threads of this process.

    Parameters
    ----------
    n_threads : int
        Number of threads.
    block_entries : int, default=2**23
        Bags times cells of a block; the posterior of one block is held at a time.
    piece_entries : int, default=2**18
        Bags times cells of one piece of an E step, few enough to stay in cache.
    """

    n_threads: int
    block_entries: int = 2**23
    piece_entries: int = 2**18

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]:
        """Apply a function to items and return the results in order.

        The calling thread works too, and does not wait for threads that have not started: to wake one takes as long
        as a small piece of work.
        """
        if self.n_threads == 1:
            return map(function, *items)
        pieces = list(zip(*items, strict=False))
        if len(pieces) == 1:
            return iter([function(*pieces[0])])
        results: list[Any] = [None] * len(pieces)
        todo = enumerate(pieces)

        def work() -> None:
            for number, piece in todo:
                results[number] = function(*piece)

        pool = _pool(self.n_threads - 1, os.getpid())
        others = [pool.submit(work) for _ in range(min(self.n_threads, len(pieces)) - 1)]
        try:
            work()
        finally:
            list(todo)  # if this thread failed, the others find nothing more to do
            started = [other for other in others if not other.cancel()]
            wait(started)
        for other in started:
            other.result()
        return iter(results)


def default() -> Threads:
    """Return the threads of this machine.

    Their number is COUNTINGGRIDS_THREADS, or OMP_NUM_THREADS (which joblib sets in its workers), or the number of
    cores that this process may use.
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
def use(threads: Threads) -> Iterator[None]:
    """Run every fit and prediction inside the `with` block on these threads."""
    _chosen.append(threads)
    try:
        yield
    finally:
        _chosen.pop()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, so that its own splitting neither competes with ours nor changes the order of sums.

    The limit belongs to the whole process: the first to enter sets it, the last to leave lifts it.
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
    """The BLAS limit of this process, which may be set in one thread and lifted in another."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.controller: Any = None
        self.limiter: Any = None

    def set(self) -> None:
        self.controller = _controller(len(sys.modules))
        self._release()
        self.limiter = self.controller.limit(limits=1, user_api="blas")

    def lift(self) -> None:
        self._release()
        self.limiter.restore_original_limits()
        self._release()

    def _release(self) -> None:
        """Let any thread change the limit next: threadpoolctl otherwise accepts only the thread that set it."""
        for library in self.controller.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_limit = _Limit()


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:
    """Find the libraries with threads of their own, again whenever more modules were imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="countinggrids")
