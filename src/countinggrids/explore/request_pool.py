"""A bounded thread pool for requests: those beyond its queue are refused at once."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class BusyError(Exception):
    """All threads are busy and the queue is full."""


class RequestPool:
    """Threads for requests, with a queue of limited length.

    Parameters
    ----------
    n_threads : int
        Requests processed at a time.
    n_waiting : int
        Length of the queue.
    """

    def __init__(self, n_threads: int, n_waiting: int):
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="countinggrids-explore")
        self._slots = threading.Semaphore(n_threads + n_waiting)
        self._pending: set[Future[Any]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether some work is pending."""
        return bool(self._pending)

    def reserve(self) -> "Slot":
        """Reserve a slot for one request, before its body is read; raise `BusyError` if there is none."""
        if not self._slots.acquire(blocking=False):
            raise BusyError
        return Slot(self)

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run work on a thread; raise `BusyError` if there is no slot."""
        with self.reserve() as slot:
            return await slot.run(work, *arguments)

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Start work in a slot that was reserved; the slot becomes free when the work has ended."""
        future = self._threads.submit(work, *arguments)
        self._pending.add(future)
        future.add_done_callback(self._end)
        return future

    def release(self) -> None:
        """Free a slot that was reserved."""
        self._slots.release()

    def _end(self, future: "Future[Any]") -> None:
        self._pending.discard(future)
        self.release()


class Slot:
    """A slot for one request, taken until its work has ended, even if the client has gone.

    Parameters
    ----------
    pool : RequestPool
        Where the work runs.
    """

    def __init__(self, pool: RequestPool):
        self._pool, self._is_used = pool, False

    def __enter__(self) -> "Slot":
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_used:
            self._pool.release()

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run work on a thread."""
        future = self._pool.submit(work, *arguments)
        self._is_used = True
        return await asyncio.wrap_future(future)
