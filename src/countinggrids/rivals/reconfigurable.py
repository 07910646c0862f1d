"""Reconfigurable bags of words: each region of an image picks one of the region models of its class."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from countinggrids.rivals.options import (
    check_above,
    check_eta,
    check_whole,
    checked_counts,
    features_of,
    pseudocounts,
)

Array = NDArray[np.float64]
SMALLEST = 1e-100  # of a probability that is taken the logarithm of


class _Parts(NamedTuple):
    """What EM improves: region models, (models, features), and each region's prior over them, (regions, models)."""

    models: Array
    prior: Array


class ReconfigurableBags(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns region models, such as sky and grass, and where in the image each is to be expected.

    Every section of a bag, a region, is drawn from one region model; which one is latent, and has a prior of
    its own in each region:

        log p(bag) = sum over regions r of  log sum over models k of  prior[r, k] exp(counts[r] . log models[k])

    This is the generative variant that the paper compares with. It goes into `GridClassifier` like a grid does.

    Parameters
    ----------
    n_components : region models
    sections : regions of X along each axis
    alpha : pseudocounts of each region model in each region
    eta : pseudocounts of each feature in a region model; "auto" takes them along the mean histogram, in total a fifth
        of the tokens that a region model receives
    max_iter : iterations at the most
    tol : gain of the objective per token below which learning ends
    n_init : restarts, of which the best is kept
    random_state : seed of the region models to start from

    Attributes
    ----------
    models_ : (models, features) the features of each region model, rows sum to one
    prior_ : (regions, models) how likely each region model is in each region, rows sum to one
    history_ : the objective per token, log-likelihood plus log prior, before each iteration's M step; never falls
    n_iter_ : iterations made

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import ReconfigurableBags
    >>> X = np.random.default_rng(0).multinomial(50, [.4, .1, .1, .4], 20)
    >>> ReconfigurableBags(2, sections=(2, 1), random_state=0).fit(X).prior_.round(1).max(axis=1).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        n_components: int = 8,
        sections: Sequence[int] = (4, 4),
        *,
        alpha: float = 1.0,
        eta: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        n_init: int = 1,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.sections = sections
        self.alpha = alpha
        self.eta = eta
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the region models and their priors."""
        X = checked_counts(self, X, is_fitting=True)
        check_whole(self, "n_components", "max_iter", "n_init")
        check_above(self, "alpha")
        check_eta(self.eta)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        regions = self._regions(X)
        rng = check_random_state(self.random_state)
        runs = [self._learnt(regions, weights, rng) for _ in range(self.n_init)]
        parts, self.history_ = max(runs, key=lambda run: run[1][-1])
        self.models_, self.prior_ = parts
        self.n_iter_ = len(self.history_)
        return self

    def transform(self, X: Any) -> Array:
        """Give the posterior of each region model in each region, (bags, regions * models)."""
        joint = self._joint(X)
        return np.exp(joint - logsumexp(joint, axis=2, keepdims=True)).reshape(len(joint), -1)

    def score_samples(self, X: Any) -> Array:
        """Give log p(bag), (bags,), without the multinomial coefficients."""
        return np.asarray(logsumexp(self._joint(X), axis=2).sum(axis=1))

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean log-likelihood."""
        return float(self.score_samples(X).mean())

    def _learnt(self, regions: Any, weights: Array, rng: Any) -> tuple[_Parts, list[float]]:
        """Run EM once; give what it ends with, and the objective along the way."""
        n_regions = regions.shape[0] // len(weights)
        per_row = np.repeat(weights, n_regions)[:, None]
        totals = np.asarray(regions.T @ per_row).ravel()
        eta = pseudocounts(self.eta, totals, self.n_components)
        parts, history = self._start(totals + eta, n_regions, rng), []
        for _ in range(self.max_iter):
            joint = _log_joint(regions, parts)
            found = logsumexp(joint, axis=2, keepdims=True)
            priors = (_log(parts.models) @ eta).sum() + self.alpha * _log(parts.prior).sum()
            history.append(float(found[..., 0].sum(axis=1) @ weights + priors) / max(totals.sum(), 1.0))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                break
            q = np.exp(joint - found) * weights[:, None, None]
            seen = np.asarray(regions.T @ q.reshape(-1, self.n_components)).T
            parts = _Parts(_shares(seen + eta), _shares(q.sum(axis=0) + self.alpha))
        return parts, history

    def _start(self, along: Array, n_regions: int, rng: Any) -> _Parts:
        """Give region models a little off the mean histogram, and even priors."""
        noise = rng.gamma(1.0, size=(self.n_components, len(along)))
        even = np.full((n_regions, self.n_components), 1 / self.n_components)
        return _Parts(_shares(noise * (along + SMALLEST)), even)

    def _joint(self, X: Any) -> Array:
        check_is_fitted(self)
        regions = self._regions(checked_counts(self, X, is_fitting=False))
        return _log_joint(regions, _Parts(self.models_, self.prior_))

    def _regions(self, X: Any) -> Any:
        """Give each region a row of its own, (bags * regions, features)."""
        parts, n_features = features_of(X.shape[1], self.sections)
        shape = (X.shape[0] * prod(parts), n_features)
        return sp.csr_array(X.reshape(shape)) if sp.issparse(X) else X.reshape(shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _log_joint(regions: Any, parts: _Parts) -> Array:
    """Give log p(counts of a region, its region model), (bags, regions, models)."""
    matched = np.asarray(regions @ _log(parts.models).T)
    return matched.reshape(-1, *parts.prior.shape) + _log(parts.prior)


def _log(shares: Array) -> Array:
    return np.log(np.maximum(shares, SMALLEST))


def _shares(values: Array) -> Array:
    return values / np.maximum(values.sum(axis=1, keepdims=True), SMALLEST)
