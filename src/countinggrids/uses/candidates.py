"""What a search chooses among, and the bags that each choice wants."""

from typing import Any, NamedTuple

import numpy as np

from countinggrids.bags import coarsen
from countinggrids.geometry import Shape


class Candidate(NamedTuple):
    """One set of choices.

    Attributes
    ----------
    grid, window, sections : shapes
    paint : finer sections that are laid down, or None for the same
    tokens : what bags are scaled to, or None
    power : what counts are raised to
    max_iter : where learning stops, or None for the estimator's own
    """

    grid: Shape
    window: Shape
    sections: Shape
    paint: Shape | None
    tokens: float | None
    power: float
    max_iter: int | None

    @property
    def capacity(self) -> float:
        return float(np.prod(self.grid) / np.prod(self.window))

    @property
    def finest(self) -> Shape:
        """The sections that bags come in."""
        return self.sections if self.paint is None else self.paint


def divides(coarse: Shape, fine: Shape) -> bool:
    """Tell whether sections can be added up to coarser ones."""
    return all(f % c == 0 for f, c in zip(fine, coarse, strict=True))


class Tessellations:
    """X at coarser and coarser sections, each made once."""

    def __init__(self, X: Any, finest: Shape):
        n_sections = int(np.prod(finest))
        if X.shape[1] % n_sections:
            raise ValueError(f"X has {X.shape[1]} columns; wanted a multiple of the {n_sections} sections {finest}")
        self.n_features = X.shape[1] // n_sections
        self.finest, self.made = finest, {finest: X}

    def at(self, sections: Shape) -> Any:
        """Give X at these sections."""
        if sections not in self.made:
            if not divides(sections, self.finest):
                raise ValueError(f"sections {sections} must divide those of X, {self.finest}")
            self.made[sections] = coarsen(self.made[self.finest], self.n_features, self.finest, sections)
        return self.made[sections]
