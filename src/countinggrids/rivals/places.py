"""Torralba's places: a Gaussian mixture a place over descriptors of whole images, and a chain of places."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from countinggrids.rivals.options import check_above, check_whole
from countinggrids.uses import GridClassifier, PlaceTracker

SMALLEST = 1e-12  # of a variance


class Views(BaseEstimator):  # type: ignore[misc]
    """Learns the views of one place: a mixture of round Gaussians, which few images cannot break.

    It is scikit-learn's mixture, with at the most one component for every two different images, and variances that
    cannot vanish. It goes into `GridClassifier` like a grid does.

    Parameters
    ----------
    n_components : views of the place, at the most
    floor : the smallest variance of a view, as a share of the mean variance of the images
    random_state : seed of the mixture

    Attributes
    ----------
    mixture_ : the fitted `GaussianMixture`

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import Views
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> Views(2, random_state=0).fit(X).score_samples(X).shape
    (20,)
    """

    def __init__(self, n_components: int = 10, *, floor: float = 0.2, random_state: Any = None):
        self.n_components = n_components
        self.floor = floor
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the views."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_whole(self, "n_components")
        check_above(self, "floor")
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
        """Give the log density of each image, (images,)."""
        check_is_fitted(self)
        return self.mixture_.score_samples(validate_data(self, X, dtype=np.float64, reset=False))

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean log density."""
        return float(self.score_samples(X).mean())


def gist_places(
    n_components: int = 10, n_directions: int = 80, *, random_state: Any = None, **options: Any
) -> PlaceTracker:
    """Make Torralba's tracker: principal directions of descriptors, `Views` of each place, and a chain of places.

    Parameters
    ----------
    n_components : views of each place, at the most
    n_directions : principal directions that are kept of the descriptors
    random_state : seed of the mixtures
    options : those of `PlaceTracker`

    Returns
    -------
    A tracker for tables of descriptors, such as `countinggrids.features.Gist` makes.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.rivals import gist_places
    >>> frames = np.random.default_rng(0).standard_normal((40, 6)) + np.repeat([[0], [5]], 20, axis=0)
    >>> tracker = gist_places(2, 3, random_state=0, gamma=1.0).fit(frames, np.repeat(["hall", "stairs"], 20))
    >>> tracker.predict(frames[15:25]).tolist() == ["hall"] * 5 + ["stairs"] * 5
    True
    """
    places = GridClassifier(Views(n_components), random_state=random_state)
    return PlaceTracker(make_pipeline(PCA(n_directions, random_state=random_state), places), **options)
