"""Mixture of Polya (Dirichlet-multinomial) distributions: bags in which features come in bursts."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from countinggrids.baselines.density import SMALLEST, LatentBags, Parts, log, noisy, normalized
from countinggrids.baselines.validation import pseudocounts

Array = NDArray[np.float64]
INNER = 3
"""Fixed-point steps for each E step; more gain little, because the responsibilities change."""
LARGEST = 1e6
"""Largest sum of the parameters of a component, which is then close to a multinomial."""


class PolyaMixture(LatentBags):
    """Fit a mixture of Dirichlet-multinomial distributions by EM.

    The histogram of each bag is drawn from the Dirichlet distribution of a component and integrated out, so that a
    feature that was seen once is likely to be seen again. The paper uses this mixture instead of Torralba's Gaussians
    where bags count words. It can be used in `GridClassifier`, with raw counts: bags that are scaled to fewer tokens
    have no bursts.

    Parameters
    ----------
    n_components : int, default=3
        Number of components.
    eta : {"auto"} or float, default="auto"
        Pseudocounts of each feature in the mean histogram of a component. "auto" is proportional to the mean histogram
        of all bags, in total a fifth of the features that a component receives, where a bag counts each feature once.
    max_iter : int, default=200
        Largest number of EM iterations.
    tol : float, default=1e-5
        Gain of the objective per token below which EM stops.
    n_init : int, default=1
        Number of restarts, of which the best is kept.
    random_state : int, RandomState or None, default=None
        Seed of the first components.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_components, n_features)
        Parameters of the Dirichlet distributions.
    weights_ : ndarray of shape (n_components,)
        Mixture weights.
    history_ : list of float
        Log-likelihood plus log prior per token before the M step of each iteration; never falls.
    n_iter_ : int
        Number of EM iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import PolyaMixture
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

    @property
    def alpha_(self) -> Array:
        return self.parts_.components

    @property
    def weights_(self) -> Array:
        return self.parts_.weights

    def _pseudocounts(self, X: Any, weights: Array) -> Array:
        totals = np.asarray(X.T @ weights).ravel()
        # All but the first token of a feature in a bag may be a burst.
        n_first = np.asarray((X > 0).T @ weights).sum()
        return pseudocounts(self.eta, totals * n_first / max(totals.sum(), 1.0), self.n_components)

    def _start(self, X: Any, weights: Array, rng: Any) -> Parts:
        """Return components around the mean histogram, whose parameters sum to the number of features."""
        components = X.shape[1] * noisy(np.asarray(X.T @ weights).ravel(), self.n_components, rng)
        return Parts(components, np.full(self.n_components, 1 / self.n_components))

    def _log_prior(self, parts: Parts, eta: Array) -> float:
        return float((log(normalized(parts.components)) @ eta).sum())

    def _log_joint(self, X: Any, parts: Parts) -> Array:
        tokens = np.asarray(X.sum(axis=1)).ravel()
        scores = [_log_polya(X, tokens, np.maximum(alpha, SMALLEST)) for alpha in parts.components]
        return np.stack(scores, axis=1) + log(parts.weights)

    def _m_step(self, X: Any, q: Array, parts: Parts, eta: Array) -> Parts:
        components = parts.components
        for _ in range(INNER):
            better = [fixed_point(X, alpha, some, eta) for alpha, some in zip(components, q.T, strict=True)]
            components = np.stack(better)
        return Parts(components, normalized(q.sum(axis=0)))


def fixed_point(X: Any, alpha: Array, weights: Array, eta: Array) -> Array:
    """Make one step of Minka's fixed-point iteration for one component, which maximizes a bound on the objective.

    With A the sum of alpha,

        alpha' = (eta + alpha * sum_t weight (digamma(count + alpha) - digamma(alpha)))
               / (sum eta / A + sum_t weight (digamma(tokens + A) - digamma(A)))

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_bags, n_features)
        Counts.
    alpha : ndarray of shape (n_features,)
        Parameters of the component.
    weights : ndarray of shape (n_bags,)
        Responsibility of the component for each bag.
    eta : ndarray of shape (n_features,)
        Pseudocounts.

    Returns
    -------
    alpha : ndarray of shape (n_features,)
        New parameters.
    """
    alpha = np.maximum(alpha, SMALLEST)
    tokens = np.asarray(X.sum(axis=1)).ravel()
    rise = _each_count(X, alpha, lambda counts, a: digamma(counts + a) - digamma(a))
    above = eta + alpha * np.asarray(rise.T @ weights).ravel()
    A = alpha.sum()
    below = eta.sum() / A + weights @ (digamma(tokens + A) - digamma(A))
    better = above / max(below, SMALLEST)
    return better * min(1.0, LARGEST / max(better.sum(), SMALLEST))


def _log_polya(X: Any, tokens: Array, alpha: Array) -> Array:
    """Return the log-likelihood of each bag under one component, (bags,)."""
    gain = _each_count(X, alpha, lambda counts, a: gammaln(counts + a) - gammaln(a))
    total = alpha.sum()
    return np.asarray(gammaln(total) - gammaln(total + tokens) + np.asarray(gain.sum(axis=1)).ravel())


def _each_count(X: Any, alpha: Array, function: Any) -> Any:
    """Apply a function, which must be 0 for a count of 0, to each count and the parameter of its feature."""
    if not sp.issparse(X):
        return function(X, alpha)
    return sp.csr_array((function(X.data, alpha[X.indices]), X.indices, X.indptr), X.shape)
