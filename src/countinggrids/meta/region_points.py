"""Points by which the cells of a grid are compared when it is partitioned into regions."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.sparse.linalg import svds

from countinggrids.core import em
from countinggrids.data.collection import Collection

Array = NDArray[Any]
N_FEATURES = 2000
"""Features by which windows are compared: those that vary most."""
N_DIMENSIONS = 64
"""Dimensions of the latent semantic analysis of texts."""
MOST_TEXTS = 20_000
"""Texts from which these dimensions are computed, evenly spaced."""


def of_texts(collection: Collection, posteriors: sp.csr_array, weights: Array, deviation: Array) -> Array:
    """Compute the mean text around each cell by latent semantic analysis, as a direction from the mean of the map.

    TF-IDF vectors of the texts are projected to a few dimensions, averaged around each cell by their posteriors,
    centered and normalized. So cells with texts on everything differ by what is particular to each.

    Parameters
    ----------
    collection : Collection
        The texts.
    posteriors : csr_array of shape (n_items, n_cells)
        Posterior of each text.
    weights : ndarray of shape (n_rows, n_columns)
        Smoothed usage, never zero.
    deviation : ndarray of shape (2,)
        Standard deviation, in cells, of the filter by which the usage is smoothed.

    Returns
    -------
    points : ndarray of shape (n_cells, n_dimensions)
        The points.
    """
    one = collection.coarsen((1,) * len(collection.sections))
    sums = np.asarray(posteriors.T @ _projected(_tfidf(sp.csr_array(one.counts)))).reshape(*weights.shape, -1)
    smooth = gaussian_filter(sums, (*deviation, 0), mode="wrap") / weights[..., None]
    points = smooth.reshape(weights.size, -1) - np.average(smooth, axis=(0, 1), weights=weights)
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)


def _tfidf(counts: sp.csr_array) -> sp.csr_array:
    """Return log counts times log inverse document frequencies, of unit length."""
    n_texts = np.maximum(np.bincount(counts.indices, minlength=counts.shape[1]), 1)
    scaled = sp.csr_array(counts, dtype=np.float64, copy=True)
    scaled.data = np.log1p(scaled.data) * np.log(counts.shape[0] / n_texts)[scaled.indices]
    lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled.data /= np.repeat(np.maximum(lengths, 1e-9), np.diff(scaled.indptr))
    return scaled


def _projected(texts: sp.csr_array) -> Array:
    """Return coordinates of the texts along the leading singular vectors."""
    some = texts[:: -(-texts.shape[0] // MOST_TEXTS)]
    if min(some.shape) <= N_DIMENSIONS:
        return np.asarray(texts.todense())
    axes = svds(some, N_DIMENSIONS, v0=np.ones(min(some.shape)), return_singular_vectors="vh")[2]
    return np.asarray(texts @ axes.T)


def of_windows(model: Any, grid: tuple[int, int], window: tuple[int, int], weights: Array) -> Array:
    """Compute the square roots of the histograms of windows, for the features that vary most.

    Parameters
    ----------
    model : estimator
        A fitted model.
    grid, window : tuple of int
        Rows and columns.
    weights : ndarray of shape (n_rows, n_columns)
        Smoothed usage, never zero.

    Returns
    -------
    points : ndarray of shape (n_cells, n_features)
        The points.
    """
    planes = model.pi_.reshape(*grid, -1, model.pi_.shape[-1]).mean(axis=2)
    roots, fractions = [], weights.ravel() / weights.sum()
    step = max(1, 2**24 // planes[..., 0].size)
    for first in range(0, planes.shape[-1], step):
        some = np.ascontiguousarray(np.moveaxis(planes[..., first : first + step], -1, 0), dtype=np.float32)
        roots.append(np.sqrt(em.histograms(some, window).reshape(len(some), -1)))
        roots = _most_varying(roots, fractions)
    return np.ascontiguousarray(roots[0].T)


def _most_varying(parts: list[Array], weights: Array) -> list[Array]:
    roots = np.concatenate(parts)
    if len(roots) <= N_FEATURES:
        return [roots]
    variance = (roots**2) @ weights - (roots @ weights) ** 2
    return [roots[np.sort(np.argsort(-variance, kind="stable")[:N_FEATURES])]]
