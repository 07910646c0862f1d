"""The backend of Dask: chunks of bags stay on the workers, and every iteration sends the grid to them.

One iteration is a small graph of tasks. The grid is sent to one worker; every worker fetches it from there and computes
log h (`_windows`), then the expected sufficient statistics of its chunks (`_statistics`); these are summed in the tree
of `backends.base.tree_sum` (`_sum`), so that the result has the bits of one process. The M step runs in this process.

A worker that dies takes nothing with it that cannot be computed again: Dask recreates its chunks from their graph, and
the iteration is repeated from the grid, which is always here.
"""

from copy import deepcopy
from dataclasses import replace
from functools import cache, reduce
from itertools import takewhile
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.backends.base import FAN, HIGHER
from countinggrids.backends.dask.client import explained, homes, submit
from countinggrids.backends.threads import ThreadsBackend
from countinggrids.core import em, steps
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags
from countinggrids.data.chunks import bags_of, chunk_rows
from countinggrids.kernels.counts import DenseCounts, SparseCounts, SparseProducts
from countinggrids.kernels.threads import Threads, default, one_blas_thread

ATTEMPTS = 3
"""How often an iteration is tried: the grid is lost when all workers that hold it die."""
SENDING, SLOWEST = 60.0, 1e6
"""Seconds, plus bytes per second, after which sending a grid is given up and tried again."""


class DaskBackend(ThreadsBackend):
    """Compute the E step on the workers of a Dask cluster, and the M step in this process.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    """

    def __init__(self, client: Any):
        super().__init__()
        self.client = client

    @property
    def local(self) -> ThreadsBackend:
        """The backend for bags that are in this process."""
        return ThreadsBackend(self.pool)

    def prepare(self, table: Any, weights: Any, n_features: int, geometry: Geometry) -> list[Any]:
        """Keep chunks of bags on the workers, neighbors together; return their futures."""
        rows = chunk_rows(table.shape[0], n_features)
        has_weights = bool((weights != 1).any())
        return [
            submit(self.client, _bags, counts, weights[run] if has_weights else None, n_features, geometry, home=home)
            for counts, run, home in zip(table.recut(rows).futures, rows, homes(self.client, len(rows)), strict=True)
        ]

    def e_step(self, chunks: Any, grid: em.Grid, geometry: Geometry, beta: float) -> em.Statistics:
        """Compute the expected sufficient statistics on the workers, again if a worker dies meanwhile."""
        from distributed import CancelledError

        running = list(chunks)
        with explained(running):
            for _ in range(ATTEMPTS - 1):
                try:
                    return self._total(running, grid, geometry, beta)
                except (CancelledError, OSError):
                    del running[len(chunks) :]
            return self._total(running, grid, geometry, beta)

    def _total(self, running: list[Any], grid: em.Grid, geometry: Geometry, beta: float) -> em.Statistics:
        """Try an E step once; the future of the total is added to those that run."""
        running.append(self._future_total(list(running), grid, geometry, beta))
        A, usage, log_likelihood, extra = running[-1].result()
        # Arrays that Dask received may be read-only.
        A, usage = (np.require(sums, requirements="W") for sums in (A, usage))
        return em.Statistics(A, usage, log_likelihood, extra)

    def _future_total(self, chunks: list[Any], grid: em.Grid, geometry: Geometry, beta: float) -> Any:
        """Submit the tasks of an E step; return the future of the total."""
        sums = self._group_sums(chunks, self._sent(grid), geometry, beta)
        while len(sums) > 1:
            sums = [self._sum(sums[first : first + HIGHER]) for first in range(0, len(sums), HIGHER)]
        return sums[0][0]

    def _group_sums(self, chunks: list[Any], sent: Any, geometry: Geometry, beta: float) -> list[tuple[Any, str]]:
        """Sum the statistics of FAN chunks at a time; return the future of each sum, and its worker."""
        places = homes(self.client, len(chunks))
        windows = {home: submit(self.client, _windows, sent, geometry, beta, home=home) for home in set(places)}

        def statistics(first: int, last: int) -> tuple[Any, str]:
            home = places[first]
            return submit(self.client, _statistics, chunks[first:last], windows[home], geometry, home=home), home

        sums = []
        for first in range(0, len(chunks), FAN):
            group = places[first : first + FAN]
            # The first chunks of a group are summed in one task; a sum of later ones alone would change the order.
            cut, last = first + len(list(takewhile(group[0].__eq__, group))), first + len(group)
            sums.append(self._sum([statistics(first, cut), *(statistics(i, i + 1) for i in range(cut, last))]))
        return sums

    def _sum(self, terms: list[tuple[Any, str]]) -> tuple[Any, str]:
        """Sum futures on the worker of the first."""
        home = terms[0][1]
        if len(terms) == 1:
            return terms[0]
        # With priority over the statistics of other chunks, or all of them would be held at a time.
        return submit(self.client, _sum, [term for term, _ in terms], home=home, priority=1), home

    def _sent(self, grid: em.Grid) -> Any:
        """Send the grid to one worker, from which others fetch it.

        Dask's own broadcast tries a dead worker again and again, and without a timeout it may wait forever for the
        answer of a worker that died while it received the grid.
        """

        async def scatter() -> Any:
            return await self.client.scatter([grid], hash=False, asynchronous=True)

        [sent] = self.client.sync(scatter, callback_timeout=SENDING + grid.pi.nbytes / SLOWEST)
        return sent


def _bags(counts: Any, weights: Any, n_features: int, geometry: Geometry) -> Bags:
    register_sizes()
    weights = np.ones(counts.shape[0], counts.dtype) if weights is None else weights
    return bags_of(counts, weights, n_features, geometry)


def _windows(grid: em.Grid, geometry: Geometry, beta: float) -> Any:
    with one_blas_thread():
        return steps.of(geometry).windows_of(grid, geometry, beta, worker_threads())


def _statistics(chunks: list[Bags], windows: Any, geometry: Geometry) -> em.Statistics:
    pool, e_step = worker_threads(), steps.of(geometry).e_step
    with one_blas_thread():
        return reduce(em.Statistics.plus, (e_step(bags, windows, geometry, pool) for bags in chunks))


def _sum(terms: list[em.Statistics]) -> em.Statistics:
    """Sum from left to right into a copy: another worker may ask for a term again."""
    return reduce(em.Statistics.plus, terms[1:], deepcopy(terms[0]))


def worker_threads() -> Threads:
    """Return the threads that belong to this worker; outside a worker, those of this process."""
    try:
        from distributed import get_worker

        return replace(default(), n_threads=int(get_worker().state.nthreads))
    except (ImportError, ValueError):
        return default()


@cache
def register_sizes() -> None:
    """Let Dask know the bytes of counts, by which it decides whether to move them or the work."""
    from dask.sizeof import sizeof

    # Dask may have looked up the class before: only a function for exactly this class replaces what it found.
    sizeof.register(sp.csr_array, lambda matrix: sum(map(sizeof, vars(matrix).values())))
    sizeof.register((DenseCounts, SparseCounts, SparseProducts), lambda counts: sizeof(counts.matrix))
