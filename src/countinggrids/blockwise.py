"""Blocks of bags that Dask makes when they are wanted: from arrays, from files; and a model's answers about them."""

import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from countinggrids import checks, sources
from countinggrids.bags import rows_of
from countinggrids.engine import Threads, default, use

Method = TypeVar("Method", bound=Callable[..., Any])


def is_dask(X: Any) -> bool:
    """Tell a Dask array, or a list with delayed blocks or futures in it; Dask itself is not imported."""
    if isinstance(X, list | tuple):
        return any(_is_lazy(block) for block in X)
    return _is_lazy(X)


def _is_lazy(X: Any) -> bool:
    return hasattr(type(X), "__dask_graph__") or type(X).__module__.startswith("distributed.")


def delayed_blocks(X: Any) -> list[Any]:
    """Give a Dask array, or a list of blocks, as a list of delayed blocks of bags."""
    from dask.delayed import delayed

    if isinstance(X, list | tuple):
        return [delayed(block) for block in X]
    if not hasattr(X, "rechunk") or X.ndim != 2:
        raise ValueError(
            f"X is a {type(X).__name__} of Dask; wanted counts, (bags, columns); "
            "give a Dask array of two axes, or a list of delayed blocks"
        )
    return list(X.rechunk({1: -1}).to_delayed().ravel())


class Computed:
    """Delayed blocks, computed one after the other as often as they are gone through."""

    def __init__(self, blocks: list[Any]):
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        return (block.compute() for block in self.blocks)


def of_file(path: str | os.PathLike[str]) -> list[Any]:
    """Give a file of counts as delayed blocks, which the workers of a cluster read themselves.

    Parameters
    ----------
    path : a .npy array or a collection, of which every worker reads its rows, or a .npz, which one reads as a whole.
        This process and all workers must see it under the same name
    """
    from dask.delayed import delayed

    path = Path(path).resolve()
    n_bags = sources.load(path).shape[0]
    runs = [slice(0, n_bags)] if path.suffix == ".npz" else sources.runs_of(n_bags, 0)
    return [delayed(_rows)(str(path), rows, pure=False) for rows in runs]


def _rows(path: str, rows: slice) -> Any:
    return rows_of(sources.load(path), rows).copy()


def by_blocks(n_columns: Callable[[Any], int] | None, dtype: str | None) -> Callable[[Method], Method]:
    """Let a method of a model answer for a Dask array by a Dask array, block by block.

    Parameters
    ----------
    n_columns : tells from the model how many columns the answer has; None: one value for each bag
    dtype : of the answer; None is the model's
    """

    def wrap(method: Method) -> Method:
        @wraps(method)
        def answer(model: Any, X: Any) -> Any:
            if not is_dask(X):
                return method(model, X)
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
            return _lazily(model, method.__name__, X, n_columns and n_columns(model), dtype or model.dtype)

        return answer  # type: ignore[return-value]

    return wrap


def _lazily(model: Any, method: str, X: Any, n_columns: int | None, dtype: str) -> Any:
    from dask.delayed import delayed

    X = as_array(X, model.n_features_in_)
    checks.check_columns(model, X.shape[1], is_fitting=False)
    meta = np.empty((0,) if n_columns is None else (0, 0), dtype)
    how = {"drop_axis": 1} if n_columns is None else {"chunks": (X.chunks[0], (n_columns,))}
    return X.map_blocks(_answer, delayed(model), method, dtype=dtype, meta=meta, **how)


def as_array(X: Any, n_columns: int) -> Any:
    """Give blocks as one Dask array, each with all its columns; how many bags there are may be unknown."""
    import dask.array as da

    if not isinstance(X, list | tuple):
        return da.asarray(X).rechunk({1: -1})
    return da.concatenate([da.from_delayed(block, (np.nan, n_columns), "f4") for block in delayed_blocks(X)])


def _answer(block: Any, model: Any, method: str, block_id: Any = (0, 0)) -> Any:
    """Ask a model about one block, with the threads that belong to this worker."""
    ask = getattr(model, method)
    if not block.shape[0]:
        return ask(np.zeros((1, model.n_features_in_), model.dtype))[:0]
    try:
        with use(Threads(threads_here())):
            return ask([block])
    except ValueError as error:
        raise ValueError(str(error).replace("block 0", f"block {block_id[0]}")) from error


def threads_here() -> int:
    """Tell how many threads the work of one worker may take; without a cluster, all of this process."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return default().n_threads
