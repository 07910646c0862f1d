"""The values of parameters that a search combines, and the candidates that they make."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from countinggrids.core.geometry import Shape, as_shape
from countinggrids.meta.candidates import Candidate, divides


class SearchSpace(NamedTuple):
    """Values of each parameter, as `CapacitySearch` takes them.

    Attributes
    ----------
    grids : sequence of int or tuple of int
        Grids; an integer is a square.
    windows : sequence of int or tuple of int
        Windows; an integer is a square.
    sections : sequence of int or tuple of int
        Sections that are matched.
    paint : sequence of int, tuple of int or None
        Finer sections that are painted; None for those that are matched.
    tokens : sequence of float or None
        Tokens that bags are scaled to.
    powers : sequence of float
        Powers of the counts.
    max_iters : sequence of int or None
        Numbers of EM iterations.
    """

    grids: Sequence[Any]
    windows: Sequence[Any]
    sections: Sequence[Any]
    paint: Sequence[Any]
    tokens: Sequence[float | None]
    powers: Sequence[float]
    max_iters: Sequence[int | None]

    def candidates(self, low: float, high: float) -> Iterator[Candidate]:
        """List combinations within limits of the capacity whose window can be cut into the sections."""
        is_empty = True
        for grid in _shapes(self.grids, "grids", 2):
            for window in _shapes(self.windows, "windows", len(grid)):
                fits = all(w <= e for w, e in zip(window, grid, strict=True))
                if not (fits and low <= np.prod(grid) / np.prod(window) <= high):
                    continue
                for sections, paint in self._cuts(window):
                    for tokens, power, max_iter in product(self.tokens, self.powers, self.max_iters):
                        is_empty = False
                        yield Candidate(grid, window, sections, paint, tokens, power, max_iter)
        if is_empty:
            raise ValueError(
                f"no grid and window has a capacity from {low:g} to {high:g}; use other grids, windows or capacities."
            )

    def x_sections(self, given: Any) -> Shape:
        """Return the sections of X: those given, or the finest of all candidates."""
        n_axes = len(next(_shapes(self.grids, "grids", 2)))
        all_sections = [*self.sections, *(each for each in self.paint if each is not None)]
        finest = max(all_sections, key=lambda each: np.prod(np.broadcast_to(each, n_axes)))
        return as_shape(finest if given is None else given, "x_sections", n_axes)

    def _cuts(self, window: Shape) -> Iterator[tuple[Shape, Shape | None]]:
        """List the sections that a window can be cut into, with the finer ones that can be painted."""
        for sections in _shapes(self.sections, "sections", len(window)):
            for paint in self.paint:
                finer = None if paint is None else next(_shapes([paint], "paint", len(window)))
                if divides(sections, window if finer is None else finer) and (finer is None or divides(finer, window)):
                    yield sections, finer


def _shapes(values: Sequence[Any], name: str, n_axes: int) -> Iterator[Shape]:
    for value in values:
        yield as_shape(value, name, n_axes if isinstance(value, int | np.integer) else None)
