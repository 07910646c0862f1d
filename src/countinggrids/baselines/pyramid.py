"""The spatial pyramid kernel: intersection of the histograms of finer and finer sections."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.validation import features_of
from countinggrids.core.fitting import whole_or_nothing
from countinggrids.core.geometry import Shape
from countinggrids.data.counts import coarsen
from countinggrids.data.validation import check_bags
from countinggrids.meta.kernels import intersections
from countinggrids.meta.options import check_positive

Array = NDArray[np.float32]
KERNEL_ENTRIES = 2**22
"""Entries of the kernel that are held at a time: 16 MB."""


class PyramidKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Compute the intersection of histograms in the sections of every level of a pyramid.

    Level 0 is the whole bag, and each next level halves the sections, down to those of X. The weight of a level is half
    that of the next finer one, but the first two have the same. The weights sum to one, which is also the kernel of a
    bag with itself.

    Parameters
    ----------
    sections : tuple of int, default=(4, 4)
        Sections of X along each axis, powers of two: the finest level.

    Attributes
    ----------
    pyramids_ : csr_array of shape (n_bags, n_columns)
        Weighted histograms of the training bags.
    sections_ : tuple of int
        Sections of the training bags.

    Examples
    --------
    >>> from countinggrids.baselines import PyramidKernel
    >>> PyramidKernel(sections=(1, 2)).fit_transform([[1, 0, 0, 1], [0, 1, 1, 0], [2, 0, 0, 2]])
    array([[1. , 0.5, 1. ],
           [0.5, 1. , 0.5],
           [1. , 0.5, 1. ]], dtype=float32)
    """

    def __init__(self, sections: Sequence[int] = (4, 4)):
        self.sections = sections

    @whole_or_nothing
    def fit(self, X: Any, y: object = None) -> Self:
        """Keep the training bags, which others are compared with.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted kernel.
        """
        X = check_bags(self, X, is_fitting=True)
        self.sections_, _ = features_of(X.shape[1], self.sections)
        self.pyramids_ = _pyramids(X, self.sections_)
        return self

    def transform(self, X: Any) -> Array:
        """Compute the kernel with the training bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        K : ndarray of shape (n_bags, n_training_bags)
            The kernel.
        """
        check_is_fitted(self)
        return intersections(_pyramids(check_bags(self, X, is_fitting=False), self.sections_), self.pyramids_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class PyramidClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify bags by a support vector machine with the spatial pyramid kernel, one class against one.

    Parameters
    ----------
    sections : tuple of int, default=(4, 4)
        Sections of X along each axis, powers of two: the finest level.
    C : float, default=10.0
        Regularization parameter of the SVM.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    kernel_ : PyramidKernel
        The fitted kernel.
    svm_ : SVC
        The fitted SVM.

    Examples
    --------
    >>> from countinggrids.baselines import PyramidClassifier
    >>> X, y = [[9, 1, 1, 9], [8, 1, 2, 7], [1, 9, 9, 1], [2, 7, 8, 1]], ["left", "left", "right", "right"]
    >>> PyramidClassifier(sections=(1, 2)).fit(X, y).predict([[3, 0, 0, 3]]).tolist()
    ['left']
    """

    def __init__(self, sections: Sequence[int] = (4, 4), C: float = 10.0):
        self.sections = sections
        self.C = C

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the SVM.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,)
            Labels.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        check_positive(self, "C", example=10)
        X, y = check_bags(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        self.kernel_ = PyramidKernel(self.sections)
        self.svm_ = SVC(C=self.C, kernel="precomputed").fit(self.kernel_.fit_transform(X), y)
        self.classes_ = self.svm_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        labels : ndarray of shape (n_bags,)
            Predicted labels.
        """
        return np.concatenate([self.svm_.predict(K) for K in self._kernels(X)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision function of the SVM.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_classes) or (n_bags,)
            Scores of the classes; of two classes, those of the second.
        """
        return np.concatenate([self.svm_.decision_function(K) for K in self._kernels(X)])

    def _kernels(self, X: Any) -> Iterator[Array]:
        """Compute the kernel of some bags at a time, to bound memory."""
        check_is_fitted(self)
        X = check_bags(self, X, is_fitting=False)
        step = max(1, KERNEL_ENTRIES // self.kernel_.pyramids_.shape[0])
        return (self.kernel_.transform(X[start : start + step]) for start in range(0, X.shape[0], step))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags


def levels(sections: Shape) -> list[tuple[Shape, float]]:
    """List the sections of each level and its weight, finest first."""
    if any(n & (n - 1) for n in sections):
        nearest = tuple(1 << (n.bit_length() - 1) for n in sections)
        raise ValueError(f"sections={sections} must be powers of two; use sections={nearest}.")
    n_halvings = max(sections).bit_length() - 1
    shapes = [tuple(max(1, n >> halved) for n in sections) for halved in range(n_halvings + 1)]
    return [(shape, 0.5 ** min(halved + 1, n_halvings)) for halved, shape in enumerate(shapes)]


def _pyramids(X: Any, sections: Sequence[int]) -> sp.csr_array:
    """Concatenate the weighted histograms of all levels; those of an empty bag are zero."""
    fine, n_features = features_of(X.shape[1], sections)
    X = sp.csr_array(X)
    total = np.asarray(X.sum(axis=1)).ravel()
    histograms = sp.diags_array(1 / np.where(total > 0, total, 1)) @ X
    parts = [coarsen(histograms, n_features, fine, coarse) * weight for coarse, weight in levels(fine)]
    return sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.float32)
