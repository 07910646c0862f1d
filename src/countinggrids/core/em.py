"""The EM algorithm of the whole family of models, in the letters of the paper.

====  ==================================================================  ===================
pi    distribution over features in each cell                             (features, *grid)
h     histogram of each block of cells: the mean of pi over it            (features, *grid)
P     prior probability of each window, stored as log P                   (*grid,)
q     posterior over windows of each bag                                  (bags, cells)
A     expected counts of each feature in the block at each cell           (features, *grid)
====  ==================================================================  ===================

Models differ in their `Geometry`: which sections of a bag are matched in the E step, and which are painted in the M
step. One iteration is `e_step` followed by `m_step`. Models with another E step are listed in `core.steps`.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from countinggrids.core import arrays, torus
from countinggrids.core.arrays import Array
from countinggrids.core.geometry import Geometry, Shape
from countinggrids.core.pieces import blocks, for_features, largest_piece, pieces
from countinggrids.core.protocols import Bags, Counts, Pool

SMALLEST = 1e-25
"""Added before a division or a logarithm, for features absent from a window; also the smallest P."""
NOTHING = np.zeros(0)
"""The extra parameters and statistics of a model that has none."""


class Grid(NamedTuple):
    """The parameters of a model: pi, (features, *grid), log P, (*grid,), and the few others that it learns.

    Those in `extra` are a NumPy array of float64 on every backend; their meaning belongs to the module of
    `core.steps` that learns them.
    """

    pi: Array
    log_prior: Array
    extra: Array = NOTHING

    def fetched(self) -> "Grid":
        """Return the parameters as NumPy arrays."""
        return Grid(arrays.fetched(self.pi), arrays.fetched(self.log_prior), self.extra)


class Statistics(NamedTuple):
    """Expected sufficient statistics of some bags: A, (features, *grid), sum_t q_t, (*grid,), and sum_t log p(bag).

    `extra` holds the statistics from which `Grid.extra` is learned, a NumPy array of float64.
    """

    A: Array
    usage: Array
    log_likelihood: float
    extra: Array = NOTHING

    def plus(self, other: "Statistics") -> "Statistics":
        """Add the statistics of other bags, in place."""
        A, usage = self.A, self.usage
        A += other.A
        usage += other.usage
        return Statistics(A, usage, self.log_likelihood + other.log_likelihood, self.extra + other.extra)

    def times(self, factor: float) -> "Statistics":
        """Multiply by a number, in place."""
        A, usage = self.A, self.usage
        A *= factor
        usage *= factor
        return Statistics(A, usage, self.log_likelihood * factor, self.extra * factor)


class Windows(NamedTuple):
    """What bags are matched with: beta log h, (features, *grid), and log P, (*grid,).

    The inverse temperature beta scales log h only. With beta < 1 log p(bag) is that of the tempered model.
    """

    log_h: Array
    log_prior: Array


def planes_like(pi: Array) -> Array:
    """Allocate planes of the shape of pi, (features, *grid)."""
    return arrays.rows_like(pi, len(pi), prod(pi.shape[1:])).reshape(pi.shape)


def histograms(pi: Array, block: Shape) -> Array:
    """Average pi over the block at every cell (Eq. h)."""
    return torus.window_sum(pi, block) / prod(block)


def windows_of(grid: Grid, geometry: Geometry, beta: float, pool: Pool) -> Windows:
    """Compute beta log h of the matched blocks; beta is the inverse temperature."""
    xp, log_h = arrays.namespace(grid.pi), planes_like(grid.pi)
    block = geometry.block(painted=False)

    def fill(features: slice) -> None:
        logs = xp.log(histograms(grid.pi[features], block) + SMALLEST, out=log_h[features])
        if beta != 1:
            logs *= beta

    for_features(fill, grid.pi, pool)
    return Windows(log_h, grid.log_prior)


def posterior(counts: Counts, windows: Windows, pool: Pool) -> tuple[Array, Array]:
    """Compute q and log p(bag) of some bags (Eqs. qkl, qkl2, qklE).

    Parameters
    ----------
    counts : Counts
        The bags.
    windows : Windows
        What they are matched with.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    q : ndarray of shape (n_bags, n_cells)
        Posterior over windows.
    log_likelihood : ndarray of shape (n_bags,)
        log p(bag), float64.
    """
    log_h, log_prior = windows.log_h, windows.log_prior.reshape(-1)
    n_bags, n_cells = counts.shape[0], log_prior.shape[0]
    prepared = counts.prepare(log_h)
    q = arrays.rows_like(log_h, n_bags, n_cells)
    row_pieces = pieces(n_bags, min(max(1, pool.piece_entries // n_cells), largest_piece(n_bags, n_bags * n_cells)))
    # q holds log-likelihoods until `softmax`: of all bags, with cells shared by threads, or of a piece in `locate`.
    if counts.matches_cells_apart:
        counts.match(prepared, slice(0, n_bags), q, pool)

    def locate(rows: slice) -> Array:
        joint = q[rows] if counts.matches_cells_apart else counts.match(prepared, rows, q[rows])
        joint += log_prior
        return softmax(joint)

    return q, np.concatenate(list(pool.map(locate, row_pieces)))


def softmax(scores: Array) -> Array:
    """Turn log p(bag, cell) into q, in place, and return log p(bag), float64."""
    xp = arrays.namespace(scores)
    best = xp.max(scores, axis=1)
    scores -= best[:, None]
    q = arrays.exp_in_place(scores)
    total = arrays.summed(q, axis=1)
    q *= arrays.like(q, 1 / total)[:, None]
    return arrays.fetched(best) + np.log(total)


def e_step(bags: Bags, windows: Windows, geometry: Geometry, pool: Pool) -> Statistics:
    """Compute the expected sufficient statistics of one chunk of bags, some bags at a time."""
    canvas = bags.painted.canvas(windows.log_h)
    usage, log_likelihood = np.zeros(geometry.n_cells), 0.0
    for rows in blocks(bags, geometry, pool):
        some = bags.rows(rows)
        q, each = posterior(some.matched, windows, pool)
        if (some.weights != 1).any():
            q *= arrays.like(q, some.weights)[:, None]
        some.painted.paint(q, canvas, pool)
        usage += summed_over_bags(q, pool)
        log_likelihood += float(some.weights @ each)
    return Statistics(bags.painted.planes(canvas), usage.reshape(geometry.grid), log_likelihood)


def summed_over_bags(q: Array, pool: Pool) -> Array:
    """Sum q over bags, (cells,), float64, a stripe of cells at a time."""
    stripes = pieces(q.shape[1], largest_piece(q.shape[1], prod(q.shape)))
    return np.concatenate(list(pool.map(lambda cells: arrays.summed(q[:, cells], axis=0), stripes)))


def m_step(
    grid: Grid,
    statistics: Statistics,
    geometry: Geometry,
    eta: Array,
    location_prior: str,
    pool: Pool,
    is_in_place: bool = False,
) -> Grid:
    """Re-estimate pi (Eqs. M1_full, M2, ME) and P (Eqs. pl1, pl2); eta holds pseudocounts, (features,).

    The extra parameters of the grid are kept: `core.steps.Steps.extra_step` re-estimates them. In place, the new pi
    takes the memory of A.
    """
    counts = statistics.A if is_in_place else planes_like(grid.pi)
    block = geometry.block(painted=True)
    pseudocounts = arrays.like(grid.pi, eta).reshape(-1, *(1,) * len(geometry.grid))

    def update(features: slice) -> None:
        counts[features] = expected_counts(grid.pi[features], statistics.A[features], block)
        counts[features] += pseudocounts[features]

    for_features(update, grid.pi, pool)
    log_prior = log_location_prior(statistics.usage, geometry, location_prior)
    return Grid(normalize(counts, geometry.groups, pool), arrays.like(counts, log_prior), grid.extra)


def first_extra(geometry: Geometry) -> Array:
    """Return no extra parameters: pi and P are all that a counting grid learns."""
    return NOTHING


def extra_step(grid: Grid, extra: Array, geometry: Geometry) -> Array:
    """Return no extra parameters."""
    return NOTHING


def expected_counts(pi: Array, A: Array, block: Shape) -> Array:
    """Distribute what was seen in each block over its cells (Eqs. M1, M2; Eq. ME where a block is one cell).

    The factor 1 / |V| makes the result sum to the counts.
    """
    if prod(block) == 1:
        return A
    shares = torus.covering_sum(A / (histograms(pi, block) + SMALLEST), block)
    shares *= pi
    shares /= prod(block)
    return shares


def log_location_prior(usage: Array, geometry: Geometry, kind: str) -> Array:
    """Compute log P from the usage of the windows: "exact" (Eq. pl1), "smoothed" (Eq. pl2) or "uniform"."""
    if kind == "uniform":
        usage = np.ones_like(usage)
    elif kind == "smoothed":
        usage = torus.covering_sum(usage, geometry.window)
    return np.log(np.maximum(usage / usage.sum(), SMALLEST))


def log_density(pi: Array, eta: Array, pool: Pool) -> float:
    """Compute sum_i sum_z eta_z log pi, the log density of the Dirichlet prior without its constant."""
    if not eta.any():
        return 0.0
    xp = arrays.namespace(pi)

    def of_features(features: slice) -> float:
        logs = xp.log(pi[features] + SMALLEST)
        return float(eta[features] @ arrays.summed(logs.reshape(logs.shape[0], -1), axis=1))

    return sum(for_features(of_features, pi, pool))


def normalize(counts: Array, groups: int, pool: Pool) -> Array:
    """Scale counts in place so that each group of features sums to one in every cell; empty cells become uniform."""
    for planes in counts.reshape(groups, -1, *counts.shape[1:]):
        _normalize_group(planes, pool)
    return counts


def _normalize_group(planes: Array, pool: Pool) -> None:
    # In float64: the sum of 200,000 features in float32 is off by 2e-3. Piece by piece, without a float64 copy.
    total = sum(for_features(lambda some: arrays.summed(planes[some], axis=0), planes, pool))
    is_empty = total == 0
    scale = arrays.like(planes, np.divide(1.0, total, where=~is_empty, out=np.zeros_like(total)))
    filling = arrays.like(planes, np.where(is_empty, 1 / len(planes), 0.0))

    def divide(features: slice) -> None:
        part = planes[features]
        part *= scale
        part += filling

    for_features(divide, planes, pool)
