"""The map of a collection on a fitted grid: where every item lies, and what every window holds."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core import em, relevance, torus
from countinggrids.data.collection import Collection
from countinggrids.explore.text_search import TextSearch
from countinggrids.features.stream import Progress
from countinggrids.meta.posteriors import largest_entries
from countinggrids.meta.region import Regions
from countinggrids.meta.regions import find_regions
from countinggrids.plot import painting

Array = NDArray[Any]


N_DISTINCTIVE = 12
"""Distinctive features kept for each window."""
BLOCK = 2**24
"""Entries processed at a time where all cells meet all features."""


class Posterior(NamedTuple):
    """The cells where an item may lie, most likely first.

    Attributes
    ----------
    cells : ndarray of shape (n_cells,)
        Flat indices of windows.
    probabilities : ndarray of shape (n_cells,)
        Their posterior probabilities.
    """

    cells: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class DistinctiveFeatures(NamedTuple):
    """The features that distinguish each window from the whole grid, most distinctive first.

    Attributes
    ----------
    features : ndarray of shape (n_cells, n_distinctive)
        Indices of features.
    frequencies : ndarray of shape (n_cells, n_distinctive)
        Their relative frequencies in the window.
    everywhere : ndarray of shape (n_features,)
        Relative frequencies of all features on the whole grid.
    """

    features: NDArray[np.int64]
    frequencies: NDArray[np.float32]
    everywhere: NDArray[np.float32]


class ItemMap:
    """A collection laid out on a fitted grid; every view of the explorer is made from it.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    collection : Collection
        The items, with the features that the model was fitted to.
    title : str, default=""
        Heading of the map. If empty, it is the number of items.
    callback : callable, default=None
        Called with the number of items located and their total.

    Attributes
    ----------
    grid : tuple of int
        Rows and columns; a grid of one axis has one row.
    window : tuple of int
        Rows and columns of a window.
    places : ndarray of shape (n_items, 2)
        Where each item is drawn: the middle of its window, in cells.
    usage : ndarray of shape (n_rows, n_columns)
        Sum of the posteriors over items.
    posteriors : csr_array of shape (n_items, n_cells)
        The largest posterior probabilities of each item, in decreasing order.

    Examples
    --------
    >>> import countinggrids as cg
    >>> from countinggrids.explore import ItemMap
    >>> from countinggrids.features.text import Document
    >>> texts = [Document("tea with milk"), Document("milk and tea"), Document("trains and tracks")]
    >>> collection = cg.Collection.from_texts(texts)
    >>> model = cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(collection)
    >>> item_map = ItemMap(model, collection)
    >>> item_map.places.shape, round(float(item_map.usage.sum()), 3)
    ((3, 2), 3.0)
    """

    def __init__(self, model: Any, collection: Collection, title: str = "", callback: Progress | None = None):
        geometry = model.geometry_
        if len(geometry.grid) > 2:
            raise ValueError(
                f"grid={geometry.grid} has {len(geometry.grid)} axes; expected one or two for a map; "
                "fit a grid such as (32, 32)."
            )
        self.model, self.collection = model, collection.for_model(model)
        self.title = title or f"{len(collection):,} items on a grid"
        self.grid, self.window = (painting.as_two_axes(shape) for shape in (geometry.grid, geometry.window))
        self.usage = np.zeros(self.grid)
        self.posteriors = self._locate_items(callback)
        self.places = self._middles()

    def posterior(self, item: int) -> Posterior:
        """Return the cells where an item may lie, most likely first.

        Parameters
        ----------
        item : int
            Index of the item.

        Returns
        -------
        posterior : Posterior
            Cells and their probabilities.
        """
        kept = slice(*self.posteriors.indptr[item : item + 2])
        return Posterior(self.posteriors.indices[kept].astype(np.int64), self.posteriors.data[kept].astype(np.float64))

    @cached_property
    def text_search(self) -> TextSearch:
        """The full-text index."""
        return TextSearch(self.collection)

    @cached_property
    def regions(self) -> Regions:
        """Connected regions with names, at three levels."""
        return find_regions(self.model, self.collection, posteriors=self.posteriors)

    @cached_property
    def feature_counts(self) -> sp.csr_array:
        """Counts of each feature by item, added up over sections, (n_items, n_features)."""
        return sp.csr_array(self.collection.coarsen((1,) * len(self.collection.sections)).counts)

    @cached_property
    def by_cell(self) -> sp.csc_array:
        """`posteriors` by column: the items of each cell."""
        return self.posteriors.tocsc()

    @cached_property
    def distinctive(self) -> DistinctiveFeatures:
        """The most distinctive features of each window."""
        parts: list[tuple[Array, Array, Array]] = []
        everywhere = []
        for first, h in self.histograms():
            # Summed in double precision, so that equally distinctive words come in the same order in any block.
            mean = relevance.mean_histogram(h.T.astype(np.float64), self.usage)
            everywhere.append(mean.astype(h.dtype))
            scores = relevance.relevance(h.T, everywhere[-1])
            numbers = np.broadcast_to(np.arange(first, first + len(h)), scores.shape)
            parts = [_most_distinctive([*parts, (scores, numbers, h.T)])]
        _, features, frequencies = parts[0]
        return DistinctiveFeatures(features, frequencies, np.concatenate(everywhere))

    def histograms(self) -> Iterator[tuple[int, Array]]:
        """Compute the mean of pi over each window, some features at a time.

        Yields
        ------
        first : int
            Index of the first feature.
        h : ndarray of shape (n_some_features, n_cells)
            Histograms of windows.
        """
        pi = self.pi
        step = max(1, BLOCK // pi[..., 0].size)
        for first in range(0, pi.shape[-1], step):
            planes = np.moveaxis(pi[..., first : first + step], -1, 0).astype(np.float32)
            yield first, em.histograms(planes, self.window).reshape(len(planes), -1)

    @property
    def pi(self) -> Array:
        """Distribution over features in each cell, (n_rows, n_columns, n_features), averaged over sections."""
        return painting.plane(self.model)

    def locate(self, counts: Any) -> Array:
        """Compute the posterior of one new bag.

        Parameters
        ----------
        counts : sparse matrix of shape (1, n_sections * n_features)
            The counts of the bag.

        Returns
        -------
        q : ndarray of shape (n_rows, n_columns)
            Posterior over windows.
        """
        if self.model.pi_.shape[:-1] != self.model.log_prior_.shape or np.prod(self.model.geometry_.painted) > 1:
            return next(self.model.iter_posteriors(counts))[0].reshape(self.grid).astype(np.float64)
        # Without sections only the features of the bag matter: a search need not touch the others.
        bag = sp.csr_array(counts)
        planes = np.moveaxis(self.pi[..., bag.indices], -1, 0)
        logs = np.log(em.histograms(planes, self.window) + em.SMALLEST)
        log_likelihood = self.model.inverse_temperature_ * np.tensordot(bag.data, logs, 1)
        joint = self.model.log_prior_.reshape(self.grid) + log_likelihood
        q = np.exp((joint - joint.max()).astype(np.float64))
        return q / q.sum()

    def window_at(self, place: Any) -> tuple[int, int]:
        """Return the window, by its first cell, whose middle is nearest to a place on the map.

        Parameters
        ----------
        place : array-like of shape (2,)
            Row and column, in cells.

        Returns
        -------
        cell : tuple of int
            Row and column of the first cell.
        """
        corner = np.floor(np.asarray(place) - self.middle + 0.5).astype(int) % self.grid
        return int(corner[0]), int(corner[1])

    @property
    def middle(self) -> Array:
        """Offset from the first cell of a window to its middle, (2,)."""
        return (np.array(self.window) - 1) / 2

    def _locate_items(self, callback: Progress | None) -> sp.csr_array:
        kept, done = [], 0
        for q, _ in self.model.iter_posteriors(self.collection.counts):
            kept.append(largest_entries(q))
            self.usage += q.sum(axis=0, dtype=np.float64).reshape(self.grid)
            done += q.shape[0]
            if callback is not None:
                callback(done, len(self.collection))
        return sp.csr_array(sp.vstack(kept, format="csr"))

    def _middles(self) -> Array:
        """Average the posterior around its peak, so that items between two cells lie between them."""
        kept = self.posteriors
        n_each = np.diff(kept.indptr)
        rows = np.repeat(np.arange(len(n_each)), n_each)
        cells = np.stack(np.unravel_index(kept.indices, self.grid), axis=1)
        peaks = cells[kept.indptr[:-1]]
        away = torus.displacement(peaks[rows], cells, self.grid)
        weights = np.where((np.abs(away) * 2 <= self.window).all(axis=1), kept.data, 0).astype(np.float64)
        total = np.bincount(rows, weights, minlength=len(peaks))
        mean = np.stack([np.bincount(rows, weights * away[:, axis], minlength=len(peaks)) for axis in (0, 1)], axis=1)
        return np.round((peaks + mean / total[:, None] + self.middle) % self.grid, 3) % self.grid


def _most_distinctive(parts: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Keep the features with the largest scores of each cell: scores, indices and frequencies."""
    scores, numbers, frequencies = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :N_DISTINCTIVE]
    scores, numbers, frequencies = (np.take_along_axis(part, best, axis=1) for part in (scores, numbers, frequencies))
    return scores, numbers, frequencies
