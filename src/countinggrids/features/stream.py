"""Work on one item after another: lazily, in order, on several threads, with bad items named and left out."""

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from countinggrids import engine

Verbose = int | Callable[[int, int | None], None]
LOOKAHEAD = 4  # items under way for each thread: enough to keep all busy, few enough to bound memory


class BadItemError(ValueError):
    """An item that cannot be used, such as a broken image; a stream that skips goes on without it."""


class Skipped(NamedTuple):
    """An item that was left out.

    Attributes
    ----------
    place : where it was in the source
    reason : what was wrong, with the item's name
    """

    place: int
    reason: str


class Stream:
    """Work that waits to be done on each item of a source; iterating does it, as often as the source can be read.

    Only a few items are held at a time, results come in the order of the source, and they do not depend on the
    number of threads.

    Parameters
    ----------
    source : the items; a list can be gone through again and again, a generator once
    work : what is done to each item
    n_jobs : threads; None takes as many as the models use
    on_error : what to do about a `BadItemError`: "raise" it, or "skip" the item and list it in `skipped`
    verbose : 1 writes a line to stderr every two seconds; a function is told how many items are done, and of how
        many, or None

    Attributes
    ----------
    skipped : items that the last pass left out
    """

    def __init__(
        self,
        source: Iterable[Any],
        work: Callable[[Any], Any],
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: "Verbose" = 0,
    ):
        if isinstance(source, str | bytes) or not isinstance(source, Iterable):
            raise ValueError(
                f"got {source!r}; wanted several items, such as a list of paths; put a single one in a list"
            )
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error is {on_error!r}; wanted 'raise' or 'skip'; give for instance on_error='skip'")
        if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs == 0):
            raise ValueError(f"n_jobs is {n_jobs!r}; wanted None or a number of threads; give for instance n_jobs=2")
        self.source, self.work = source, work
        self.n_jobs, self.on_error, self.verbose = n_jobs, on_error, verbose
        self.skipped: list[Skipped] = []

    def then(self, work: Callable[[Any], Any]) -> "Stream":
        """Give a stream that does more work on each result, on the same thread."""
        first = self.work
        return self._with(self.source, lambda item: work(first(item)))

    def subset(self, indices: Sequence[int]) -> "Stream":
        """Give a stream over some items of a source that has places, such as a list."""
        source: Any = self.source
        return self._with([source[index] for index in indices], self.work)

    def _with(self, source: Iterable[Any], work: Callable[[Any], Any]) -> "Stream":
        return Stream(source, work, self.n_jobs, self.on_error, self.verbose)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return (result for _, result in self.enumerate())

    def enumerate(self) -> Iterator[tuple[int, Any]]:
        """Go through the results with their places in the source."""
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
        """Start work a little ahead of who asks for results; forget what is not started when nobody asks any more."""
        n_threads = self._n_threads()

        def work(item: Any) -> Any:
            with engine.one_blas_thread():
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
        available = engine.default().n_threads
        if self.n_jobs is None or self.n_jobs < 0:
            return available
        return self.n_jobs

    def _reported(self, outcomes: Iterator[Any]) -> Iterator[Any]:
        """Pass outcomes on, and tell how far it is."""
        watch = self.verbose if callable(self.verbose) else _Lines() if self.verbose else None
        total = len(self) if hasattr(self.source, "__len__") else None
        for done, outcome in enumerate(outcomes, start=1):
            yield outcome
            if watch is not None:
                watch(done, total)


class _Lines:
    """Writes a line to stderr every two seconds."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self.last >= 2:
            self.last = now
            left = "" if total is None else f" of {total}, {(now - self.began) / done * (total - done):.0f} s left"
            print(f"{done}{left}", file=sys.stderr)
