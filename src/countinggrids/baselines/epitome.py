"""The epitome: images are windows of a larger image on a torus, with a Gaussian in each cell."""

from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines import growing, spectra
from countinggrids.baselines.validation import checked_images, inverse_temperatures
from countinggrids.baselines.window_model import WindowModel
from countinggrids.core import torus
from countinggrids.core.fitting import check_finite, whole_or_nothing
from countinggrids.core.geometry import Geometry
from countinggrids.data.validation import check_weights
from countinggrids.meta.options import check_choice, check_integer, check_positive

Array = NDArray[np.float64]
SMALLEST = 1e-9
"""Smallest variance."""
FIRST_NOISE = 0.1
"""Noise of the first means, in standard deviations of a pixel, which breaks the symmetry."""
ANNEALING_NOISE = 0.01
"""Noise that is added after each annealing step, because differences vanish at low inverse temperatures."""


class _Cells(NamedTuple):
    """The parameters: mean and variance of each cell, both (channels, *grid)."""

    mean: Array
    variance: Array


class _Statistics(NamedTuple):
    """Expected sufficient statistics: log p(image), (images,), and number, sum and squared sum of pixels by cell."""

    scores: Array
    counts: Array
    total: Array
    squares: Array


class Epitome(WindowModel):
    """Fit an epitome of images: a Gaussian in each cell of a torus, of which images are windows.

    Images have one size, or are patches, for instance from scikit-learn's `PatchExtractor`, with any number of
    channels. All windows of the torus are matched at once, in the frequency domain.

    Parameters
    ----------
    grid : tuple of int, default=(32, 32)
        Cells along each axis of the torus.
    window : tuple of int, default=(8, 8)
        Pixels along each axis of an image.
    anneal : tuple of float, default=(0.003, 1.05, 1.0)
        Annealing schedule (start, rate, end) of the inverse temperature, with variances held at that of all pixels;
        None is plain EM, as published.
    init : {"auto", "uniform"}, default="auto"
        The first epitome: "uniform" has the mean of all pixels, and noise. "auto" also grows one, image by image, each
        where it continues those before; that with the better objective is kept. At least 95% of 150
        noise-free windows of a photo are found again so.
    eta : float, default=1.0
        Pseudocount of pixels in every cell, with the mean and variance of all images.
    max_iter : int, default=100
        Largest number of EM iterations after annealing.
    tol : float, default=1e-5
        Gain of the objective per entry of X below which EM stops.
    random_state : int, RandomState or None, default=None
        Seed of the first epitome.

    Attributes
    ----------
    mean_ : ndarray of shape (*grid, n_channels)
        The epitome: mean of each cell.
    variance_ : ndarray of shape (*grid, n_channels)
        Variance of each cell.
    geometry_ : Geometry
        Grid and window.
    history_ : list of float
        Log-likelihood plus log prior per entry of X before the M step of each iteration; never falls.
    n_iter_ : int
        Number of EM iterations after annealing.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import Epitome
    >>> X = np.random.default_rng(0).random((20, 4 * 4 * 3))  # twenty patches in color
    >>> Epitome(grid=(8, 8), window=(4, 4), random_state=0).fit(X).mean_.shape
    (8, 8, 3)
    """

    def __init__(
        self,
        grid: Any = (32, 32),
        window: Any = (8, 8),
        *,
        anneal: tuple[float, float, float] | None = (0.003, 1.05, 1.0),
        init: str = "auto",
        eta: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.grid = grid
        self.window = window
        self.anneal = anneal
        self.init = init
        self.eta = eta
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
        check_integer(self, "max_iter")
        check_positive(self, "eta")
        check_choice(self, "init", ("auto", "uniform"))
        weights = check_weights(sample_weight, len(X))
        self.geometry_ = spectra.geometry_of(self, X.shape[1])
        images = spectra.Images(X, self.geometry_)
        common = _common(images, weights)
        rng = check_random_state(self.random_state)
        starts = [self._annealed(images, weights, common, rng)]
        if self.init == "auto" and self.anneal is not None:
            starts.append(_grown(images, weights, common, self.eta))
        runs = [self._run_em(images, cells, weights, common) for cells in starts]
        cells, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.n_iter_ = len(self.history_)
        self.mean_, self.variance_ = (np.moveaxis(each, 0, -1) for each in cells)
        return self

    def _annealed(self, images: spectra.Images, weights: Array, common: _Cells, rng: np.random.RandomState) -> _Cells:
        """Return a uniform epitome with noise, annealed with variances that are held."""
        cells = _with_noise(common, common, FIRST_NOISE, rng)
        for beta in inverse_temperatures(self.anneal):
            mean, _ = _m_step(_e_step(images, cells, weights, beta), common, self.eta)
            cells = _with_noise(_Cells(mean, common.variance), common, ANNEALING_NOISE, rng)
        return cells

    def _run_em(
        self, images: spectra.Images, cells: _Cells, weights: Array, common: _Cells
    ) -> tuple[_Cells, list[float]]:
        """Run EM until the objective settles; return the parameters and the history of the objective."""
        history: list[float] = []
        for number in range(1, self.max_iter + 1):
            statistics = _e_step(images, cells, weights)
            objective = statistics.scores @ weights + self.eta * _log_prior(cells, common)
            check_finite(objective, number)
            history.append(float(objective) / (images.X.shape[1] * weights.sum()))
            if number > 1 and history[-1] - history[-2] < self.tol:
                break
            cells = _m_step(statistics, common, self.eta)
        return cells, history

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each image.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.

        Returns
        -------
        log_density : ndarray of shape (n_images,)
            Log density of each image.
        """
        scores = self._window_scores(X)
        return np.asarray(logsumexp(scores, axis=1)) - np.log(scores.shape[1])

    def _window_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = checked_images(self, X, is_fitting=False)
        geometry = self.geometry_
        cells = _Cells(np.moveaxis(self.mean_, -1, 0), np.moveaxis(self.variance_, -1, 0))
        matcher = _Matcher(cells, geometry)
        return np.concatenate([matcher.scores(both) for _, both in spectra.Images(X, geometry)])


class _Matcher:
    """Spectra of the parameters, with which images are matched.

    With x_i the pixels of an image, m the means and v the variances,

        log p(image | window at k) = constant[k] + sum over i of  x_i (m / v)[k + i] - x_i^2 (1 / 2v)[k + i]
    """

    def __init__(self, cells: _Cells, geometry: Geometry):
        self.geometry = geometry
        fixed = np.log(2 * np.pi * cells.variance) + cells.mean**2 / cells.variance
        self.constant = -torus.window_sum(fixed.sum(axis=0), geometry.window) / 2
        factors = np.concatenate([cells.mean / cells.variance, -0.5 / cells.variance])
        self.factors = spectra.spectrum(factors, geometry.grid)

    def scores(self, both: NDArray[np.complex128]) -> Array:
        """Return log p(image | window) of every window, (images, cells)."""
        scores = spectra.correlate(both, self.factors, self.geometry.grid) + self.constant
        return scores.reshape(len(both), -1)


def _e_step(images: spectra.Images, cells: _Cells, weights: Array, beta: float = 1.0) -> _Statistics:
    """Compute the expected sufficient statistics, a block of images at a time; beta is the inverse temperature."""
    geometry = images.geometry
    matcher, grid = _Matcher(cells, geometry), geometry.grid
    evidence, usage, sums = [], np.zeros(grid), np.zeros_like(matcher.factors)
    for rows, both in images:
        scores = beta * matcher.scores(both)
        evidence.append(logsumexp(scores, axis=1))
        q = (np.exp(scores - evidence[-1][:, None]) * weights[rows, None]).reshape(-1, *grid)
        usage += q.sum(axis=0)
        sums += spectra.paint(spectra.spectrum(q, grid), both)
    total, squares = np.split(spectra.inverse(sums, grid), 2)
    counts = torus.covering_sum(usage, geometry.window)
    return _Statistics(np.concatenate(evidence) - np.log(geometry.n_cells), counts, total, squares)


def _m_step(statistics: _Statistics, common: _Cells, eta: float) -> _Cells:
    """Re-estimate mean and variance of each cell, with eta pixels of the common distribution."""
    counts = statistics.counts + eta
    mean = (statistics.total + eta * common.mean) / counts
    squares = (statistics.squares + eta * (common.variance + common.mean**2)) / counts
    return _Cells(mean, np.maximum(squares - mean**2, SMALLEST))


def _grown(images: spectra.Images, weights: Array, common: _Cells, eta: float) -> _Cells:
    """Return the epitome of images that were placed one after the other."""
    geometry = images.geometry
    used = np.flatnonzero(weights)
    rows, places = growing.grown(images.X[used], geometry)
    q = np.zeros((len(rows), geometry.n_cells))
    q[np.arange(len(rows)), places] = 1
    pixels = spectra.as_windows(images.X[used[rows]], geometry.window)
    planes = spectra.spectrum(np.concatenate([pixels, pixels**2], axis=1), geometry.grid)
    q = q.reshape(-1, *geometry.grid)
    sums = spectra.inverse(spectra.paint(spectra.spectrum(q, geometry.grid), planes), geometry.grid)
    counts = torus.covering_sum(q.sum(axis=0), geometry.window)
    return _m_step(_Statistics(np.zeros(0), counts, *np.split(sums, 2)), common, eta)


def _with_noise(cells: _Cells, common: _Cells, scale: float, rng: np.random.RandomState) -> _Cells:
    """Add noise to the means."""
    noise = rng.standard_normal(cells.mean.shape) * np.sqrt(common.variance)
    return _Cells(cells.mean + scale * noise, cells.variance)


def _common(images: spectra.Images, weights: Array) -> _Cells:
    """Return cells that all have the mean and variance of all pixels, by channel."""
    window, grid = images.geometry.window, images.geometry.grid
    pixels = images.X.reshape(len(images.X), prod(window), -1)
    mean = np.average(pixels.mean(axis=1), axis=0, weights=weights)
    variance = np.average(((pixels - mean) ** 2).mean(axis=1), axis=0, weights=weights)
    by_cell = (np.moveaxis(np.broadcast_to(each, (*grid, len(mean))), -1, 0) for each in (mean, variance + SMALLEST))
    return _Cells(*by_cell)


def _log_prior(cells: _Cells, common: _Cells) -> float:
    """Return the expected log density of a pixel of the common distribution, summed over cells."""
    away = common.variance + (common.mean - cells.mean) ** 2
    return float(-(np.log(2 * np.pi * cells.variance) + away / cells.variance).sum() / 2)
