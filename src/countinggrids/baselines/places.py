"""Torralba's place recognition: a Gaussian mixture of Gist descriptors for each place, and a chain of places."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from countinggrids.baselines.validation import checked_images
from countinggrids.core.fitting import whole_or_nothing
from countinggrids.meta import GridClassifier, PlaceTracker
from countinggrids.meta.options import check_integer, check_positive

SMALLEST = 1e-12
"""Smallest variance."""


class Views(BaseEstimator):  # type: ignore[misc]
    """Fit a mixture of spherical Gaussians to the views of one place, robust to few images.

    It is scikit-learn's mixture, with at most one component for every two different images, and a lower bound of the
    variances. It can be used in `GridClassifier`.

    Parameters
    ----------
    n_components : int, default=10
        Largest number of components.
    floor : float, default=0.2
        Smallest variance of a component, as a fraction of the mean variance of the images.
    random_state : int, RandomState or None, default=None
        Seed of the mixture.

    Attributes
    ----------
    mixture_ : GaussianMixture
        The fitted mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import Views
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> Views(2, random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(self, n_components: int = 10, *, floor: float = 0.2, random_state: Any = None):
        self.n_components = n_components
        self.floor = floor
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_images, n_columns)
            Descriptors.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted model.
        """
        X = checked_images(self, X, is_fitting=True)
        check_integer(self, "n_components")
        check_positive(self, "floor")
        n_distinct = len(np.unique(X, axis=0))
        self.mixture_ = GaussianMixture(
            max(1, min(self.n_components, n_distinct // 2)),
            covariance_type="spherical",
            reg_covar=max(self.floor * X.var(axis=0).mean(), SMALLEST),
            max_iter=500,
            random_state=self.random_state,
        ).fit(X)
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log density of each image.

        Parameters
        ----------
        X : array-like of shape (n_images, n_columns)
            Descriptors.

        Returns
        -------
        log_density : ndarray of shape (n_images,)
            Log density of each image.
        """
        check_is_fitted(self)
        return self.mixture_.score_samples(checked_images(self, X, is_fitting=False))

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log density.

        Parameters
        ----------
        X : array-like of shape (n_images, n_columns)
            Descriptors.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())


def gist_places(
    n_components: int = 10, n_directions: int = 80, *, random_state: Any = None, **options: Any
) -> PlaceTracker:
    """Return Torralba's tracker: PCA of descriptors, `Views` of each place, and a Markov chain of places.

    Parameters
    ----------
    n_components : int, default=10
        Largest number of components for each place.
    n_directions : int, default=80
        Number of principal components of the descriptors.
    random_state : int, RandomState or None, default=None
        Seed of the mixtures.
    **options : dict
        Parameters of `PlaceTracker`.

    Returns
    -------
    tracker : PlaceTracker
        A tracker for tables of descriptors, such as `countinggrids.features.Gist` makes.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import gist_places
    >>> frames = np.random.default_rng(0).standard_normal((40, 6)) + np.repeat([[0], [5]], 20, axis=0)
    >>> tracker = gist_places(2, 3, random_state=0, gamma=1.0).fit(frames, np.repeat(["hall", "stairs"], 20))
    >>> tracker.predict(frames[15:25]).tolist() == ["hall"] * 5 + ["stairs"] * 5
    True
    """
    places = GridClassifier(Views(n_components), random_state=random_state)
    return PlaceTracker(make_pipeline(PCA(n_directions, random_state=random_state), places), **options)
