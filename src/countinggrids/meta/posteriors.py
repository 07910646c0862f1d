"""The largest entries of posteriors, so that those of many items fit in memory."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]
MOST_CELLS, LEAST_POSTERIOR = 24, 0.002
"""Cells of an item's posterior that are kept: their largest number, and their smallest probability."""


def sparse_posteriors(model: Any, X: Any) -> sp.csr_array:
    """Compute the posterior of each bag, without its small entries.

    Parameters
    ----------
    model : estimator
        A fitted model.
    X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
        Counts.

    Returns
    -------
    posteriors : csr_array of shape (n_bags, n_cells)
        The largest posterior probabilities of each bag, in decreasing order.
    """
    return sp.csr_array(sp.vstack([largest_entries(q) for q, _ in model.iter_posteriors(X)], format="csr"))


def largest_entries(q: Array, n: int = MOST_CELLS, least: float = LEAST_POSTERIOR) -> sp.csr_array:
    """Keep the largest entries of each row, in decreasing order; at least one is kept.

    Parameters
    ----------
    q : ndarray of shape (n_bags, n_cells)
        Posteriors.
    n : int, default=24
        Largest number of entries of a row.
    least : float, default=0.002
        Smallest entry.

    Returns
    -------
    kept : csr_array of shape (n_bags, n_cells)
        The entries.
    """
    rows, cells = np.nonzero(q >= np.minimum(q.max(axis=1), least)[:, None])
    values = q[rows, cells]
    order = np.lexsort((cells, -values, rows))
    rows, cells, values = rows[order], cells[order], values[order]
    starts = np.searchsorted(rows, np.arange(len(q) + 1))
    is_kept = np.arange(len(rows)) - starts[rows] < n
    ends = np.r_[0, np.cumsum(np.bincount(rows[is_kept], minlength=len(q)))]
    return sp.csr_array((values[is_kept], cells[is_kept], ends), shape=q.shape)
