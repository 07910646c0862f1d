"""Correlation of windows with a torus, and painting of windows on it, in the frequency domain.

Arrays are planes, (..., *grid) or (..., *window); the spectrum of a window is that of a grid with zeros around it.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from countinggrids.core.geometry import Geometry, Shape

Array = NDArray[np.float64]
BLOCK_ENTRIES = 2**21
"""Entries of the spectra of a block of images: 32 MB."""
KEPT_ENTRIES = 2**23
"""Largest number of entries of the spectra of all images that are kept between iterations."""


def spectrum(planes: Array, grid: Shape) -> NDArray[np.complex128]:
    """Return the Fourier transform of planes, of the grid or of a window, (..., *half of the grid)."""
    return scipy.fft.rfftn(planes, grid, axes=range(-len(grid), 0))


def inverse(spectra: NDArray[np.complex128], grid: Shape) -> Array:
    """Return the planes of spectra, (..., *grid)."""
    return scipy.fft.irfftn(spectra, grid, axes=range(-len(grid), 0))


def correlate(windows: NDArray[np.complex128], planes: NDArray[np.complex128], grid: Shape) -> Array:
    """Sum window[i] plane[k + i] over i and over the channels, for every cell k, (images, *grid).

    Parameters
    ----------
    windows : ndarray of shape (n_images, n_channels, ...)
        Spectra of the windows.
    planes : ndarray of shape (n_channels, ...)
        Spectra of the planes.
    grid : tuple of int
        Cells along each axis.

    Returns
    -------
    sums : ndarray of shape (n_images, *grid)
        Correlation at every cell.
    """
    return inverse(np.einsum("nc...,c...->n...", windows.conj(), planes), grid)


def paint(weights: NDArray[np.complex128], windows: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the spectrum of the sum of weights[j - i] window[i] over i and over the images, (channels, ...)."""
    return np.einsum("n...,nc...->c...", weights, windows)


def as_windows(X: Array, window: Shape) -> Array:
    """Reshape a table, column = pixel * channels + channel, to planes (images, channels, *window)."""
    return np.moveaxis(X.reshape(len(X), *window, -1), -1, 1)


def geometry_of(model: Any, n_columns: int) -> Geometry:
    """Return the geometry of a model, and check that the columns are the pixels of its windows."""
    geometry = Geometry.of(model.grid, model.window)
    if n_columns % prod(geometry.window):
        raise ValueError(
            f"X has {n_columns} columns, but window={geometry.window} needs a multiple of {prod(geometry.window)}; "
            "resize the images to the window, and flatten them."
        )
    return geometry


def blocks(n_images: int, n_channels: int, geometry: Geometry) -> Iterator[slice]:
    """Cut images into blocks whose spectra fit into memory."""
    step = max(1, BLOCK_ENTRIES // (n_channels * geometry.n_cells))
    return (slice(start, start + step) for start in range(0, n_images, step))


class Images:
    """Spectra of images and of their squares, block after block: (rows, (images, 2 * channels, ...))."""

    def __init__(self, X: Array, geometry: Geometry):
        self.X, self.geometry = X, geometry
        n_planes = 2 * X.shape[1] // prod(geometry.window)
        self.rows = list(blocks(len(X), n_planes, geometry))
        self.kept = list(self._spectra()) if len(X) * n_planes * geometry.n_cells // 2 <= KEPT_ENTRIES else None

    def __iter__(self) -> Iterator[tuple[slice, NDArray[np.complex128]]]:
        return iter(self.kept) if self.kept is not None else self._spectra()

    def _spectra(self) -> Iterator[tuple[slice, NDArray[np.complex128]]]:
        for rows in self.rows:
            images = as_windows(self.X[rows], self.geometry.window)
            yield rows, spectrum(np.concatenate([images, images**2], axis=1), self.geometry.grid)
