"""Bags on the workers of a Dask cluster: they stay there, the grid goes out, and one sum comes back.

X is a Dask array or a list of delayed blocks. Its bags are cut into the shares that one process would make, each kept
by one worker, and what the shares give is added up in the tree of one process. So the bits are those of one process.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import accumulate, takewhile
from typing import Any

import numpy as np

from countinggrids import checks, em, scheduler, sources
from countinggrids.bags import rows_of
from countinggrids.blockwise import Computed, delayed_blocks, is_dask, threads_here
from countinggrids.engine import FAN, Threads, one_blas_thread
from countinggrids.geometry import Geometry

ATTEMPTS = 3
"""How often an iteration is sent out: its grid is lost where all workers that hold it die."""
SENDING, SLOWEST = 60.0, 1e6
"""Seconds, and bytes a second more, in which a grid must have gone out, or it is sent again."""
FETCHERS = 8
"""Workers that fetch a grid from the same other one."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Which limits of the allocator are set, as malloc.h numbers them."""


def read(model: Any, X: Any, is_fitting: bool) -> sources.Table:
    """Make a table of what a user gave, as `sources.read` does; that of a Dask array lies on the workers.

    Where no cluster is connected, blocks are computed here, one after the other, every time they are gone through.
    """
    if not is_dask(X):
        return sources.read(model, X, is_fitting)
    blocks, client = delayed_blocks(X), scheduler.current()
    if client is None:
        return sources.read(model, Computed(blocks), is_fitting)
    if model.device is not None:
        raise ValueError(
            f"device is {model.device!r} and X lies on the workers of a cluster; wanted NumPy there; give device=None, "
            "or bags that are in memory"
        )
    from distributed import futures_of

    with scheduler.explained(client):
        futures = [futures_of(block)[0] for block in client.persist(blocks)]
        sizes, n_columns, has_counts = sources.checked_surveys(_surveys(client, futures))
        checks.check_columns(model, n_columns, is_fitting)
        if is_fitting:
            checks.check_enough(sum(sizes), has_counts)
        given = Spread(client, futures, sizes, n_columns, model.dtype)
        return given.cut_anew(sources.runs_of(sum(sizes), checks.n_features_of(given, model._geometry())))


class Spread(sources.Table):
    """Counts on the workers of a cluster, in blocks of consecutive bags.

    Parameters
    ----------
    client : of the cluster
    futures : the blocks
    sizes : how many bags each block has
    n_columns : of every block
    dtype : what the counts are turned into
    """

    def __init__(self, client: Any, futures: list[Any], sizes: Sequence[int], n_columns: int, dtype: Any):
        super().__init__(_Fetched(futures), sizes, n_columns, dtype, is_held=False)
        self.client, self.futures = client, futures

    def cut_anew(self, runs: Sequence[slice]) -> "Spread":
        """Give the rows of some runs in one block a run, neighbours together."""
        sizes = [run.stop - run.start for run in runs]
        futures = [self._joined(run, home) for run, home in zip(runs, _homes(self.client, len(runs)), strict=True)]
        return Spread(self.client, futures, sizes, self.shape[1], self.dtype)

    def _joined(self, run: slice, home: dict[str, Any]) -> Any:
        """Cut blocks where they lie, and bring together where the run shall lie what belongs to it."""
        pieces, first = [], 0
        for future, size in zip(self.futures, self.sizes, strict=True):
            rows = slice(max(run.start - first, 0), min(run.stop - first, size))
            first += size
            if rows.start < rows.stop:
                is_whole = rows == slice(0, size)
                pieces.append(future if is_whole else self.client.submit(_piece, future, rows, pure=False))
        return self.client.submit(_stacked, pieces, self.dtype, pure=False, **home)

    def take(self, rows: Any) -> Any:
        firsts = np.cumsum([0, *self.sizes])
        cuts = np.searchsorted(rows, firsts)
        parts = [
            self.client.submit(_taken, future, rows[a:b] - first, self.dtype, pure=False)
            for future, first, a, b in zip(self.futures, firsts, cuts, cuts[1:], strict=False)
            if a < b
        ]
        with scheduler.explained(self.client):
            return sources.stacked([part.result() for part in parts])

    def each(self, runs: Sequence[slice], function: Callable[..., Any], *common: Any) -> Iterator[Any]:
        blocks = self.cut_anew(runs).futures
        with scheduler.explained(self.client):
            results = self.client.map(lambda counts: function(counts, *common), blocks, pure=False)
            yield from (result.result() for result in results)

    def parts(self, runs: Sequence[slice]) -> "Iterator[Spread]":
        return (self.cut_anew([run]) for run in runs)

    def shares(self, weights: Any, n_features: int, geometry: Geometry) -> Any:
        runs = sources.runs_of(self.shape[0], n_features)
        table = self if [run.stop - run.start for run in runs] == self.sizes else self.cut_anew(runs)
        is_plain = bool((weights == 1).all())
        each = [None if is_plain else weights[run] for run in runs]
        how = (n_features, geometry, len(runs))
        futures = [
            self.client.submit(_bags, counts, some, *how, pure=False, **home)
            for counts, some, home in zip(table.futures, each, _homes(self.client, len(runs)), strict=True)
        ]
        return Kept(self.client, futures)


class Kept:
    """Shares of the bags that workers keep from one iteration to the next."""

    def __init__(self, client: Any, futures: list[Any]):
        self.client, self.futures = client, futures
        self.is_direct = scheduler.reaches_workers(client)

    def total(self, function: Callable[..., Any], engine: Threads, *common: Any) -> Any:
        """Add up function(share, engine, *common) over the shares, where they lie."""
        from distributed import CancelledError

        lost: BaseException | None = None
        for _ in range(ATTEMPTS):
            try:
                with scheduler.explained(self.client):
                    return self._total(function, engine, common)
            except scheduler.ClusterError:
                raise
            except (CancelledError, OSError) as error:
                lost, self.is_direct = error, scheduler.reaches_workers(self.client)
        raise scheduler.ClusterError(
            f"an iteration was lost {ATTEMPTS} times ({type(lost).__name__}: {lost}); wanted a scheduler and workers "
            "that stay; look into their logs, and go on from a checkpoint"
        ) from lost

    def _total(self, function: Callable[..., Any], engine: Threads, common: tuple[Any, ...]) -> Any:
        from dask.sizeof import sizeof

        # Where a worker dies while it is sent to, Dask may wait for its answer for ever. So the grid goes to one, and
        # workers fetch it from each other: Dask's own broadcast tries a dead worker again and again.
        patience = SENDING + sizeof(common) / SLOWEST
        how = {"hash": False, "direct": self.is_direct, "timeout": scheduler.PATIENCE}
        [sent] = self.client.sync(self.client._scatter, [common], **how, callback_timeout=patience)
        homes = list(_homes(self.client, len(self.futures)))
        copies = _copies(self.client, sent, homes)

        def work(start: int, stop: int) -> Any:
            home, shares = homes[start], self.futures[start:stop]
            return self.client.submit(_worked, shares, function, engine, copies[_name(home)], pure=False, **home)

        def add(parts: list[Any]) -> Any:  # before work on other shares, or what all of them give would be held
            return parts[0] if len(parts) == 1 else self.client.submit(_added, parts, pure=False, priority=1)

        sums = []
        for first in range(0, len(homes), FAN):
            group = homes[first : first + FAN]
            # The first shares are added up where they lie; the sum of later ones alone would be in another order.
            start = first + len(list(takewhile(group[0].__eq__, group)))
            sums.append(add([work(first, start), *(work(i, i + 1) for i in range(start, first + len(group)))]))
        while len(sums) > 1:
            sums = [add(sums[i : i + FAN]) for i in range(0, len(sums), FAN)]
        return self.client.gather(sums[0], direct=self.is_direct)


def _worked(shares: list[em.Bags], function: Callable[..., Any], engine: Threads, common: tuple[Any, ...]) -> Any:
    """Work on shares one after the other, with the threads that this worker has, and add up what they give."""
    _keep_memory()
    with one_blas_thread():
        return replace(engine, n_threads=threads_here()).total(function, shares, *common)


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


def _piece(block: Any, rows: slice) -> Any:
    return rows_of(sources.as_table("a block", block), rows).copy()


def _taken(block: Any, rows: Any, dtype: Any) -> Any:
    return block[rows].astype(dtype, copy=False)


def _stacked(pieces: list[Any], dtype: Any) -> Any:
    tables = [sources.as_table("a block", piece).astype(dtype, copy=False) for piece in pieces]
    return sources.stacked(tables)


def _bags(counts: Any, weights: Any, n_features: int, geometry: Geometry, n_shares: int) -> em.Bags:
    weights = np.ones(counts.shape[0], counts.dtype) if weights is None else weights
    return sources.bags_of(counts, weights, n_features, geometry, n_shares, sources.shortlist_of(n_shares))


def _surveys(client: Any, futures: list[Any]) -> Iterator[tuple[str, int, int, bool]]:
    """Check blocks where they lie, and give what was seen of each."""
    from distributed import CancelledError, KilledWorker

    names = [f"block {number}" for number in range(len(futures))]
    found = client.map(_survey, names, futures, pure=False)
    for name, future in zip(names, found, strict=True):
        try:
            seen = future.result()
        except (KilledWorker, CancelledError, MemoryError):
            raise
        except Exception as error:
            raise scheduler.ClusterError(
                f"{name} could not be made ({type(error).__name__}: {error}); wanted a table of counts; "
                "check that every worker sees the same files and has the same packages"
            ) from error
        if isinstance(seen, str):
            raise ValueError(seen)
        yield name, *seen


def _survey(name: str, block: Any) -> tuple[int, int, bool] | str:
    """Give what a block has, or say what is wrong with it: errors of those who made it are told from ours."""
    try:
        return sources.survey(name, sources.as_table(name, block))
    except ValueError as error:
        return str(error)


class _Fetched:
    """Blocks on the workers, brought here one after the other."""

    def __init__(self, futures: list[Any]):
        self.futures = futures

    def __iter__(self) -> Iterator[Any]:
        return (future.result() for future in self.futures)


def _homes(client: Any, n_shares: int) -> Iterator[dict[str, Any]]:
    """Say where shares shall lie: neighbours together, as many with each worker as its threads are worth.

    A share alone may lie anywhere. A worker that is lost is no obstacle, and one that comes late gets its part at the
    next iteration.
    """
    workers = sorted(client.nthreads().items())
    ends = list(accumulate(n_threads for _, n_threads in workers)) or [1]
    for share in range(n_shares):
        place = np.searchsorted(ends, (share + 0.5) * ends[-1] / n_shares)
        yield {"workers": [workers[place][0]], "allow_other_workers": True} if workers and n_shares > 1 else {}


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
