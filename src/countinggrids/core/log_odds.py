"""Log-odds of counts in two groups with an informative Dirichlet prior."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def log_odds(a: ArrayLike, b: ArrayLike, prior: ArrayLike) -> tuple[Array, Array]:
    """Compute the log-odds of each feature in a against b, and their z-scores (Monroe, Colaresi and Quinn 2008).

    Parameters
    ----------
    a, b : array-like of shape (..., n_features)
        Counts of the two groups.
    prior : array-like of shape (..., n_features)
        Pseudocounts, positive where a or b has counts. A feature with no pseudocounts and no counts gets zeros.

    Returns
    -------
    log_odds : ndarray of shape (..., n_features)
        Differences of the log-odds, positive where a has more.
    z : ndarray of shape (..., n_features)
        The same divided by their standard deviations.

    Examples
    --------
    >>> difference, z = log_odds([30, 10], [10, 30], [1, 1])
    >>> difference.round(2).tolist(), z.round(1).tolist()
    ([2.07, -2.07], [5.9, -5.9])
    """
    a, b = (np.asarray(counts, dtype=np.float64) + np.asarray(prior, dtype=np.float64) for counts in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = _logit(a) - _logit(b)
        z = difference / np.sqrt(1 / a + 1 / b)
    is_known = np.isfinite(difference) & np.isfinite(z)
    return np.where(is_known, difference, 0.0), np.where(is_known, z, 0.0)


def _logit(counts: Array) -> Array:
    return np.log(counts / (counts.sum(axis=-1, keepdims=True) - counts))
