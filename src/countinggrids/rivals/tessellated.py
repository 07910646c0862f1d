"""A model a section: any density model, made to see where features are."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from countinggrids.rivals.lda import LDA
from countinggrids.rivals.options import checked_counts, features_of
from countinggrids.uses.classifier import _seed


class Tessellated(BaseEstimator):  # type: ignore[misc]
    """Learns a clone of a density model for each section; the log-likelihood of a bag is the sum of theirs.

    Sections are taken for independent: no section knows what another one looks like. It goes into `GridClassifier`
    like a grid does.

    Parameters
    ----------
    estimator : a model with `fit` and `score_samples`, such as `LDA`; None takes `LDA()`
    sections : of X along each axis
    random_state : seed of the models, where they take one and have none

    Attributes
    ----------
    models_ : the fitted models, one per section, last axis fastest

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import LDA, Tessellated
    >>> X = np.random.default_rng(0).multinomial(50, [.5, .3, .1, .1], 20)
    >>> Tessellated(LDA(2), sections=(1, 2), random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(self, estimator: Any = None, sections: Sequence[int] = (4, 4), *, random_state: Any = None):
        self.estimator = estimator
        self.sections = sections
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the model of each section."""
        X = checked_counts(self, X, is_fitting=True)
        rng = check_random_state(self.random_state)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.models_ = []
        for part in self._parts(X):
            model = self._model()
            _seed(model, rng.randint(2**31 - 1), has_restarts=False)
            self.models_.append(model.fit(part, **weights))
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Give the log-likelihood of each bag, or a bound on it as the models do, (bags,)."""
        check_is_fitted(self)
        parts = self._parts(checked_counts(self, X, is_fitting=False))
        return np.sum([model.score_samples(part) for model, part in zip(self.models_, parts, strict=True)], axis=0)

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean log-likelihood."""
        return float(self.score_samples(X).mean())

    def _parts(self, X: Any) -> list[Any]:
        """Cut the columns of X into sections."""
        _, n_features = features_of(X.shape[1], self.sections)
        return [X[:, start : start + n_features] for start in range(0, X.shape[1], n_features)]

    def _model(self) -> Any:
        return LDA() if self.estimator is None else clone(self.estimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._model()).input_tags.sparse
        tags.input_tags.positive_only = True
        return tags
