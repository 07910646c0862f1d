"""A fitted grid with its collection: where every item lies, and what every window of the grid holds."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids import em, painting, torus
from countinggrids.collection import Collection

Array = NDArray[Any]
Watch = Callable[[int, int], None]

MOST_CELLS, LEAST_POSTERIOR = 24, 0.002
"""How much of an item's posterior is kept: so many cells at the most, and none below this share."""
N_TELLING = 12
"""Telling features kept for each window."""
BLOCK = 2**24
"""Numbers worked on at a time where all cells meet all features."""


class Posterior(NamedTuple):
    """The cells where an item may lie, most likely first.

    Attributes
    ----------
    cells : flat numbers of windows
    shares : their posterior
    """

    cells: NDArray[np.int64]
    shares: NDArray[np.float64]


class Telling(NamedTuple):
    """The features that tell a window from the rest of the grid, most telling first; (cells, features) each.

    Attributes
    ----------
    features : which
    shares : how often they occur in the window
    everywhere : (all features,) how often they occur on the whole grid
    """

    features: NDArray[np.int64]
    shares: NDArray[np.float32]
    everywhere: NDArray[np.float32]


class Atlas:
    """What all views of a model and a collection are made from, worked out once.

    Parameters
    ----------
    model : a fitted grid with one or two axes
    collection : the items; its features are those the model was learnt from
    title : a heading for the map; empty takes a plain one
    watch : called with the number of items located and their total

    Attributes
    ----------
    grid, window : (rows, columns); a grid of one axis is one row
    places : (items, 2) where on the map each item is drawn: the middle of its window, in cells
    usage : (rows, columns) how much posterior lies on each window

    Examples
    --------
    >>> import countinggrids as cg
    >>> from countinggrids.explore import Atlas
    >>> from countinggrids.features.text import Document
    >>> texts = [Document("tea with milk"), Document("milk and tea"), Document("trains and tracks")]
    >>> collection = cg.Collection.from_texts(texts)
    >>> model = cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(collection.counts)
    >>> atlas = Atlas(model, collection)
    >>> atlas.places.shape, round(float(atlas.usage.sum()), 3)
    ((3, 2), 3.0)
    """

    def __init__(self, model: Any, collection: Collection, title: str = "", watch: Watch | None = None):
        geometry = model._geometry()
        if len(geometry.grid) > 2:
            raise ValueError(
                f"the grid has {len(geometry.grid)} axes; wanted one or two for a map; fit a grid such as (32, 32)"
            )
        self.model, self.collection = model, collection.for_model(model)
        self.title = title or f"{len(collection):,} items on a grid"
        self.grid, self.window = (_two(shape) for shape in (geometry.grid, geometry.window))
        self.usage = np.zeros(self.grid)
        self._kept = self._located(watch)
        self.places = self._middles()

    def posterior(self, item: int) -> Posterior:
        """Give the cells where an item may lie, most likely first."""
        kept = slice(*self._kept.indptr[item : item + 2])
        return Posterior(self._kept.indices[kept].astype(np.int64), self._kept.data[kept].astype(np.float64))

    @cached_property
    def names(self) -> list[str]:
        """What an item may be found by: its title, label and file name, whatever their case."""
        columns = [self.collection.items[name] for name in ("title", "label", "path") if name in self.collection.items]
        return ["\n".join(column[i] for column in columns).casefold() for i in range(len(self.collection))]

    @cached_property
    def by_cell(self) -> sp.csc_array:
        """(items, cells) posteriors as they are kept, to be looked up by cell."""
        return self._kept.tocsc()

    @cached_property
    def telling(self) -> Telling:
        """The most telling features of each window."""
        parts: list[tuple[Array, Array, Array]] = []
        everywhere = []
        for first, h in self.histograms():
            everywhere.append(painting.mean_histogram(h.T, self.usage))
            scores = painting.telling(h.T, everywhere[-1])
            numbers = np.broadcast_to(np.arange(first, first + len(h)), scores.shape)
            parts = [_best([*parts, (scores, numbers, h.T)])]
        _, features, shares = parts[0]
        return Telling(features, shares, np.concatenate(everywhere))

    def histograms(self) -> Iterator[tuple[int, Array]]:
        """Give the mean of pi over each window, some features at a time: the first one's number, (features, cells)."""
        pi = self.pi
        step = max(1, BLOCK // pi[..., 0].size)
        for first in range(0, pi.shape[-1], step):
            planes = np.moveaxis(pi[..., first : first + step], -1, 0).astype(np.float32)
            yield first, em.histograms(planes, self.window).reshape(len(planes), -1)

    @property
    def pi(self) -> Array:
        """(rows, columns, features), averaged over sections where each has histograms of its own."""
        return painting.plane(self.model)

    def locate(self, counts: Any) -> Array:
        """Give the posterior of one new bag, (rows, columns)."""
        if self.model.pi_.shape[:-1] != self.model.log_prior_.shape or np.prod(self.model._geometry().painted) > 1:
            return self.model.transform(counts)[0].reshape(self.grid).astype(np.float64)
        # Without sections only the features that the bag has matter: a search need not touch all the others.
        bag = sp.csr_array(counts)
        planes = np.moveaxis(self.pi[..., bag.indices], -1, 0)
        logs = np.log(em.histograms(planes, self.window) + em.SMALLEST)
        joint = self.model.log_prior_.reshape(self.grid) + self.model._beta() * np.tensordot(bag.data, logs, 1)
        q = np.exp((joint - joint.max()).astype(np.float64))
        return q / q.sum()

    def window_at(self, place: Any) -> tuple[int, int]:
        """Give the window (its first cell) whose middle lies nearest to a place on the map."""
        corner = np.floor(np.asarray(place) - self.middle + 0.5).astype(int) % self.grid
        return int(corner[0]), int(corner[1])

    @property
    def middle(self) -> Array:
        """From a window's first cell to its middle."""
        return (np.array(self.window) - 1) / 2

    def _located(self, watch: Watch | None) -> sp.csr_array:
        """Find where every item may lie, block by block."""
        kept, done = [], 0
        for q, _ in self.model._posteriors(self.collection.counts):
            kept.append(strongest(q))
            self.usage += np.asarray(q.sum(axis=0), np.float64).reshape(self.grid)
            done += q.shape[0]
            if watch is not None:
                watch(done, len(self.collection))
        return sp.csr_array(sp.vstack(kept, format="csr"))

    def _middles(self) -> Array:
        """Average the posterior around its peak, so that items between two cells lie between them."""
        n_each = np.diff(self._kept.indptr)
        rows = np.repeat(np.arange(len(n_each)), n_each)
        cells = np.stack(np.unravel_index(self._kept.indices, self.grid), axis=1)
        peaks = cells[self._kept.indptr[:-1]]
        away = torus.displacement(peaks[rows], cells, self.grid)
        weights = np.where((np.abs(away) * 2 <= self.window).all(axis=1), self._kept.data, 0).astype(np.float64)
        total = np.bincount(rows, weights, minlength=len(peaks))
        mean = np.stack([np.bincount(rows, weights * away[:, axis], minlength=len(peaks)) for axis in (0, 1)], axis=1)
        return np.round((peaks + mean / total[:, None] + self.middle) % self.grid, 3) % self.grid


def _best(parts: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Keep the features with the best scores of each cell: scores, numbers and shares, (cells, features) each."""
    scores, numbers, shares = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :N_TELLING]
    return tuple(np.take_along_axis(part, best, axis=1) for part in (scores, numbers, shares))  # type: ignore[return-value]


def strongest(q: Any, n: int = MOST_CELLS, least: float = LEAST_POSTERIOR) -> sp.csr_array:
    """Keep the strongest cells of each row of a posterior, largest first; at least one is kept."""
    best = np.asarray(q.max(axis=1).todense() if sp.issparse(q) else q.max(axis=1)).ravel()
    entries = sp.coo_array(q) if sp.issparse(q) else None
    rows, cells = entries.coords if entries is not None else np.nonzero(q >= np.minimum(best, least)[:, None])
    values = entries.data if entries is not None else q[rows, cells]
    is_strong = values >= np.minimum(best, least)[rows]
    rows, cells, values = rows[is_strong], cells[is_strong], values[is_strong]
    order = np.lexsort((cells, -values, rows))
    rows, cells, values = rows[order], cells[order], values[order]
    starts = np.searchsorted(rows, np.arange(q.shape[0] + 1))
    is_kept = np.arange(len(rows)) - starts[rows] < n
    ends = np.r_[0, np.cumsum(np.bincount(rows[is_kept], minlength=q.shape[0]))]
    return sp.csr_array((values[is_kept], cells[is_kept], ends), shape=q.shape)


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])
