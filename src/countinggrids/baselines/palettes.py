"""Palettes of images, mean and variance of the pixels of each stel, and the windows under which they fit best."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from countinggrids.baselines import spectra
from countinggrids.core import torus

Array = NDArray[np.float64]
SMALLEST = 1e-12
"""Lower bound of probabilities and variances before a division or a logarithm."""


def log_densities(images: Array, stels: Array, floor: float) -> Array:
    """Return the log density of every pixel under the mean and variance of each stel, (images, stels, *window)."""
    x, r = (each.reshape(*each.shape[:2], -1) for each in (images, stels))
    counts = np.maximum(r.sum(axis=2), SMALLEST)[:, :, None]
    mean = np.einsum("nsi,nci->nsc", r, x) / counts
    squared = (x[:, None] - mean[..., None]) ** 2
    variance = np.maximum(np.einsum("nsi,nsci->nsc", r, squared) / counts, _lowest(images, floor)[:, None])
    density = -(np.log(2 * np.pi * variance).sum(axis=2)[..., None] + (squared / variance[..., None]).sum(axis=2)) / 2
    return density.reshape(stels.shape)


def window_bounds(images: Array, epitome: Array, floor: float) -> Array:
    """Return the bound on log p(image | window) of every window, each with its own palette, (images, cells).

    With P the epitome, which is also the posterior over stels, and N the densities under the palette that it gives,

        bound[k] = sum over i, s of  P[k + i](s) log N(x_i; s)
    """
    grid, n_channels = epitome.shape[1:], images.shape[1]
    planes = spectra.spectrum(np.concatenate([images, images**2], axis=1), grid)
    # (images, channels, stels, *grid)
    sums = spectra.inverse(planes.conj()[:, :, None] * spectra.spectrum(epitome, grid), grid)
    counts = np.maximum(torus.window_sum(epitome, images.shape[2:]), SMALLEST)
    spread = np.maximum(sums[:, n_channels:] / counts - (sums[:, :n_channels] / counts) ** 2, 0)
    lowest = _lowest(images, floor).reshape(len(images), n_channels, *(1 for _ in epitome.shape))
    variance = np.maximum(spread, lowest)
    bound = -(counts * (np.log(2 * np.pi * variance) + spread / variance)).sum(axis=(1, 2)) / 2
    return np.asarray(bound.reshape(len(images), -1))


def stels_of_best_window(images: Array, epitome: Array, floor: float) -> Array:
    """Return the posterior over the stels of each image in the window that explains it best, with its own palette."""
    grid, window = epitome.shape[1:], images.shape[2:]
    corners = np.unravel_index(window_bounds(images, epitome, floor).argmax(axis=1), grid)
    steps = np.indices(window)
    column = (-1, *(1 for _ in window))
    at = tuple((corner.reshape(column) + step) % n for corner, step, n in zip(corners, steps, grid, strict=True))
    prior = np.moveaxis(epitome[:, *at], 0, 1)
    return np.asarray(softmax(np.log(prior) + log_densities(images, prior, floor), axis=1))


def _lowest(images: Array, floor: float) -> Array:
    """Return the lowest variance of a stel in each image, (images, channels)."""
    return np.maximum(floor * images.reshape(*images.shape[:2], -1).var(axis=2), SMALLEST)
