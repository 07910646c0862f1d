"""Training that continues from a fitted grid: old expected counts stay, and new bags are annealed beside them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from countinggrids.backends import Backend
from countinggrids.core import arrays, em, torus
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry, Shape
from countinggrids.core.protocols import Bags, Pool
from countinggrids.kernels.threads import default

FREE = 0.1
"""Tokens of a cell, as a fraction of the mean of all cells with tokens, below which it is free."""
ROOM = 1.5
"""Free windows that new bags may use, as a multiple of what they need at the density of the old ones."""
RESERVE = 2.0
"""Free windows that are added where there are too few, as a multiple of those that may be used."""
REACH = 2.0
"""How far likeness reaches into free land: the standard deviation of the filter, in windows."""
NOISE = 0.1
"""Relative noise of free cells, which breaks their symmetry."""
EXCLUDED = -1e4
"""log P of windows that may not be used."""


@dataclass(frozen=True)
class RememberingBackend:
    """A backend whose E step adds expected sufficient statistics of other bags, which stay as they are.

    Parameters
    ----------
    backend : Backend
        Where the new bags are worked on.
    kept : Statistics
        Statistics of the old bags.
    log_prior : ndarray of shape (*grid,)
        log P of the new bags, which stays as it is.
    """

    backend: Backend
    kept: Statistics
    log_prior: Array

    @property
    def pool(self) -> Pool:
        """Runs pieces of work in this process."""
        return self.backend.pool

    @property
    def local(self) -> Backend:
        """The backend for bags that are in this process."""
        return self.backend.local

    def prepare(self, table: Any, weights: Any, n_features: int, geometry: Geometry) -> Any:
        """Cut bags into chunks."""
        return self.backend.prepare(table, weights, n_features, geometry)

    def iter_chunks(self, table: Any, weights: Any, n_features: int, geometry: Geometry) -> Iterable[Bags]:
        """Cut bags into chunks, for a single pass."""
        return self.backend.iter_chunks(table, weights, n_features, geometry)

    def place(self, grid: Grid) -> Grid:
        """Put the parameters where the work is done."""
        return self.backend.place(grid)

    def e_step(self, chunks: Any, grid: Grid, geometry: Geometry, beta: float) -> Statistics:
        """Compute the statistics of the new bags, and add those of the old ones."""
        masked = grid._replace(log_prior=arrays.like(grid.log_prior, self.log_prior))
        new = self.backend.e_step(chunks, masked, geometry, beta)
        kept = Statistics(arrays.like(new.A, self.kept.A), self.kept.usage, 0.0, new.extra * 0)
        return new.plus(kept)


def extended_shape(geometry: Geometry, tokens: Array, n_wanted: int) -> Shape:
    """Return the shape of a grid with enough free windows; it is the old shape if these are there.

    Parameters
    ----------
    geometry : Geometry
        The old grid.
    tokens : ndarray of shape (*grid,)
        Expected tokens of each cell.
    n_wanted : int
        Free windows that new bags may use.

    Returns
    -------
    shape : tuple of int
        The old shape, or one that is longer along its shortest axis.
    """
    if are_free(tokens, geometry.window).sum() >= n_wanted:
        return geometry.grid
    axis = int(np.argmin(geometry.grid))
    window, others = geometry.window[axis], geometry.n_cells // geometry.grid[axis]
    # A window at either edge of the new cells overlaps the old ones, and is not free.
    more = max(window, ceil(RESERVE * n_wanted / others)) + 2 * (window - 1)
    return tuple(n + more * (i == axis) for i, n in enumerate(geometry.grid))


def n_wanted(tokens: Array, window: Shape, n_old: int, n_new: int) -> int:
    """Return the number of free windows that new bags may use."""
    n_used = int((~are_free(tokens, window)).sum())
    return max(prod(window), ceil(ROOM * n_used * n_new / max(n_old, 1)))


def allowed_windows(is_free: Array, usage: Array, window: Shape, n: int) -> Array:
    """Return the windows that new bags may use: all that are not free, and some free ones near similar bags.

    Parameters
    ----------
    is_free : ndarray of bool of shape (*grid,)
        Free windows.
    usage : ndarray of shape (*grid,)
        Posterior of the new bags over the old windows, summed over bags.
    window : tuple of int
        Cells along each axis.
    n : int
        Number of free windows to use.

    Returns
    -------
    is_allowed : ndarray of bool of shape (*grid,)
        The windows. The free ones lie together; the others stay free for later.
    """
    likeness = gaussian_filter(usage.astype(np.float64), REACH * np.array(window), mode="wrap")
    free = np.argwhere(is_free)
    if not len(free):
        return np.ones_like(is_free)
    center = free[likeness[is_free].argmax()]
    away = np.sqrt((torus.displacement(center, free, is_free.shape) ** 2).sum(axis=-1))
    is_allowed = ~is_free
    is_allowed[tuple(free[np.argsort(away, kind="stable")[:n]].T)] = True
    return is_allowed


def are_free(tokens: Array, window: Shape) -> Array:
    """Return which windows lie on cells that hold hardly any tokens, a mask of shape (*grid,)."""
    used = tokens[tokens > 0]
    limit = FREE * used.mean() if used.size else 0.0
    return torus.window_sum(tokens[None].astype(np.float64), window)[0] <= limit * prod(window)


def extended(grid: Grid, geometry: Geometry, shape: Shape, filling: Array, rng: np.random.RandomState) -> Grid:
    """Return a grid on a larger torus that has all windows of the old one, at the same cells.

    The cells behind the old edge repeat those from the beginning, so that windows that wrapped around find their cells.

    Parameters
    ----------
    grid : Grid
        The old parameters.
    geometry : Geometry
        The old grid.
    shape : tuple of int
        Cells along each axis of the larger torus.
    filling : ndarray of shape (n_features,)
        Histogram of free cells.
    rng : RandomState
        Noise of free cells.

    Returns
    -------
    larger : Grid
        pi, and log P, which is tiny for windows that the old grid did not have.
    """
    pi = filling.reshape(-1, *(1,) * len(shape)) * (1 + NOISE * rng.uniform(size=(len(filling), *shape)))
    repeated, inside = [], []
    for old, new, window in zip(geometry.grid, shape, geometry.window, strict=True):
        repeated.append(np.arange(old if new == old else min(old + window - 1, new)) % old)
        inside.append(slice(len(repeated[-1])))
    inner: Any = (slice(None), *np.ix_(*repeated))
    pi[(slice(None), *inside)] = grid.pi[inner]
    log_prior = np.full(shape, EXCLUDED)
    log_prior[tuple(slice(old) for old in geometry.grid)] = grid.log_prior
    pi = np.ascontiguousarray(pi, dtype=grid.pi.dtype)
    return Grid(em.normalize(pi, geometry.groups, default()), log_prior.astype(grid.log_prior.dtype), grid.extra)


def tokens_of(grid: Grid, statistics: Statistics, geometry: Geometry) -> Array:
    """Return the expected tokens of each cell, of shape (*grid,)."""
    counts = em.expected_counts(grid.pi, statistics.A, geometry.block(painted=True))
    return np.asarray(counts.sum(axis=0, dtype=np.float64))
