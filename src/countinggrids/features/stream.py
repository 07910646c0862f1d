"""Lazy, ordered, multithreaded processing of items, with a choice of what to do about bad ones."""

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from countinggrids.kernels import threads

Progress = Callable[[int, int | None], object]
"""Called with the number of items done, and of all of them, or None where that is unknown."""
LOOKAHEAD = 4
"""Items in progress for each thread: enough to keep all of them busy, few enough to bound memory."""


class BadItemError(ValueError):
    """An item that cannot be used, such as a broken image; with on_error="skip" it is left out."""


class Skipped(NamedTuple):
    """An item that was left out.

    Attributes
    ----------
    place : int
        Index of the item in the source.
    reason : str
        The error message.
    """

    place: int
    reason: str


class Stream:
    """A lazy map of a function over items: iterating computes results, as often as the source can be iterated.

    Only a few items are held at a time. Results come in the order of the source, and do not depend on the number of
    threads.

    Parameters
    ----------
    source : iterable
        The items. A list can be iterated again and again, a generator once.
    work : callable
        Function of an item.
    n_jobs : int, default=None
        Number of threads; None uses as many as the models do.
    on_error : {"raise", "skip"}, default="raise"
        Whether a `BadItemError` is raised, or its item is left out and listed in `skipped`.
    verbose : int, default=0
        Whether progress is logged to stderr, every two seconds.
    callback : callable, default=None
        Called after each item with the number of items done, and of all items or None.

    Attributes
    ----------
    skipped : list of Skipped
        Items that the last iteration left out.

    Examples
    --------
    >>> from countinggrids.features import Stream
    >>> list(Stream(["a", "b"], str.upper))
    ['A', 'B']
    """

    def __init__(
        self,
        source: Iterable[Any],
        work: Callable[[Any], Any],
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        if isinstance(source, str | bytes) or not isinstance(source, Iterable):
            raise ValueError(f"source={source!r} must be several items, such as a list of paths; use a list of one.")
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error={on_error!r} must be 'raise' or 'skip'; use for instance on_error='skip'.")
        if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs == 0):
            raise ValueError(f"n_jobs={n_jobs!r} must be None or a number of threads; use for instance n_jobs=2.")
        self.source, self.work = source, work
        self.n_jobs, self.on_error, self.verbose, self.callback = n_jobs, on_error, verbose, callback
        self.skipped: list[Skipped] = []

    def then(self, work: Callable[[Any], Any]) -> "Stream":
        """Return a stream that applies another function to each result, on the same thread.

        Parameters
        ----------
        work : callable
            Function of a result.

        Returns
        -------
        stream : Stream
            A new stream.
        """
        first = self.work
        return self._with(self.source, lambda item: work(first(item)))

    def subset(self, indices: Sequence[int]) -> "Stream":
        """Return a stream over some items of a source with indices, such as a list.

        Parameters
        ----------
        indices : sequence of int
            Which items.

        Returns
        -------
        stream : Stream
            A new stream.
        """
        source: Any = self.source
        return self._with([source[index] for index in indices], self.work)

    def _with(self, source: Iterable[Any], work: Callable[[Any], Any]) -> "Stream":
        return Stream(source, work, self.n_jobs, self.on_error, self.verbose, self.callback)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return (result for _, result in self.enumerate())

    def enumerate(self) -> Iterator[tuple[int, Any]]:
        """Iterate over results with the indices of their items.

        Yields
        ------
        index : int
            Index of the item in the source.
        result : object
            Result of `work`.
        """
        self.skipped = []
        with closing(self._outcomes()) as outcomes:
            for index, future in self._reported(outcomes):
                try:
                    result = future.result()
                except BadItemError as error:
                    if self.on_error == "raise":
                        raise
                    self.skipped.append(Skipped(index, str(error)))
                else:
                    yield index, result

    def _outcomes(self) -> Generator[tuple[int, "Future[Any]"]]:
        """Start work a little ahead of the consumer, and cancel what is not started when the consumer stops."""
        n_threads = self._n_threads()

        def work(item: Any) -> Any:
            with threads.one_blas_thread():
                return self.work(item)

        items = enumerate(self.source)
        pool = ThreadPoolExecutor(n_threads, thread_name_prefix="countinggrids-features")
        try:
            waiting = deque((i, pool.submit(work, item)) for i, item in islice(items, LOOKAHEAD * n_threads))
            while waiting:
                yield waiting.popleft()
                waiting.extend((i, pool.submit(work, item)) for i, item in islice(items, 1))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _n_threads(self) -> int:
        available = threads.default().n_threads
        if self.n_jobs is None or self.n_jobs < 0:
            return available
        return self.n_jobs

    def _reported(self, outcomes: Iterator[Any]) -> Iterator[Any]:
        """Pass outcomes on, and report progress."""
        observers: list[Progress] = [_ProgressLog()] if self.verbose else []
        observers += [self.callback] if self.callback is not None else []
        total = len(self) if hasattr(self.source, "__len__") else None
        for done, outcome in enumerate(outcomes, start=1):
            yield outcome
            for observer in observers:
                observer(done, total)


class _ProgressLog:
    """Logs progress to stderr every two seconds."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self.last >= 2:
            self.last = now
            left = "" if total is None else f" of {total}, {(now - self.began) / done * (total - done):.0f} s left"
            print(f"{done}{left}", file=sys.stderr)
