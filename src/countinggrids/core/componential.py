"""The E step of the componential counting grid: every token of a bag has its own window.

A bag has weights theta over the cells, and alpha pseudocounts in total, spread evenly over the cells:

    p[z]     = sum_k theta[k] h[k, z];      R[z] = counts[z] / p[z]
    theta'   ∝ alpha / cells + theta[k] * sum_z R[z] h[k, z]
    A[k]     = h[k] * sum_t theta_t[k] R_t

For fixed pi the update of theta raises a concave function, `sum_z counts[z] log p[z] + alpha mean_k log theta[k]`. So
every E step starts each bag at equal weights and repeats the update: nothing is kept from one iteration to the next.
With a window of one cell this is MAP LDA, and with alpha = 0 pLSA. A token of section s uses h[k + d_s].
"""

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from countinggrids.core import arrays, em, torus
from countinggrids.core.arrays import Array
from countinggrids.core.em import SMALLEST, Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import PLANE_ENTRIES, blocks, for_features, pieces
from countinggrids.core.protocols import Admixture, Bags, Counts, InnerSteps, Pool

LEARNING = InnerSteps(5, 10)
"""Updates of theta in an E step: over all cells, and then over those with a weight that counts."""
PREDICTING = InnerSteps(10, 60)
"""The same for predictions."""
BOUND_CELLS, BOUND_STEPS, BOUND_BAGS = 64, 40, 32
"""Cells that the bound of a bag uses, updates of its responsibilities, and bags that a thread works on at a time."""
FIRST_ALPHA = 2.0
"""Pseudocounts of a bag in total, before data choose them."""


@dataclass(frozen=True)
class ComponentialGeometry(Geometry):
    """A geometry in which every token has its own window."""


class Mixtures(NamedTuple):
    """What bags are explained by: h, (features, *grid), its mean over the cells, (features,), and alpha."""

    h: Array
    mean: Array
    alpha: float


def windows_of(grid: Grid, geometry: Geometry, beta: float, pool: Pool) -> Mixtures:
    """Compute h of every block; there is no annealing, so beta is not used."""
    h, block = arrays.namespace(grid.pi).empty_like(grid.pi), geometry.block(painted=True)

    def fill(features: slice) -> Array:
        h[features] = em.histograms(grid.pi[features], block)
        h[features] += SMALLEST
        return arrays.summed(h[features].reshape(h[features].shape[0], -1), axis=1)

    mean = np.concatenate(for_features(fill, grid.pi, pool)) / geometry.n_cells
    return Mixtures(h, arrays.like(h, mean), float(grid.extra[0]))


def admixture(counts: Counts, windows: Mixtures, steps: InnerSteps, pool: Pool) -> Admixture:
    """Compute theta of some bags, a piece of bags at a time.

    Parameters
    ----------
    counts : Counts
        The bags.
    windows : Mixtures
        What they are explained by.
    steps : InnerSteps
        How often theta is updated.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    admixture : Admixture
        Weights of the cells, R as counts, and log p of the tokens of each bag.
    """
    prepared, n_cells = counts.prepare(windows.h), int(np.prod(windows.h.shape[1:]))
    rows = pieces(counts.shape[0], max(1, pool.piece_entries // n_cells))
    parts = list(pool.map(lambda some: counts.rows(some).admix(prepared, windows.mean, windows.alpha, steps), rows))
    xp = arrays.namespace(windows.h)
    return Admixture(
        xp.concat([part.excess for part in parts]) if len(parts) > 1 else parts[0].excess,
        np.concatenate([part.floor for part in parts]),
        counts.joined([part.ratios for part in parts]),
        np.concatenate([part.log_p for part in parts]),
    )


def posterior(counts: Counts, windows: Mixtures, pool: Pool) -> tuple[Array, Array]:
    """Compute theta of some bags, and log p of their tokens given theta; see `lower_bounds` for log p(bag).

    Parameters
    ----------
    counts : Counts
        The bags.
    windows : Mixtures
        What they are explained by.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    theta : ndarray of shape (n_bags, n_cells)
        Weights of the cells.
    log_p : ndarray of shape (n_bags,)
        sum_z counts[z] log p[z], float64.
    """
    found = admixture(counts, windows, PREDICTING, pool)
    theta = found.excess
    theta += arrays.like(theta, found.floor)[:, None]
    return theta, found.log_p


def lower_bounds(counts: Counts, windows: Mixtures, pool: Pool) -> Array:
    """Compute a lower bound of log p(bag), whose theta is integrated out, (bags,), float64."""
    theta = arrays.fetched(posterior(counts, windows, pool)[0])
    tokens, h = counts.entries(), arrays.fetched(windows.h).reshape(len(windows.h), -1)
    cells = np.arange(theta.shape[1]).reshape(1, *windows.h.shape[1:])
    shifted = np.concatenate([torus.shift(cells, offset) for offset in counts.offsets]).reshape(-1, theta.shape[1])

    def bound(bag: int) -> float:
        part = slice(tokens.indptr[bag], tokens.indptr[bag + 1])
        sections, features = np.divmod(tokens.indices[part], len(h))
        likeliest = np.argsort(-theta[bag], kind="stable")[:BOUND_CELLS]
        few = h[features[:, None], shifted[sections][:, likeliest]].astype(np.float64)
        counts_of_bag, weights = tokens.data[part].astype(np.float64), theta[bag, likeliest].astype(np.float64)
        return variational_bound(counts_of_bag, few, weights, windows.alpha, theta.shape[1])

    def bounds(rows: slice) -> list[float]:
        return [bound(bag) for bag in range(len(theta))[rows]]

    return np.concatenate(list(pool.map(bounds, pieces(len(theta), BOUND_BAGS))))


def variational_bound(counts: Array, few: Array, weights: Array, alpha: float, n_cells: int) -> float:
    """Compute a lower bound of log p of one bag by variational Bayes.

    Every token is assigned to cells by responsibilities, which start from theta. Given how often each cell is used, the
    integral over a Dirichlet distribution with `alpha / cells` for each cell is exact. Cells that are left out are
    unused, which lowers the bound.

    Parameters
    ----------
    counts : ndarray of shape (n_tokens,)
        Counts of the features of the bag.
    few : ndarray of shape (n_tokens, n_few)
        Their probabilities in a few cells.
    weights : ndarray of shape (n_few,)
        Theta of these cells.
    alpha : float
        Pseudocounts of a bag in total; 0 is the limit in which all tokens of a bag come from one cell.
    n_cells : int
        Number of all cells.

    Returns
    -------
    bound : float
        The bound.
    """
    if not alpha:
        return float((counts @ np.log(few)).max() - np.log(n_cells))
    each = alpha / n_cells
    for step in range(BOUND_STEPS + 1):
        p = np.maximum(few @ weights, SMALLEST)
        used = weights * ((counts / p) @ few)
        if step < BOUND_STEPS:
            weights = np.exp(digamma(each + used))
    spread = used @ np.log(np.maximum(weights, SMALLEST))
    evidence = (gammaln(used + each) - gammaln(each)).sum() + gammaln(alpha) - gammaln(alpha + used.sum())
    return float(counts @ np.log(p) - spread + evidence)


def mean_log_theta(found: Admixture, pool: Pool) -> Array:
    """Compute the mean over cells of log theta, (bags,), float64."""
    xp, n_cells = arrays.namespace(found.excess), found.excess.shape[1]
    floor = arrays.like(found.excess, found.floor)[:, None] + SMALLEST

    def of_rows(rows: slice) -> Array:
        return arrays.summed(xp.log(found.excess[rows] + floor[rows]), axis=1)

    most = max(1, pool.piece_entries // n_cells)
    return np.concatenate(list(pool.map(of_rows, pieces(len(found.floor), most)))) / n_cells


def e_step(bags: Bags, windows: Mixtures, geometry: Geometry, pool: Pool) -> Statistics:
    """Compute the expected sufficient statistics of one chunk of bags, a block of bags at a time."""
    canvas, n_cells = bags.painted.canvas(windows.h), geometry.n_cells
    usage, everywhere, objective = np.zeros(n_cells), np.zeros(len(windows.h)), 0.0
    for rows in blocks(bags, geometry, pool):
        block = bags.rows(rows)
        found = admixture(block.painted, windows, LEARNING, pool)
        objective += float(block.weights @ (found.log_p + windows.alpha * mean_log_theta(found, pool)))
        excess = found.excess
        excess *= arrays.like(excess, block.weights)[:, None]
        floor = found.floor * block.weights
        found.ratios.paint(excess, canvas, pool)
        everywhere += found.ratios.summed(floor)
        usage += em.summed_over_bags(excess, pool) + floor.sum()
    A = bags.painted.planes(canvas)
    A += arrays.like(A, everywhere).reshape(-1, *(1,) * len(geometry.grid))
    A *= windows.h
    return Statistics(A, usage.reshape(geometry.grid), objective, np.zeros(1))


def first_extra(geometry: Geometry) -> Array:
    """Return the first alpha, (1,)."""
    return np.array([FIRST_ALPHA])


def extra_step(grid: Grid, extra: Array, geometry: Geometry) -> Array:
    """Return alpha as it is: it is chosen by held-out words (`training.completion`)."""
    return grid.extra


def main_cells(theta: Array, geometry: Geometry) -> Array:
    """Return the window in which most of a bag lies, as a flat index.

    Every token is spread evenly over its window; the main window is the one with most of them.

    Parameters
    ----------
    theta : ndarray of shape (n_bags, n_cells)
        Weights of the cells.
    geometry : Geometry
        Grid and window.

    Returns
    -------
    cells : ndarray of shape (n_bags,)
        Flat indices.
    """
    spread = torus.covering_sum(theta.reshape(-1, *geometry.grid), geometry.window)
    return np.asarray(torus.window_sum(spread, geometry.window).reshape(theta.shape).argmax(axis=1))


def cell_weights(theta: Array, geometry: Geometry) -> Array:
    """Compute the fraction of the tokens of a bag that lies in each cell.

    Every token is spread evenly over its window. What the pseudocounts give to every cell does not count.

    Parameters
    ----------
    theta : ndarray of shape (n_bags, n_cells)
        Weights of the windows.
    geometry : Geometry
        Grid and window.

    Returns
    -------
    weights : ndarray of shape (n_bags, n_cells)
        Rows sum to one. A bag without tokens is spread evenly.
    """
    excess = theta - theta.min(axis=1, keepdims=True)
    total = excess.sum(axis=1, keepdims=True)
    shares = np.divide(excess, total, where=total > 0, out=np.full_like(theta, 1 / theta.shape[1]))
    spread = torus.covering_sum(shares.reshape(-1, *geometry.grid), geometry.window)
    return np.asarray(spread.reshape(theta.shape) / prod(geometry.window))


def token_cells(theta: Array, h: Array, columns: Array, geometry: Geometry) -> Array:
    """Return the likeliest window of each of some tokens of one bag, as flat indices.

    Parameters
    ----------
    theta : ndarray of shape (n_cells,)
        Weights of the cells.
    h : ndarray of shape (n_features, *grid)
        Histograms of the blocks.
    columns : ndarray of int
        Columns of the tokens: section * n_features + feature.
    geometry : Geometry
        Grid, window and sections.

    Returns
    -------
    cells : ndarray of shape (n_tokens,)
        Flat indices.
    """
    sections, features = np.divmod(columns, len(h))
    shifted = {s: torus.shift(h[features[sections == s]], geometry.painted_offsets[s]) for s in np.unique(sections)}
    cells = np.empty(len(columns), np.int64)
    for section, planes in shifted.items():
        cells[sections == section] = (planes.reshape(len(planes), -1) * theta).argmax(axis=1)
    return cells


def predicted(theta: Array, h: Array, tokens: Any, geometry: Geometry) -> Array:
    """Compute p of the tokens that a CSR table holds, one number for each of its entries.

    Parameters
    ----------
    theta : ndarray of shape (n_bags, n_cells)
        Weights of the cells.
    h : ndarray of shape (n_features, *grid)
        Histograms of the windows.
    tokens : csr_array of shape (n_bags, n_sections * n_features)
        The tokens of the same bags.
    geometry : Geometry
        Grid, window and sections.

    Returns
    -------
    p : ndarray of shape (n_entries,)
        Probabilities, float64.
    """
    h, p = h.reshape(len(h), -1), np.empty(tokens.data.size)
    bags = np.repeat(np.arange(len(theta)), np.diff(tokens.indptr))
    sections, features = np.divmod(tokens.indices, len(h))
    planes = theta.reshape(-1, *geometry.grid)
    for section, offset in enumerate(geometry.painted_offsets):
        moved = torus.shift(planes, [-d for d in offset]).reshape(theta.shape)
        for entries in pieces(p.size, max(1, PLANE_ENTRIES // h.shape[1])):
            at = np.flatnonzero(sections[entries] == section) + entries.start
            p[at] = np.einsum("ek,ek->e", moved[bags[at]], h[features[at]])
    return np.maximum(p, SMALLEST)
