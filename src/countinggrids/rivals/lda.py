"""Latent Dirichlet allocation: a bag is an admixture of topics."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.utils.validation import check_is_fitted, validate_data

Array = NDArray[np.float64]


class LDA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns topics with scikit-learn, and gives a bound on the likelihood of each bag.

    The topics are learnt by variational EM. A bag is then scored with the topics at their posterior means: the
    bound is E_q[log p(bag, theta, z)] - E_q[log q(theta, z)] at the best factorised q that was found. It goes into
    `GridClassifier` like a grid does.

    Parameters
    ----------
    n_components : topics
    alpha : pseudocounts of each topic in a bag; None takes 1 / n_components
    eta : pseudocounts of each feature in a topic; None takes 1 / n_components
    max_iter : passes over the bags
    random_state : seed of the topics to start from

    Attributes
    ----------
    topics_ : (topics, features) the features of each topic, rows sum to one
    model_ : scikit-learn's model
    n_iter_ : passes made

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
        eta: float | None = None,
        max_iter: int = 30,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.eta = eta
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the topics."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_non_negative=True)
        self.model_ = LatentDirichletAllocation(
            self.n_components,
            doc_topic_prior=self.alpha,
            topic_word_prior=self.eta,
            max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(X)
        self.n_iter_ = self.model_.n_iter_
        self.topics_ = self.model_.components_ / self.model_.components_.sum(axis=1, keepdims=True)
        return self

    def transform(self, X: Any) -> Array:
        """Give the expected share of each topic in each bag, (bags, topics)."""
        gamma = self._gamma(self._bags(X))
        return gamma / gamma.sum(axis=1, keepdims=True)

    def score_samples(self, X: Any) -> Array:
        """Give the bound on log p(bag), (bags,), without the multinomial coefficient."""
        X = self._bags(X)
        gamma, alpha = self._gamma(X), self.model_.doc_topic_prior_
        log_theta = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
        # q(z) at its best for this q(theta) leaves one logarithm for each feature.
        log_features = np.log(np.exp(log_theta) @ self.topics_)
        tokens = np.asarray((X * log_features).sum(axis=1)).ravel()
        return tokens + _log_dirichlet(alpha, log_theta) - _log_dirichlet(gamma, log_theta)

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean bound."""
        return float(self.score_samples(X).mean())

    def _bags(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_non_negative=True, reset=False)

    def _gamma(self, X: Any) -> Array:
        """Give the parameters of q(theta), (bags, topics): they add up to the prior's and the bag's tokens."""
        total = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        total += self.n_components * self.model_.doc_topic_prior_
        return np.asarray(self.model_.transform(X) * total[:, None])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _log_dirichlet(parameters: Any, log_theta: Array) -> Any:
    """Average the log density of a Dirichlet, given the expected log theta, over each bag."""
    parameters = np.broadcast_to(parameters, log_theta.shape)
    constant = gammaln(parameters.sum(axis=1)) - gammaln(parameters).sum(axis=1)
    return constant + ((parameters - 1) * log_theta).sum(axis=1)
