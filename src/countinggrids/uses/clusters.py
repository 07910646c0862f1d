"""Regions of the grid as clusters: hills of the usage map, and names for them."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from countinggrids import painting
from countinggrids.uses.fitted import fitted_grid

Array = NDArray[Any]


class GridClusters(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cuts the grid into regions along the valleys of its usage, and gives each bag the region it lies in.

    The usage map, how much posterior lies on each cell, is smoothed; each hill of it is a region (a watershed on
    the torus). With `n_clusters`, the two neighbouring regions with the shallowest valley between them are joined until
    so many are left; where there are too few, the map is smoothed less.

    Parameters
    ----------
    estimator : the grid; one that is fitted is used as it is. None takes `CountingGrid()`
    n_clusters : how many clusters; None takes the hills as they are
    smoothing : width of the smoothing as a share of the window

    Attributes
    ----------
    model_ : the fitted grid
    usage_ : (*grid,) the smoothed usage
    regions_ : (*grid,) which cluster each cell belongs to, the most used cluster first
    labels_ : (training bags,) their clusters
    n_clusters_ : how many there are

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

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the grid and cut it into regions."""
        X = validate_data(self, X, accept_sparse="csr", dtype=None)
        if self.n_clusters is not None and (not isinstance(self.n_clusters, int | np.integer) or self.n_clusters < 1):
            raise ValueError(f"n_clusters is {self.n_clusters!r}; wanted None or an integer of at least 1")
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing is {self.smoothing}; wanted a share of at least 0; give for instance 0.25")
        self.model_ = fitted_grid(self.estimator, X)
        geometry = self.model_._geometry()
        parts = [np.asarray(q.sum(axis=0), np.float64) for q, _ in self.model_._posteriors(X)]
        usage = np.sum(parts, axis=0).reshape(geometry.grid)
        hills = self._hills(usage, np.array(geometry.window))
        if self.n_clusters is not None:
            hills = joined(hills, self.usage_, self.n_clusters)
        self.regions_ = _by_size(hills, usage)
        self.n_clusters_ = int(self.regions_.max()) + 1
        self.labels_ = self.predict(X)
        return self

    def _hills(self, usage: Array, window: Array) -> Array:
        """Find hills, with less and less smoothing until there are enough."""
        for share in (1.0, 0.5, 0.25, 0.0):
            self.usage_ = gaussian_filter(usage, share * self.smoothing * window, mode="wrap")
            hills = watershed(self.usage_)
            n_hills = len(np.unique(hills))
            if n_hills >= (self.n_clusters or 1):
                return hills
        warnings.warn(
            f"found {n_hills} hills for n_clusters={self.n_clusters}; each is a cluster; take a larger grid for more",
            UserWarning,
            stacklevel=3,
        )
        return hills

    def predict(self, X: Any) -> Array:
        """Give the cluster in which each bag lies."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        return self.regions_.ravel()[self.model_.predict(X)]

    def features(self, names: Sequence[str] | None = None, n: int = 5) -> list[list[Any]]:
        """Give the n most telling features of each cluster: those that stand out against the whole grid.

        A feature tells much if it is frequent in the region and rarer elsewhere: p log (p / p everywhere).

        Parameters
        ----------
        names : names of the features; None gives their numbers
        n : how many
        """
        check_is_fitted(self)
        pi = self.model_.pi_.reshape(self.regions_.size, -1).astype(np.float64)
        usage, regions = self.usage_.ravel(), self.regions_.ravel()
        everywhere = painting.mean_histogram(pi, usage)
        chosen = []
        for cluster in range(self.n_clusters_):
            inside = painting.mean_histogram(pi[regions == cluster], usage[regions == cluster])
            best = np.argsort(-painting.telling(inside, everywhere), kind="stable")[:n]
            chosen.append([int(i) if names is None else names[i] for i in best])
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def watershed(heights: Array) -> Array:
    """Number the hills of a map on a torus by flooding down from the tops.

    Cells are taken from the highest to the lowest, and within a level outward from what is above it; a cell joins
    the hill of its highest neighbour so far, and starts a hill if it has none. So a plateau has one top, and a plain
    goes to the hills around it.
    """
    neighbours = _neighbours(heights.shape).T
    flat = heights.ravel()
    hill = np.full(flat.size, -1)
    for level in np.unique(flat)[::-1]:
        waiting = np.flatnonzero(flat == level).tolist()
        while waiting:
            reached = [cell for cell in waiting if (hill[neighbours[cell]] >= 0).any()] or waiting[:1]
            beside = {cell: neighbours[cell][hill[neighbours[cell]] >= 0] for cell in reached}
            for cell, known in beside.items():
                hill[cell] = hill[known[flat[known].argmax()]] if known.size else hill.max() + 1
            waiting = [cell for cell in waiting if hill[cell] < 0]
    return hill.reshape(heights.shape)


def joined(regions: Array, heights: Array, n: int) -> Array:
    """Join neighbouring regions, shallowest valley first, until n are left."""
    labels, flat = regions.ravel().copy(), heights.ravel()
    while len(np.unique(labels)) > n:
        tops = {label: flat[labels == label].max() for label in np.unique(labels)}
        passes: dict[tuple[int, int], float] = {}
        for beside in _neighbours(heights.shape):
            is_border = labels != labels[beside]
            for cell in np.flatnonzero(is_border):
                pair = tuple(sorted((int(labels[cell]), int(labels[beside[cell]]))))
                level = min(flat[cell], flat[beside[cell]])
                passes[pair] = max(passes.get(pair, -np.inf), level)  # type: ignore[index,arg-type]
        # How deep one must go down from the lower of the two tops.
        low, high = min(passes, key=lambda pair: min(tops[pair[0]], tops[pair[1]]) - passes[pair])
        labels[labels == high] = low
    return np.unique(labels, return_inverse=True)[1].reshape(regions.shape)


def _neighbours(shape: tuple[int, ...]) -> Array:
    """Give the cells beside each cell along every axis, wrapping round, (2 * axes, cells)."""
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    return np.stack([np.roll(cells, way, axis).ravel() for axis in range(len(shape)) for way in (-1, 1)])


def _by_size(regions: Array, usage: Array) -> Array:
    """Number the regions by how much they are used, most first."""
    used = np.bincount(regions.ravel(), usage.ravel())
    order = np.argsort(-used, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[regions]
