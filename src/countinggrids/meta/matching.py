"""Place recognition: one interface for systems that compare query images with those of a reference walk."""

from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.options import check_positive

Array = NDArray[np.float64]


class PlaceMatcher(Protocol):
    """A system that is fitted to a reference walk, and compares queries with every image of it."""

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn from the images of the reference walk, and keep them in the form that the system needs."""
        ...

    def similarity(self, X: Any) -> Array:
        """Return the similarity of each query and each reference image, (n_queries, n_references)."""
        ...


class CosineMatcher(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: a vector of length one for each image, compared by the cosine.

    It is a transformer too, so that the same vectors can be classified in a pipeline.

    Attributes
    ----------
    reference_ : ndarray or csr_array of shape (n_images, n_components)
        Vectors of the reference images.
    """

    reference_: Any

    @whole_or_nothing
    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the vectors, and keep those of the reference images.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_columns)
            The reference images.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted matcher.
        """
        X = self._checked(X, is_fitting=True)
        self._learn(X)
        self.reference_ = normalize(self._vectors(X))
        return self

    def transform(self, X: Any) -> Any:
        """Return a vector of length one for each image; an empty image has zeros.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_columns)
            Images.

        Returns
        -------
        vectors : ndarray or csr_array of shape (n_images, n_components)
            Vectors.
        """
        check_is_fitted(self)
        return normalize(self._vectors(self._checked(X, is_fitting=False)))

    def similarity(self, X: Any) -> Array:
        """Return the cosine of each query with each reference image.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_columns)
            Queries.

        Returns
        -------
        cosines : ndarray of shape (n_images, n_references)
            Larger is more alike.
        """
        cosines = self.transform(X) @ self.reference_.T
        return np.asarray(cosines.toarray() if sp.issparse(cosines) else cosines)

    def _checked(self, X: Any, is_fitting: bool) -> Any:
        """Return X in a form that `_vectors` takes, or raise."""
        raise NotImplementedError

    def _learn(self, X: Any) -> None:
        """Learn what the vectors depend on."""

    def _vectors(self, X: Any) -> Any:
        """Return a vector for each image, of any length."""
        raise NotImplementedError


class BagMatcher(CosineMatcher):
    """Base class of matchers of bags: counts of at least 0, dense or sparse, raised to a power."""

    power: float

    def _checked(self, X: Any, is_fitting: bool) -> Any:
        return check_bags(self, X, is_fitting)

    def _learn(self, X: Any) -> None:
        check_positive(self, "power", example=0.5)
        self.power_ = float(self.power)

    def _raised(self, X: Any) -> Any:
        return X.power(self.power_) if sp.issparse(X) else X**self.power_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags
