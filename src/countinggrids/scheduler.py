"""The scheduler of a Dask cluster: how to reach it, where work goes, and what went wrong there in plain words."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np

PATIENCE = 10.0
"""Seconds in which a scheduler must answer."""
REACHING = 2.0
"""Seconds in which a worker must answer for the grid to go to it past the scheduler."""


class ClusterError(OSError):
    """What went wrong on a cluster, and what to do."""


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to the cluster of a scheduler for a while; None connects to none."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "a scheduler needs Dask, which is not installed; install it with pip install 'countinggrids[dask]'"
        ) from error
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no scheduler answers at {address} ({error}); wanted the address of a Dask scheduler, such as "
            "tcp://127.0.0.1:8786; start one with `dask scheduler`"
        ) from error
    with client:
        if not client.nthreads():
            raise ClusterError(
                f"the scheduler at {address} has no workers; wanted at least one; "
                f"start some with `dask worker {address}`"
            )
        yield


def current() -> Any:
    """Find the cluster that this process is connected to, if any."""
    try:
        from distributed import Client

        return Client.current()
    except (ImportError, ValueError):
        return None


def reaches_workers(client: Any) -> bool:
    """Tell whether this process can talk to a worker itself, which saves going through the scheduler."""
    from distributed.comm.core import connect

    async def reach(address: str) -> None:
        comm = await connect(address, timeout=REACHING, **client.security.get_connection_args("client"))
        await comm.close()

    try:
        client.sync(reach, next(iter(client.nthreads())))
    except (OSError, StopIteration):
        return False
    return True


@contextmanager
def explained(client: Any) -> Iterator[None]:
    """Say what to do about workers that are lost."""
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"a piece of work ended every worker that tried it, {error.allowed_failures + 1} in all; "
            "wanted workers with enough memory; give each more memory or fewer threads, add workers, or make blocks "
            "smaller"
        ) from error
    except MemoryError as error:
        raise ClusterError(
            f"a worker is out of memory ({error}); wanted room for its part of the bags and some grids; "
            "give each worker more memory or fewer threads, add workers, or make blocks smaller"
        ) from error


def homes(client: Any, n_shares: int) -> Iterator[dict[str, Any]]:
    """Say where shares shall lie: neighbours together, as many with each worker as its threads are worth.

    A share alone may lie anywhere. A worker that is lost is no obstacle, and one that comes late gets its part at the
    next iteration.
    """
    workers = sorted(client.nthreads().items())
    ends = list(accumulate(n_threads for _, n_threads in workers)) or [1]
    for share in range(n_shares):
        place = np.searchsorted(ends, (share + 0.5) * ends[-1] / n_shares)
        yield {"workers": [workers[place][0]], "allow_other_workers": True} if workers and n_shares > 1 else {}
