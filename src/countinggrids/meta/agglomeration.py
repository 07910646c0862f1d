"""Agglomerative clustering of the cells of a torus: connected, nested, weighted."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.meta.clusters import torus_neighbors

Array = NDArray[Any]


def ward_levels(
    points: Array, weights: Array, grid: tuple[int, ...], n_regions: Sequence[int], is_open: Array | None = None
) -> list[Array]:
    """Merge neighboring cells by Ward's criterion, and keep the partitions with given numbers of regions.

    The two neighbors are merged whose merger raises the weighted sum of squared distances to the means least. So light
    cells join their surroundings first, every region is connected, and a partition with fewer regions contains those
    with more.

    Parameters
    ----------
    points : ndarray of shape (n_cells, n_dimensions)
        Points of the cells.
    weights : ndarray of shape (n_cells,)
        Positive weights of the cells.
    grid : tuple of int
        Cells along each axis of the torus.
    n_regions : sequence of int
        Numbers of regions, in any order.
    is_open : ndarray of bool of shape (n_cells,), default=None
        Cells that are merged; the others stay alone and are not counted. None merges all. Where the open cells are not
        connected, there may be more regions.

    Returns
    -------
    partitions : list of ndarray of shape (n_cells,)
        Region of each cell, named by one of its cells, for each number of regions.
    """
    is_open = np.ones(len(weights), bool) if is_open is None else is_open
    tree = _Tree(np.array(points, dtype=np.float32), np.array(weights, dtype=np.float64), grid, is_open)
    kept: dict[int, Array] = {}
    for n in sorted(set(n_regions), reverse=True):
        while tree.n_regions > n and tree.merge_nearest():
            pass
        kept[n] = tree.regions()
    return [kept[n] for n in n_regions]


class _Tree:
    """Regions while they are merged: means, weights, neighbors, and a heap of possible mergers."""

    def __init__(self, means: Array, weights: Array, grid: tuple[int, ...], is_open: Array):
        self.means, self.weights = means, weights
        self.n_regions = int(is_open.sum())
        self.parent = np.arange(len(means))
        self.age = np.zeros(len(means), np.int64)
        cells = set(np.flatnonzero(is_open).tolist())
        self.beside = [
            (set(row) & cells) - {cell} if is_open[cell] else set()
            for cell, row in enumerate(torus_neighbors(grid).T.tolist())
        ]
        self.heap: list[tuple[float, int, int, int, int]] = []
        for cell, others in enumerate(self.beside):
            self.heap += self._mergers(cell, [other for other in others if other > cell])
        heapify(self.heap)

    def merge_nearest(self) -> bool:
        """Merge the two nearest neighbors; return whether there were any."""
        while self.heap:
            _, one, other, age_one, age_other = heappop(self.heap)
            if (self.age[one], self.age[other]) == (age_one, age_other):
                break
        else:
            return False
        total = self.weights[one] + self.weights[other]
        self.means[one] += (self.means[other] - self.means[one]) * np.float32(self.weights[other] / total)
        self.weights[one] = total
        self.parent[other] = one
        self.age[one], self.age[other] = self.age[one] + 1, -1
        for each in self.beside[other] - {one}:
            self.beside[each].discard(other)
            self.beside[each].add(one)
        self.beside[one] = (self.beside[one] | self.beside[other]) - {one, other}
        self.n_regions -= 1
        for merger in self._mergers(one, sorted(self.beside[one])):
            heappush(self.heap, merger)
        return True

    def regions(self) -> Array:
        """Return the region of each cell."""
        root = self.parent
        while (root != root[root]).any():
            root = root[root]
        return root.copy()

    def _mergers(self, one: int, others: list[int]) -> list[tuple[float, int, int, int, int]]:
        """Return costs, pairs, and the ages at which they hold."""
        apart = ((self.means[others] - self.means[one]) ** 2).sum(axis=1, dtype=np.float64)
        weights = self.weights[others]
        costs = apart * weights * self.weights[one] / (weights + self.weights[one])
        pairs = [(min(one, other), max(one, other)) for other in others]
        return [(c, *pair, *self.age[list(pair)].tolist()) for c, pair in zip(costs.tolist(), pairs, strict=True)]
