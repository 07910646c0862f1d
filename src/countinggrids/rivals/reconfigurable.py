"""Reconfigurable bags of words: each region of an image picks one of the region models of its class."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.rivals.density import LatentBags, Parts, log, noisy, normalised
from countinggrids.rivals.options import check_above, features_of, pseudocounts

Array = NDArray[np.float64]


class ReconfigurableBags(LatentBags):
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

    @property
    def models_(self) -> Array:
        return self.parts_.components

    @property
    def prior_(self) -> Array:
        return self.parts_.shares

    def _check_options(self, X: Any) -> None:
        super()._check_options(X)
        check_above(self, "alpha")
        features_of(X.shape[1], self.sections)

    def _pseudocounts(self, X: Any, weights: Array) -> Array:
        return pseudocounts(self.eta, self._totals(X, weights), self.n_components)

    def _start(self, X: Any, weights: Array, rng: Any) -> Parts:
        """Give region models a little off the mean histogram, and even priors."""
        totals = self._totals(X, weights)
        even = np.full((X.shape[1] // len(totals), self.n_components), 1 / self.n_components)
        return Parts(noisy(totals, self.n_components, rng), even)

    def _log_prior(self, parts: Parts, eta: Array) -> float:
        return float((log(parts.components) @ eta).sum() + self.alpha * log(parts.shares).sum())

    def _log_joint(self, X: Any, parts: Parts) -> Array:
        matched = np.asarray(self._regions(X) @ log(parts.components).T)
        return matched.reshape(-1, *parts.shares.shape) + log(parts.shares)

    def _m_step(self, X: Any, q: Array, parts: Parts, eta: Array) -> Parts:
        seen = np.asarray(self._regions(X).T @ q.reshape(-1, self.n_components)).T
        return Parts(normalised(seen + eta), normalised(q.sum(axis=0) + self.alpha))

    def _totals(self, X: Any, weights: Array) -> Array:
        """Count each feature in all regions of all bags, (features,)."""
        _, n_features = features_of(X.shape[1], self.sections)
        return np.asarray(X.T @ weights).reshape(-1, n_features).sum(axis=0)

    def _regions(self, X: Any) -> Any:
        """Give each region a row of its own, (bags * regions, features)."""
        parts, n_features = features_of(X.shape[1], self.sections)
        shape = (X.shape[0] * prod(parts), n_features)
        return sp.csr_array(X.reshape(shape)) if sp.issparse(X) else X.reshape(shape)
