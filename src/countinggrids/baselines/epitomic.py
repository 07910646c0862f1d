"""Epitomic location recognition: one epitome of local histograms for all places, with labels of its windows."""

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.epitome import Epitome
from countinggrids.baselines.validation import features_of
from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.core.geometry import as_shape
from countinggrids.data.validation import check_bags
from countinggrids.meta.nested import set_seeds
from countinggrids.meta.options import check_positive

Array = NDArray[np.float64]
SMALLEST = 1e-100
"""Lower bound of probabilities before a logarithm."""


class EpitomicPlaces(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Recognize places by the location of images in an epitome of all places.

    The pixels of an image are the histograms of its sections. The epitome is fitted without labels; then each window
    has the labels of the training images that lie there:

        p(place | image) = sum over windows k of  p(place | k) q(k | image)

    It can be used in `PlaceTracker`, which adds a Markov chain of places.

    Parameters
    ----------
    estimator : estimator, default=None
        An `Epitome`, or another model with windows of those sections whose `transform` returns the posterior over
        windows, such as `countinggrids.DiscreteEpitome`. None stands for an `Epitome` of four windows along each axis.
    sections : tuple of int, default=(4, 4)
        Sections of X along each axis.
    tokens : float, default=10.0
        Sum of each local histogram, which matters to models of counts only.
    pseudocount : float, default=0.01
        Pseudocount of images in every window, with labels as frequent as in training.
    random_state : int, RandomState or None, default=None
        Seed of the epitome, if its own `random_state` is None.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    epitome_ : estimator
        The fitted epitome.
    labels_ : ndarray of shape (n_cells, n_classes)
        The probabilities p(place | window).
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import EpitomicPlaces
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.4, .1, .1, .4], [.1, .4, .4, .1])])
    >>> y = np.repeat(["hall", "stairs"], 20)
    >>> EpitomicPlaces(sections=(1, 2), random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        estimator: Any = None,
        sections: Sequence[int] = (4, 4),
        *,
        tokens: float = 10.0,
        pseudocount: float = 0.01,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.sections = sections
        self.tokens = tokens
        self.pseudocount = pseudocount
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the epitome, then the labels of its windows.

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
        X, y = check_bags(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        check_positive(self, "tokens", "pseudocount")
        self.classes_, which = np.unique(y, return_inverse=True)
        self.settings_ = settings_of(self, "sections", "tokens")
        histograms = self._local_histograms(X)
        self.epitome_ = self._new_epitome().fit(histograms)
        is_of = np.eye(len(self.classes_))[which]
        counts = self.epitome_.transform(histograms).T @ is_of + self.pseudocount * is_of.mean(axis=0)
        self.labels_ = counts / counts.sum(axis=1, keepdims=True)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return p(place | image).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        histograms = self._local_histograms(check_bags(self, X, is_fitting=False))
        probabilities = self.epitome_.transform(histograms) @ self.labels_
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(place | image).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        return np.log(np.maximum(self.predict_proba(X), SMALLEST))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable place of each image.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        labels : ndarray of shape (n_bags,)
            Predicted labels.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _local_histograms(self, X: Any) -> Array:
        """Scale the counts of each section to the same sum; empty sections stay empty."""
        parts, n_features = features_of(X.shape[1], self.settings_.sections)
        counts = (X.toarray() if sp.issparse(X) else X).reshape(X.shape[0], prod(parts), n_features)
        total = counts.sum(axis=2, keepdims=True)
        return (self.settings_.tokens * counts / np.where(total > 0, total, 1)).reshape(X.shape)

    def _new_epitome(self) -> Any:
        parts = as_shape(self.sections, "sections")
        model = Epitome(tuple(4 * n for n in parts), parts) if self.estimator is None else clone(self.estimator)
        set_seeds(model, check_random_state(self.random_state).randint(2**31 - 1))
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags
