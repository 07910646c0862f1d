"""The spatial pyramid kernel: histograms of ever smaller sections, intersected."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from countinggrids.bags import coarsen
from countinggrids.geometry import Shape
from countinggrids.rivals.options import check_above, checked_counts, features_of
from countinggrids.uses.kernels import intersections

Array = NDArray[np.float32]
KERNEL_ENTRIES = 2**22  # of the kernel that is held at a time: 16 MB


class PyramidKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Compares bags by the intersection of their histograms in the sections of every level of a pyramid.

    Level 0 is the whole bag, and each next level halves the sections, down to those of X. A level weighs half as
    much as the next finer one, but for the first two, which weigh the same. All weights together are one, and so is
    the kernel of a bag with itself. Only counts above zero are compared, with a dense block of other bags at a time.

    Parameters
    ----------
    sections : of X along each axis, powers of two: the finest level

    Attributes
    ----------
    pyramids_ : (bags, columns) sparse weighted histograms of the bags that others are compared with

    Examples
    --------
    >>> from countinggrids.rivals import PyramidKernel
    >>> PyramidKernel(sections=(1, 2)).fit_transform([[1, 0, 0, 1], [0, 1, 1, 0], [2, 0, 0, 2]])
    array([[1. , 0.5, 1. ],
           [0.5, 1. , 0.5],
           [1. , 0.5, 1. ]], dtype=float32)
    """

    def __init__(self, sections: Sequence[int] = (4, 4)):
        self.sections = sections

    def fit(self, X: Any, y: object = None) -> Self:
        """Keep the bags that others will be compared with."""
        X = checked_counts(self, X, is_fitting=True)
        self.pyramids_ = _pyramids(X, self.sections)
        return self

    def transform(self, X: Any) -> Array:
        """Give the kernel of each bag with each fitted one, (bags, fitted bags)."""
        check_is_fitted(self)
        return intersections(_pyramids(checked_counts(self, X, is_fitting=False), self.sections), self.pyramids_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class PyramidClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies bags by a support vector machine on the spatial pyramid kernel, one class against one.

    Parameters
    ----------
    sections : of X along each axis, powers of two: the finest level
    C : how much a training bag on the wrong side costs

    Attributes
    ----------
    classes_ : the labels
    kernel_ : the fitted `PyramidKernel`
    svm_ : the fitted machine

    Examples
    --------
    >>> from countinggrids.rivals import PyramidClassifier
    >>> X, y = [[9, 1, 1, 9], [8, 1, 2, 7], [1, 9, 9, 1], [2, 7, 8, 1]], ["left", "left", "right", "right"]
    >>> PyramidClassifier(sections=(1, 2)).fit(X, y).predict([[3, 0, 0, 3]]).tolist()
    ['left']
    """

    def __init__(self, sections: Sequence[int] = (4, 4), C: float = 10.0):
        self.sections = sections
        self.C = C

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn which bags support the borders between classes."""
        check_above(self, "C")
        X, y = checked_counts(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        self.kernel_ = PyramidKernel(self.sections)
        self.svm_ = SVC(C=self.C, kernel="precomputed").fit(self.kernel_.fit_transform(X), y)
        self.classes_ = self.svm_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the class of each bag, (bags,)."""
        return np.concatenate([self.svm_.predict(K) for K in self._kernels(X)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Give how far each bag is on the side of each class, (bags, classes); of the second of two, (bags,)."""
        return np.concatenate([self.svm_.decision_function(K) for K in self._kernels(X)])

    def _kernels(self, X: Any) -> Iterator[Array]:
        """Give the kernel of some bags at a time, so that there is never one of all."""
        check_is_fitted(self)
        X = checked_counts(self, X, is_fitting=False)
        step = max(1, KERNEL_ENTRIES // self.kernel_.pyramids_.shape[0])
        return (self.kernel_.transform(X[start : start + step]) for start in range(0, X.shape[0], step))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn tries two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags


def levels(sections: Shape) -> list[tuple[Shape, float]]:
    """List the sections of each level and its weight, finest first."""
    if any(n & (n - 1) for n in sections):
        nearest = tuple(1 << (n.bit_length() - 1) for n in sections)
        raise ValueError(f"sections {sections} must be powers of two to be halved; try sections {nearest}")
    n_halvings = max(sections).bit_length() - 1
    shapes = [tuple(max(1, n >> halved) for n in sections) for halved in range(n_halvings + 1)]
    return [(shape, 0.5 ** min(halved + 1, n_halvings)) for halved, shape in enumerate(shapes)]


def _pyramids(X: Any, sections: Sequence[int]) -> sp.csr_array:
    """Put the weighted histograms of all levels side by side; those of an empty bag are zero."""
    fine, n_features = features_of(X.shape[1], sections)
    X = sp.csr_array(X)
    total = np.asarray(X.sum(axis=1)).ravel()
    shares = sp.diags_array(1 / np.where(total > 0, total, 1)) @ X
    parts = [coarsen(shares, n_features, fine, coarse) * weight for coarse, weight in levels(fine)]
    return sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.float32)
