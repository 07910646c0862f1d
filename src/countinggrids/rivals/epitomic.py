"""Epitomic location recognition: one epitome of local histograms for all places, and a map of labels on it."""

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

from countinggrids.geometry import as_shape
from countinggrids.rivals.epitome import Epitome
from countinggrids.rivals.options import check_above, checked_counts, features_of
from countinggrids.uses.classifier import _seed

Array = NDArray[np.float64]
SMALLEST = 1e-100  # of a probability that is taken the logarithm of


class EpitomicPlaces(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Recognises places by where images lie in an epitome of all of them.

    An image is a low-resolution one, whose pixels are the histograms of its sections. The epitome is learnt without
    labels; then each window has the labels of the training images that lie there:

        p(place | image) = sum over windows k of  p(place | k) q(k | image)

    It goes into `PlaceTracker`, which adds a chain of places.

    Parameters
    ----------
    estimator : an `Epitome`, or another model with windows of those sections whose `transform` gives posteriors over
        them, such as `countinggrids.DiscreteEpitome`; None takes an `Epitome` four times as long along each axis
    sections : of X along each axis
    tokens : the sum of each local histogram, which matters to models of counts only
    pseudocount : images, with labels as frequent as in training, that every window is taken to have had from the start
    random_state : seed of the epitome, where it has none

    Attributes
    ----------
    classes_ : the labels
    epitome_ : the fitted epitome
    labels_ : (cells, classes) p(place | window), rows sum to one

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import EpitomicPlaces
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

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the epitome, then the labels of its windows."""
        X, y = checked_counts(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        check_above(self, "tokens", "pseudocount")
        self.classes_, which = np.unique(y, return_inverse=True)
        histograms = self._local_histograms(X)
        self.epitome_ = self._new_epitome().fit(histograms)
        is_of = np.eye(len(self.classes_))[which]
        seen = self.epitome_.transform(histograms).T @ is_of + self.pseudocount * is_of.mean(axis=0)
        self.labels_ = seen / seen.sum(axis=1, keepdims=True)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Give p(place | image), (images, classes)."""
        check_is_fitted(self)
        histograms = self._local_histograms(checked_counts(self, X, is_fitting=False))
        shares = self.epitome_.transform(histograms) @ self.labels_
        return shares / shares.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Array:
        """Give log p(place | image)."""
        return np.log(np.maximum(self.predict_proba(X), SMALLEST))

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the likeliest place of each image."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _local_histograms(self, X: Any) -> Array:
        """Bring the counts of each section to one sum; an empty section stays so."""
        parts, n_features = features_of(X.shape[1], self.sections)
        counts = (X.toarray() if sp.issparse(X) else X).reshape(X.shape[0], prod(parts), n_features)
        total = counts.sum(axis=2, keepdims=True)
        return (self.tokens * counts / np.where(total > 0, total, 1)).reshape(X.shape)

    def _new_epitome(self) -> Any:
        parts = as_shape(self.sections, "sections")
        model = Epitome(tuple(4 * n for n in parts), parts) if self.estimator is None else clone(self.estimator)
        _seed(model, check_random_state(self.random_state).randint(2**31 - 1), has_restarts=False)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn tries two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags
