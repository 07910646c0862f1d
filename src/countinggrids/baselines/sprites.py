"""Flexible sprites: images are layers with a mask each, which move from image to image."""

from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines import spectra, sprite_layers
from countinggrids.baselines.sprite_layers import Layers, Posterior
from countinggrids.baselines.validation import checked_images
from countinggrids.core.fitting import check_finite, settings_of, whole_or_nothing
from countinggrids.core.geometry import Shape, as_shape
from countinggrids.data.validation import check_weights
from countinggrids.meta.options import check_integer

Array = NDArray[np.float64]
N_UPDATES = 3
"""Updates of the layers of an image in one iteration."""
N_PREDICTING = 20
"""Updates of the layers of a new image."""


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
        return np.moveaxis(sprite_layers.visibility(self._infer(X)), 0, 1)

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

    def _infer(self, X: Any) -> Posterior:
        check_is_fitted(self)
        images = _images(checked_images(self, X, is_fitting=False), self.settings_.size)
        layers = Layers(np.moveaxis(self.appearance_, -1, 1), self.masks_, self.noise_**2)
        posterior = sprite_layers.first_posterior(images, layers)
        return sprite_layers.e_step(images, layers, posterior, N_PREDICTING, self.settings_.is_panning)

    def _run(self, images: Array, weights: Array, rng: np.random.RandomState) -> tuple[Layers, list[float]]:
        """Run EM once, with sprites that start from images drawn at random."""
        floor = sprite_layers.SMALLEST * images.var()
        layers = sprite_layers.first_layers(images, weights, self.n_sprites, rng)
        posterior, history = sprite_layers.first_posterior(images, layers), list[float]()
        for number in range(1, self.max_iter + 1):
            posterior = sprite_layers.e_step(images, layers, posterior, N_UPDATES, self.is_panning)
            history.append(float(posterior.bound @ weights) / (weights.sum() * prod(images.shape[1:])))
            check_finite(history[-1], number)
            if number > 1 and history[-1] - history[-2] < self.tol:
                break
            layers = sprite_layers.m_step(images, weights, posterior, layers, floor)
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
