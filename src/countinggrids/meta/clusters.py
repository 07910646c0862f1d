"""Clustering: regions of the grid, cut along the valleys of its usage."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import relevance
from countinggrids.core.fitting import whole_or_nothing
from countinggrids.data import validation
from countinggrids.data.collection import Collection
from countinggrids.features.saving import Saveable, check_array, check_count
from countinggrids.meta.nested import fitted_grid
from countinggrids.meta.options import check_integer

Array = NDArray[Any]


class GridClusters(Saveable, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster bags by regions of a grid, which is cut along the valleys of its usage.

    The usage, the posterior over windows summed over bags, is smoothed, and each of its hills is a region (a watershed
    on the torus). With `n_clusters`, the two neighboring regions with the shallowest valley between them are merged
    until that number is left; where there are too few, the usage is smoothed less.

    Parameters
    ----------
    estimator : estimator, default=None
        The grid; a fitted one is used as it is, otherwise a clone is fitted. None stands for `CountingGrid()`.
    n_clusters : int, default=None
        Number of clusters; None takes all hills.
    smoothing : float, default=0.25
        Standard deviation of the Gaussian filter as a fraction of the window.

    Attributes
    ----------
    model_ : estimator
        The fitted grid.
    usage_ : ndarray of shape (*grid,)
        The smoothed usage.
    regions_ : ndarray of shape (*grid,)
        Cluster of each cell, the most used cluster first.
    labels_ : ndarray of shape (n_bags,)
        Clusters of the training bags.
    n_clusters_ : int
        Number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.7, .2, .1], [.1, .2, .7])])
    >>> clusters = cg.GridClusters(cg.CountingGrid((8, 8), (2, 2), random_state=0), n_clusters=2).fit(X)
    >>> len(set(clusters.labels_[:20])), len(set(clusters.labels_[20:]))
    (1, 1)
    """

    def __init__(self, estimator: Any = None, *, n_clusters: int | None = None, smoothing: float = 0.25):
        self.estimator = estimator
        self.n_clusters = n_clusters
        self.smoothing = smoothing

    @whole_or_nothing
    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the grid and cut it into regions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns), or Collection
            Counts.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted clustering.
        """
        X = validation.check_table(self, counts_of(X), is_fitting=True)
        if self.n_clusters is not None:
            check_integer(self, "n_clusters", example=5)
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing={self.smoothing} must be a fraction of at least 0; use smoothing=0.25.")
        self.model_ = fitted_grid(self.estimator, X)
        usage = self.model_.usage(X)
        hills = self._hills(usage, np.array(self.model_.geometry_.window))
        if self.n_clusters is not None:
            hills = merged(hills, self.usage_, self.n_clusters)
        self.regions_ = _by_size(hills, usage)
        self.n_clusters_ = int(self.regions_.max()) + 1
        self.labels_ = self.predict(X)
        return self

    def _hills(self, usage: Array, window: Array) -> Array:
        """Find hills, with less and less smoothing until there are enough."""
        for factor in (1.0, 0.5, 0.25, 0.0):
            self.usage_ = gaussian_filter(usage, factor * self.smoothing * window, mode="wrap")
            hills = watershed(self.usage_)
            n_hills = len(np.unique(hills))
            if n_hills >= (self.n_clusters or 1):
                return hills
        warnings.warn(
            f"n_clusters={self.n_clusters} is more than the {n_hills} hills of the grid; each is a cluster; use a "
            "larger grid for more.",
            UserWarning,
            stacklevel=4,  # past `fit` and its wrapper
        )
        return hills

    def predict(self, X: Any) -> Array:
        """Return the cluster of each bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns), or Collection
            Counts.

        Returns
        -------
        labels : ndarray of shape (n_bags,)
            Cluster of the most likely cell.
        """
        check_is_fitted(self)
        X = validation.check_table(self, counts_of(X), is_fitting=False)
        return self.regions_.ravel()[self.model_.predict(X)]

    def features(self, names: Sequence[str] | None = None, n: int = 5) -> list[list[Any]]:
        """Return the most distinctive features of each cluster.

        A feature is distinctive if it is frequent in the region and rarer elsewhere: p log (p / p everywhere).

        Parameters
        ----------
        names : sequence of str, default=None
            Names of the features; None returns their indices.
        n : int, default=5
            Number of features of each cluster.

        Returns
        -------
        features : list of list
            Names or indices, the most distinctive first.
        """
        check_is_fitted(self)
        pi = self.model_.pi_.reshape(self.regions_.size, -1).astype(np.float64)
        usage, regions = self.usage_.ravel(), self.regions_.ravel()
        everywhere = relevance.mean_histogram(pi, usage)
        features = []
        for cluster in range(self.n_clusters_):
            inside = relevance.mean_histogram(pi[regions == cluster], usage[regions == cluster])
            best = np.argsort(-relevance.relevance(inside, everywhere), kind="stable")[:n]
            features.append([int(i) if names is None else names[i] for i in best])
        return features

    def _restored(self) -> None:
        grid = self.model_.geometry_.grid
        n = check_count(self, "n_clusters_")
        check_array(self, "usage_", "f", grid)
        regions = check_array(self, "regions_", "iu", grid)
        if not 0 <= regions.min() <= regions.max() == n - 1:
            raise ValueError(f"regions_ are from {regions.min()} to {regions.max()}, and there are {n}")
        check_array(self, "labels_", "iu", (None,))

    def items(self, collection: Any, words: Sequence[str] | None = None) -> Any:
        """Return the cluster of each item as a table.

        Parameters
        ----------
        collection : Collection, array-like or sparse matrix of shape (n_bags, n_features)
            Items, or plain counts.
        words : sequence of str, default=None
            Names of the features of plain counts.

        Returns
        -------
        table : DataFrame
            A row for each item: its row in the table that the collection was made from, map_row and map_column of its
            most likely cell, the posterior of that cell, its cluster, and all columns of the items.
        """
        check_is_fitted(self)
        from countinggrids.meta import cluster_tables

        return cluster_tables.items(self, Collection.of(collection, words, self.model_))

    def summary(self, collection: Any, words: Sequence[str] | None = None, n: int = 5) -> Any:
        """Return the clusters as a table.

        Parameters
        ----------
        collection : Collection, array-like or sparse matrix of shape (n_bags, n_features)
            Items, or plain counts.
        words : sequence of str, default=None
            Names of the features of plain counts.
        n : int, default=5
            Number of words of each cluster.

        Returns
        -------
        table : DataFrame
            A row for each cluster: n_items, words, representatives (rows of items with the highest posterior), and the
            fraction of each label.
        """
        check_is_fitted(self)
        from countinggrids.meta import cluster_tables

        return cluster_tables.summary(self, Collection.of(collection, words, self.model_), n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def counts_of(X: Any) -> Any:
    """Return the counts of a collection; anything else as it is."""
    return X.counts if isinstance(X, Collection) else X


def watershed(heights: Array) -> Array:
    """Number the hills of a map on a torus by flooding down from the tops.

    Cells are taken from the highest to the lowest, and within a level outward from what is above it; a cell joins
    the hill of its highest neighbor so far, and starts a hill if it has none. So a plateau has one top, and a plain
    goes to the hills around it.

    Parameters
    ----------
    heights : ndarray
        The map, of any number of axes.

    Returns
    -------
    hills : ndarray of the same shape
        Number of the hill of each cell.
    """
    neighbors = torus_neighbors(heights.shape).T
    flat = heights.ravel()
    hill = np.full(flat.size, -1)
    for level in np.unique(flat)[::-1]:
        waiting = np.flatnonzero(flat == level).tolist()
        while waiting:
            reached = [cell for cell in waiting if (hill[neighbors[cell]] >= 0).any()] or waiting[:1]
            beside = {cell: neighbors[cell][hill[neighbors[cell]] >= 0] for cell in reached}
            for cell, known in beside.items():
                hill[cell] = hill[known[flat[known].argmax()]] if known.size else hill.max() + 1
            waiting = [cell for cell in waiting if hill[cell] < 0]
    return hill.reshape(heights.shape)


def merged(regions: Array, heights: Array, n: int) -> Array:
    """Merge neighboring regions, shallowest valley first, until n are left."""
    labels, flat = regions.ravel().copy(), heights.ravel()
    while len(np.unique(labels)) > n:
        tops = {label: flat[labels == label].max() for label in np.unique(labels)}
        passes: dict[tuple[int, int], float] = {}
        for beside in torus_neighbors(heights.shape):
            is_border = labels != labels[beside]
            for cell in np.flatnonzero(is_border):
                pair = tuple(sorted((int(labels[cell]), int(labels[beside[cell]]))))
                level = min(flat[cell], flat[beside[cell]])
                passes[pair] = max(passes.get(pair, -np.inf), level)  # type: ignore[index,arg-type]
        # How deep one must go down from the lower of the two tops.
        low, high = min(passes, key=lambda pair: min(tops[pair[0]], tops[pair[1]]) - passes[pair])
        labels[labels == high] = low
    return np.unique(labels, return_inverse=True)[1].reshape(regions.shape)


def torus_neighbors(shape: tuple[int, ...]) -> Array:
    """Return the cells beside each cell along every axis of the torus, (2 * axes, cells)."""
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    return np.stack([np.roll(cells, way, axis).ravel() for axis in range(len(shape)) for way in (-1, 1)])


def _by_size(regions: Array, usage: Array) -> Array:
    """Number the regions by their usage, largest first."""
    used = np.bincount(regions.ravel(), usage.ravel())
    order = np.argsort(-used, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[regions]
