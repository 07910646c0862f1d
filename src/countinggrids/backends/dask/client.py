"""The client of a Dask cluster: how to connect, which worker keeps which chunk, and errors in plain words."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np

PATIENCE = 10.0
"""Seconds in which a scheduler must answer."""


class ClusterError(OSError):
    """An error on a Dask cluster, with what to do about it."""


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to the cluster of a scheduler inside a `with` block; None connects to none."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            f"scheduler={address!r} needs Dask, which is not installed; pip install 'countinggrids[dask]'."
        ) from error
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no scheduler answers at {address} ({error}); expected the address of a Dask scheduler, such as "
            "tcp://127.0.0.1:8786; start one with `dask scheduler`."
        ) from error
    with client:
        if not client.nthreads():
            raise ClusterError(
                f"the scheduler at {address} has no workers; start at least one with `dask worker {address}`."
            )
        yield


def current() -> Any:
    """Return the client that this process is connected by, or None."""
    try:
        from distributed import Client

        return Client.current()
    except (ImportError, ValueError):
        return None


@contextmanager
def explained(futures: Iterable[Any] = ()) -> Iterator[None]:
    """Turn errors about lost workers into a `ClusterError` that says what to do.

    Parameters
    ----------
    futures : iterable of Future, default=()
        Released after Ctrl-C: while the traceback is kept, as notebooks do, they would be computed to the end.
    """
    from distributed import CancelledError, KilledWorker

    try:
        yield
    except KeyboardInterrupt:
        for future in futures:
            future.release()
        raise
    except ClusterError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            f"a task ended every worker that tried it, {error.allowed_failures + 1} in all; give each worker more "
            "memory or fewer threads, add workers, or make the blocks of X smaller."
        ) from error
    except MemoryError as error:
        raise ClusterError(
            f"a worker is out of memory ({error}); it needs room for its chunks of bags and for some grids; give each "
            "worker more memory or fewer threads, add workers, or make the blocks of X smaller."
        ) from error
    except (CancelledError, OSError) as error:
        raise ClusterError(
            f"the cluster lost the bags or the grid ({type(error).__name__}: {error}); expected a scheduler and "
            "workers that stay, with the same packages, and blocks of X that can be computed again; see their logs."
        ) from error


def homes(client: Any, n_chunks: int) -> list[str]:
    """Choose the worker of every chunk: neighbors together, in proportion to the threads of each worker.

    A worker that joins later gets its part in the next iteration. The name is empty where any worker will do.
    """
    workers = sorted(client.nthreads().items())
    if not workers or n_chunks == 1:
        return [""] * n_chunks
    ends = list(accumulate(n_threads for _, n_threads in workers))
    places = np.searchsorted(ends, (np.arange(n_chunks) + 0.5) * ends[-1] / n_chunks)
    return [workers[place][0] for place in places]


def submit(client: Any, function: Callable[..., Any], *arguments: Any, home: str = "", priority: int = 0) -> Any:
    """Submit a task to a worker, which another one runs if that worker is lost; return its future."""
    where = {"workers": [home], "allow_other_workers": True} if home else {}
    return client.submit(function, *arguments, pure=False, priority=priority, **where)
