"""What epitomes share: every image has a place on the torus."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin

from countinggrids.geometry import as_shape

Array = NDArray[np.float64]


class Located(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Gives places, from the log-likelihoods of an image in every window."""

    grid: Any

    def transform(self, X: Any) -> Array:
        """Give the posterior of each image over the corners of windows, (images, cells)."""
        places = self._places(X)
        return np.exp(places - logsumexp(places, axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Give the corner of the likeliest window of each image, as a flat index."""
        return self._places(X).argmax(axis=1)

    def locate(self, X: Any) -> NDArray[np.intp]:
        """Give the coordinates of that corner, (images, axes)."""
        return np.stack(np.unravel_index(self.predict(X), as_shape(self.grid, "grid")), axis=1)

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean of the scores of the images."""
        return float(self.score_samples(X).mean())

    def score_samples(self, X: Any) -> Array:
        raise NotImplementedError

    def _places(self, X: Any) -> Array:
        raise NotImplementedError
