"""The stel epitome: images share where their segments are, and not what these look like."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from countinggrids.geometry import Geometry
from countinggrids.rivals import spectra
from countinggrids.rivals.located import Located
from countinggrids.rivals.options import check_above, check_whole

Array = NDArray[np.float64]
SMALLEST = 1e-12  # of a share or a variance that divides or is taken the logarithm of
SURE = 0.8  # how sure an image is at first that its darkest pixels are of the first stel, and so on
LOOKS = 30  # rounds at the most in which a new image finds its place and its palette
STILL = 1e-4  # gain of an image's bound, per pixel, below which both are found


class _Found(NamedTuple):
    """What is found of some images.

    Attributes
    ----------
    places : (images, cells) expected log-likelihood of the stels in every window
    q : (images, *grid) posterior of the windows
    stels : (images, stels, *window) posterior of the stels of each pixel
    bound : (images,) on log p(image), given its palette
    """

    places: Array
    q: Array
    stels: Array
    bound: Array


class StelEpitome(Located):
    """Learns a structural epitome: in each cell a distribution over stels, the segments of an image.

    A window says which stels the pixels of an image are likely to be of; what a stel looks like, a mean and a
    variance of its pixels, is the image's own. Images of one place in different light have the same stels. Place and
    stels of an image are found by mean-field iterations, which bound its likelihood from below.

    Parameters
    ----------
    grid : cells along each axis of the torus
    window : pixels along each axis of an image or a patch
    n_stels : segments
    eta : pseudocounts of each stel in each cell
    floor : the smallest variance of a stel in an image, as a share of the variance of all its pixels
    max_iter : iterations at the most
    tol : gain of the objective per number in X below which learning ends
    random_state : seed of the epitome to start from

    Attributes
    ----------
    stels_ : (*grid, stels) the share of each stel in each cell
    history_ : the objective per number in X, bounds plus log prior, before each iteration's M step; never falls
    n_iter_ : iterations made

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import StelEpitome
    >>> X = np.random.default_rng(0).random((20, 4 * 4 * 3))  # twenty patches in colour
    >>> StelEpitome(grid=(8, 8), window=(4, 4), n_stels=2, random_state=0).fit(X).stels_.shape
    (8, 8, 2)
    """

    def __init__(
        self,
        grid: Any = (32, 32),
        window: Any = (8, 8),
        n_stels: int = 3,
        *,
        eta: float = 1.0,
        floor: float = 0.05,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.grid = grid
        self.window = window
        self.n_stels = n_stels
        self.eta = eta
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the epitome from images, (images, pixels * channels), column = pixel * channels + channel."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_whole(self, "n_stels", "max_iter")
        check_above(self, "eta", "floor")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        geometry = spectra.geometry_of(self, X.shape[1])
        epitome, stels = self._start(geometry), self._first_stels(X, geometry)
        self.history_: list[float] = []
        for _ in range(self.max_iter):
            log_prior, seen, bounds = self.eta * np.log(epitome).sum(), np.zeros_like(epitome), []
            for rows in self._blocks(X, geometry):
                found = _look(spectra.as_windows(X[rows], geometry.window), stels[rows], epitome, self.floor)
                stels[rows] = found.stels
                bounds.append(found.bound)
                seen += _laid_down(found, weights[rows], geometry)
            self.history_.append(float(np.concatenate(bounds) @ weights + log_prior) / (X.shape[1] * weights.sum()))
            if len(self.history_) > 1 and self.history_[-1] - self.history_[-2] < self.tol:
                break
            epitome = _normalised(np.maximum(seen, 0) + self.eta)
        self.n_iter_ = len(self.history_)
        self.stels_ = np.moveaxis(epitome, 0, -1)
        return self

    def score_samples(self, X: Any) -> Array:
        """Give a bound on the log density of each image, given its palette, (images,)."""
        return np.concatenate([found.bound for found in self._found(X)])

    def segment(self, X: Any) -> Array:
        """Give the posterior of the stels of every pixel, (images, *window, stels)."""
        return np.concatenate([np.moveaxis(found.stels, 1, -1) for found in self._found(X)])

    def _places(self, X: Any) -> Array:
        return np.concatenate([found.places for found in self._found(X)])

    def _found(self, X: Any) -> Iterator[_Found]:
        """Let images find their places and palettes, block after block."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        geometry = spectra.geometry_of(self, X.shape[1])
        epitome = np.ascontiguousarray(np.moveaxis(self.stels_, -1, 0))
        for rows in self._blocks(X, geometry):
            images, stels = spectra.as_windows(X[rows], geometry.window), self._first_stels(X[rows], geometry)
            best = _look(images, stels, epitome, self.floor)
            moving = np.arange(len(images))
            for _ in range(LOOKS):
                found = _look(images[moving], best.stels[moving], epitome, self.floor)
                gain = found.bound - best.bound[moving]
                for kept, better in zip(best, found, strict=True):
                    kept[moving] = better
                moving = moving[gain >= STILL * X.shape[1]]
                if not moving.size:
                    break
            yield best

    def _blocks(self, X: Array, geometry: Geometry) -> Iterator[slice]:
        return spectra.blocks(len(X), 2 * self.n_stels, geometry)

    def _start(self, geometry: Geometry) -> Array:
        """Give an epitome that is even but for a little noise, (stels, *grid)."""
        noise = check_random_state(self.random_state).uniform(size=(self.n_stels, *geometry.grid))
        return _normalised(1 + noise)

    def _first_stels(self, X: Array, geometry: Geometry) -> Array:
        """Cut the pixels of each image into stels by their brightness, darkest first, (images, stels, *window)."""
        bright = spectra.as_windows(X, geometry.window).mean(axis=1).reshape(len(X), -1)
        ranks = bright.argsort(axis=1, kind="stable").argsort(axis=1)
        which = ranks * self.n_stels // bright.shape[1]
        is_of = which[:, None] == np.arange(self.n_stels)[:, None]
        return (SURE * is_of + (1 - SURE) / self.n_stels).reshape(len(X), self.n_stels, *geometry.window)


def _look(images: Array, stels: Array, epitome: Array, floor: float) -> _Found:
    """Improve the palettes of images, then their places, then the stels of their pixels: each raises the bound.

    With r_i(s) the stels of pixel i, N its densities under the palette and P the epitome,

        q[k] ∝ exp(sum over i, s of  r_i(s) log P[k + i](s))
        r_i(s) ∝ N(x_i; s) exp(sum over k of  q[k] log P[k + i](s))
    """
    grid, window = epitome.shape[1:], images.shape[2:]
    density = _log_densities(images, stels, floor)
    log_epitome = spectra.spectrum(np.log(epitome), grid)
    places = spectra.compared(spectra.spectrum(stels, grid), log_epitome, grid)
    flat = places.reshape(len(images), -1)
    log_q = flat - logsumexp(flat, axis=1, keepdims=True)
    q = np.exp(log_q).reshape(places.shape)
    corner = tuple(slice(n) for n in window)
    expected = spectra.inverse(spectra.spectrum(q, grid).conj()[:, None] * log_epitome, grid)[:, :, *corner]
    joint = density + expected
    total = logsumexp(joint, axis=1, keepdims=True)
    entropy = -(np.exp(log_q) * log_q).sum(axis=1) - np.log(flat.shape[1])
    bound = total.reshape(len(images), -1).sum(axis=1) + entropy
    return _Found(flat, q, np.exp(joint - total), bound)


def _log_densities(images: Array, stels: Array, floor: float) -> Array:
    """Give the log density of every pixel under each stel's own mean and variance, (images, stels, *window)."""
    x, r = (each.reshape(*each.shape[:2], -1) for each in (images, stels))
    lowest = np.maximum(floor * x.var(axis=2), SMALLEST)[:, None]
    times = np.maximum(r.sum(axis=2), SMALLEST)[:, :, None]
    mean = np.einsum("nsi,nci->nsc", r, x) / times
    away = (x[:, None] - mean[..., None]) ** 2
    variance = np.maximum(np.einsum("nsi,nsci->nsc", r, away) / times, lowest)
    found = -(np.log(2 * np.pi * variance).sum(axis=2)[..., None] + (away / variance[..., None]).sum(axis=2)) / 2
    return found.reshape(stels.shape)


def _laid_down(found: _Found, weights: Array, geometry: Geometry) -> Array:
    """Add up the stels that each cell has seen, (stels, *grid)."""
    q = spectra.spectrum(found.q * weights.reshape(-1, *(1 for _ in geometry.grid)), geometry.grid)
    return spectra.inverse(spectra.laid_down(q, spectra.spectrum(found.stels, geometry.grid)), geometry.grid)


def _normalised(shares: Array) -> Array:
    return shares / shares.sum(axis=0)
