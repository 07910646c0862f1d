"""What density models of bags share, and the EM of those in which a bag, or each section, is of one component."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from countinggrids.rivals.options import check_eta, check_whole, checked_counts

Array = NDArray[np.float64]
SMALLEST = 1e-100  # of a share or a parameter that divides or is taken the logarithm of


class BagDensity(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model with log-likelihoods of bags: counts of at least 0, dense or sparse."""

    def score_samples(self, X: Any) -> Array:
        raise NotImplementedError

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean of the scores of the bags."""
        return float(self.score_samples(X).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class Parts(NamedTuple):
    """What EM improves: the components, (components, features), and how likely each is, (..., components)."""

    components: Array
    shares: Array


class LatentBags(BagDensity):
    """A model in which a bag, or each section of it, is of one of several components; learnt by EM, with restarts."""

    n_components: int
    eta: float | str
    max_iter: int
    tol: float
    n_init: int
    random_state: Any
    parts_: Parts

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the components, and how likely each is."""
        X = checked_counts(self, X, is_fitting=True)
        self._check_options(X)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        rng = check_random_state(self.random_state)
        runs = [self._learnt(X, weights, rng) for _ in range(self.n_init)]
        self.parts_, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.n_iter_ = len(self.history_)
        return self

    def transform(self, X: Any) -> Array:
        """Give the posterior of each component, in each section if there are several, (bags, sections * components)."""
        joint = self._joint(X)
        return np.exp(joint - logsumexp(joint, axis=-1, keepdims=True)).reshape(len(joint), -1)

    def score_samples(self, X: Any) -> Array:
        """Give log p(bag), (bags,), without the multinomial coefficient."""
        joint = self._joint(X)
        return np.asarray(logsumexp(joint, axis=-1)).reshape(len(joint), -1).sum(axis=1)

    def _learnt(self, X: Any, weights: Array, rng: Any) -> tuple[Parts, list[float]]:
        """Run EM once; give what it ends with, and the objective along the way."""
        eta, n_tokens = self._pseudocounts(X, weights), max(weights @ np.asarray(X.sum(axis=1)).ravel(), 1.0)
        parts, history = self._start(X, weights, rng), list[float]()
        for _ in range(self.max_iter):
            joint = self._log_joint(X, parts)
            found = logsumexp(joint, axis=-1, keepdims=True)
            scores = found.reshape(len(joint), -1).sum(axis=1)
            history.append(float(scores @ weights + self._log_prior(parts, eta)) / n_tokens)
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                break
            q = np.exp(joint - found) * weights.reshape(-1, *(1 for _ in joint.shape[1:]))
            parts = self._m_step(X, q, parts, eta)
        return parts, history

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._log_joint(checked_counts(self, X, is_fitting=False), self.parts_)

    def _check_options(self, X: Any) -> None:
        check_whole(self, "n_components", "max_iter", "n_init")
        check_eta(self.eta)

    def _pseudocounts(self, X: Any, weights: Array) -> Array:
        """Give eta of each feature, (features,)."""
        raise NotImplementedError

    def _start(self, X: Any, weights: Array, rng: Any) -> Parts:
        raise NotImplementedError

    def _log_prior(self, parts: Parts, eta: Array) -> float:
        raise NotImplementedError

    def _log_joint(self, X: Any, parts: Parts) -> Array:
        """Give log p(bag or section, component), (bags, ..., components)."""
        raise NotImplementedError

    def _m_step(self, X: Any, q: Array, parts: Parts, eta: Array) -> Parts:
        """Improve the parts, given the weighted posterior q of the shape of the joint."""
        raise NotImplementedError


def noisy(along: Array, n: int, rng: Any) -> Array:
    """Give n histograms a little off a given one, (n, features)."""
    return normalised(rng.gamma(1.0, size=(n, len(along))) * (along + SMALLEST))


def normalised(values: Array) -> Array:
    """Make the last axis add up to one."""
    return values / np.maximum(values.sum(axis=-1, keepdims=True), SMALLEST)


def log(shares: Array) -> Array:
    """Give the logarithm, of zero that of a very small number."""
    return np.log(np.maximum(shares, SMALLEST))
