"""Document completion: half of the tokens of some bags are shown, and the others are predicted.

A few bags are kept out of learning. How well their hidden tokens are predicted chooses the pseudocounts, and says when
to stop.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.core import componential, em
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import blocks, for_features
from countinggrids.core.protocols import Pool
from countinggrids.data.chunks import bags_of
from countinggrids.data.table import Table

FRACTION, MOST_BAGS, FEWEST_BAGS = 0.05, 500, 20
"""Fraction of the bags that is kept out, at most and at least so many: with fewer, none are."""
FACTOR, MOST_TRIALS = 1.5, 2
"""Factor between two values of a pseudocount that are compared, and how many are."""


def split(counts: Any, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Show every token with probability one half.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (n_bags, n_columns)
        The bags. The part of a count that is no integer is shown, or not, as a whole.
    rng : RandomState
        Random numbers.

    Returns
    -------
    shown, hidden : csr_array of shape (n_bags, n_columns)
        The two parts.
    """
    whole = sp.csr_array(counts)
    tokens = np.floor(whole.data)
    parts = rng.binomial(tokens.astype(np.int64), 0.5) + (whole.data - tokens) * rng.randint(2, size=tokens.size)
    shown, hidden = (
        sp.csr_array((values.astype(whole.dtype), whole.indices.copy(), whole.indptr.copy()), shape=whole.shape)
        for values in (parts, whole.data - parts)
    )
    shown.eliminate_zeros()
    hidden.eliminate_zeros()
    return shown, hidden


def log_predictive(shown: Any, hidden: sp.csr_array, grid: Grid, geometry: Geometry, pool: Pool) -> tuple[float, float]:
    """Compute the log-probability of hidden tokens given the shown ones, and how many are hidden.

    Parameters
    ----------
    shown, hidden : csr_array of shape (n_bags, n_columns)
        Two parts of the same bags.
    grid : Grid
        Parameters of the model.
    geometry : Geometry
        Grid, window and sections.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    log_p : float
        Sum over the hidden tokens.
    n_tokens : float
        Number of hidden tokens.
    """
    n_features = len(grid.pi)
    windows = componential.windows_of(grid, geometry, 1.0, pool)
    bags = bags_of(shown, np.ones(shown.shape[0], shown.dtype), n_features, geometry)
    total = 0.0
    for rows in blocks(bags, geometry, pool):
        found = componential.admixture(bags.rows(rows).painted, windows, componential.PREDICTING, pool)
        theta = found.excess + found.floor.astype(found.excess.dtype)[:, None]
        part = hidden[rows]
        total += float(part.data @ np.log(componential.predicted(theta, windows.h, part, geometry)))
    return total, float(hidden.data.sum(dtype=np.float64))


def log_completed(
    posteriors: Iterable[Array], hidden: sp.csr_array, grid: Grid, geometry: Geometry, pool: Pool
) -> float:
    """Compute the log-probability of hidden tokens of bags that lie in one place each.

    Parameters
    ----------
    posteriors : iterable of ndarray of shape (n_some, n_cells)
        Posteriors of the bags given their shown tokens, some bags after the other.
    hidden : csr_array of shape (n_bags, n_columns)
        Hidden tokens of the same bags.
    grid : Grid
        Parameters of the model.
    geometry : Geometry
        Grid, window and sections.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    log_p : float
        Sum over the hidden tokens.
    """
    h, block = em.planes_like(grid.pi), geometry.block(painted=True)

    def fill(features: slice) -> None:
        h[features] = em.histograms(grid.pi[features], block)

    for_features(fill, grid.pi, pool)
    total, first = 0.0, 0
    for q in posteriors:
        part = hidden[first : first + len(q)]
        total += float(part.data @ np.log(componential.predicted(q, h, part, geometry)))
        first += len(q)
    return total


class Completion:
    """Bags that are kept out of learning.

    Parameters
    ----------
    rows : ndarray of int
        Their numbers.
    counts : ndarray or csr_array of shape (n_rows, n_columns)
        Their counts.
    rng : RandomState
        Random numbers, which decide what is shown.
    pool : Pool
        Runs pieces of the work.
    """

    def __init__(self, rows: Array, counts: Any, rng: np.random.RandomState, pool: Pool):
        self.rows, self.pool = rows, pool
        self.shown, self.hidden = split(counts, rng)

    @classmethod
    def of(cls, table: Table, weights: Array, rng: np.random.RandomState, pool: Pool) -> "Completion | None":
        """Draw bags to keep out; None where there are too few."""
        filled = np.flatnonzero(weights * table.tokens > 1)
        n_rows = min(MOST_BAGS, int(FRACTION * len(filled)))
        if n_rows < FEWEST_BAGS:
            return None
        rows = np.sort(rng.permutation(filled)[:n_rows])
        held = cls(rows, table.take(rows), rng, pool)
        return held if held.hidden.nnz else None

    def perplexity(self, grid: Grid, geometry: Geometry) -> float:
        """Compute the perplexity of the hidden tokens."""
        log_p, n_tokens = log_predictive(self.shown, self.hidden, grid, geometry, self.pool)
        return float(np.exp(-log_p / n_tokens))


def best_by_factor(value: float, perplexity: Callable[[float], float]) -> float:
    """Multiply or divide a positive value by `FACTOR` as long as the perplexity falls.

    Parameters
    ----------
    value : float
        Where to start.
    perplexity : callable
        Returns the perplexity for a value.

    Returns
    -------
    value : float
        The best of the values that were tried.
    """
    best = perplexity(value)
    for factor in (FACTOR, 1 / FACTOR):
        start = value
        for _ in range(MOST_TRIALS):
            found = perplexity(value * factor)
            if found >= best:
                break
            value, best = value * factor, found
        if value != start:
            break
    return value
