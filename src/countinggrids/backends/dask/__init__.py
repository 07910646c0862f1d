"""Dask: bags on the workers of a cluster, and predictions as Dask arrays."""

from typing import Any

from countinggrids.backends.base import Backend
from countinggrids.backends.dask import client as clients
from countinggrids.backends.dask.arrays import ComputedBlocks, delayed_blocks
from countinggrids.backends.dask.backend import DaskBackend
from countinggrids.backends.dask.table import spread
from countinggrids.backends.threads import ThreadsBackend
from countinggrids.data.readers import read
from countinggrids.data.table import Table


def open_lazy(model: Any, X: Any, is_fitting: bool) -> tuple[Table, Backend]:
    """Open a Dask array or a list of delayed blocks, as `countinggrids.backends.open_bags` does.

    Without a cluster, blocks are computed in this process, one after the other, in every pass.
    """
    blocks, client = delayed_blocks(X), clients.current()
    if client is None:
        return read(model, ComputedBlocks(blocks), is_fitting), ThreadsBackend()
    if model.device is not None:
        raise ValueError(
            f"device={model.device!r} must be None for a Dask array on a cluster, whose workers compute with NumPy; "
            "use device=None, or bags in memory."
        )
    return spread(client, blocks, model, is_fitting), DaskBackend(client)
