"""Mixtures of Polya distributions: bags in which features come in bursts."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from countinggrids.rivals.density import SMALLEST, LatentBags, Parts, log, noisy, normalised
from countinggrids.rivals.options import pseudocounts

Array = NDArray[np.float64]
INNER = 3  # steps of the fixed point for each E step; more gain little, for the responsibilities move on
LARGEST = 1e6  # sum of a component's parameters, at which it is as good as a multinomial


class PolyaMixture(LatentBags):
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

    @property
    def alpha_(self) -> Array:
        return self.parts_.components

    @property
    def shares_(self) -> Array:
        return self.parts_.shares

    def _pseudocounts(self, X: Any, weights: Array) -> Array:
        totals = np.asarray(X.T @ weights).ravel()
        # All but the first token of a feature in a bag may be a burst.
        n_first = np.asarray((X > 0).T @ weights).sum()
        return pseudocounts(self.eta, totals * n_first / max(totals.sum(), 1.0), self.n_components)

    def _start(self, X: Any, weights: Array, rng: Any) -> Parts:
        """Give components a little off the mean histogram, each as sure of its own as of one token a feature."""
        components = X.shape[1] * noisy(np.asarray(X.T @ weights).ravel(), self.n_components, rng)
        return Parts(components, np.full(self.n_components, 1 / self.n_components))

    def _log_prior(self, parts: Parts, eta: Array) -> float:
        return float((log(normalised(parts.components)) @ eta).sum())

    def _log_joint(self, X: Any, parts: Parts) -> Array:
        tokens = np.asarray(X.sum(axis=1)).ravel()
        found = [_log_polya(X, tokens, np.maximum(alpha, SMALLEST)) for alpha in parts.components]
        return np.stack(found, axis=1) + log(parts.shares)

    def _m_step(self, X: Any, q: Array, parts: Parts, eta: Array) -> Parts:
        components = parts.components
        for _ in range(INNER):
            better = [fixed_point(X, alpha, some, eta) for alpha, some in zip(components, q.T, strict=True)]
            components = np.stack(better)
        return Parts(components, normalised(q.sum(axis=0)))


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
