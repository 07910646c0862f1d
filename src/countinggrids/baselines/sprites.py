"""Flexible sprites: images are layers with a mask each, which move from image to image."""

from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, logsumexp, xlogy
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines import spectra
from countinggrids.baselines.validation import checked_images
from countinggrids.core.fitting import check_finite, settings_of, whole_or_nothing
from countinggrids.core.geometry import Shape, as_shape
from countinggrids.data.validation import check_weights
from countinggrids.meta.options import check_integer

Array = NDArray[np.float64]
SMALLEST = 1e-6
"""Smallest variance of the noise, as a fraction of that of the pixels, and the smallest probability of a mask."""
N_UPDATES = 3
"""Updates of the layers of an image in one iteration."""
N_PREDICTING = 20
"""Updates of the layers of a new image."""
FIRST_MASK = 0.9
"""Probability of a sprite where the image that it starts from differs most from the background."""


class _Layers(NamedTuple):
    """The parameters: appearance, (layers, channels, *size), masks, (layers, *size), and the variance of the noise."""

    appearance: Array
    masks: Array
    variance: float


class _Posterior(NamedTuple):
    """Mean-field posterior: shifts and masks, both (images, layers, *size), and the bound of each image."""

    shifts: Array
    masks: Array
    bound: Array


class FlexibleSprites(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fit layers to images: a background and sprites, each with an appearance and a mask, each shifted in every image.

    A pixel shows the frontmost layer whose mask covers it. Shifts wrap around. EM is variational: shifts and masks of
    an image are independent in the posterior, and all shifts are compared at once in the frequency domain.

    Parameters
    ----------
    size : tuple of int, default=(32, 32)
        Pixels along each axis of an image.
    n_sprites : int, default=1
        Number of layers in front of the background.
    is_panning : bool, default=False
        Whether the background is shifted too.
    max_iter : int, default=60
        Largest number of EM iterations.
    tol : float, default=1e-5
        Gain of the bound per entry of X below which EM stops.
    n_init : int, default=4
        Number of restarts, each from other images; the one with the best bound is kept.
    random_state : int, RandomState or None, default=None
        Seed of the restarts.

    Attributes
    ----------
    appearance_ : ndarray of shape (n_layers, *size, n_channels)
        Colors of each layer; the background comes first.
    masks_ : ndarray of shape (n_layers, *size)
        Probability that a pixel belongs to the layer; 1 for the background.
    noise_ : float
        Standard deviation of the noise.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.
    history_ : list of float
        Bound per entry of X before the M step of each iteration.
    n_iter_ : int
        Number of EM iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import FlexibleSprites
    >>> X = np.random.default_rng(0).random((10, 8 * 8))
    >>> FlexibleSprites((8, 8), random_state=0, n_init=1, max_iter=5).fit(X).masks_.shape
    (2, 8, 8)
    """

    def __init__(
        self,
        size: Any = (32, 32),
        n_sprites: int = 1,
        *,
        is_panning: bool = False,
        max_iter: int = 60,
        tol: float = 1e-5,
        n_init: int = 4,
        random_state: Any = None,
    ):
        self.size = size
        self.n_sprites = n_sprites
        self.is_panning = is_panning
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the layers.

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
        check_integer(self, "n_sprites", "max_iter", "n_init")
        images, weights = _images(X, self.size), check_weights(sample_weight, len(X)).astype(np.float64)
        rng = check_random_state(self.random_state)
        runs = [self._run(images, weights, rng) for _ in range(self.n_init)]
        layers, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.n_iter_ = len(self.history_)
        self.appearance_, self.masks_ = np.moveaxis(layers.appearance, 1, -1), layers.masks
        self.noise_ = float(np.sqrt(layers.variance))
        self.settings_ = settings_of(self, "size", "is_panning")
        return self

    def transform(self, X: Any) -> Array:
        """Return the posterior over the shifts of each layer.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images.

        Returns
        -------
        q : ndarray of shape (n_images, n_layers * n_pixels)
            Sums to one over the pixels of each layer.
        """
        shifts = self._infer(X).shifts
        return shifts.reshape(len(shifts), -1)

    def locate(self, X: Any) -> NDArray[np.intp]:
        """Return the most likely shift of each layer.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images.

        Returns
        -------
        shifts : ndarray of shape (n_images, n_layers, n_axes)
            Pixels by which the layer is moved along each axis.
        """
        shifts = self._infer(X).shifts
        flat = shifts.reshape(*shifts.shape[:2], -1).argmax(axis=-1)
        return np.stack(np.unravel_index(flat, shifts.shape[2:]), axis=-1)

    def segment(self, X: Any) -> Array:
        """Return how visible each layer is in every pixel.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images.

        Returns
        -------
        visibility : ndarray of shape (n_images, n_layers, *size)
            Sums to one over layers.
        """
        posterior = self._infer(X)
        return np.moveaxis(_visibility(_moved_masks(posterior)), 0, 1)

    def score_samples(self, X: Any) -> Array:
        """Return a lower bound on the log density of each image.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images.

        Returns
        -------
        bound : ndarray of shape (n_images,)
            Lower bound of each image.
        """
        return self._infer(X).bound

    def _infer(self, X: Any) -> _Posterior:
        check_is_fitted(self)
        images = _images(checked_images(self, X, is_fitting=False), self.settings_.size)
        layers = _Layers(np.moveaxis(self.appearance_, -1, 1), self.masks_, self.noise_**2)
        return _updated(images, layers, _first_posterior(images, layers), N_PREDICTING, self.settings_.is_panning)

    def _run(self, images: Array, weights: Array, rng: np.random.RandomState) -> tuple[_Layers, list[float]]:
        """Run EM once, with sprites that start from images drawn at random."""
        floor = SMALLEST * images.var()
        layers = _start(images, weights, self.n_sprites, rng)
        posterior, history = _first_posterior(images, layers), list[float]()
        for number in range(1, self.max_iter + 1):
            posterior = _updated(images, layers, posterior, N_UPDATES, self.is_panning)
            history.append(float(posterior.bound @ weights) / (weights.sum() * prod(images.shape[1:])))
            check_finite(history[-1], number)
            if number > 1 and history[-1] - history[-2] < self.tol:
                break
            layers = _m_step(images, weights, posterior, layers, floor)
        return layers, history


def _images(X: Array, size: Any) -> Array:
    """Return X as planes, (images, channels, *size)."""
    shape: Shape = as_shape(size, "size")
    if X.shape[1] % prod(shape):
        raise ValueError(
            f"X has {X.shape[1]} columns, but size={shape} needs a multiple of {prod(shape)}; "
            "resize the images, and flatten them."
        )
    return np.ascontiguousarray(spectra.as_windows(X, shape))


def _start(images: Array, weights: Array, n_sprites: int, rng: np.random.RandomState) -> _Layers:
    """Start with the mean image as background, and sprites where single images differ from it."""
    used = np.flatnonzero(weights)
    background = np.average(images, axis=0, weights=weights)
    appearance, masks = [background], [np.ones(images.shape[2:])]
    for number in rng.choice(used, n_sprites, replace=len(used) < n_sprites):
        away = ((images[number] - background) ** 2).sum(axis=0)
        appearance.append(images[number])
        masks.append(np.clip(FIRST_MASK * away / max(away.max(), SMALLEST), 0.1, FIRST_MASK))
    return _Layers(np.array(appearance), np.array(masks), float(images.var()) + SMALLEST)


def _first_posterior(images: Array, layers: _Layers) -> _Posterior:
    """Return layers whose sprites may be anywhere, and a background that is not shifted."""
    shape = (len(images), *layers.masks.shape)
    shifts = np.full(shape, 1 / prod(shape[2:]))
    shifts[:, 0] = 0
    shifts.reshape(*shape[:2], -1)[:, 0, 0] = 1
    return _Posterior(shifts, np.broadcast_to(layers.masks, shape).copy(), np.zeros(len(images)))


def _moved(q: Array, planes: Array) -> Array:
    """Return planes of a layer where it may be: the sum over shifts k of q[k] plane[i - k]."""
    size = q.shape[1:]
    return spectra.inverse(spectra.spectrum(q, size) * spectra.spectrum(planes, size), size)


def _gathered(q: Array, planes: Array, size: Shape) -> Array:
    """Return planes of images where the layer sees them: the sum over shifts k of q[k] plane[i + k]."""
    return spectra.inverse(spectra.spectrum(q, size).conj() * spectra.spectrum(planes, size), size)


def _moved_masks(posterior: _Posterior) -> Array:
    """Return the expected mask of each layer in the frame of the images, (layers, images, *size)."""
    pairs = zip(np.moveaxis(posterior.shifts, 1, 0), np.moveaxis(posterior.masks, 1, 0), strict=True)
    return np.clip(np.array([_moved(q, masks) for q, masks in pairs]), 0, 1)


def _visibility(masks: Array) -> Array:
    """Return how visible each layer is, (layers, images, *size), given masks of which the last is in front."""
    uncovered = np.cumprod((1 - masks[:0:-1]), axis=0)[::-1]
    return masks * np.concatenate([uncovered, np.ones_like(masks[:1])])


def _errors(images: Array, layers: _Layers, shifts: Array) -> Array:
    """Return the expected squared difference of each image from each layer, (layers, images, *size)."""
    squared = (images**2).sum(axis=1)
    errors = []
    for number, appearance in enumerate(layers.appearance):
        q = shifts[:, number]
        cross = sum(images[:, c] * _moved(q, plane[None]) for c, plane in enumerate(appearance))
        errors.append(squared - 2 * cross + _moved(q, (appearance**2).sum(axis=0)[None]))
    return np.maximum(errors, 0)


def _behind(masks: Array, errors: Array, number: int) -> Array:
    """Return the expected squared difference from what lies behind a layer, (images, *size)."""
    behind = errors[0]
    for mask, error in zip(masks[1:number], errors[1:number], strict=True):
        behind = mask * error + (1 - mask) * behind
    return behind


def _updated(images: Array, layers: _Layers, posterior: _Posterior, n_updates: int, is_panning: bool) -> _Posterior:
    """Update shifts and masks of every layer in turn, and compute the bound."""
    shifts, masks = posterior.shifts.copy(), posterior.masks.copy()
    for _ in range(n_updates):
        for number in range(0 if is_panning else 1, len(layers.masks)):
            _update_layer(images, layers, shifts, masks, number)
    return _Posterior(shifts, masks, _bound(images, layers, shifts, masks))


def _update_layer(images: Array, layers: _Layers, shifts: Array, masks: Array, number: int) -> None:
    """Update the shifts of one layer, then its masks, in place.

    With F what is not covered by layers in front, B the squared difference from what lies behind, s the appearance and
    r the mask of an image, shift k has the score  sum over i of  r[i] F[i + k] (B[i + k] - (x[i + k] - s[i])^2) / 2 v.
    """
    size, appearance = images.shape[2:], layers.appearance[number]
    moved = _moved_masks(_Posterior(shifts, masks, np.zeros(0)))
    errors = _errors(images, layers, shifts)
    free = np.prod(1 - moved[number + 1 :], axis=0) * np.ones(size)
    rest = _behind(moved, errors, number) if number else np.zeros_like(free)
    gain = free * (rest - (images**2).sum(axis=1))
    planes = np.concatenate([gain[:, None], 2 * free[:, None] * images, -free[:, None]], axis=1)
    squared = (appearance**2).sum(axis=0)
    parts = np.concatenate([np.ones((1, *size)), appearance, squared[None]])
    window = masks[:, number, None] * parts
    product = spectra.spectrum(window, size).conj() * spectra.spectrum(planes, size)
    scores = spectra.inverse(product.sum(axis=1), size).reshape(len(images), -1) / (2 * layers.variance)
    shifts[:, number] = np.exp(scores - logsumexp(scores, axis=1, keepdims=True)).reshape(-1, *size)
    if number:
        seen = _gathered(shifts[:, number, None], planes, size)
        ratio = (seen * parts).sum(axis=1) / (2 * layers.variance)
        masks[:, number] = expit(logit(layers.masks[number]) + ratio)


def _bound(images: Array, layers: _Layers, shifts: Array, masks: Array) -> Array:
    """Return the evidence lower bound of each image."""
    moved = _moved_masks(_Posterior(shifts, masks, np.zeros(0)))
    errors = _errors(images, layers, shifts)
    shown = _behind(moved, errors, len(moved))
    n_channels, n_pixels = images.shape[1], prod(images.shape[2:])
    bound = -shown.reshape(len(images), -1).sum(axis=1) / (2 * layers.variance)
    bound -= n_channels * n_pixels * np.log(2 * np.pi * layers.variance) / 2
    for number in range(len(layers.masks)):
        q = shifts[:, number].reshape(len(images), -1)
        bound -= xlogy(q, q).sum(axis=1) + (np.log(n_pixels) if number else 0)
        if number:
            r, prior = masks[:, number], layers.masks[number]
            distance = xlogy(r, r / prior) + xlogy(1 - r, (1 - r) / (1 - prior))
            bound -= distance.reshape(len(images), -1).sum(axis=1)
    return np.asarray(bound)


def _m_step(images: Array, weights: Array, posterior: _Posterior, layers: _Layers, floor: float) -> _Layers:
    """Re-estimate appearance, masks and noise."""
    moved = _moved_masks(posterior)
    appearance, masks = [], [layers.masks[0]]
    by_image = weights.reshape(-1, *(1 for _ in images.shape[2:]))
    for number, before in enumerate(layers.appearance):
        free = np.prod(1 - moved[number + 1 :], axis=0) * np.ones(images.shape[2:])
        q, r = posterior.shifts[:, number], posterior.masks[:, number] * by_image
        total = np.maximum((r * _gathered(q, free, free.shape[1:])).sum(axis=0), SMALLEST)
        sums = [(r * _gathered(q, free * images[:, c], free.shape[1:])).sum(axis=0) for c in range(images.shape[1])]
        appearance.append((np.array(sums) + SMALLEST * before) / (total + SMALLEST))
        if number:
            masks.append(np.clip(r.sum(axis=0) / weights.sum(), SMALLEST, 1 - SMALLEST))
    new = _Layers(np.array(appearance), np.array(masks), layers.variance)
    shown = _behind(moved, _errors(images, new, posterior.shifts), len(moved))
    error = float((by_image * shown).sum()) / (weights.sum() * prod(images.shape[1:]))
    return new._replace(variance=max(error, floor, 1e-12))
