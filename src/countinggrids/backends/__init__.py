"""Where the work of a fit runs, behind one protocol: threads of this process, torch devices, Dask workers."""

from typing import Any

from countinggrids.backends.base import Backend
from countinggrids.backends.threads import ThreadsBackend
from countinggrids.data.readers import is_lazy, read
from countinggrids.data.table import Table

__all__ = ["Backend", "ThreadsBackend", "backend_of", "open_bags"]


def open_bags(model: Any, X: Any, is_fitting: bool) -> tuple[Table, Backend]:
    """Open what a user passed as X, and choose the backend that works on it.

    Parameters
    ----------
    model : estimator
        The model, whose `dtype`, `device` and number of columns are used.
    X : array-like, sparse matrix, path, iterable of blocks, or Dask array
        The bags.
    is_fitting : bool
        Whether the model takes its number of columns from X.

    Returns
    -------
    table : Table
        The bags.
    backend : Backend
        Where they are worked on.
    """
    if is_lazy(X):
        from countinggrids.backends.dask import open_lazy

        return open_lazy(model, X, is_fitting)
    return read(model, X, is_fitting), backend_of(model.device, model.dtype)


def backend_of(device: str | None, dtype: str) -> Backend:
    """Return the backend of this process: NumPy, or a device of torch."""
    if device is None:
        return ThreadsBackend()
    from countinggrids.backends.torch import TorchBackend

    return TorchBackend(device, dtype)
