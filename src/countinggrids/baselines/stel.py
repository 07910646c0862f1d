"""The stel epitome: images share the layout of their segments, and not their appearance."""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines import growing, palettes, spectra
from countinggrids.baselines.validation import checked_images
from countinggrids.baselines.window_model import WindowModel
from countinggrids.core.fitting import check_finite, settings_of, whole_or_nothing
from countinggrids.core.geometry import Geometry
from countinggrids.data.validation import check_weights
from countinggrids.meta.options import check_choice, check_integer, check_positive

Array = NDArray[np.float64]
SMALLEST = 1e-12
"""Lower bound of probabilities and variances before a division or a logarithm."""
FIRST_WEIGHT = 0.8
"""Weight of the segmentation by brightness in the first posterior over stels; the rest is uniform."""
MAX_UPDATES = 30
"""Largest number of mean-field updates of a new image."""
UPDATE_TOL = 1e-4
"""Gain of the bound of an image, per pixel, below which the updates have converged."""


class _Posterior(NamedTuple):
    """Mean-field posterior of some images.

    Attributes
    ----------
    scores : ndarray of shape (n_images, n_cells)
        Expected log-likelihood of the stels in every window.
    q : ndarray of shape (n_images, *grid)
        Posterior over windows.
    stels : ndarray of shape (n_images, n_stels, *window)
        Posterior over stels of each pixel.
    bound : ndarray of shape (n_images,)
        Lower bound on log p(image), given its palette.
    """

    scores: Array
    q: Array
    stels: Array
    bound: Array


class StelEpitome(WindowModel):
    """Fit a structural epitome: a distribution over stels, the segments of an image, in each cell of a torus.

    A window is a prior over the stels of the pixels of an image. The appearance of a stel, mean and variance of its
    pixels, differs between images: images of one place in different light have the same stels. Location and stels of an
    image are inferred by mean-field updates, which bound its likelihood from below.

    Parameters
    ----------
    grid : tuple of int, default=(32, 32)
        Cells along each axis of the torus.
    window : tuple of int, default=(8, 8)
        Pixels along each axis of an image.
    n_stels : int, default=3
        Number of segments.
    init : {"auto", "uniform"}, default="auto"
        The first epitome: "uniform" has noise only. "auto" also grows two, image by image, by their pixels and by the
        differences of neighboring pixels; a fourth has segments of the mean image of the former. That with the best
        bound is kept. Noise-free windows of a scene of segments are found again so. Of a photo, three stels are too
        few, because its segments are not of even color: 71% of 150 windows are found again (one seed); with
        ``n_stels=12, eta=0.01, max_iter=12`` it is 94.7 to 99.3% (four seeds).
    eta : float, default=1.0
        Pseudocounts of each stel in each cell.
    floor : float, default=0.05
        Smallest variance of a stel in an image, as a fraction of the variance of all its pixels.
    max_iter : int, default=100
        Largest number of EM iterations.
    tol : float, default=1e-5
        Gain of the objective per entry of X below which EM stops.
    random_state : int, RandomState or None, default=None
        Seed of the first epitome.

    Attributes
    ----------
    stels_ : ndarray of shape (*grid, n_stels)
        Distribution over stels in each cell.
    geometry_ : Geometry
        Grid and window.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.
    history_ : list of float
        Bounds plus log prior per entry of X before the M step of each iteration; never falls.
    n_iter_ : int
        Number of EM iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import StelEpitome
    >>> X = np.random.default_rng(0).random((20, 4 * 4 * 3))  # twenty patches in color
    >>> StelEpitome(grid=(8, 8), window=(4, 4), n_stels=2, random_state=0).fit(X).stels_.shape
    (8, 8, 2)
    """

    def __init__(
        self,
        grid: Any = (32, 32),
        window: Any = (8, 8),
        n_stels: int = 3,
        *,
        init: str = "auto",
        eta: float = 1.0,
        floor: float = 0.05,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.grid = grid
        self.window = window
        self.n_stels = n_stels
        self.init = init
        self.eta = eta
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the epitome.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_images,), default=None
            Weights of the images.

        Returns
        -------
        self : object
            The fitted model.
        """
        X = checked_images(self, X, is_fitting=True)
        check_integer(self, "n_stels", "max_iter")
        check_positive(self, "eta", "floor")
        check_choice(self, "init", ("auto", "uniform"))
        weights = check_weights(sample_weight, len(X))
        self.geometry_, self.settings_ = spectra.geometry_of(self, X.shape[1]), settings_of(self, "n_stels", "floor")
        geometry = self.geometry_
        runs = [self._run_em(X, weights, *start, geometry) for start in self._starts(X, weights, geometry)]
        epitome, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.n_iter_ = len(self.history_)
        self.stels_ = np.moveaxis(epitome, 0, -1)
        return self

    def _starts(self, X: Array, weights: Array, geometry: Geometry) -> Iterator[tuple[Array, Array]]:
        """Yield first epitomes, each with the first stels of all images."""
        bright = self._first_stels(X, geometry)
        yield self._start(geometry), bright
        if self.init == "uniform":
            return
        used = np.flatnonzero(weights)
        rows, cells = growing.grown(X[used], geometry)
        yield self._laid_out(bright[used[rows]], cells, geometry), bright
        segments = self._segments(X[used[rows]], cells, geometry)
        yield segments, self._best_stels(X, segments, geometry)
        rows, cells = growing.grown(_slopes(X[used], geometry), geometry)
        yield self._laid_out(bright[used[rows]], cells, geometry), bright

    def _run_em(
        self, X: Array, weights: Array, epitome: Array, stels: Array, geometry: Geometry
    ) -> tuple[Array, list[float]]:
        """Run variational EM from a first epitome and stels; return the last epitome, and the history of the bound."""
        stels, history = stels.copy(), list[float]()
        for _ in range(self.max_iter):
            log_prior, counts, bounds = self.eta * np.log(epitome).sum(), np.zeros_like(epitome), []
            for rows in self._blocks(X, geometry):
                posterior = _update(spectra.as_windows(X[rows], geometry.window), stels[rows], epitome, self.floor)
                stels[rows] = posterior.stels
                bounds.append(posterior.bound)
                counts += _painted(posterior, weights[rows], geometry)
            history.append(float(np.concatenate(bounds) @ weights + log_prior) / (X.shape[1] * weights.sum()))
            check_finite(history[-1], len(history))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                break
            epitome = _normalized(np.maximum(counts, 0) + self.eta)
        return epitome, history

    def _laid_out(self, stels: Array, cells: growing.Cells, geometry: Geometry) -> Array:
        """Return the epitome of images with these stels at these cells."""
        _, counts = growing.painted(spectra.spectrum(stels, geometry.grid), cells, geometry)
        return _normalized(np.maximum(counts, 0) + self.eta)

    def _segments(self, X: Array, cells: growing.Cells, geometry: Geometry) -> Array:
        """Return the epitome whose stels are segments, by brightness, of the mean of images at these cells."""
        bright = spectra.as_windows(X, geometry.window).mean(axis=1, keepdims=True)
        counts, total = growing.painted(spectra.spectrum(bright, geometry.grid), cells, geometry)
        mean = total[0] / np.maximum(counts, 1)
        levels = np.quantile(mean[counts > 0], np.arange(1, self.n_stels) / self.n_stels)
        is_of = np.digitize(mean, levels) == np.arange(self.n_stels).reshape(-1, *(1 for _ in geometry.grid))
        return _normalized(is_of * counts + self.eta)

    def _best_stels(self, X: Array, epitome: Array, geometry: Geometry) -> Array:
        """Return the stels of images in the windows that explain them best, (images, stels, *window)."""
        floor, blocks = self.settings_.floor, self._blocks(X, geometry)
        images = (spectra.as_windows(X[rows], geometry.window) for rows in blocks)
        return np.concatenate([palettes.stels_of_best_window(each, epitome, floor) for each in images])

    def score_samples(self, X: Any) -> Array:
        """Return a lower bound on the log density of each image, given its palette.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.

        Returns
        -------
        bound : ndarray of shape (n_images,)
            Lower bound of each image.
        """
        return np.concatenate([posterior.bound for posterior in self._infer(X)])

    def segment(self, X: Any) -> Array:
        """Return the posterior over stels of every pixel.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.

        Returns
        -------
        stels : ndarray of shape (n_images, *window, n_stels)
            Sums to one over stels.
        """
        return np.concatenate([np.moveaxis(posterior.stels, 1, -1) for posterior in self._infer(X)])

    def _window_scores(self, X: Any) -> Array:
        return np.concatenate([posterior.scores for posterior in self._infer(X)])

    def _infer(self, X: Any) -> Iterator[_Posterior]:
        """Infer locations, palettes and stels, a block of images at a time."""
        check_is_fitted(self)
        X = checked_images(self, X, is_fitting=False)
        geometry, floor = self.geometry_, self.settings_.floor
        epitome = np.ascontiguousarray(np.moveaxis(self.stels_, -1, 0))
        for rows in self._blocks(X, geometry):
            images = spectra.as_windows(X[rows], geometry.window)
            starts = self._first_stels(X[rows], geometry), palettes.stels_of_best_window(images, epitome, floor)
            first, second = (_converged(images, stels, epitome, floor) for stels in starts)
            is_better = second.bound > first.bound
            for values, new in zip(first, second, strict=True):
                values[is_better] = new[is_better]
            yield first

    def _blocks(self, X: Array, geometry: Geometry) -> Iterator[slice]:
        n_channels = X.shape[1] // prod(geometry.window)
        return spectra.blocks(len(X), 2 * self.settings_.n_stels * (n_channels + 1), geometry)

    def _start(self, geometry: Geometry) -> Array:
        """Return a uniform epitome with noise, (stels, *grid)."""
        noise = check_random_state(self.random_state).uniform(size=(self.n_stels, *geometry.grid))
        return _normalized(1 + noise)

    def _first_stels(self, X: Array, geometry: Geometry) -> Array:
        """Segment the pixels of each image by their brightness, darkest first, (images, stels, *window)."""
        bright = spectra.as_windows(X, geometry.window).mean(axis=1).reshape(len(X), -1)
        ranks = bright.argsort(axis=1, kind="stable").argsort(axis=1)
        n_stels = self.settings_.n_stels
        which = ranks * n_stels // bright.shape[1]
        is_of = which[:, None] == np.arange(n_stels)[:, None]
        return (FIRST_WEIGHT * is_of + (1 - FIRST_WEIGHT) / n_stels).reshape(len(X), n_stels, *geometry.window)


def _slopes(X: Array, geometry: Geometry) -> Array:
    """Return the differences of neighboring pixels along each axis, of unit variance in every image.

    They do not depend on the brightness of an image, or on its contrast.
    """
    images = spectra.as_windows(X, geometry.window)
    slopes = [np.diff(images, axis=axis, append=0 * images.take([0], axis)) for axis in range(2, images.ndim)]
    flat = np.concatenate(slopes, axis=1)
    for axis in range(2, images.ndim):  # the last pixels have no neighbors
        np.moveaxis(flat, axis, 0)[-1] = 0
    scale = flat.reshape(len(X), -1).std(axis=1).reshape(-1, *(1,) * (images.ndim - 1))
    return np.moveaxis(flat / np.maximum(scale, SMALLEST), 1, -1).reshape(len(X), -1)


def _update(images: Array, stels: Array, epitome: Array, floor: float) -> _Posterior:
    """Update the palettes of images, then their locations, then the stels of their pixels: each raises the bound.

    With r_i(s) the stels of pixel i, N its densities under the palette and P the epitome,

        q[k] ∝ exp(sum over i, s of  r_i(s) log P[k + i](s))
        r_i(s) ∝ N(x_i; s) exp(sum over k of  q[k] log P[k + i](s))
    """
    grid, window = epitome.shape[1:], images.shape[2:]
    density = palettes.log_densities(images, stels, floor)
    log_epitome = spectra.spectrum(np.log(epitome), grid)
    scores = spectra.correlate(spectra.spectrum(stels, grid), log_epitome, grid)
    flat = scores.reshape(len(images), -1)
    log_q = flat - logsumexp(flat, axis=1, keepdims=True)
    q = np.exp(log_q).reshape(scores.shape)
    corner = tuple(slice(n) for n in window)
    expected = spectra.inverse(spectra.spectrum(q, grid).conj()[:, None] * log_epitome, grid)[:, :, *corner]
    joint = density + expected
    total = logsumexp(joint, axis=1, keepdims=True)
    entropy = -(np.exp(log_q) * log_q).sum(axis=1) - np.log(flat.shape[1])
    bound = total.reshape(len(images), -1).sum(axis=1) + entropy
    return _Posterior(flat, q, np.exp(joint - total), bound)


def _converged(images: Array, stels: Array, epitome: Array, floor: float) -> _Posterior:
    """Update images from their first stels on until their bounds settle."""
    posterior, active = _update(images, stels, epitome, floor), np.arange(len(images))
    n_entries = images[0].size
    for _ in range(MAX_UPDATES):
        updated = _update(images[active], posterior.stels[active], epitome, floor)
        gain = updated.bound - posterior.bound[active]
        for values, new in zip(posterior, updated, strict=True):
            values[active] = new
        active = active[gain >= UPDATE_TOL * n_entries]
        if not active.size:
            break
    return posterior


def _painted(posterior: _Posterior, weights: Array, geometry: Geometry) -> Array:
    """Sum the expected counts of stels in each cell, (stels, *grid)."""
    q = spectra.spectrum(posterior.q * weights.reshape(-1, *(1 for _ in geometry.grid)), geometry.grid)
    return spectra.inverse(spectra.paint(q, spectra.spectrum(posterior.stels, geometry.grid)), geometry.grid)


def _normalized(values: Array) -> Array:
    return values / values.sum(axis=0)
