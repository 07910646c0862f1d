"""Bags on the workers of a Dask cluster.

X is a Dask array or a list of delayed blocks. Its bags are cut into the shares that one process would make, each kept
by one worker; `kept.py` learns from them there.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from countinggrids import checks, em, scheduler, sources
from countinggrids.bags import rows_of
from countinggrids.blockwise import Computed, delayed_blocks, is_dask
from countinggrids.geometry import Geometry
from countinggrids.kept import Kept


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
        futures = [
            self._joined(run, home) for run, home in zip(runs, scheduler.homes(self.client, len(runs)), strict=True)
        ]
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
            for counts, some, home in zip(table.futures, each, scheduler.homes(self.client, len(runs)), strict=True)
        ]
        return Kept(self.client, futures)


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
