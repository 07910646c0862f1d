"""Regions of a grid: connected, nested at several levels, with names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.utils.validation import check_is_fitted

from countinggrids.data.collection import Collection
from countinggrids.meta import region_points
from countinggrids.meta.agglomeration import ward_levels
from countinggrids.meta.posteriors import sparse_posteriors
from countinggrids.meta.region import Region, Regions
from countinggrids.meta.region_builder import RegionBuilder

__all__ = ["Region", "Regions", "find_regions"]

Array = NDArray[Any]
MOST_REGIONS, ITEMS_PER_REGION = 64, 20
"""Largest number of regions of the finest level, and the number of items that a region should have on average."""
SMOOTHING = 0.25
"""Standard deviation of the filter of the usage as a fraction of the window."""
EMPTY = 0.1
"""Fraction of the mean usage below which land is empty."""


def find_regions(
    model: Any, collection: Collection, levels: int | Sequence[int] = 3, posteriors: sp.csr_array | None = None
) -> Regions:
    """Partition a grid into connected regions at several levels, each level inside the one before, and name them.

    Neighboring cells are merged by Ward's criterion, weighted by their usage. Cells of texts are compared by the texts
    that lie around them (directions of latent semantic analysis), others by the histograms of their windows (Hellinger
    distances). Names are words with large log-odds against the rest of the map that many items of the region have, and
    that are not in the name of the region around it. The same model and items always have the same regions.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    collection : Collection
        The items, with the features that the model was fitted to.
    levels : int or sequence of int, default=3
        Number of levels, or the numbers of regions at each, smallest first.
    posteriors : csr_array of shape (n_items, n_cells), default=None
        Posterior of each item, if it is known already.

    Returns
    -------
    regions : Regions
        The regions.

    Examples
    --------
    >>> import countinggrids as cg
    >>> from countinggrids.features.text import Document
    >>> from countinggrids.meta.regions import find_regions
    >>> texts = [Document("tea with milk"), Document("trains run on tracks")] * 20
    >>> collection = cg.Collection.from_texts(texts)
    >>> model = cg.CountingGrid((8, 8), (2, 2), location_prior="exact", random_state=0).fit(collection)
    >>> regions = find_regions(model, collection, levels=[2])
    >>> sorted(region.n_items for region in regions.regions)
    [20, 20]
    """
    land = Land.of(model, collection, posteriors)
    n_regions = _numbers(levels, len(collection), land.weights.size)
    return land.regions(ward_levels(land.points, land.weights, land.grid, n_regions))


def extend_regions(previous: Regions, model: Any, collection: Collection) -> Regions:
    """Find the regions of a map that has grown: the old ones stay, with their names, and new land is partitioned.

    Parameters
    ----------
    previous : Regions
        Regions of the map before.
    model : estimator
        The model that has grown; cells of the old grid have the same coordinates.
    collection : Collection
        All items, the old ones first.

    Returns
    -------
    regions : Regions
        Old and new regions, at the same levels.
    """
    land = Land.of(model, collection)
    old = tuple(slice(length) for length in previous.grid)
    is_open = np.ones(land.grid, bool)
    is_open[old] = previous.is_empty & ~land.is_empty[old]
    n_settlers = land.usage[is_open].sum() / max(land.usage[~is_open].sum(), 1e-9)
    n_new = [max(1, round(len(previous.level(level)) * n_settlers)) for level in range(len(previous.labels))]
    found = ward_levels(land.points, land.weights, land.grid, n_new, is_open.ravel())
    partitions = []
    for labels, new in zip(previous.labels, found, strict=True):
        kept = np.zeros(land.grid, np.int64)
        kept[old] = labels
        partitions.append(np.where(is_open.ravel(), len(previous.regions) + new, kept.ravel()))
    return _with_old_names(land.regions(partitions), previous, is_open)


def _with_old_names(regions: Regions, previous: Regions, is_open: Array) -> Regions:
    """Return regions in which those that were there before have their old names."""
    named = []
    for region in regions.regions:
        cells = np.argwhere((regions.labels[region.level] == region.id) & ~is_open)
        name = previous.regions[previous.labels[region.level][tuple(cells[0])]].name if len(cells) else region.name
        named.append(replace(region, name=name))
    return replace(regions, regions=tuple(named))


class Land(NamedTuple):
    """What a grid is partitioned by.

    Attributes
    ----------
    collection : Collection
        The items, at the sections of the model.
    posteriors : csr_array of shape (n_items, n_cells)
        Posterior of each item.
    grid, window : tuple of int
        Rows and columns.
    points : ndarray of shape (n_cells, n_dimensions)
        What lies around each cell.
    weights : ndarray of shape (n_cells,)
        Smoothed usage, never zero.
    usage : ndarray of shape (n_rows, n_columns)
        Posteriors summed over items.
    is_empty : ndarray of bool of shape (n_rows, n_columns)
        Windows near which there are hardly any items.
    """

    collection: Collection
    posteriors: sp.csr_array
    grid: tuple[int, int]
    window: tuple[int, int]
    points: Array
    weights: Array
    usage: Array
    is_empty: Array

    @classmethod
    def of(cls, model: Any, collection: Collection, posteriors: sp.csr_array | None = None) -> "Land":
        """Compute it from a fitted model and its items."""
        check_is_fitted(model)
        _check_grid(model)
        collection = collection.for_model(model)
        if posteriors is None:
            posteriors = sparse_posteriors(model, collection.counts)
        grid, window = (_two_axes(shape) for shape in (model.geometry_.grid, model.geometry_.window))
        usage = np.asarray(posteriors.sum(axis=0), dtype=np.float64).reshape(grid)
        deviation = SMOOTHING * np.array(window)
        smooth = gaussian_filter(usage, deviation, mode="wrap")
        weights = np.maximum(smooth, 1e-3 * smooth.mean())
        if collection.vocabulary.kind == "words":
            points = region_points.of_texts(collection, posteriors, weights, deviation)
        else:
            points = region_points.of_windows(model, grid, window, weights)
        return cls(collection, posteriors, grid, window, points, weights.ravel(), usage, smooth < EMPTY * smooth.mean())

    def regions(self, partitions: list[Array]) -> Regions:
        """Return the regions of nested partitions, with names."""
        return RegionBuilder(self.collection, self.posteriors, self.grid, self.window, partitions).build(self.is_empty)


def _check_grid(model: Any) -> None:
    grid = model.geometry_.grid
    if len(grid) > 2:
        raise ValueError(f"grid={grid} must have one or two axes to find regions; fit a grid such as (32, 32).")


def _two_axes(shape: Sequence[int]) -> tuple[int, int]:
    return (1, int(shape[0])) if len(shape) == 1 else (int(shape[0]), int(shape[1]))


def _numbers(levels: int | Sequence[int], n_items: int, n_cells: int) -> list[int]:
    """Return the number of regions at each level."""
    if isinstance(levels, int | np.integer):
        if levels < 1:
            raise ValueError(f"levels={levels} must be at least 1; use for instance levels=3.")
        finest = min(MOST_REGIONS, max(1, n_items // ITEMS_PER_REGION), n_cells)
        return [round(finest**power) for power in np.linspace(0.5 if levels > 1 else 1, 1, levels)]
    wanted = [int(n) for n in levels]
    if not wanted or wanted != sorted(wanted) or not 1 <= wanted[0] <= wanted[-1] <= n_cells:
        raise ValueError(
            f"levels={list(levels)} must be numbers of regions from 1 to {n_cells}, smallest first; use for instance "
            "[7, 20, 60]."
        )
    return wanted
