"""From partitions of the cells to regions with items, words, names and places on the map."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.data.collection import Collection
from countinggrids.meta import region_names, region_places
from countinggrids.meta.region import Region, Regions

Array = NDArray[Any]
N_REPRESENTATIVES = 5
MOST_LABELS, COVERED = 3, 0.5
"""Largest number of labels in the name of a region of images, and the fraction of its items that is enough."""


class RegionBuilder:
    """Builds regions from nested partitions.

    Parameters
    ----------
    collection : Collection
        The items.
    posteriors : csr_array of shape (n_items, n_cells)
        Posterior of each item.
    grid, window : tuple of int
        Rows and columns.
    partitions : list of ndarray of shape (n_cells,)
        Region of each cell at each level, coarse levels first, each level inside the one before.
    """

    def __init__(
        self,
        collection: Collection,
        posteriors: sp.csr_array,
        grid: tuple[int, int],
        window: tuple[int, int],
        partitions: list[Array],
    ):
        self.collection, self.posteriors = collection, posteriors
        self.grid, self.window = grid, window
        finest = np.unique(partitions[-1], return_inverse=True)[1]
        first_cells = np.unique(finest, return_index=True)[1]
        self.item_cells = first_cells[np.asarray((posteriors @ _one_hot(finest)).todense()).argmax(axis=1)]
        self.usage = np.asarray(posteriors.sum(axis=0), dtype=np.float64).reshape(grid)
        self.partitions = self._numbered(partitions)
        self.presence = self._presence()
        self.may_name = np.array([region_names.is_telling(name) for name in collection.vocabulary.names])
        self.item_labels = collection.items["label"] if "label" in collection.items else np.array([])

    def build(self, is_empty: Array) -> Regions:
        """Return the regions.

        Parameters
        ----------
        is_empty : ndarray of bool of shape (n_rows, n_columns)
            Windows near which there are hardly any items.

        Returns
        -------
        regions : Regions
            The regions of all levels.
        """
        found: list[Region] = []
        for level in range(len(self.partitions)):
            found += _Level(self, level).regions(found)
        return Regions(
            self.grid,
            self.window,
            tuple(partition.reshape(self.grid) for partition in self.partitions),
            is_empty.reshape(self.grid),
            tuple(partition[self.item_cells] for partition in self.partitions),
            tuple(found),
        )

    def _numbered(self, partitions: list[Array]) -> list[Array]:
        """Number the regions over all levels, within a level by their number of items, largest first."""
        numbered, first = [], 0
        for partition in partitions:
            names, inverse = np.unique(partition, return_inverse=True)
            sizes = np.bincount(inverse[self.item_cells], minlength=len(names))
            rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
            numbered.append(first + rank[inverse])
            first += len(names)
        return numbered

    def _presence(self) -> sp.csr_array | None:
        """Return which items have which words; None if the features are not words."""
        if self.collection.vocabulary.kind != "words":
            return None
        one = self.collection.coarsen((1,) * len(self.collection.sections))
        return sp.csr_array((one.counts > 0).astype(np.float64))


class _Level:
    """The regions of one level."""

    def __init__(self, builder: RegionBuilder, number: int):
        self.builder, self.number = builder, number
        self.cells = builder.partitions[number]
        self.ids = np.unique(self.cells)
        self.items = self.cells[builder.item_cells] - self.ids[0]
        self.sizes = np.bincount(self.items, minlength=len(self.ids))
        self.membership = (builder.posteriors @ _one_hot(self.cells - self.ids[0])).tocsr()
        self.usage = np.asarray(self.membership.sum(axis=0)).ravel()
        self.parents = self._parents()
        if builder.presence is not None:
            self.counts = np.asarray((self.membership.T @ builder.presence).todense())
            self.z = region_names.distinctive(self.counts)

    def regions(self, known: list[Region]) -> list[Region]:
        """Return the regions of the level, given those of coarser ones."""
        names = self._label_names() if self.builder.presence is None else self._word_names(known)
        places = [self._place(id) for id in self.ids]
        return [
            Region(
                id=id,
                level=self.number,
                parent=self.parents[i],
                name=names[i],
                words=self._words(i),
                n_items=int(self.sizes[i]),
                usage=round(float(self.usage[i]), 3),
                n_cells=int((self.cells == id).sum()),
                center=places[i][0],
                bounds=places[i][1],
                representatives=self._representatives(i),
                labels=self._labels(i),
            )
            for i, id in enumerate(self.ids.tolist())
        ]

    def _parents(self) -> list[int | None]:
        if not self.number:
            return [None] * len(self.ids)
        above = self.builder.partitions[self.number - 1]
        return [int(above[self.cells == id][0]) for id in self.ids]

    def _place(self, id: int) -> tuple[tuple[float, float], tuple[float, float, float, float]]:
        """Return center and bounds on the map, where a window is drawn at its middle."""
        grid = self.builder.grid
        is_inside = (self.cells == id).reshape(grid)
        row, column = region_places.center(is_inside, self.builder.usage)
        top, left, height, width = region_places.bounds(is_inside)
        down, right = ((length - 1) / 2 for length in self.builder.window)
        center = ((row + down) % grid[0], (column + right) % grid[1])
        return center, ((top + down - 0.5) % grid[0], (left + right - 0.5) % grid[1], height, width)

    def _words(self, i: int) -> tuple[tuple[str, float], ...]:
        if self.builder.presence is None:
            return ()
        names, z = self.builder.collection.vocabulary.names, self.z[i]
        top = [f for f in np.argsort(-z, kind="stable")[: region_names.N_WORDS].tolist() if z[f] > 0]
        return tuple((names[f], round(float(z[f]), 2)) for f in top)

    def _word_names(self, known: list[Region]) -> list[str]:
        """Name regions by words that are not in the names of the regions that contain them."""
        names = self.builder.collection.vocabulary.names
        everywhere = self.counts.sum(axis=0)
        inherited, found = {}, {}
        for i, parent in enumerate(self.parents):
            if parent is not None and self.parents.count(parent) == 1:
                inherited[i] = known[parent].name  # the same cells
                continue
            taken = {region_names.stem(word) for word in _ancestral_words(parent, known)}
            inside = self.counts[i]
            order = region_names.ranking(self.z[i], inside, everywhere - inside, self.usage[i], self.builder.may_name)
            found[i] = region_names.name_of(order, names, taken) or f"Region {self.ids[i]}"
        named_so_far = ([name.split(", ") for name in some.values()] for some in (found, inherited))
        own = region_names.with_own_leads(*named_so_far)
        named = inherited | dict(zip(found, own, strict=True))
        return [named[i] for i in range(len(self.parents))]

    def _label_names(self) -> list[str]:
        """Name regions by their most frequent labels, as many as it takes to cover half of the items."""
        is_telling = len(np.unique(self.builder.item_labels)) > 1  # else no label tells one region from another
        names = []
        for i in range(len(self.ids)):
            parts = list(self._labels(i).items())[:MOST_LABELS]
            reached = np.cumsum([part for _, part in parts])
            n_named = int(np.searchsorted(reached, COVERED)) + 1
            names.append([label for label, _ in parts[:n_named] if is_telling and label])
        own = region_names.with_own_leads(names)
        return [name or f"Region {id}" for name, id in zip(own, self.ids.tolist(), strict=True)]

    def _labels(self, i: int) -> dict[str, float]:
        if "label" not in self.builder.collection.items or not self.sizes[i]:
            return {}
        labels, counts = np.unique(self.builder.item_labels[self.items == i], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return {str(labels[k]): round(float(counts[k] / counts.sum()), 4) for k in order}

    def _representatives(self, i: int) -> tuple[int, ...]:
        """Return items of the region with many of its distinctive words for their length, and a high posterior."""
        rows = np.flatnonzero(self.items == i)
        score = self.membership[rows][:, [i]].toarray().ravel()
        presence = self.builder.presence
        if presence is not None:
            top = np.argsort(-self.z[i], kind="stable")[: region_names.N_WORDS]
            weights = np.zeros(presence.shape[1])
            weights[top] = np.maximum(self.z[i, top], 0)
            score *= (presence[rows] @ weights) / np.sqrt(np.maximum(np.diff(presence.indptr)[rows], 1))
        return tuple(rows[np.argsort(-score, kind="stable")[:N_REPRESENTATIVES]].tolist())


def _ancestral_words(parent: int | None, known: list[Region]) -> list[str]:
    words: list[str] = []
    while parent is not None:
        words += known[parent].name.replace(",", "").split()
        parent = known[parent].parent
    return words


def _one_hot(regions: Array) -> sp.csr_array:
    """Return the matrix of shape (n_cells, n_regions) that sums cells by region."""
    shape = (len(regions), int(regions.max()) + 1)
    return sp.csr_array((np.ones(len(regions)), (np.arange(len(regions)), regions)), shape=shape)
