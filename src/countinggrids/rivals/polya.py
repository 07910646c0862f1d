"""Mixtures of Polya distributions: bags in which features come in bursts."""

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from countinggrids.rivals.options import check_eta, check_whole, checked_counts, pseudocounts

Array = NDArray[np.float64]
SMALLEST = 1e-100  # of a parameter or a share that divides or is taken the logarithm of
INNER = 3  # steps of the fixed point for each E step; more gain little, for the responsibilities move on
LARGEST = 1e6  # sum of a component's parameters, at which it is as good as a multinomial


class _Parts(NamedTuple):
    """What EM improves: parameters of the components, (components, features), and shares of bags, (components,)."""

    alpha: Array
    shares: Array


class PolyaMixture(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns a mixture of Dirichlet-multinomial distributions by EM.

    Each bag has a histogram of its own, drawn from the Dirichlet distribution of a component; with all histograms
    taken together, a feature that was seen once is likely to be seen again. This is the mixture of Dirichlets that the
    paper puts in the place of Torralba's Gaussians where bags count words. It goes into `GridClassifier` like a
    grid does, but wants the raw counts: scaled to fewer tokens, bags show no bursts.

    Parameters
    ----------
    n_components : components
    eta : pseudocounts of each feature in the mean histogram of a component; "auto" takes them along the mean
        histogram of all bags, in total a fifth of the features, each bag's counted once, that a component receives
    max_iter : iterations at the most
    tol : gain of the objective per token below which learning ends
    n_init : restarts, of which the best is kept
    random_state : seed of the components to start from

    Attributes
    ----------
    alpha_ : (components, features) the parameters of each component
    shares_ : (components,) how many of the bags each component has, in all one
    history_ : the objective per token, log-likelihood plus log prior, before each iteration's M step; never falls
    n_iter_ : iterations made

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import PolyaMixture
    >>> X = np.random.default_rng(0).multinomial(50, [.5, .3, .2], 20)
    >>> PolyaMixture(2, random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(
        self,
        n_components: int = 3,
        *,
        eta: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        n_init: int = 1,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.eta = eta
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the components."""
        X = checked_counts(self, X, is_fitting=True)
        check_whole(self, "n_components", "max_iter", "n_init")
        check_eta(self.eta)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        rng = check_random_state(self.random_state)
        runs = [self._learnt(X, weights, rng) for _ in range(self.n_init)]
        parts, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.alpha_, self.shares_ = parts
        self.n_iter_ = len(self.history_)
        return self

    def transform(self, X: Any) -> Array:
        """Give the posterior of each component, (bags, components)."""
        joint = self._joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def score_samples(self, X: Any) -> Array:
        """Give log p(bag), (bags,), without the multinomial coefficient."""
        return np.asarray(logsumexp(self._joint(X), axis=1))

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean log-likelihood."""
        return float(self.score_samples(X).mean())

    def _learnt(self, X: Any, weights: Array, rng: Any) -> tuple[_Parts, list[float]]:
        """Run EM once; give what it ends with, and the objective along the way."""
        totals = np.asarray(X.T @ weights).ravel()
        # All but the first token of a feature in a bag may be a burst.
        n_first = np.asarray((X > 0).T @ weights).sum()
        eta = pseudocounts(self.eta, totals * n_first / max(totals.sum(), 1.0), self.n_components)
        parts, history = self._start(totals + eta, rng), []
        for _ in range(self.max_iter):
            joint = log_joint(X, parts)
            found = logsumexp(joint, axis=1, keepdims=True)
            prior = (np.log(np.maximum(_normalised(parts.alpha), SMALLEST)) @ eta).sum()
            history.append(float(found[:, 0] @ weights + prior) / max(totals.sum(), 1.0))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                break
            q = np.exp(joint - found) * weights[:, None]
            alpha = parts.alpha
            for _ in range(INNER):
                alpha = np.stack([fixed_point(X, a, some, eta) for a, some in zip(alpha, q.T, strict=True)])
            parts = _Parts(alpha, q.sum(axis=0) / q.sum())
        return parts, history

    def _start(self, along: Array, rng: Any) -> _Parts:
        """Give components a little off the mean histogram, each as sure of its own as of one token a feature."""
        noise = rng.gamma(1.0, size=(self.n_components, len(along))) * (along + SMALLEST)
        return _Parts(len(along) * _normalised(noise), np.full(self.n_components, 1 / self.n_components))

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        return log_joint(checked_counts(self, X, is_fitting=False), _Parts(self.alpha_, self.shares_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def log_joint(X: Any, parts: _Parts) -> Array:
    """Give log p(bag, component), (bags, components)."""
    tokens = np.asarray(X.sum(axis=1)).ravel()
    found = [_log_polya(X, tokens, np.maximum(alpha, SMALLEST)) for alpha in parts.alpha]
    return np.stack(found, axis=1) + np.log(np.maximum(parts.shares, SMALLEST))


def fixed_point(X: Any, alpha: Array, weights: Array, eta: Array) -> Array:
    """Make one step of Minka's fixed point for one component: a bound on the objective, maximised.

    With A the sum of alpha,

        alpha' = (eta + alpha * sum_t weight (digamma(count + alpha) - digamma(alpha)))
               / (sum eta / A + sum_t weight (digamma(tokens + A) - digamma(A)))
    """
    alpha = np.maximum(alpha, SMALLEST)
    tokens = np.asarray(X.sum(axis=1)).ravel()
    rise = _each_count(X, alpha, lambda counts, a: digamma(counts + a) - digamma(a))
    above = eta + alpha * np.asarray(rise.T @ weights).ravel()
    A = alpha.sum()
    below = eta.sum() / A + weights @ (digamma(tokens + A) - digamma(A))
    better = above / max(below, SMALLEST)
    return better * min(1.0, LARGEST / max(better.sum(), SMALLEST))


def _normalised(alpha: Array) -> Array:
    return alpha / np.maximum(alpha.sum(axis=1, keepdims=True), SMALLEST)


def _log_polya(X: Any, tokens: Array, alpha: Array) -> Array:
    """Give the log-likelihood of each bag under one component, (bags,)."""
    gain = _each_count(X, alpha, lambda counts, a: gammaln(counts + a) - gammaln(a))
    total = alpha.sum()
    return np.asarray(gammaln(total) - gammaln(total + tokens) + np.asarray(gain.sum(axis=1)).ravel())


def _each_count(X: Any, alpha: Array, function: Any) -> Any:
    """Apply a function that is 0 for a count of 0 to each count and the parameter of its feature."""
    if not sp.issparse(X):
        return function(X, alpha)
    return sp.csr_array((function(X.data, alpha[X.indices]), X.indices, X.indptr), X.shape)
