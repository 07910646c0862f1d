"""Bags on the workers of a Dask cluster, as a `Table`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from countinggrids.backends.dask.backend import register_sizes
from countinggrids.backends.dask.client import ClusterError, explained, homes, submit
from countinggrids.data import readers, validation
from countinggrids.data.chunks import chunk_rows
from countinggrids.data.counts import in_one_form
from countinggrids.data.table import Table, as_table, stacked
from countinggrids.kernels.counts import rows_of


def spread(client: Any, blocks: list[Any], model: Any, is_fitting: bool) -> "DaskTable":
    """Compute delayed blocks on the workers, check them there, and cut them into the chunks of one process.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Delayed
        Blocks of bags.
    model : estimator
        The model, whose `dtype` and number of columns are used.
    is_fitting : bool
        Whether the model takes its number of columns from the blocks.

    Returns
    -------
    table : DaskTable
        The bags.
    """
    from distributed import futures_of

    futures = [futures_of(block)[0] for block in client.persist(blocks)]
    sizes, n_columns, tokens = readers.checked_surveys(_surveys(client, futures))
    validation.check_columns(model, n_columns, is_fitting)
    if is_fitting:
        validation.check_enough(tokens)
    dtype = validation.dtype_of(model, is_fitting)
    given = DaskTable(client, client.map(_converted, futures, dtype=dtype, pure=False), sizes, n_columns, dtype, tokens)
    geometry = model._geometry() if is_fitting else model.geometry_
    return given.recut(chunk_rows(sum(sizes), validation.n_features_of(given, geometry)))


class DaskTable(Table):
    """Counts on the workers of a cluster, in blocks of consecutive bags.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    futures : list of Future
        The blocks, in the form and dtype of `in_one_form`.
    sizes : sequence of int
        Number of bags of each block.
    n_columns : int
        Number of columns.
    dtype : dtype
        dtype of the counts.
    tokens : ndarray of shape (n_bags,)
        The sum of each bag.
    """

    def __init__(self, client: Any, futures: list[Any], sizes: Sequence[int], n_columns: int, dtype: Any, tokens: Any):
        super().__init__(_FetchedBlocks(futures), sizes, n_columns, dtype, is_held=False, tokens=tokens)
        self.client, self.futures = client, futures

    def recut(self, runs: Sequence[slice]) -> "DaskTable":
        """Return runs of rows as the blocks of another table, neighbors on the same worker."""
        sizes = [run.stop - run.start for run in runs]
        if sizes == self.sizes:
            return self
        futures = [
            submit(self.client, stacked, self._pieces(run), home=home)
            for run, home in zip(runs, homes(self.client, len(runs)), strict=True)
        ]
        tokens = np.concatenate([self.tokens[run] for run in runs])
        return DaskTable(self.client, futures, sizes, self.shape[1], self.dtype, tokens)

    def _pieces(self, run: slice) -> list[Any]:
        """Cut what belongs to a run of rows out of the blocks, on the workers that hold them."""
        pieces, first = [], 0
        for future, size in zip(self.futures, self.sizes, strict=True):
            rows = slice(max(run.start - first, 0), min(run.stop - first, size))
            first += size
            if rows.start < rows.stop:
                is_whole = rows == slice(0, size)
                pieces.append(future if is_whole else submit(self.client, _copied_rows, future, rows))
        return pieces

    def take(self, rows: Any) -> Any:
        firsts = np.cumsum([0, *self.sizes])
        cuts = np.searchsorted(rows, firsts)
        parts = [
            submit(self.client, _taken, future, rows[a:b] - first)
            for future, first, a, b in zip(self.futures, firsts, cuts, cuts[1:], strict=False)
            if a < b
        ]
        with explained(parts):
            return stacked([part.result() for part in parts])

    def each(self, runs: Sequence[slice], function: Callable[..., Any], *common: Any) -> Iterator[Any]:
        results = [submit(self.client, function, counts, *common) for counts in self.recut(runs).futures]
        with explained(results):
            yield from (result.result() for result in results)

    def parts(self, runs: Sequence[slice]) -> "Iterator[DaskTable]":
        return (self.recut([run]) for run in runs)


class _FetchedBlocks:
    """Blocks on the workers, brought to this process one after the other."""

    def __init__(self, futures: list[Any]):
        self.futures = futures

    def __iter__(self) -> Iterator[Any]:
        with explained():
            yield from (future.result() for future in self.futures)


def _surveys(client: Any, futures: list[Any]) -> Iterator[tuple[str, int, Any]]:
    """Check blocks where they are; return the name, the columns and the tokens of each."""
    from distributed import CancelledError, KilledWorker

    names = [f"block {number}" for number in range(len(futures))]
    surveys = client.map(_survey, names, futures, pure=False)
    with explained([*surveys, *futures]):
        for name, survey in zip(names, surveys, strict=True):
            try:
                result = survey.result()
            except (KilledWorker, CancelledError, MemoryError):
                raise
            except Exception as error:
                raise ClusterError(
                    f"{name} of X could not be computed ({type(error).__name__}: {error}); expected counts; check "
                    "that every worker has the same files and the same packages."
                ) from error
            if isinstance(result, str):
                raise ValueError(result)
            yield name, *result


def _survey(name: str, block: Any) -> tuple[int, Any] | str:
    """Return what `readers.survey` does, or its message: an error here is not one of the code that made the block."""
    try:
        return readers.survey(name, as_table(name, block))
    except ValueError as error:
        return str(error)


def _converted(block: Any, dtype: Any) -> Any:
    register_sizes()
    return in_one_form(as_table("a block", block), dtype)


def _copied_rows(counts: Any, rows: slice) -> Any:
    return rows_of(counts, rows).copy()


def _taken(counts: Any, rows: Any) -> Any:
    return counts[rows]
