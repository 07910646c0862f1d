"""A density model for each section, which makes any model depend on where features are."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.lda import LDA
from countinggrids.baselines.validation import features_of
from countinggrids.core.fitting import whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.nested import set_seeds


class Tessellated(BaseEstimator):  # type: ignore[misc]
    """Fit a clone of a density model to each section, and sum their log-likelihoods.

    Sections are independent of each other. It can be used in `GridClassifier`.

    Parameters
    ----------
    estimator : estimator, default=None
        A model with `fit` and `score_samples`; None stands for `LDA()`.
    sections : tuple of int, default=(4, 4)
        Sections of X along each axis.
    random_state : int, RandomState or None, default=None
        Seed of the models whose own `random_state` is None.

    Attributes
    ----------
    models_ : list of estimators
        Fitted models of the sections, last axis fastest.
    sections_ : tuple of int
        Sections of the training bags.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import LDA, Tessellated
    >>> X = np.random.default_rng(0).multinomial(50, [.5, .3, .1, .1], 20)
    >>> Tessellated(LDA(2), sections=(1, 2), random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(self, estimator: Any = None, sections: Sequence[int] = (4, 4), *, random_state: Any = None):
        self.estimator = estimator
        self.sections = sections
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model of each section.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_bags,), default=None
            Weights of the bags.

        Returns
        -------
        self : object
            The fitted model.
        """
        X = check_bags(self, X, is_fitting=True)
        self.sections_, _ = features_of(X.shape[1], self.sections)
        rng = check_random_state(self.random_state)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.models_ = []
        for part in self._parts(X):
            model = self._model()
            set_seeds(model, rng.randint(2**31 - 1))
            self.models_.append(model.fit(part, **weights))
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the sum of the log-likelihoods of the sections, or of the bounds on them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_likelihood : ndarray of shape (n_bags,)
            Log-likelihood of each bag.
        """
        check_is_fitted(self)
        parts = self._parts(check_bags(self, X, is_fitting=False))
        return np.sum([model.score_samples(part) for model, part in zip(self.models_, parts, strict=True)], axis=0)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean of `score_samples`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log-likelihood.
        """
        return float(self.score_samples(X).mean())

    def _parts(self, X: Any) -> list[Any]:
        """Cut the columns of X into sections."""
        _, n_features = features_of(X.shape[1], self.sections_)
        return [X[:, start : start + n_features] for start in range(0, X.shape[1], n_features)]

    def _model(self) -> Any:
        return LDA() if self.estimator is None else clone(self.estimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._model()).input_tags.sparse
        tags.input_tags.positive_only = True
        return tags
