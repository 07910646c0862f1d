"""The backend of NumPy arrays and the threads of this process."""

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

from countinggrids.backends.base import Backend, tree_sum
from countinggrids.core import em, steps
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags
from countinggrids.data.chunks import Chunks
from countinggrids.data.table import Table
from countinggrids.kernels.threads import Threads, default


class ThreadsBackend:
    """Work on NumPy arrays, one chunk of bags after the other, each on all threads of this process.

    Parameters
    ----------
    pool : Threads, default=None
        The threads; None takes those of this machine.
    """

    def __init__(self, pool: Threads | None = None):
        self.pool = pool or default()

    @property
    def local(self) -> Backend:
        """The backend for bags that are in this process."""
        return self

    def prepare(self, table: Table, weights: Any, n_features: int, geometry: Geometry) -> Iterable[Bags]:
        """Cut bags into chunks: once for a table in memory, in every iteration for one that is read from files."""
        chunks = self.iter_chunks(table, weights, n_features, geometry)
        return list(chunks) if table.is_held else chunks

    def iter_chunks(self, table: Table, weights: Any, n_features: int, geometry: Geometry) -> Iterable[Bags]:
        """Cut bags into chunks that are made anew in every pass."""
        return Chunks(table, weights, n_features, geometry)

    def place(self, grid: em.Grid) -> em.Grid:
        """Return the parameters as they are."""
        return grid

    def e_step(self, chunks: Iterable[Bags], grid: em.Grid, geometry: Geometry, beta: float) -> em.Statistics:
        """Compute the expected sufficient statistics of all chunks."""
        step = steps.of(geometry)
        windows = step.windows_of(grid, geometry, beta, self.pool)
        pool = self.pool
        if self._runs_chunks_in_parallel(chunks, grid):
            pool = replace(pool, n_threads=1)
            terms = self.pool.map(lambda bags: step.e_step(bags, windows, geometry, pool), chunks)
        else:
            terms = (step.e_step(bags, windows, geometry, pool) for bags in chunks)
        statistics: em.Statistics = tree_sum(terms, em.Statistics.plus)
        return statistics

    def _runs_chunks_in_parallel(self, chunks: Iterable[Bags], grid: em.Grid) -> bool:
        """Return whether each thread works on a chunk of its own, instead of all threads on one chunk.

        The statistics of all chunks are then held at once, and must fit into memory with the posteriors. Sums have the
        same order either way.
        """
        if not isinstance(chunks, list) or len(chunks) < self.pool.n_threads:
            return False
        most_bags = max(bags.weights.size for bags in chunks)
        posteriors = self.pool.n_threads * most_bags * prod(grid.log_prior.shape)
        return max(posteriors, len(chunks) * prod(grid.pi.shape)) <= self.pool.block_entries
