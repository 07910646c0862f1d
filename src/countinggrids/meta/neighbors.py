"""Neighbors on a grid that is fitted without labels: labels, poses, and similarities with reference bags."""

from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from countinggrids.core import torus
from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.data import validation
from countinggrids.features.saving import Saveable, check_array, check_labels
from countinggrids.meta.nested import fitted_grid, innermost, last_step
from countinggrids.meta.options import check_choice, check_integer, check_positive
from countinggrids.meta.posteriors import largest_entries
from countinggrids.meta.targets import read_targets

Array = NDArray[Any]
BLOCK = 2**22
"""Distances that are held at a time."""
METRICS = ("overlap", "likelihood", "cells")
MOST_CELLS, LEAST_POSTERIOR = 256, 1e-5
"""Cells of the posterior of a bag that are kept: their largest number, and their smallest probability."""
SMALLEST = 1e-6
"""Added to the common posterior of two bags before its logarithm."""


class GridNeighbors(Saveable, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Map all bags to one grid without labels, and predict labels or poses of new bags from their neighbors there.

    Neighbors are bags whose posteriors over windows overlap. The same similarities make it a matcher for reference
    walks in `PlaceTracker`.

    Parameters
    ----------
    estimator : estimator, default=None
        The grid, also at the end of a pipeline; a fitted one is used as it is, otherwise a clone is fitted. None stands
        for `CountingGrid()`.
    n_neighbors : int, default=1
        Number of training bags that vote; of equally distant ones the earlier are taken first.
    weights : {"uniform", "distance"}, default="uniform"
        Weights of the votes; "distance" weights them by 1 / (1 + distance).
    metric : {"overlap", "likelihood", "cells"}, default="overlap"
        How bags are compared. "overlap" is the Bhattacharyya coefficient of their posteriors; "likelihood" is the
        logarithm of the sum of their product, the likelihood of a bag under the windows of another one up to a
        constant; "cells" is the distance of their best cells on the torus.
    gamma : float, default=1.0
        Power of the likelihoods in posteriors; less than 1 keeps windows that are nearly as good as the best one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; the numbers of the bags if there are poses.
    poses_ : ndarray of shape (n_bags, n_coordinates) or None
        Poses of the training bags.
    model_ : estimator
        The fitted grid.
    locations_ : ndarray of shape (n_bags, n_axes)
        Locations of the training bags.
    posteriors_ : csr_array of shape (n_bags, n_cells)
        The largest posterior probabilities of the training bags; their square roots for "overlap".
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

    _kept = ("n_neighbors", "weights", "metric", "gamma")

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_neighbors: int = 1,
        weights: str = "uniform",
        metric: str = "overlap",
        gamma: float = 1.0,
    ):
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.gamma = gamma

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the grid without labels, and keep where each bag is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,) or (n_bags, n_coordinates)
            Labels, or poses.
        sample_weight : array-like of shape (n_bags,), default=None
            Weights of the bags, for the grid and as factors of their votes.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None; pass labels or poses.")
        targets = read_targets(y, _num_samples(X))
        X = validation.check_table(self, X, is_fitting=True)
        check_integer(self, "n_neighbors", example=5)
        check_choice(self, "weights", ("uniform", "distance"))
        check_choice(self, "metric", METRICS)
        check_positive(self, "gamma", example=0.3)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.classes_, self.labels_ = np.unique(targets.labels, return_inverse=True)
        self.poses_ = targets.poses
        self.sample_weight_ = np.ones(X.shape[0]) if weights is None else weights
        self.model_ = fitted_grid(self.estimator, X, weights)
        self.settings_ = settings_of(self, *self._kept)
        model, inner = last_step(self.model_, X)
        self.locations_ = model.locate(inner)
        self.posteriors_ = self._posteriors(X)
        return self

    def similarity(self, X: Any) -> Array:
        """Return the similarity of each bag with each training bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        similarity : ndarray of shape (n_bags, n_training_bags)
            Overlaps from 0 to 1, log-likelihoods, or minus distances in cells; larger is more alike.
        """
        check_is_fitted(self)
        X = validation.check_table(self, X, is_fitting=False)
        if self.settings_.metric == "cells":
            model, X = last_step(self.model_, X)
            return -self._cell_distances(model.locate(X))
        return self._compared(self._posteriors(X))

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
            Distances: Hellinger distances of posteriors, minus log-likelihoods, or distances in cells.
        indices : ndarray of shape (n_bags, n_neighbors)
            Indices of the training bags.
        """
        check_is_fitted(self)
        X = validation.check_table(self, X, is_fitting=False)
        n = min(self.settings_.n_neighbors if n_neighbors is None else n_neighbors, len(self.locations_))
        if n < 1:
            raise ValueError(f"n_neighbors={n_neighbors} must be an integer of at least 1; use n_neighbors=5.")
        step = max(1, BLOCK // len(self.locations_))
        parts = [self._nearest(X[i : i + step], n) for i in range(0, X.shape[0], step)]
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
        return self._shares(*self.kneighbors(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`; minus infinity where no neighbor has the label.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the label that most neighbors have, or the mean of their poses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        labels : ndarray of shape (n_bags,) or (n_bags, n_coordinates)
            Predicted labels, of tied ones that of the nearest neighbor; or weighted means of poses.
        """
        distances, indices = self.kneighbors(X)
        if self.poses_ is not None:
            weights = self._votes(distances, indices)
            return np.einsum("tn,tnc->tc", weights, self.poses_[indices]) / weights.sum(axis=1, keepdims=True)
        votes, labels, rows = self._shares(distances, indices), self.labels_[indices], np.arange(len(indices))
        is_winner = votes[rows[:, None], labels] >= votes.max(axis=1, keepdims=True) - 1e-12
        return self.classes_[labels[rows, is_winner.argmax(axis=1)]]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of `predict`, or minus the mean distance of poses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,) or (n_bags, n_coordinates)
            Labels, or poses.
        sample_weight : array-like of shape (n_bags,), default=None
            Weights of the bags.

        Returns
        -------
        score : float
            Accuracy; with poses, minus the mean Euclidean distance.
        """
        if self.poses_ is None:
            return float(super().score(X, y, sample_weight))
        away = np.linalg.norm(self.predict(X) - np.asarray(y), axis=1)
        weights = np.ones(len(away)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float(np.average(away, weights=weights))

    def _restored(self) -> None:
        geometry = innermost(self.model_).geometry_
        n = check_labels(self)
        locations = check_array(self, "locations_", "iu", (None, len(geometry.grid)))
        labels = check_array(self, "labels_", "iu", (len(locations),))
        if not 0 <= labels.min() <= labels.max() < n:
            raise ValueError(f"labels_ are from {labels.min()} to {labels.max()}, and there are {n}")
        if self.posteriors_.shape != (len(locations), geometry.n_cells):
            raise ValueError(f"posteriors_ have shape {self.posteriors_.shape}")
        check_array(self, "sample_weight_", "f", (len(locations),))
        if self.poses_ is not None:
            check_array(self, "poses_", "f", (len(locations), None))
        check_integer(self.settings_, "n_neighbors")
        check_choice(self.settings_, "weights", ("uniform", "distance"))
        check_choice(self.settings_, "metric", METRICS)
        check_positive(self.settings_, "gamma")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags

    def _posteriors(self, X: Any) -> sp.csr_array:
        """Return the largest posterior probabilities of each bag; their square roots for overlaps."""
        model, X = last_step(self.model_, X)
        blocks = tempered(model, self.settings_.gamma).iter_posteriors(X)
        kept = [largest_entries(q, MOST_CELLS, LEAST_POSTERIOR) for q, _ in blocks]
        whole = sp.csr_array(sp.vstack(kept, format="csr"), dtype=np.float32)
        return whole.sqrt() if self.settings_.metric == "overlap" else whole

    def _compared(self, posteriors: sp.csr_array) -> Array:
        common = np.asarray((posteriors @ self.posteriors_.T).toarray(), dtype=np.float64)
        return common if self.settings_.metric == "overlap" else np.log(common + SMALLEST)

    def _cell_distances(self, locations: Array) -> Array:
        grid = innermost(self.model_).geometry_.grid
        return np.sqrt((torus.displacement(locations[:, None], self.locations_, grid) ** 2).sum(axis=2))

    def _nearest(self, X: Any, n: int) -> tuple[Array, Array]:
        similarity = np.where(self.sample_weight_ > 0, self.similarity(X), -np.inf)
        order = np.argsort(-similarity, axis=1, kind="stable")[:, :n]
        nearest = np.take_along_axis(similarity, order, axis=1)
        return np.sqrt(np.maximum(1 - nearest, 0)) if self.settings_.metric == "overlap" else -nearest, order

    def _votes(self, distances: Array, indices: Array) -> Array:
        nearness = 1 / (1 + distances - np.minimum(distances.min(axis=1, keepdims=True), 0))
        votes = np.ones_like(distances) if self.settings_.weights == "uniform" else nearness
        return votes * np.maximum(self.sample_weight_[indices], 1e-12)

    def _shares(self, distances: Array, indices: Array) -> Array:
        votes = np.zeros((len(indices), len(self.classes_)))
        np.add.at(votes, (np.arange(len(indices))[:, None], self.labels_[indices]), self._votes(distances, indices))
        return votes / votes.sum(axis=1, keepdims=True)


def tempered(model: Any, gamma: float) -> Any:
    """Return a copy of a fitted model whose likelihoods are raised to a power."""
    if gamma == 1.0:
        return model
    other = copy(model)
    other.inverse_temperature_ = gamma * model.inverse_temperature_
    return other
