"""The shapes of a model: grid, window, sections, and what follows from them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from countinggrids import torus

Shape = tuple[int, ...]


def as_shape(value: object, name: str, n_axes: int | None = None) -> Shape:
    """Read a shape: a sequence of positive integers, or one integer for every axis.

    Parameters
    ----------
    value : what the user gave
    name : how the error calls it
    n_axes : how many axes it must have; None takes any number (an integer is then one axis)
    """
    if isinstance(value, int | np.integer):
        value = (value,) * (n_axes or 1)
    shape = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if not shape or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in shape):
        raise ValueError(f"{name} is {value!r}; wanted one positive integer per axis; give for instance {name}=(8, 8)")
    shape = tuple(int(n) for n in shape)
    if n_axes is not None and len(shape) != n_axes:
        raise ValueError(
            f"{name} {shape} has {len(shape)} axes but the grid has {n_axes}; "
            f"give {name} {n_axes} lengths, one per axis"
        )
    return shape


@dataclass(frozen=True)
class Geometry:
    """One row of the paper's table: a window on a grid, and how finely bags are matched and painted.

    Parameters
    ----------
    grid : cells along each axis of the torus, E in the paper
    window : cells along each axis of the window that explains a bag, W
    matched : sections compared with the bag in the E step, S
    painted : sections laid down on the grid in the M step; bags arrive cut into these
    groups : distributions that a cell holds side by side, each normalised by itself (spatial bag of words)
    copies : grids that learn from the same bags side by side, along the first axis; a bag has a place in each
    """

    grid: Shape
    window: Shape
    matched: Shape
    painted: Shape
    groups: int = 1
    copies: int = 1

    def __post_init__(self) -> None:
        if any(w > e for w, e in zip(self.window, self.grid, strict=True)):
            fitting = tuple(min(w, e) for w, e in zip(self.window, self.grid, strict=True))
            holding = tuple(max(w, e) for w, e in zip(self.window, self.grid, strict=True))
            raise ValueError(
                f"window {self.window} must fit into grid {self.grid}; try window {fitting} or grid {holding}"
            )
        _check_divides("sections", self.matched, "window", self.window)
        _check_divides("paint", self.painted, "window", self.window)
        _check_divides("sections", self.matched, "paint", self.painted)

    @classmethod
    def of(cls, grid: object, window: object, sections: object = None, paint: object = None) -> "Geometry":
        """Read the public arguments of a model.

        Examples
        --------
        >>> Geometry.of(grid=(32, 32), window=8, sections=2).block(painted=True)
        (4, 4)
        """
        cells = as_shape(grid, "grid")
        n_axes = len(cells)
        matched = (1,) * n_axes if sections is None else as_shape(sections, "sections", n_axes)
        painted = matched if paint is None else as_shape(paint, "paint", n_axes)
        return cls(cells, as_shape(window, "window", n_axes), matched, painted)

    def side_by_side(self, copies: int) -> "Geometry":
        """Put several such grids side by side: along one more axis, in which windows are one cell wide."""
        return Geometry(
            (copies, *self.grid), (1, *self.window), (1, *self.matched), (1, *self.painted), self.groups, copies
        )

    @property
    def n_cells(self) -> int:
        return prod(self.grid)

    @property
    def n_column_sections(self) -> int:
        """How many sections the columns of X are made of."""
        return prod(self.painted) * self.groups

    @property
    def capacity(self) -> float:
        """How many windows fit on the grid side by side, kappa in the paper."""
        return self.n_cells / prod(self.window)

    def block(self, painted: bool) -> Shape:
        """Give the cells that one section covers, V, at the painted or the matched tessellation."""
        sections = self.painted if painted else self.matched
        return tuple(w // s for w, s in zip(self.window, sections, strict=True))

    @cached_property
    def matched_offsets(self) -> list[Shape]:
        return torus.section_offsets(self.window, self.matched)

    @cached_property
    def painted_offsets(self) -> list[Shape]:
        return torus.section_offsets(self.window, self.painted)


def _check_divides(name: str, parts: Shape, of_name: str, whole: Shape) -> None:
    """Raise unless every length of `whole` splits into equal parts, and name two ways out."""
    if all(length % n == 0 for n, length in zip(parts, whole, strict=True)):
        return
    fewer = tuple(max(d for d in range(1, n + 1) if length % d == 0) for n, length in zip(parts, whole, strict=True))
    larger = tuple(-(-length // n) * n for n, length in zip(parts, whole, strict=True))
    raise ValueError(f"{name} {parts} must divide {of_name} {whole}; try {name} {fewer} or {of_name} {larger}")


def suggest(n_bags: int, n_features: int, sections: Shape = (1, 1), window: Shape | None = None) -> tuple[Shape, Shape]:
    """Choose a grid and a window for so many bags: capacity near the square root of their number.

    The grid is kept to 64 cells a side, and to 2**26 numbers in all; the window has 8 cells a side, or as many as its
    sections need.

    Examples
    --------
    >>> suggest(100, 200)
    ((25, 25), (8, 8))
    """
    if window is None:
        window = tuple(max(s, -(-8 // s) * s) for s in sections)
    side = n_bags ** (1 / (2 * len(window)))
    largest = min(64.0, (2**26 / n_features) ** (1 / len(window)))
    grid = tuple(max(w + 1, round(min(w * side, largest))) for w in window)
    return grid, window
