"""Descriptors of whole images, such as Gist, standardized by the reference walk and compared by the cosine."""

from typing import Any

import numpy as np

from countinggrids.baselines.validation import checked_images
from countinggrids.meta.matching import CosineMatcher


class StandardizedVectors(CosineMatcher):
    """Represent an image by its descriptor minus the mean of the reference walk, divided by its standard deviation.

    Without it the mean image decides: most columns of a Gist descriptor are large in all images.

    Attributes
    ----------
    mean_ : ndarray of shape (n_columns,)
        Mean of the reference images.
    scale_ : ndarray of shape (n_columns,)
        Their standard deviation; 1 where it is 0.
    reference_ : ndarray of shape (n_images, n_columns)
        Vectors of the reference images.

    Examples
    --------
    >>> from countinggrids.baselines import StandardizedVectors
    >>> StandardizedVectors().fit([[9.0, 1.0], [9.0, 2.0], [8.0, 3.0]]).similarity([[8.0, 3.0]]).argmax(axis=1).tolist()
    [2]
    """

    def _checked(self, X: Any, is_fitting: bool) -> Any:
        return checked_images(self, X, is_fitting)

    def _learn(self, X: Any) -> None:
        self.mean_, scale = X.mean(axis=0), X.std(axis=0)
        self.scale_ = np.where(scale > 0, scale, 1.0)

    def _vectors(self, X: Any) -> Any:
        return (X - self.mean_) / self.scale_
