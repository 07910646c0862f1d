"""Axes, and the layout of a torus on them, rolled and tiled alike in every map."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.geometry import as_shape
from countinggrids.plot import painting

Array = NDArray[Any]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given Axes, or those of a new figure of a size in inches, without a window."""
    if ax is not None:
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib; install it with pip install "countinggrids[plot]".') from error
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


MOST_TILES = 8
"""Largest number of copies of a torus along an axis."""


class FlatTorus(NamedTuple):
    """The layout of a torus in the plane: rolled by a shift, then tiled.

    Attributes
    ----------
    grid : tuple of int
        Rows and columns of one tile.
    shift : tuple of int
        Cells by which the grid is moved down and to the right.
    tiles : tuple of int
        Copies along each axis.
    """

    grid: tuple[int, int]
    shift: tuple[int, int]
    tiles: tuple[int, int]

    @classmethod
    def of(cls, model: Any, roll: Any = False, tiles: Any = (1, 1)) -> "FlatTorus":
        """Return the layout by the options that all maps share.

        Parameters
        ----------
        model : estimator
            A fitted model with one or two axes.
        roll : bool or sequence of int, default=False
            True rolls the grid so that the cells least used by the prior are at the border; or a shift along each
            axis.
        tiles : tuple of int, default=(1, 1)
            Copies along each axis.

        Returns
        -------
        flat : FlatTorus
            The layout.
        """
        rows, columns = painting.plane(model).shape[:2]
        n_axes = model.log_prior_.ndim
        if isinstance(roll, bool | np.bool_):
            shift = painting.seam(painting.coverage(model)) if roll else (0, 0)
        else:
            shift = _shift(roll, n_axes)
        repeats = as_shape(tiles, "tiles", 2)
        if max(repeats) > MOST_TILES:
            raise ValueError(f"tiles={repeats} must be at most {MOST_TILES} along each axis; use for instance (2, 2).")
        return cls((rows, columns), (shift[0] % rows, shift[1] % columns), (repeats[0], repeats[1]))

    def lay(self, cells: Array, pitch: int = 1) -> Array:
        """Roll and tile an array of cells, or an image with `pitch` pixels along a cell."""
        rolled = np.roll(cells, [pitch * step for step in self.shift], (0, 1))
        return np.tile(rolled, (*self.tiles, *(1,) * (cells.ndim - 2)))

    def copies(self, row: float, column: float) -> list[tuple[float, float]]:
        """Return where a place of the torus appears, once in each tile."""
        top, left = self._first(row, column)
        return [(top + i * self.grid[0], left + j * self.grid[1]) for i, j in np.ndindex(self.tiles)]

    def rectangles(self, corner: Sequence[float], window: Sequence[int]) -> list[tuple[float, float]]:
        """Return the upper left corners of all copies of a window that are visible, at least in part."""
        first = self._first(corner[0], corner[1])
        ways = [
            # A window that crosses the end appears at the beginning too.
            [place + i * n - 0.5 for i in range(-1, tiles) if place + i * n + length > 0]
            for place, n, tiles, length in zip(first, self.grid, self.tiles, window, strict=True)
        ]
        return [(row, column) for row in ways[0] for column in ways[1]]

    def frame(self, ax: Any) -> None:
        """Set the limits of a map, without ticks, and draw the borders of tiles."""
        ends = [n * tiles - 0.5 for n, tiles in zip(self.grid, self.tiles, strict=True)]
        ax.set(xticks=[], yticks=[], xlim=(-0.5, ends[1]), ylim=(ends[0], -0.5))
        for draw, n, tiles in zip((ax.axhline, ax.axvline), self.grid, self.tiles, strict=True):
            for tile in range(1, tiles):
                draw(tile * n - 0.5, color="black", lw=0.6, ls=(0, (2, 3)))

    def extent(self) -> tuple[float, float, float, float]:
        """Return left, right, bottom and top of a map, in cells."""
        return -0.5, self.grid[1] * self.tiles[1] - 0.5, self.grid[0] * self.tiles[0] - 0.5, -0.5

    def size(self, width: float = 7.0) -> tuple[float, float]:
        """Return a size in inches for a figure with the shape of the map."""
        rows, columns = (n * tiles for n, tiles in zip(self.grid, self.tiles, strict=True))
        return (width, max(1.2, width * rows / columns)) if columns >= rows else (max(2, width * columns / rows), width)

    def _first(self, row: float, column: float) -> tuple[float, float]:
        """Return a place in the first tile, from half a cell before its border on."""
        return (
            (row + self.shift[0] + 0.5) % self.grid[0] - 0.5,
            (column + self.shift[1] + 0.5) % self.grid[1] - 0.5,
        )


def _shift(roll: Any, n_axes: int) -> tuple[int, int]:
    """Return a shift of rows and columns."""
    steps = np.atleast_1d(np.asarray(roll))
    if steps.dtype.kind not in "iu" or steps.shape != (n_axes,):
        raise ValueError(
            f"roll={roll!r} must be True, False or {n_axes} integers, a shift along each axis; use for instance "
            "roll=True, which puts the least used cells at the border."
        )
    return (0, int(steps[0])) if n_axes == 1 else (int(steps[0]), int(steps[1]))
