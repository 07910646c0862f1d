"""Classification by nearest neighbors on the torus, with a grid that is fitted without labels."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import torus
from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.data import validation
from countinggrids.features.saving import Saveable, check_array, check_labels
from countinggrids.meta.nested import fitted_grid
from countinggrids.meta.options import check_choice, check_integer

Array = NDArray[Any]
BLOCK = 2**22
"""Distances that are held at a time."""


class GridNeighbors(Saveable, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Map all bags to one grid without labels, and classify new bags by their nearest neighbors there.

    The location of a bag is its most likely window. Distances are measured in cells on the torus.

    Parameters
    ----------
    estimator : estimator, default=None
        The grid; a fitted one is used as it is, otherwise a clone is fitted. None stands for `CountingGrid()`.
    n_neighbors : int, default=1
        Number of training bags that vote; of equally distant ones the earlier are taken first.
    weights : {"uniform", "distance"}, default="uniform"
        Weights of the votes; "distance" weights them by 1 / (1 + distance).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    model_ : estimator
        The fitted grid.
    locations_ : ndarray of shape (n_bags, n_axes)
        Locations of the training bags.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.

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

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the grid without labels, and keep the location of each label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,)
            Labels.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y = validation.check_table(self, X, is_fitting=True, y=y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        check_integer(self, "n_neighbors", example=5)
        check_choice(self, "weights", ("uniform", "distance"))
        self.classes_, self.labels_ = np.unique(np.asarray(y), return_inverse=True)
        self.model_ = fitted_grid(self.estimator, X)
        self.locations_ = self.model_.locate(X)
        self.settings_ = settings_of(self, "n_neighbors", "weights")
        return self

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[Array, Array]:
        """Return the nearest training bags of each bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        n_neighbors : int, default=None
            Number of neighbors; None takes that of the fit.

        Returns
        -------
        distances : ndarray of shape (n_bags, n_neighbors)
            Distances in cells.
        indices : ndarray of shape (n_bags, n_neighbors)
            Indices of the training bags.
        """
        check_is_fitted(self)
        X = validation.check_table(self, X, is_fitting=False)
        n = min(self.settings_.n_neighbors if n_neighbors is None else n_neighbors, len(self.locations_))
        if n < 1:
            raise ValueError(f"n_neighbors={n_neighbors} must be an integer of at least 1; use n_neighbors=5.")
        locations = self.model_.locate(X)
        step = max(1, BLOCK // len(self.locations_))
        parts = [self._nearest(locations[i : i + step], n) for i in range(0, len(locations), step)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def predict_proba(self, X: Any) -> Array:
        """Return the fraction of the votes for each label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        return self._vote(*self.kneighbors(X))

    def _vote(self, distances: Array, indices: Array) -> Array:
        weights = np.ones_like(distances) if self.settings_.weights == "uniform" else 1 / (1 + distances)
        votes = np.zeros((len(indices), len(self.classes_)))
        np.add.at(votes, (np.arange(len(indices))[:, None], self.labels_[indices]), weights)
        return votes / votes.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Array:
        """Return the label that most neighbors have; of tied labels, that of the nearest neighbor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        labels : ndarray of shape (n_bags,)
            Predicted labels.
        """
        distances, indices = self.kneighbors(X)
        votes, labels, rows = self._vote(distances, indices), self.labels_[indices], np.arange(len(indices))
        is_winner = votes[rows[:, None], labels] >= votes.max(axis=1, keepdims=True) - 1e-12
        return self.classes_[labels[rows, is_winner.argmax(axis=1)]]

    def _nearest(self, locations: Array, n: int) -> tuple[Array, Array]:
        grid = self.model_.geometry_.grid
        squared = (torus.displacement(locations[:, None], self.locations_, grid) ** 2).sum(axis=2)
        order = np.argsort(squared, axis=1, kind="stable")[:, :n]
        return np.sqrt(np.take_along_axis(squared, order, axis=1)), order

    def _restored(self) -> None:
        n, n_axes = check_labels(self), len(self.model_.geometry_.grid)
        locations = check_array(self, "locations_", "iu", (None, n_axes))
        labels = check_array(self, "labels_", "iu", (len(locations),))
        if not 0 <= labels.min() <= labels.max() < n:
            raise ValueError(f"labels_ are from {labels.min()} to {labels.max()}, and there are {n}")
        check_integer(self.settings_, "n_neighbors")
        check_choice(self.settings_, "weights", ("uniform", "distance"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags
