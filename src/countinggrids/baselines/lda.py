"""Latent Dirichlet allocation: a bag is an admixture of topics, fitted by variational Bayes."""

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, psi
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.density import SMALLEST, BagDensity
from countinggrids.baselines.validation import check_eta, checked_weights
from countinggrids.core.fitting import check_finite, whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.options import check_integer, check_positive

Array = NDArray[np.float64]
Q_TOL = 1e-4
"""Change of q(theta) of a bag, per token, below which it has converged."""
RANGE = (1e-3, 1e3)
"""Range of pseudocounts that are fitted."""


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


class Start(NamedTuple):
    """Where a restart begins.

    Attributes
    ----------
    shape : float
        Shape of the gamma noise of the first topics.
    pseudocount : float or None
        First pseudocounts, where they are fitted; None is 1 / n_components.
    n_held : int
        Iterations in which that of topics in a bag is held.
    """

    shape: float
    pseudocount: float | None
    n_held: int


STARTS = (Start(1.0, None, 0), Start(1.0, 0.5, 50), Start(100.0, None, 0), Start(100.0, 1.0, 20))
"""Starts of restarts, in turn. Which is best depends on how many topics a bag has: where they are many, a large
pseudocount must be held until the topics have formed."""


class Priors(NamedTuple):
    """Pseudocounts: alpha of each topic in a bag, eta of each feature in a topic."""

    alpha: float
    eta: float


class LDA(BagDensity):
    """Fit topics by variational Bayes, and bound the likelihood of each bag.

    Topics and the proportions of every bag have Dirichlet posteriors, and the pseudocounts of both maximize the
    evidence lower bound. It can be used in `GridClassifier`, unlike scikit-learn's, which has no bound for each bag.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics.
    alpha : {"auto"} or float, default="auto"
        Pseudocounts of each topic in a bag. "auto" maximizes the bound.
    eta : {"auto"} or float, default="auto"
        Pseudocounts of each feature in a topic. "auto" maximizes the bound.
    max_iter : int, default=200
        Largest number of EM iterations.
    tol : float, default=1e-5
        Gain of the bound per token below which EM stops.
    n_init : int, default=4
        Number of restarts, of which the one with the best bound is kept. They differ in the first topics and
        pseudocounts.
    random_state : int, RandomState or None, default=None
        Seed of the first topics.

    Attributes
    ----------
    topics_ : ndarray of shape (n_topics, n_features)
        Distribution over features of each topic, the mean of its posterior.
    alpha_ : float
        Pseudocounts of each topic in a bag.
    eta_ : float
        Pseudocounts of each feature in a topic.
    history_ : list of float
        Evidence lower bound per token, before the topics are updated in each iteration; never falls.
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
        n_init: int = 4,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.eta = eta
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
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
        check_integer(self, "n_components", "max_iter", "n_init")
        check_eta(self.eta)
        if not _is_auto(self.alpha):
            check_positive(self, "alpha")
        rng = check_random_state(self.random_state)
        runs = [self._run_em(X, weights, rng, STARTS[i % len(STARTS)]) for i in range(self.n_init)]
        topics, (self.alpha_, self.eta_), self.history_ = max(runs, key=lambda run: run[-1][-1])
        self.topics_ = topics / topics.sum(axis=1, keepdims=True)
        self.n_iter_ = len(self.history_)
        return self

    def _run_em(self, X: Any, weights: Array, rng: Any, start: Start) -> tuple[Array, Priors, list[float]]:
        """Run variational EM once; return the parameters of q(topics), the pseudocounts, and the bound's history."""
        totals = np.asarray(X.T @ weights).ravel()
        first = start.pseudocount or 1 / self.n_components
        priors = Priors(*(first if _is_auto(each) else max(float(each), SMALLEST) for each in (self.alpha, self.eta)))
        noise = rng.gamma(start.shape, 1 / start.shape, (self.n_components, X.shape[1]))
        topics = noise * totals / self.n_components + priors.eta
        gamma, history = None, list[float]()
        for number in range(1, self.max_iter + 1):
            logs = _expected_logs(topics)
            gamma, bound, counts = _e_step(X, np.exp(logs), priors.alpha, gamma, weights, max_iter=10)
            of_topics = (_log_dirichlet(priors.eta, logs) - _log_dirichlet(topics, logs)).sum()
            history.append(float(bound @ weights + of_topics) / max(totals.sum(), 1.0))
            check_finite(history[-1], number)
            is_held = _is_auto(self.alpha) and number <= start.n_held
            if number > 1 and not is_held and history[-1] - history[-2] < self.tol:
                break
            topics = counts + priors.eta
            priors = Priors(
                _best_pseudocount(gamma, weights) if _is_auto(self.alpha) and not is_held else priors.alpha,
                _best_pseudocount(topics, np.ones(len(topics))) if _is_auto(self.eta) else priors.eta,
            )
        return topics, priors, history

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
        return _e_step(X, self.topics_, self.alpha_, None, np.ones(X.shape[0]), max_iter=200)


def _e_step(X: Any, topics: Array, alpha: float, gamma: Array | None, weights: Array, max_iter: int) -> Posterior:
    """Update q(theta) of every bag until it converges, from a given one or a uniform one."""
    tokens = np.asarray(X.sum(axis=1)).reshape(-1, 1)
    if gamma is None:
        n_topics = len(topics)
        gamma = np.repeat(alpha + tokens / n_topics, n_topics, axis=1)
    for _ in range(max_iter):
        theta = np.exp(_expected_logs(gamma))
        # The optimal q(z) for this q(theta) divides each count among topics in proportion to theta * topics.
        updated = alpha + theta * (_over(X, theta, topics) @ topics.T)
        change = np.abs(updated - gamma).sum(axis=1) / (tokens.ravel() + 1)
        gamma = updated
        if change.max() < Q_TOL:
            break
    logs = _expected_logs(gamma)
    theta = np.exp(logs)
    ratio = _over(X, theta, topics)
    bound = _log_of(X, theta, topics) + _log_dirichlet(alpha, logs) - _log_dirichlet(gamma, logs)
    counts = topics * np.asarray((ratio.T @ (theta * weights[:, None])).T)
    return Posterior(gamma, bound, counts)


def _is_auto(value: float | str) -> bool:
    return isinstance(value, str) and value == "auto"


def _expected_logs(gamma: Array) -> Array:
    return np.asarray(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))


def _best_pseudocount(posteriors: Array, weights: Array) -> float:
    """Return the parameter of a symmetric Dirichlet prior that maximizes the bound, given Dirichlet posteriors."""
    n, total = posteriors.shape[1], weights.sum()
    logs = float(weights @ _expected_logs(posteriors).sum(axis=1))

    def slope(log_pseudocount: float) -> float:
        pseudocount = np.exp(log_pseudocount)
        return float(total * n * (psi(n * pseudocount) - psi(pseudocount)) + logs)

    low, high = np.log(RANGE)
    if slope(low) <= 0 or slope(high) >= 0:
        return RANGE[0] if slope(low) <= 0 else RANGE[1]
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
