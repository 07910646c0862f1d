"""Labels from neighbours on the torus: learn without labels, then look who lies near."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from countinggrids import torus
from countinggrids.uses.fitted import fitted_grid

Array = NDArray[Any]
BLOCK = 2**22  # distances held at a time


class GridNeighbors(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Maps all bags onto one grid without looking at labels; a new bag takes the label of its neighbours there.

    The place of a bag is its most likely window. Distances are measured in cells, the short way round.

    Parameters
    ----------
    estimator : the grid; one that is fitted is used as it is, otherwise a clone is learnt. None takes `CountingGrid()`
    n_neighbors : how many of the nearest training bags vote; among equally distant ones the earlier count first
    weights : "uniform", or "distance" for votes of 1 / (1 + distance)

    Attributes
    ----------
    classes_ : the labels
    model_ : the fitted grid
    places_ : (training bags, axes) where they lie

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.7, .2, .1], [.1, .2, .7])])
    >>> y = np.repeat(["left", "right"], 20)
    >>> cg.GridNeighbors(cg.CountingGrid((6, 6), (2, 2), random_state=0), n_neighbors=3).fit(X, y).score(X, y)
    1.0
    """

    def __init__(self, estimator: Any = None, *, n_neighbors: int = 1, weights: str = "uniform"):
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.weights = weights

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the grid from X alone, and note where each label lies."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if not isinstance(self.n_neighbors, int | np.integer) or self.n_neighbors < 1:
            raise ValueError(f"n_neighbors is {self.n_neighbors!r}; wanted an integer of at least 1")
        if self.weights not in ("uniform", "distance"):
            raise ValueError(f"weights is {self.weights!r}; wanted 'uniform' or 'distance'")
        self.classes_, self.labels_ = np.unique(np.asarray(y), return_inverse=True)
        self.model_ = fitted_grid(self.estimator, X)
        self.places_ = self.model_.locate(X)
        return self

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[Array, Array]:
        """Give the distances in cells to the nearest training bags, and which they are, (bags, neighbours) each."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        n = min(self.n_neighbors if n_neighbors is None else n_neighbors, len(self.places_))
        if n < 1:
            raise ValueError(f"n_neighbors is {n_neighbors}; wanted an integer of at least 1")
        places = self.model_.locate(X)
        step = max(1, BLOCK // len(self.places_))
        parts = [self._nearest(places[i : i + step], n) for i in range(0, len(places), step)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def predict_proba(self, X: Any) -> Array:
        """Give the share of the votes for each label, (bags, labels)."""
        return self._shares(*self.kneighbors(X))

    def _shares(self, distances: Array, who: Array) -> Array:
        votes = np.ones_like(distances) if self.weights == "uniform" else 1 / (1 + distances)
        shares = np.zeros((len(who), len(self.classes_)))
        np.add.at(shares, (np.arange(len(who))[:, None], self.labels_[who]), votes)
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Array:
        """Give the label that most neighbours have; if labels are tied, that of the nearest of them."""
        distances, who = self.kneighbors(X)
        shares = self._shares(distances, who)
        is_tied = shares[np.arange(len(who))[:, None], self.labels_[who]] >= shares.max(axis=1, keepdims=True) - 1e-12
        return self.classes_[self.labels_[who[np.arange(len(who)), is_tied.argmax(axis=1)]]]

    def _nearest(self, places: Array, n: int) -> tuple[Array, Array]:
        grid = self.model_.pi_.shape[: places.shape[1]]
        squared = (torus.displacement(places[:, None], self.places_, grid) ** 2).sum(axis=2)
        order = np.argsort(squared, axis=1, kind="stable")[:, :n]
        return np.sqrt(np.take_along_axis(squared, order, axis=1)), order

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn tries two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags
