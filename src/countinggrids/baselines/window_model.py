"""Base class of epitomes: every image has a location on the torus."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin

from countinggrids.core.geometry import Geometry

Array = NDArray[np.float64]


class WindowModel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model with the log-likelihood of an image in every window."""

    geometry_: Geometry

    def transform(self, X: Any) -> Array:
        """Return the posterior over windows.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.

        Returns
        -------
        q : ndarray of shape (n_images, n_cells)
            Rows sum to one.
        """
        scores = self._window_scores(X)
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the most likely window of each image as a flat index.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.

        Returns
        -------
        cells : ndarray of shape (n_images,)
            Flat indices of the corners of windows.
        """
        return self._window_scores(X).argmax(axis=1)

    def locate(self, X: Any) -> NDArray[np.intp]:
        """Return the coordinates of the most likely window of each image.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, column = pixel * n_channels + channel.

        Returns
        -------
        locations : ndarray of shape (n_images, n_axes)
            Coordinates of the corners of windows.
        """
        return np.stack(np.unravel_index(self.predict(X), self.geometry_.grid), axis=1)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean of `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, as for `fit`.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log density of an image.
        """
        return float(self.score_samples(X).mean())

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each image, or a bound on it.

        Parameters
        ----------
        X : array-like of shape (n_images, n_pixels * n_channels)
            Images, as for `fit`.

        Returns
        -------
        log_density : ndarray of shape (n_images,)
            Log density of each image.
        """
        raise NotImplementedError

    def _window_scores(self, X: Any) -> Array:
        """Return the log-likelihood of each image in every window, (images, cells)."""
        raise NotImplementedError
