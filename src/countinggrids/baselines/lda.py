"""Latent Dirichlet allocation: a bag is an admixture of topics, fitted by variational EM."""

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, psi
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.density import SMALLEST, BagDensity
from countinggrids.baselines.validation import check_eta, checked_weights, pseudocounts
from countinggrids.core.fitting import check_finite, whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.options import check_integer, check_positive

Array = NDArray[np.float64]
Q_TOL = 1e-4
"""Change of q(theta) of a bag, per token, below which it has converged."""


ETA_FRACTION = 0.01
"""Pseudocounts under eta="auto", as a fraction of the tokens that a topic receives."""
ALPHAS = (1e-3, 1e3)
"""Range of the pseudocounts of a topic in a bag."""


class Posterior(NamedTuple):
    """The result of an E step.

    Attributes
    ----------
    gamma : ndarray of shape (n_bags, n_topics)
        Parameters of q(theta), a Dirichlet.
    bound : ndarray of shape (n_bags,)
        Evidence lower bound, E_q[log p(bag, theta, z)] - E_q[log q(theta, z)].
    counts : ndarray of shape (n_topics, n_features)
        Expected counts of features drawn from each topic.
    """

    gamma: Array
    bound: Array
    counts: Array


class LDA(BagDensity):
    """Fit topics by variational EM, and bound the likelihood of each bag.

    Topics are MAP estimates with pseudocounts, as the cells of a grid are. It can be used in `GridClassifier`, unlike
    scikit-learn's, which has no bound for each bag.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics.
    alpha : {"auto"} or float, default="auto"
        Pseudocounts of each topic in a bag. "auto" starts at 1 / n_components, and maximizes the bound in every
        iteration.
    eta : {"auto"} or float, default="auto"
        Pseudocounts of each feature in a topic. "auto" is proportional to the mean histogram, in total a hundredth
        of the tokens that a topic receives.
    max_iter : int, default=200
        Largest number of EM iterations.
    tol : float, default=1e-5
        Gain of the objective per token below which EM stops.
    random_state : int, RandomState or None, default=None
        Seed of the first topics.

    Attributes
    ----------
    topics_ : ndarray of shape (n_topics, n_features)
        Distribution over features of each topic.
    alpha_ : float
        Pseudocounts of each topic in a bag.
    history_ : list of float
        Bounds plus log prior of the topics per token, before the M step of each iteration.
    n_iter_ : int
        Number of EM iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import LDA
    >>> X = np.random.default_rng(0).multinomial(50, [.5, .3, .2], 20)
    >>> LDA(2, random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float | str = "auto",
        eta: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.eta = eta
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the topics.

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
        weights = checked_weights(sample_weight, X)
        check_integer(self, "n_components", "max_iter")
        check_eta(self.eta)
        is_learned = isinstance(self.alpha, str) and self.alpha == "auto"
        if not is_learned:
            check_positive(self, "alpha")
        self.alpha_ = 1 / self.n_components if is_learned else float(self.alpha)
        totals = np.asarray(X.T @ weights).ravel()
        eta = pseudocounts(self.eta, totals, self.n_components, ETA_FRACTION)
        rng = check_random_state(self.random_state)
        topics = rng.gamma(1.0, size=(self.n_components, X.shape[1])) * (totals + eta + SMALLEST)
        self.topics_ = topics / topics.sum(axis=1, keepdims=True)
        self.history_: list[float] = []
        gamma, last = None, -np.inf
        for number in range(1, self.max_iter + 1):
            self.n_iter_ = number
            gamma, bound, counts = self._e_step(X, gamma, weights, max_iter=10)
            objective = float(bound @ weights + (np.log(np.maximum(self.topics_, SMALLEST)) @ eta).sum())
            check_finite(objective, number)
            self.history_.append(objective / max(totals.sum(), 1.0))
            if self.history_[-1] - last < self.tol:
                break
            last = self.history_[-1]
            if is_learned:
                self.alpha_ = _best_alpha(gamma, weights)
            topics = counts + eta
            self.topics_ = topics / np.maximum(topics.sum(axis=1, keepdims=True), SMALLEST)
        return self

    def transform(self, X: Any) -> Array:
        """Return the expected topic proportions of each bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        theta : ndarray of shape (n_bags, n_topics)
            Rows sum to one.
        """
        gamma = self._posterior(X).gamma
        return gamma / gamma.sum(axis=1, keepdims=True)

    def score_samples(self, X: Any) -> Array:
        """Return the lower bound on log p(bag), without the multinomial coefficient.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        bound : ndarray of shape (n_bags,)
            Evidence lower bound of each bag.
        """
        return self._posterior(X).bound

    def _posterior(self, X: Any) -> Posterior:
        check_is_fitted(self)
        X = check_bags(self, X, is_fitting=False)
        return self._e_step(X, None, np.ones(X.shape[0]), max_iter=200)

    def _e_step(self, X: Any, gamma: Array | None, weights: Array, max_iter: int) -> Posterior:
        """Update q(theta) of every bag until it converges, from a given one or a uniform one."""
        tokens = np.asarray(X.sum(axis=1)).reshape(-1, 1)
        if gamma is None:
            n_topics = len(self.topics_)
            gamma = np.repeat(self.alpha_ + tokens / n_topics, n_topics, axis=1)
        for _ in range(max_iter):
            theta = np.exp(_expected_logs(gamma))
            # The optimal q(z) for this q(theta) divides each count among topics in proportion to theta * topics.
            updated = self.alpha_ + theta * (_over(X, theta, self.topics_) @ self.topics_.T)
            change = np.abs(updated - gamma).sum(axis=1) / (tokens.ravel() + 1)
            gamma = updated
            if change.max() < Q_TOL:
                break
        logs = _expected_logs(gamma)
        theta = np.exp(logs)
        ratio = _over(X, theta, self.topics_)
        bound = _log_of(X, theta, self.topics_) + _log_dirichlet(self.alpha_, logs) - _log_dirichlet(gamma, logs)
        counts = self.topics_ * np.asarray((ratio.T @ (theta * weights[:, None])).T)
        return Posterior(gamma, bound, counts)


def _expected_logs(gamma: Array) -> Array:
    return np.asarray(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))


def _best_alpha(gamma: Array, weights: Array) -> float:
    """Return the pseudocounts of each topic that maximize the bound, given q(theta)."""
    n_topics, total = gamma.shape[1], weights.sum()
    logs = float(weights @ _expected_logs(gamma).sum(axis=1))

    def slope(log_alpha: float) -> float:
        alpha = np.exp(log_alpha)
        return float(total * n_topics * (psi(n_topics * alpha) - psi(alpha)) + logs)

    low, high = np.log(ALPHAS)
    if slope(low) <= 0 or slope(high) >= 0:
        return ALPHAS[0] if slope(low) <= 0 else ALPHAS[1]
    return float(np.exp(brentq(slope, low, high, xtol=1e-6)))


def _expected(X: Any, theta: Array, topics: Array) -> Any:
    """Return the expected frequency of each feature in each bag; of the stored entries only, if X is sparse."""
    if not sp.issparse(X):
        return np.maximum(theta @ topics, SMALLEST)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.maximum(np.einsum("nk,nk->n", theta[rows], topics.T[X.indices]), SMALLEST)


def _over(X: Any, theta: Array, topics: Array) -> Any:
    """Divide counts by expected frequencies."""
    expected = _expected(X, theta, topics)
    return sp.csr_array((X.data / expected, X.indices, X.indptr), X.shape) if sp.issparse(X) else X / expected


def _log_of(X: Any, theta: Array, topics: Array) -> Array:
    """Sum the logarithms of expected frequencies over the tokens of each bag."""
    logs = np.log(_expected(X, theta, topics))
    logs = sp.csr_array((X.data * logs, X.indices, X.indptr), X.shape) if sp.issparse(X) else X * logs
    return np.asarray(logs.sum(axis=1)).ravel()


def _log_dirichlet(parameters: Any, logs: Array) -> Any:
    """Compute the expected log density of a Dirichlet under q(theta), given the expected log theta."""
    parameters = np.broadcast_to(parameters, logs.shape)
    constant = gammaln(parameters.sum(axis=1)) - gammaln(parameters).sum(axis=1)
    return constant + ((parameters - 1) * logs).sum(axis=1)
