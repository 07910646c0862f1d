"""Where the blocks of an iteration run: in this process, on its threads."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any


@dataclass(frozen=True)
class Threads:
    """Runs pieces of work on the threads of this process, BLAS held to one thread each.

    Every result is independent of `n_threads`: the pieces are cut without regard to it, and what they give is put
    together in their order.

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
        if self.n_threads == 1:
            return map(function, *items)
        return _pool(self.n_threads, os.getpid()).map(function, *items)


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
            _limit.lift = _controller(len(sys.modules)).limit(limits=1, user_api="blas").restore_original_limits
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if _limit.users == 0:
                _limit.lift()


class _Limit:
    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.lift: Callable[[], None] = lambda: None


_limit = _Limit()


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:
    """Find the libraries that have threads of their own; again when more modules were imported, for they bring some."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="countinggrids")
