"""Relevance of features: which of them distinguish a place from the whole grid."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
FLOOR = 1e-12
"""Added to probabilities before their logarithm."""


def mean_histogram(pi: ArrayLike, usage: ArrayLike | None = None) -> Array:
    """Average pi over cells, weighted by their usage.

    Parameters
    ----------
    pi : array-like of shape (..., n_features)
        Histograms of cells.
    usage : array-like of shape (...), default=None
        Weights; None weighs all cells alike.

    Returns
    -------
    histogram : ndarray of shape (n_features,)
        The mean histogram.
    """
    histograms = np.asarray(pi)
    histograms = histograms.reshape(-1, histograms.shape[-1])
    if usage is None:
        return histograms.mean(axis=0)
    weights = np.maximum(np.asarray(usage, dtype=histograms.dtype).ravel(), FLOOR)
    return weights @ histograms / weights.sum()


def relevance(inside: ArrayLike, everywhere: ArrayLike) -> Array:
    """Compute the relevance p log(p / q) of each feature: frequent in a place, and rarer on the whole grid.

    Parameters
    ----------
    inside : array-like of shape (..., n_features)
        Histograms p of places.
    everywhere : array-like of shape (n_features,)
        Histogram q of the whole grid, such as that of `mean_histogram`.

    Returns
    -------
    relevance : ndarray of shape (..., n_features)
        Terms of the Kullback-Leibler divergence of p from q.

    Examples
    --------
    >>> relevance([0.5, 0.5], [0.5, 0.1]).round(2).tolist()
    [0.0, 0.8]
    """
    here, anywhere = np.asarray(inside) + FLOOR, np.asarray(everywhere) + FLOOR
    return here * np.log(here / anywhere)
