"""Support vector machines on histograms, with the chi-squared or the intersection kernel."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.kernels import intersections
from countinggrids.meta.options import check_choice, check_positive

Array = NDArray[Any]


class HistogramSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify bags by a support vector machine on their histograms, one class against one.

    The chi-squared kernel of two histograms a and b is exp(-d / D), where d is the sum of (a - b)^2 / (a + b) and D its
    mean over pairs of training bags; the intersection kernel is the sum of min(a, b). Sections of a bag are columns
    like any others; `PyramidClassifier` weights them by level.

    Parameters
    ----------
    kernel : {"chi2", "intersection"}, default="chi2"
        The kernel.
    C : float, default=10.0
        Regularization parameter of the SVM.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    svm_ : SVC
        The fitted SVM.
    histograms_ : ndarray or csr_array of shape (n_bags, n_columns)
        Histograms of the training bags.
    scale_ : float
        Mean chi-squared distance of the training bags; 1 for the intersection kernel.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.

    Examples
    --------
    >>> from countinggrids.baselines import HistogramSVM
    >>> X, y = [[9, 1, 2], [8, 1, 1], [1, 9, 2], [2, 7, 1]], ["left", "left", "right", "right"]
    >>> HistogramSVM().fit(X, y).predict([[3, 0, 1]]).tolist()
    ['left']
    """

    def __init__(self, kernel: str = "chi2", C: float = 10.0):
        self.kernel = kernel
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
        check_choice(self, "kernel", tuple(KERNELS))
        check_positive(self, "C", example=10)
        X, y = check_bags(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        self.settings_ = settings_of(self, "kernel")
        self.histograms_ = normalize(X, norm="l1")
        raw = KERNELS[self.kernel](self.histograms_, self.histograms_)
        self.scale_ = float(-raw.mean()) or 1.0 if self.kernel == "chi2" else 1.0
        self.svm_ = SVC(C=self.C, kernel="precomputed").fit(self._scaled(raw), y)
        self.classes_ = self.svm_.classes_
        return self

    def predict(self, X: Any) -> Array:
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
        K = self._kernel(X)
        return np.asarray(self.svm_.predict(K))

    def decision_function(self, X: Any) -> Array:
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
        K = self._kernel(X)
        return np.asarray(self.svm_.decision_function(K))

    def _kernel(self, X: Any) -> Array:
        """Return the kernel of bags with the training bags."""
        check_is_fitted(self)
        histograms = normalize(check_bags(self, X, is_fitting=False), norm="l1")
        return self._scaled(KERNELS[self.settings_.kernel](histograms, self.histograms_))

    def _scaled(self, raw: Array) -> Array:
        return np.exp(raw / self.scale_) if self.settings_.kernel == "chi2" else raw

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags


def _chi_squared(A: Any, B: Any) -> Array:
    """Return minus the chi-squared distance of histograms."""
    # A copy, because scikit-learn's loop refuses arrays that are read-only.
    return np.asarray(additive_chi2_kernel(*(each.toarray() if sp.issparse(each) else each.copy() for each in (A, B))))


def _intersection(A: Any, B: Any) -> Array:
    """Return the sum of the minima of histograms."""
    left = sp.csr_array(A, dtype=np.float32)
    return intersections(left, left if A is B else sp.csr_array(B, dtype=np.float32))


KERNELS = {"chi2": _chi_squared, "intersection": _intersection}
