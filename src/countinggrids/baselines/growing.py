"""A first layout of images by growth: the best matching ones are placed first, each where it continues the others."""

import numpy as np
from numpy.typing import NDArray

from countinggrids.baselines import spectra
from countinggrids.core import torus
from countinggrids.core.geometry import Geometry

Array = NDArray[np.float64]
Cells = NDArray[np.int64]
LEVELS = (0.0005, 0.005, 0.05, 0.3)
"""Variances of the noise that are tried, from the smallest on, as fractions of the variance of all pixels."""
GROWTH = 1.05
"""Growth of the number of placed images in one round."""
MOST_IMAGES = 500
"""Largest number of images that are placed; the others find their locations on the epitome."""
SMALLEST = 1e-9
"""Added to variances."""


def grown(X: Array, geometry: Geometry) -> tuple[Cells, Cells]:
    """Place images one after the other, beginning with the one that has most contrast.

    In every round, images that match the cells that are covered already, in as many pixels as possible, are placed, and
    those before are placed anew.

    Parameters
    ----------
    X : ndarray of shape (n_images, n_pixels * n_channels)
        Images.
    geometry : Geometry
        Grid and window.

    Returns
    -------
    rows : ndarray of shape (n_placed,)
        Images that are placed: different ones.
    cells : ndarray of shape (n_placed,)
        Their corners, as flat indices.
    """
    rows = np.sort(np.unique(X, axis=0, return_index=True)[1]).astype(np.int64)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_IMAGES)).astype(int)]
    images = spectra.as_windows(X[rows], geometry.window)
    planes = spectra.spectrum(images, geometry.grid)
    for level in LEVELS:
        cells = _placed(images, planes, geometry, level)
        if _noise(images, planes, cells, geometry) <= 2 * level:
            break
    return rows, cells


def _placed(images: Array, planes: NDArray[np.complex128], geometry: Geometry, level: float) -> Cells:
    """Place all images, given the variance of the noise; return their corners as flat indices."""
    mean, variance = _moments(images)
    baseline = -((images - mean) ** 2 / variance / 2).reshape(len(images), -1).sum(axis=1)
    cells = np.zeros(len(images), np.int64)
    is_placed = np.zeros(len(images), bool)
    is_placed[images.reshape(len(images), -1).var(axis=1).argmax()] = True
    while not is_placed.all():
        covered = painted(planes[is_placed], cells[is_placed], geometry)
        scores = _scores(images, planes, covered, geometry, level)
        gains = np.where(is_placed, -np.inf, scores.max(axis=1) - baseline)
        n_new = max(1, int((GROWTH - 1) * is_placed.sum()))
        is_placed[np.argsort(-gains, kind="stable")[:n_new]] = True
        cells[is_placed] = scores[is_placed].argmax(axis=1)
    return cells


def _moments(images: Array) -> tuple[Array, Array]:
    """Return mean and variance of all pixels by channel, (channels, 1, ...)."""
    pixels = np.moveaxis(images, 1, 0).reshape(images.shape[1], -1)
    shape = (-1, *(1,) * (images.ndim - 2))
    moments = np.stack([pixels.mean(axis=1), pixels.var(axis=1) + SMALLEST]).astype(np.float64)
    return moments[0].reshape(shape), moments[1].reshape(shape)


def _noise(images: Array, planes: NDArray[np.complex128], cells: Cells, geometry: Geometry) -> float:
    """Return the variance of the pixels that share a cell, as a fraction of that of all pixels."""
    counts, total = painted(planes, cells, geometry)
    _, squares = painted(spectra.spectrum(images**2, geometry.grid), cells, geometry)
    within = squares - total**2 / np.maximum(counts, 1)
    freedom = np.maximum(counts - 1, 0).sum()
    if freedom == 0:
        return 0.0
    return float((within.reshape(len(within), -1).sum(axis=1) / freedom / _moments(images)[1].ravel()).mean())


def painted(planes: NDArray[np.complex128], cells: Cells, geometry: Geometry) -> tuple[Array, Array]:
    """Return how many images cover each cell, (*grid,), and the sum of their pixels, (channels, *grid)."""
    q = np.zeros((len(cells), geometry.n_cells))
    q[np.arange(len(cells)), cells] = 1
    q = q.reshape(-1, *geometry.grid)
    counts = np.rint(torus.covering_sum(q.sum(axis=0), geometry.window))
    return counts, spectra.inverse(spectra.paint(spectra.spectrum(q, geometry.grid), planes), geometry.grid)


def _scores(
    images: Array, planes: NDArray[np.complex128], covered: tuple[Array, Array], geometry: Geometry, level: float
) -> Array:
    """Return the log density of each image in every window, (images, cells), without the part that is the same."""
    (counts, total), (mean, variance) = covered, _moments(images)
    means = np.where(counts > 0, total / np.maximum(counts, 1), mean)
    spread = variance * np.where(counts > 0, level, 1.0)
    fixed = (np.log(spread / variance) + means**2 / spread).sum(axis=0)
    constant = -torus.window_sum(fixed, geometry.window) / 2
    squares = spectra.spectrum(images**2, geometry.grid)
    cross = spectra.correlate(planes, spectra.spectrum(means / spread, geometry.grid), geometry.grid)
    square = spectra.correlate(squares, spectra.spectrum(-0.5 / spread, geometry.grid), geometry.grid)
    return (cross + square + constant).reshape(len(images), -1)
