"""A region of a grid, and the regions of all levels."""

from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Region:
    """A connected part of the grid.

    Attributes
    ----------
    id : int
        Index in `Regions.regions`.
    level : int
        Level, 0 for the coarsest.
    parent : int or None
        Region of the next coarser level that contains it.
    name : str
        Two or three words, or labels.
    words : tuple of (str, float)
        Most distinctive words with their z-scores.
    n_items : int
        Number of items.
    usage : float
        Expected number of items.
    n_cells : int
        Number of cells.
    center : tuple of float
        Row and column of its middle on the map.
    bounds : tuple of float
        Top, left, height and width on the map; the bottom and the right may lie beyond the edge, where the map wraps.
    representatives : tuple of int
        Typical items, the most typical first.
    labels : dict of str to float
        Fraction of the region's items with each label, the most frequent first.
    """

    id: int
    level: int
    parent: int | None
    name: str
    words: tuple[tuple[str, float], ...]
    n_items: int
    usage: float
    n_cells: int
    center: tuple[float, float]
    bounds: tuple[float, float, float, float]
    representatives: tuple[int, ...]
    labels: dict[str, float]


@dataclass(frozen=True)
class Regions:
    """The regions of a grid at several levels, coarse regions first.

    Attributes
    ----------
    grid, window : tuple of int
        Rows and columns of the grid and of the window; a grid of one axis has one row.
    labels : tuple of ndarray of shape (n_rows, n_columns)
        Region of each window, by its first cell, at each level.
    is_empty : ndarray of bool of shape (n_rows, n_columns)
        Windows near which there are hardly any items.
    items : tuple of ndarray of shape (n_items,)
        Region of each item at each level.
    regions : tuple of Region
        All regions; `regions[id]` is the region with that id.
    """

    grid: tuple[int, int]
    window: tuple[int, int]
    labels: tuple[Array, ...]
    is_empty: Array
    items: tuple[Array, ...]
    regions: tuple[Region, ...]

    def level(self, level: int) -> list[Region]:
        """Return the regions of a level, the largest first."""
        return [region for region in self.regions if region.level == level]

    def children(self, id: int) -> list[Region]:
        """Return the regions of the next finer level inside a region."""
        return [region for region in self.regions if region.parent == id]

    def to_json(self) -> dict[str, Any]:
        """Return everything but the regions of items as plain data."""
        return {
            "levels": [labels.tolist() for labels in self.labels],
            "is_empty": self.is_empty.astype(int).tolist(),
            "regions": [asdict(region) for region in self.regions],
        }
