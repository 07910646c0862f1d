"""Blocks of bags that Dask computes: from arrays and from files; and predictions as Dask arrays."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from countinggrids.backends.dask.backend import worker_threads
from countinggrids.data import readers, validation
from countinggrids.data.chunks import chunk_rows
from countinggrids.data.table import Table, as_table
from countinggrids.kernels.counts import rows_of
from countinggrids.kernels.threads import use


def delayed_blocks(X: Any) -> list[Any]:
    """Return a Dask array, or a list of blocks, as a list of delayed blocks of bags."""
    from dask.delayed import delayed

    if isinstance(X, list | tuple):
        return [delayed(block) for block in X]
    if not hasattr(X, "rechunk") or X.ndim != 2:
        raise ValueError(
            f"X is a Dask {type(X).__name__} of shape {getattr(X, 'shape', 'unknown')}; expected (n_bags, n_columns); "
            "pass a Dask array with two axes, or a list of delayed blocks."
        )
    return list(X.rechunk({1: -1}).to_delayed().ravel())


class ComputedBlocks:
    """Delayed blocks, computed in this process one after the other, in every pass.

    Parameters
    ----------
    blocks : list of Delayed
        Blocks of bags.
    """

    def __init__(self, blocks: list[Any]):
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        return (block.compute() for block in self.blocks)


def of_file(path: str | os.PathLike[str]) -> list[Any]:
    """Return a file of counts as delayed blocks, which the workers of a cluster read themselves.

    Parameters
    ----------
    path : path-like
        A .npy array or a collection, of which every worker reads its rows, or a .npz, which one worker reads as a
        whole. This process and all workers must find it under the same name.

    Returns
    -------
    blocks : list of Delayed
        Blocks of bags.
    """
    from dask.delayed import delayed

    path = Path(path).resolve()
    n_bags = readers.load(path).shape[0]
    runs = [slice(0, n_bags)] if path.suffix == ".npz" else chunk_rows(n_bags, 0)
    return [delayed(_rows)(str(path), rows, pure=False) for rows in runs]


def _rows(path: str, rows: slice) -> Any:
    # The process that makes the blocks has verified the file; every block would verify all of it again.
    counts = rows_of(readers.load(path, is_verified=True), rows).copy()
    validation.check_values(counts, path, rows.start)
    return counts


def predict_lazily(model: Any, method: str, X: Any, n_columns: int | None, dtype: str) -> Any:
    """Return the Dask array of the predictions of a fitted model for a Dask array or a list of delayed blocks.

    The number of bags that are multiplied at a time decides in which order BLAS sums, and so the last digits. An
    array of known length is cut into the chunks of a table of that length, and gives the same bits. For an array of
    unknown length every block is a table of its own, and results differ by rounding.

    Parameters
    ----------
    model : estimator
        The fitted model.
    method : str
        Name of the method that predicts.
    X : Dask array or list of Delayed
        The bags.
    n_columns : int or None
        Columns of the result; None for one value for each bag.
    dtype : str
        dtype of the result.

    Returns
    -------
    predictions : Dask array
        In the chunks of X.
    """
    from dask.delayed import delayed

    given = cut = _as_array(X, model.n_features_in_)
    validation.check_columns(model, given.shape[1], is_fitting=False)
    firsts = None
    if not np.isnan(given.shape[0]):
        runs = chunk_rows(given.shape[0], validation.n_features_of(given, model.geometry_))
        cut, firsts = given.rechunk({0: tuple(run.stop - run.start for run in runs)}), [run.start for run in runs]
    how = {"drop_axis": 1} if n_columns is None else {"chunks": (cut.chunks[0], (n_columns,))}
    meta = np.empty((0,) if n_columns is None else (0, 0), dtype)
    predictions = cut.map_blocks(_predict, delayed(model), method, firsts, dtype=dtype, meta=meta, **how)
    return predictions if firsts is None else predictions.rechunk({0: given.chunks[0]})


def _as_array(X: Any, n_columns: int) -> Any:
    """Return blocks as one Dask array, each with all its columns; the number of bags may be unknown."""
    import dask.array as da

    if not isinstance(X, list | tuple):
        return da.asarray(X).rechunk({1: -1})
    return da.concatenate([da.from_delayed(block, (np.nan, n_columns), "f4") for block in delayed_blocks(X)])


def _predict(block: Any, model: Any, method: str, firsts: list[int] | None, block_id: Any = (0,)) -> Any:
    """Predict for one block, as one chunk, on the threads that belong to this worker."""
    predict = getattr(model, method)
    if not block.shape[0]:
        return predict(np.zeros((1, model.n_features_in_), model.pi_.dtype))[:0]
    name, first = (f"block {block_id[0]}", 0) if firsts is None else ("X", firsts[block_id[0]])
    counts = as_table(name, block)
    validation.check_values(counts, name, first)
    table = Table([counts], [counts.shape[0]], counts.shape[1], validation.dtype_of(model, False), is_held=True)
    table.runs = [slice(0, counts.shape[0])]
    with use(worker_threads()):
        return predict(table)
