"""The epitome: images as windows of a larger, blurred image on a torus."""

from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from countinggrids import torus
from countinggrids.geometry import Geometry
from countinggrids.rivals import spectra
from countinggrids.rivals.located import Located
from countinggrids.rivals.options import check_above, check_whole, warming

Array = NDArray[np.float64]
SMALLEST = 1e-9  # of a variance
SCATTER = 0.1  # of the means to start from, in deviations of a pixel: enough to break the symmetry
STIR = 0.01  # the same after each step of annealing, for while the likelihood counts little, differences die out


class _Cells(NamedTuple):
    """What EM improves: the mean and the variance of each cell, both (channels, *grid)."""

    mean: Array
    variance: Array


class _Seen(NamedTuple):
    """What an E step finds: log p(image), (images,); how many pixels each cell has had, and their sums and squares."""

    scores: Array
    times: Array
    total: Array
    squares: Array


class Epitome(Located):
    """Learns an epitome of images: a Gaussian a cell, so that each image is likely in some window.

    Whole images of one size go in, or patches of images, for instance cut by scikit-learn's `PatchExtractor`; grey, in
    colour, or with any other channels. All windows of the torus are compared at once, in the frequency domain.

    Parameters
    ----------
    grid : cells along each axis of the torus
    window : pixels along each axis of an image or a patch
    anneal : (start, rate, end): the likelihood is raised to a power that grows by that rate, from start to end,
        before it counts in full; None is plain EM, as published, which ends in smaller pieces
    eta : pixels with the mean and the variance of all images that every cell is taken to have had from the start
    max_iter : iterations at the most, after annealing
    tol : gain of the objective per number in X below which learning ends
    random_state : seed of the epitome to start from

    Attributes
    ----------
    mean_ : (*grid, channels) the epitome itself
    variance_ : (*grid, channels) how far pixels lie from it
    history_ : the objective per number in X, log-likelihood plus log prior, before each iteration's M step; never falls
    n_iter_ : iterations made, after annealing

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import Epitome
    >>> X = np.random.default_rng(0).random((20, 4 * 4 * 3))  # twenty patches in colour
    >>> Epitome(grid=(8, 8), window=(4, 4), random_state=0).fit(X).mean_.shape
    (8, 8, 3)
    """

    def __init__(
        self,
        grid: Any = (32, 32),
        window: Any = (8, 8),
        *,
        anneal: tuple[float, float, float] | None = (0.003, 1.05, 1.0),
        eta: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.grid = grid
        self.window = window
        self.anneal = anneal
        self.eta = eta
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the epitome from images, (images, pixels * channels), column = pixel * channels + channel."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_whole(self, "max_iter")
        check_above(self, "eta")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        images = spectra.Images(X, spectra.geometry_of(self, X.shape[1]))
        common = _common(images, weights)
        rng = check_random_state(self.random_state)
        cells = _scattered(common, common, SCATTER, rng)
        for beta in warming(self.anneal):
            cells = _m_step(_e_step(images, cells, weights, beta), common, self.eta)
            cells = _scattered(cells, common, STIR, rng)
        self.history_: list[float] = []
        for number in range(1, self.max_iter + 1):
            self.n_iter_ = number
            seen = _e_step(images, cells, weights)
            objective = seen.scores @ weights + self.eta * _log_prior(cells, common)
            self.history_.append(float(objective) / (X.shape[1] * weights.sum()))
            if number > 1 and self.history_[-1] - self.history_[-2] < self.tol:
                break
            cells = _m_step(seen, common, self.eta)
        self.mean_, self.variance_ = (np.moveaxis(each, 0, -1) for each in cells)
        return self

    def score_samples(self, X: Any) -> Array:
        """Give the log density of each image, (images,)."""
        places = self._places(X)
        return np.asarray(logsumexp(places, axis=1)) - np.log(places.shape[1])

    def _places(self, X: Any) -> Array:
        """Give log p(image | window) of every window, (images, cells)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        geometry = spectra.geometry_of(self, X.shape[1])
        cells = _Cells(np.moveaxis(self.mean_, -1, 0), np.moveaxis(self.variance_, -1, 0))
        table = _Table(cells, geometry)
        return np.concatenate([table.places(both) for _, both in spectra.Images(X, geometry)])


class _Table:
    """The cells in the form in which images are compared with them.

    With x_i the pixels of an image, m the means and v the variances,

        log p(image | window at k) = constant[k] + sum over i of  x_i (m / v)[k + i] - x_i^2 (1 / 2v)[k + i]
    """

    def __init__(self, cells: _Cells, geometry: Geometry):
        self.geometry = geometry
        fixed = np.log(2 * np.pi * cells.variance) + cells.mean**2 / cells.variance
        self.constant = -torus.window_sum(fixed.sum(axis=0), geometry.window) / 2
        factors = np.concatenate([cells.mean / cells.variance, -0.5 / cells.variance])
        self.factors = spectra.spectrum(factors, geometry.grid)

    def places(self, both: NDArray[np.complex128]) -> Array:
        """Give log p(image | window) of every window, (images, cells)."""
        found = spectra.compared(both, self.factors, self.geometry.grid) + self.constant
        return found.reshape(len(both), -1)


def _e_step(images: spectra.Images, cells: _Cells, weights: Array, beta: float = 1.0) -> _Seen:
    """Find where images are, and add up what each cell has seen, block after block; beta is the likelihood's power."""
    geometry = images.geometry
    table, grid = _Table(cells, geometry), geometry.grid
    scores, usage, sums = [], np.zeros(grid), np.zeros_like(table.factors)
    for rows, both in images:
        places = beta * table.places(both)
        scores.append(logsumexp(places, axis=1))
        q = (np.exp(places - scores[-1][:, None]) * weights[rows, None]).reshape(-1, *grid)
        usage += q.sum(axis=0)
        sums += spectra.laid_down(spectra.spectrum(q, grid), both)
    total, squares = np.split(spectra.inverse(sums, grid), 2)
    times = torus.covering_sum(usage, geometry.window)
    return _Seen(np.concatenate(scores) - np.log(geometry.n_cells), times, total, squares)


def _m_step(seen: _Seen, common: _Cells, eta: float) -> _Cells:
    """Give each cell the mean and the variance of what it has seen, and of eta pixels of the common kind."""
    times = seen.times + eta
    mean = (seen.total + eta * common.mean) / times
    squares = (seen.squares + eta * (common.variance + common.mean**2)) / times
    return _Cells(mean, np.maximum(squares - mean**2, SMALLEST))


def _scattered(cells: _Cells, common: _Cells, by: float, rng: np.random.RandomState) -> _Cells:
    """Move the means at random."""
    noise = rng.standard_normal(cells.mean.shape) * np.sqrt(common.variance)
    return _Cells(cells.mean + by * noise, cells.variance)


def _common(images: spectra.Images, weights: Array) -> _Cells:
    """Give every cell the mean and the variance of all pixels, channel by channel."""
    window, grid = images.geometry.window, images.geometry.grid
    pixels = images.X.reshape(len(images.X), prod(window), -1)
    mean = np.average(pixels.mean(axis=1), axis=0, weights=weights)
    variance = np.average(((pixels - mean) ** 2).mean(axis=1), axis=0, weights=weights)
    by_cell = (np.moveaxis(np.broadcast_to(each, (*grid, len(mean))), -1, 0) for each in (mean, variance + SMALLEST))
    return _Cells(*by_cell)


def _log_prior(cells: _Cells, common: _Cells) -> float:
    """Give the mean log density of a pixel of the common kind, summed over cells."""
    away = common.variance + (common.mean - cells.mean) ** 2
    return float(-(np.log(2 * np.pi * cells.variance) + away / cells.variance).sum() / 2)
