"""Reconfigurable bags of words: each region of an image is drawn from one of the region models of its class."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.baselines.density import LatentBags, Parts, log, noisy, normalized
from countinggrids.baselines.validation import features_of, pseudocounts
from countinggrids.meta.options import check_positive

Array = NDArray[np.float64]


class ReconfigurableBags(LatentBags):
    """Fit region models, such as sky and grass, and their prior in each region of the image.

    Every section of a bag, a region, is drawn from one latent region model, with a prior for each region:

        log p(bag) = sum over regions r of  log sum over models k of  prior[r, k] exp(counts[r] . log models[k])

    This is the generative variant that the paper compares with. It can be used in `GridClassifier`.

    Parameters
    ----------
    n_components : int, default=8
        Number of region models.
    sections : tuple of int, default=(4, 4)
        Regions of X along each axis.
    alpha : float, default=1.0
        Pseudocounts of each region model in each region.
    eta : {"auto"} or float, default="auto"
        Pseudocounts of each feature in a region model. "auto" is proportional to the mean histogram, in total a fifth
        of the tokens that a region model receives.
    max_iter : int, default=200
        Largest number of EM iterations.
    tol : float, default=1e-5
        Gain of the objective per token below which EM stops.
    n_init : int, default=1
        Number of restarts, of which the best is kept.
    random_state : int, RandomState or None, default=None
        Seed of the first region models.

    Attributes
    ----------
    models_ : ndarray of shape (n_components, n_features)
        Distribution over features of each region model.
    prior_ : ndarray of shape (n_regions, n_components)
        Probability of each region model in each region.
    history_ : list of float
        Log-likelihood plus log prior per token before the M step of each iteration; never falls.
    n_iter_ : int
        Number of EM iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import ReconfigurableBags
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
        return self.parts_.weights

    def _check_options(self, X: Any) -> None:
        super()._check_options(X)
        check_positive(self, "alpha")
        features_of(X.shape[1], self.sections)

    def _pseudocounts(self, X: Any, weights: Array) -> Array:
        return pseudocounts(self.eta, self._totals(X, weights), self.n_components)

    def _start(self, X: Any, weights: Array, rng: Any) -> Parts:
        """Return region models around the mean histogram, and uniform priors."""
        totals = self._totals(X, weights)
        even = np.full((X.shape[1] // len(totals), self.n_components), 1 / self.n_components)
        return Parts(noisy(totals, self.n_components, rng), even)

    def _log_prior(self, parts: Parts, eta: Array) -> float:
        return float((log(parts.components) @ eta).sum() + self.alpha * log(parts.weights).sum())

    def _log_joint(self, X: Any, parts: Parts) -> Array:
        matched = np.asarray(_regions(X, parts) @ log(parts.components).T)
        return matched.reshape(-1, *parts.weights.shape) + log(parts.weights)

    def _m_step(self, X: Any, q: Array, parts: Parts, eta: Array) -> Parts:
        seen = np.asarray(_regions(X, parts).T @ q.reshape(-1, self.n_components)).T
        return Parts(normalized(seen + eta), normalized(q.sum(axis=0) + self.alpha))

    def _totals(self, X: Any, weights: Array) -> Array:
        """Count each feature in all regions of all bags, (features,)."""
        _, n_features = features_of(X.shape[1], self.sections)
        return np.asarray(X.T @ weights).reshape(-1, n_features).sum(axis=0)


def _regions(X: Any, parts: Parts) -> Any:
    """Reshape bags so that each region is a row, (bags * regions, features)."""
    n_features = parts.components.shape[1]
    shape = (X.shape[0] * (X.shape[1] // n_features), n_features)
    return sp.csr_array(X.reshape(shape)) if sp.issparse(X) else X.reshape(shape)
