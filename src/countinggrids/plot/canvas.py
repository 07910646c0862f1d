"""Where plots are drawn: Axes, and the torus laid flat on them, rolled and tiled alike in every map."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids import painting
from countinggrids.geometry import as_shape

Array = NDArray[Any]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """Give the Axes to draw on; None makes a figure of its own, in inches, that no window system knows of."""
    if ax is not None:
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib; pip install "countinggrids[plot]" brings it') from error
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


MOST_TILES = 8
"""How often a torus may be repeated along an axis."""


class Flat(NamedTuple):
    """A torus laid flat: rolled by a shift, then repeated in tiles.

    Attributes
    ----------
    grid : rows and columns of one tile
    shift : how far each cell moves down and to the right
    tiles : how often the torus is repeated along each axis
    """

    grid: tuple[int, int]
    shift: tuple[int, int]
    tiles: tuple[int, int]

    @classmethod
    def of(cls, model: Any, roll: Any = False, tiles: Any = (1, 1)) -> "Flat":
        """Read the options that all maps share.

        Parameters
        ----------
        model : a fitted model with one or two axes
        roll : True rolls the torus so that the least used seam, by the model's prior, lies at the border; or a
            shift along each axis; False leaves it as it is
        tiles : how often the torus is repeated along each axis
        """
        rows, columns = painting.plane(model).shape[:2]
        n_axes = model.log_prior_.ndim
        if isinstance(roll, bool | np.bool_):
            shift = painting.seam(painting.coverage(model)) if roll else (0, 0)
        else:
            shift = _shift(roll, n_axes)
        repeats = as_shape(tiles, "tiles", 2)
        if max(repeats) > MOST_TILES:
            raise ValueError(f"tiles {repeats} repeat the torus too often; wanted at most {MOST_TILES} along an axis")
        return cls((rows, columns), (shift[0] % rows, shift[1] % columns), (repeats[0], repeats[1]))

    def lay(self, cells: Array, pitch: int = 1) -> Array:
        """Roll and tile a map of cells, or a picture with so many pixels a cell."""
        rolled = np.roll(cells, [pitch * step for step in self.shift], (0, 1))
        return np.tile(rolled, (*self.tiles, *(1,) * (cells.ndim - 2)))

    def copies(self, row: float, column: float) -> list[tuple[float, float]]:
        """List where a place of the torus is seen, from half a cell before the border on, one copy a tile."""
        top, left = self._first(row, column)
        return [(top + i * self.grid[0], left + j * self.grid[1]) for i, j in np.ndindex(self.tiles)]

    def rectangles(self, corner: Sequence[float], window: Sequence[int]) -> list[tuple[float, float]]:
        """List the upper left corners of all copies of a window that are seen, if only in part."""
        first = self._first(corner[0], corner[1])
        ways = [
            # A window that leaves at the end comes in at the front.
            [place + i * n - 0.5 for i in range(-1, tiles) if place + i * n + length > 0]
            for place, n, tiles, length in zip(first, self.grid, self.tiles, window, strict=True)
        ]
        return [(row, column) for row in ways[0] for column in ways[1]]

    def frame(self, ax: Any) -> None:
        """Set the limits of a map, without ticks; where there are tiles, their borders are marked."""
        ends = [n * tiles - 0.5 for n, tiles in zip(self.grid, self.tiles, strict=True)]
        ax.set(xticks=[], yticks=[], xlim=(-0.5, ends[1]), ylim=(ends[0], -0.5))
        for draw, n, tiles in zip((ax.axhline, ax.axvline), self.grid, self.tiles, strict=True):
            for tile in range(1, tiles):
                draw(tile * n - 0.5, color="black", lw=0.6, ls=(0, (2, 3)))

    def extent(self) -> tuple[float, float, float, float]:
        """Give left, right, bottom and top of a map, in cells."""
        return -0.5, self.grid[1] * self.tiles[1] - 0.5, self.grid[0] * self.tiles[0] - 0.5, -0.5

    def size(self, width: float = 7.0) -> tuple[float, float]:
        """Give a size in inches for a figure with the shape of the map."""
        rows, columns = (n * tiles for n, tiles in zip(self.grid, self.tiles, strict=True))
        return (width, max(1.2, width * rows / columns)) if columns >= rows else (max(2, width * columns / rows), width)

    def _first(self, row: float, column: float) -> tuple[float, float]:
        """Move a place into the first tile."""
        return (
            (row + self.shift[0] + 0.5) % self.grid[0] - 0.5,
            (column + self.shift[1] + 0.5) % self.grid[1] - 0.5,
        )


def _shift(roll: Any, n_axes: int) -> tuple[int, int]:
    """Read a shift along each axis."""
    steps = np.atleast_1d(np.asarray(roll))
    if steps.dtype.kind not in "iu" or steps.shape != (n_axes,):
        raise ValueError(
            f"roll is {roll!r}; wanted True, False or {n_axes} whole numbers, a shift along each axis; "
            "True puts the least used seam at the border"
        )
    return (0, int(steps[0])) if n_axes == 1 else (int(steps[0]), int(steps[1]))
