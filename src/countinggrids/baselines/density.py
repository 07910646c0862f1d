"""Base classes of density models of bags, and EM for those with one latent component for each bag or section."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.validation import check_eta, checked_weights
from countinggrids.core.fitting import check_finite, whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.options import check_integer

Array = NDArray[np.float64]
SMALLEST = 1e-100
"""Lower bound of probabilities and parameters before a division or a logarithm."""


class BagDensity(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model with log-likelihoods of bags: counts of at least 0, dense or sparse."""

    def score_samples(self, X: Any) -> Array:
        """Return the log-likelihood of each bag, or a bound on it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_likelihood : ndarray of shape (n_bags,)
            Log-likelihood of each bag.
        """
        raise NotImplementedError

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
            Mean log-likelihood of a bag.
        """
        return float(self.score_samples(X).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class Parts(NamedTuple):
    """Parameters of a mixture: the components, (components, features), and their probabilities, (..., components)."""

    components: Array
    weights: Array


class LatentBags(BagDensity):
    """A mixture with one latent component for each bag, or for each section of it, fitted by EM with restarts."""

    n_components: int
    eta: float | str
    max_iter: int
    tol: float
    n_init: int
    random_state: Any
    parts_: Parts

    @whole_or_nothing
    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the components and their probabilities.

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
        self._check_options(X)
        weights = checked_weights(sample_weight, X)
        rng = check_random_state(self.random_state)
        runs = [self._run_em(X, weights, rng) for _ in range(self.n_init)]
        self.parts_, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.n_iter_ = len(self.history_)
        return self

    def transform(self, X: Any) -> Array:
        """Return the posterior over components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        q : ndarray of shape (n_bags, n_sections * n_components)
            Posterior of each section, or of the whole bag where there are no sections.
        """
        joint = self._joint(X)
        return np.exp(joint - logsumexp(joint, axis=-1, keepdims=True)).reshape(len(joint), -1)

    def score_samples(self, X: Any) -> Array:
        """Return log p(bag), without the multinomial coefficient.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_likelihood : ndarray of shape (n_bags,)
            Log-likelihood of each bag.
        """
        joint = self._joint(X)
        return np.asarray(logsumexp(joint, axis=-1)).reshape(len(joint), -1).sum(axis=1)

    def _run_em(self, X: Any, weights: Array, rng: Any) -> tuple[Parts, list[float]]:
        """Run EM once; return the parameters and the history of the objective."""
        eta, n_tokens = self._pseudocounts(X, weights), max(weights @ np.asarray(X.sum(axis=1)).ravel(), 1.0)
        parts, history = self._start(X, weights, rng), list[float]()
        for _ in range(self.max_iter):
            joint = self._log_joint(X, parts)
            evidence = logsumexp(joint, axis=-1, keepdims=True)
            scores = evidence.reshape(len(joint), -1).sum(axis=1)
            history.append(float(scores @ weights + self._log_prior(parts, eta)) / n_tokens)
            check_finite(history[-1], len(history))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                break
            q = np.exp(joint - evidence) * weights.reshape(-1, *(1 for _ in joint.shape[1:]))
            parts = self._m_step(X, q, parts, eta)
        return parts, history

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._log_joint(check_bags(self, X, is_fitting=False), self.parts_)

    def _check_options(self, X: Any) -> None:
        check_integer(self, "n_components", "max_iter", "n_init")
        check_eta(self.eta)

    def _pseudocounts(self, X: Any, weights: Array) -> Array:
        """Return the pseudocount of each feature, (features,)."""
        raise NotImplementedError

    def _start(self, X: Any, weights: Array, rng: Any) -> Parts:
        raise NotImplementedError

    def _log_prior(self, parts: Parts, eta: Array) -> float:
        raise NotImplementedError

    def _log_joint(self, X: Any, parts: Parts) -> Array:
        """Return log p(bag or section, component), (bags, ..., components)."""
        raise NotImplementedError

    def _m_step(self, X: Any, q: Array, parts: Parts, eta: Array) -> Parts:
        """Re-estimate the parameters from the weighted posterior q, (bags, ..., components)."""
        raise NotImplementedError


def noisy(mean: Array, n: int, rng: Any) -> Array:
    """Draw n histograms around a mean histogram, (n, features)."""
    return normalized(rng.gamma(1.0, size=(n, len(mean))) * (mean + SMALLEST))


def normalized(values: Array) -> Array:
    """Scale values so that the last axis sums to one."""
    return values / np.maximum(values.sum(axis=-1, keepdims=True), SMALLEST)


def log(probabilities: Array) -> Array:
    """Return the logarithm; that of zero is finite."""
    return np.log(np.maximum(probabilities, SMALLEST))
