"""Latent Dirichlet allocation: a bag is an admixture of topics."""

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, psi
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from countinggrids.rivals.density import SMALLEST, BagDensity
from countinggrids.rivals.options import check_eta, check_whole, checked_counts, pseudocounts

Array = NDArray[np.float64]
STILL = 1e-4  # change of a bag's shares, per token, below which its q(theta) is found


class Posterior(NamedTuple):
    """What the E step finds.

    Attributes
    ----------
    gamma : (bags, topics) parameters of q(theta), a Dirichlet
    bound : (bags,) E_q[log p(bag, theta, z)] - E_q[log q(theta, z)]
    seen : (topics, features) expected counts of features drawn from each topic
    """

    gamma: Array
    bound: Array
    seen: Array


class LDA(BagDensity):
    """Learns topics by variational EM, and gives a bound on the likelihood of each bag.

    The topics are single best estimates with pseudocounts, as a grid's cells are. It goes into `GridClassifier`
    like a grid does. All bags are worked on at once, which for bags of images is some ten times as fast as
    scikit-learn's bag after bag.

    Parameters
    ----------
    n_components : topics
    alpha : pseudocounts of each topic in a bag; None takes 1 / n_components
    eta : pseudocounts of each feature in a topic; "auto" takes them along the mean histogram, in total a fifth of the
        tokens that a topic receives
    max_iter : iterations at the most
    tol : change of the objective per token below which learning ends
    random_state : seed of the topics to start from

    Attributes
    ----------
    topics_ : (topics, features) the features of each topic, rows sum to one
    alpha_ : the pseudocounts in use
    history_ : the objective per token, bounds plus log prior of the topics, before each iteration's M step
    n_iter_ : iterations made

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import LDA
    >>> X = np.random.default_rng(0).multinomial(50, [.5, .3, .2], 20)
    >>> LDA(2, random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float | None = None,
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

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the topics."""
        X = checked_counts(self, X, is_fitting=True)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        check_whole(self, "n_components", "max_iter")
        check_eta(self.eta)
        self.alpha_ = 1 / self.n_components if self.alpha is None else self.alpha
        totals = np.asarray(X.T @ weights).ravel()
        eta = pseudocounts(self.eta, totals, self.n_components)
        rng = check_random_state(self.random_state)
        topics = rng.gamma(1.0, size=(self.n_components, X.shape[1])) * (totals + eta + SMALLEST)
        self.topics_ = topics / topics.sum(axis=1, keepdims=True)
        self.history_: list[float] = []
        gamma, last = None, -np.inf
        for number in range(1, self.max_iter + 1):
            self.n_iter_ = number
            gamma, bound, seen = self._e_step(X, gamma, weights, max_iter=10)  # it goes on where it was
            objective = float(bound @ weights + (np.log(np.maximum(self.topics_, SMALLEST)) @ eta).sum())
            self.history_.append(objective / max(totals.sum(), 1.0))
            if self.history_[-1] - last < self.tol:
                break
            last = self.history_[-1]
            topics = seen + eta
            self.topics_ = topics / np.maximum(topics.sum(axis=1, keepdims=True), SMALLEST)
        return self

    def transform(self, X: Any) -> Array:
        """Give the expected share of each topic in each bag, (bags, topics)."""
        gamma = self._posterior(X).gamma
        return gamma / gamma.sum(axis=1, keepdims=True)

    def score_samples(self, X: Any) -> Array:
        """Give the bound on log p(bag), (bags,), without the multinomial coefficient."""
        return self._posterior(X).bound

    def _posterior(self, X: Any) -> Posterior:
        check_is_fitted(self)
        X = checked_counts(self, X, is_fitting=False)
        return self._e_step(X, None, np.ones(X.shape[0]), max_iter=200)

    def _e_step(self, X: Any, gamma: Array | None, weights: Array, max_iter: int) -> Posterior:
        """Improve q(theta) of every bag, from a given one or an even one, until it stands still."""
        tokens = np.asarray(X.sum(axis=1)).reshape(-1, 1)
        if gamma is None:
            gamma = np.repeat(self.alpha_ + tokens / self.n_components, self.n_components, axis=1)
        for _ in range(max_iter):
            theta = np.exp(_expected_logs(gamma))
            # q(z) at its best for this q(theta) shares each count out among the topics in proportion to theta * topics.
            better = self.alpha_ + theta * (_over(X, theta, self.topics_) @ self.topics_.T)
            change = np.abs(better - gamma).sum(axis=1) / (tokens.ravel() + 1)
            gamma = better
            if change.max() < STILL:
                break
        logs = _expected_logs(gamma)
        theta = np.exp(logs)
        ratio = _over(X, theta, self.topics_)
        bound = _log_of(X, theta, self.topics_) + _log_dirichlet(self.alpha_, logs) - _log_dirichlet(gamma, logs)
        seen = self.topics_ * np.asarray((ratio.T @ (theta * weights[:, None])).T)
        return Posterior(gamma, bound, seen)


def _expected_logs(gamma: Array) -> Array:
    return np.asarray(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))


def _expected(X: Any, theta: Array, topics: Array) -> Any:
    """Give what each bag expects of each feature: of those it has, if X is sparse."""
    if not sp.issparse(X):
        return np.maximum(theta @ topics, SMALLEST)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.maximum(np.einsum("nk,nk->n", theta[rows], topics.T[X.indices]), SMALLEST)


def _over(X: Any, theta: Array, topics: Array) -> Any:
    """Divide counts by what is expected."""
    expected = _expected(X, theta, topics)
    return sp.csr_array((X.data / expected, X.indices, X.indptr), X.shape) if sp.issparse(X) else X / expected


def _log_of(X: Any, theta: Array, topics: Array) -> Array:
    """Add up the logarithms of what is expected over the tokens of each bag."""
    logs = np.log(_expected(X, theta, topics))
    logs = sp.csr_array((X.data * logs, X.indices, X.indptr), X.shape) if sp.issparse(X) else X * logs
    return np.asarray(logs.sum(axis=1)).ravel()


def _log_dirichlet(parameters: Any, logs: Array) -> Any:
    """Average the log density of a Dirichlet over q(theta), given the expected log theta."""
    parameters = np.broadcast_to(parameters, logs.shape)
    constant = gammaln(parameters.sum(axis=1)) - gammaln(parameters).sum(axis=1)
    return constant + ((parameters - 1) * logs).sum(axis=1)
