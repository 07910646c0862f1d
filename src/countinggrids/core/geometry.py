"""The geometry of a model: grid, window and sections."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from countinggrids.core import torus

Shape = tuple[int, ...]


def as_shape(value: object, name: str, n_axes: int | None = None) -> Shape:
    """Convert a parameter to a shape.

    Parameters
    ----------
    value : int or sequence of int
        Positive lengths along the axes; an int stands for all axes.
    name : str
        Name of the parameter, for errors.
    n_axes : int, default=None
        Number of axes; None accepts any, and an int is then one axis.

    Returns
    -------
    shape : tuple of int
        One length for each axis.
    """
    if isinstance(value, int | np.integer):
        value = (value,) * (n_axes or 1)
    shape = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if not shape or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in shape):
        raise ValueError(f"{name}={value!r} must be one positive integer per axis; use for instance {name}=(8, 8).")
    shape = tuple(int(n) for n in shape)
    if n_axes is not None and len(shape) != n_axes:
        raise ValueError(
            f"{name}={shape} has {len(shape)} axes, but the grid has {n_axes}; "
            f"use {n_axes} lengths for {name}, one per axis."
        )
    return shape


def as_slack(value: object, n_axes: int) -> Shape:
    """Convert the parameter `slack` to a number of cells along each axis, 0 or more; an int stands for all axes."""
    cells = (value,) * n_axes if isinstance(value, int | np.integer) and not isinstance(value, bool) else value
    lengths = tuple(cells) if isinstance(cells, Iterable) and not isinstance(cells, str) else ()
    is_integer = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in lengths)
    if len(lengths) != n_axes or not is_integer:
        raise ValueError(
            f"slack={value!r} must be an integer of at least 0, or one for each of the {n_axes} axes of the grid; "
            "use for instance slack=1."
        )
    return tuple(int(n) for n in lengths)


@dataclass(frozen=True)
class Geometry:
    """What tells one model of the family from another: a window on a grid, and the sections that bags are cut into.

    Parameters
    ----------
    grid : tuple of int
        Cells along each axis of the torus, E in the paper.
    window : tuple of int
        Cells along each axis of the window that explains a bag, W.
    matched : tuple of int
        Sections compared with the bag in the E step, S.
    painted : tuple of int
        Sections added to the grid in the M step; the columns of X are cut into these.
    groups : int, default=1
        Distributions in each cell, each normalized by itself (spatial bag of words).
    """

    grid: Shape
    window: Shape
    matched: Shape
    painted: Shape
    groups: int = 1

    def __post_init__(self) -> None:
        for name in ("grid", "window", "matched", "painted"):
            as_shape(getattr(self, name), name)
        if any(w > e for w, e in zip(self.window, self.grid, strict=True)):
            fitting = tuple(min(w, e) for w, e in zip(self.window, self.grid, strict=True))
            holding = tuple(max(w, e) for w, e in zip(self.window, self.grid, strict=True))
            raise ValueError(
                f"window={self.window} must fit into grid={self.grid}; use window={fitting} or grid={holding}."
            )
        _check_divides("sections", self.matched, "window", self.window)
        _check_divides("paint", self.painted, "window", self.window)
        _check_divides("sections", self.matched, "paint", self.painted)

    @classmethod
    def of(cls, grid: object, window: object, sections: object = None, paint: object = None) -> "Geometry":
        """Create a geometry from the parameters of a model.

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

    def resized(self, grid: Shape, window: Shape) -> "Geometry":
        """Return the geometry with another grid and window."""
        return replace(self, grid=grid, window=window)

    def undivided(self) -> "Geometry":
        """Return the geometry of bags without sections."""
        ones = (1,) * len(self.grid)
        return replace(self, matched=ones, painted=ones)

    @property
    def n_cells(self) -> int:
        return prod(self.grid)

    @property
    def n_column_sections(self) -> int:
        """Number of sections in the columns of X."""
        return prod(self.painted) * self.groups

    @property
    def capacity(self) -> float:
        """Number of windows that fit on the grid side by side, kappa in the paper."""
        return self.n_cells / prod(self.window)

    def block(self, painted: bool) -> Shape:
        """Return the cells that one painted or matched section covers, V."""
        sections = self.painted if painted else self.matched
        return tuple(w // s for w, s in zip(self.window, sections, strict=True))

    @cached_property
    def matched_offsets(self) -> list[Shape]:
        return torus.section_offsets(self.window, self.matched)

    @cached_property
    def painted_offsets(self) -> list[Shape]:
        return torus.section_offsets(self.window, self.painted)


def _check_divides(name: str, parts: Shape, of_name: str, whole: Shape) -> None:
    """Raise unless every length of `whole` splits into equal parts, and name two alternatives."""
    if all(length % n == 0 for n, length in zip(parts, whole, strict=True)):
        return
    fewer = tuple(_largest_divisor(length, n) for n, length in zip(parts, whole, strict=True))
    larger = tuple(-(-length // n) * n for n, length in zip(parts, whole, strict=True))
    raise ValueError(f"{name}={parts} must divide {of_name}={whole}; use {name}={fewer} or {of_name}={larger}.")


def _largest_divisor(length: int, most: int) -> int:
    """Return the largest divisor of a length up to a number, or up to 1000: numbers in files can be of any size."""
    return next(divisor for divisor in range(min(length, most, 1000), 0, -1) if length % divisor == 0)


def suggest(n_bags: int, n_features: int, sections: Shape = (1, 1), window: Shape | None = None) -> tuple[Shape, Shape]:
    """Choose a grid and a window: capacity near the square root of the number of bags.

    The grid has at most 64 cells a side and 2**26 entries; the window has 8 cells a side, or as many as its sections
    need.

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
