"""The candidates of a search, and the bags at the sections of each."""

from typing import Any, NamedTuple

import numpy as np

from countinggrids.core.geometry import Shape
from countinggrids.data.counts import coarsen


class Candidate(NamedTuple):
    """One combination of parameters.

    Attributes
    ----------
    grid : tuple of int
        Cells along each axis of the torus.
    window : tuple of int
        Cells along each axis of the window.
    sections : tuple of int
        Sections that are matched in the E step.
    paint : tuple of int or None
        Finer sections that are painted in the M step; None for the same.
    tokens : float or None
        Tokens that bags are scaled to; None leaves them as they are.
    power : float
        Power of the counts.
    max_iter : int or None
        Number of EM iterations; None for that of the estimator.
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
        """Number of windows that do not overlap."""
        return float(np.prod(self.grid) / np.prod(self.window))

    @property
    def finest(self) -> Shape:
        """Sections of the bags."""
        return self.sections if self.paint is None else self.paint


def divides(coarse: Shape, fine: Shape) -> bool:
    """Return whether sections can be summed to coarser ones."""
    return all(f % c == 0 for f, c in zip(fine, coarse, strict=True))


class Tessellations:
    """X at coarser and coarser sections, each computed once.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
        Counts.
    finest : tuple of int
        Sections of X.
    """

    def __init__(self, X: Any, finest: Shape):
        n_sections = int(np.prod(finest))
        if X.shape[1] % n_sections:
            raise ValueError(
                f"X has {X.shape[1]} columns, but x_sections={finest} needs a multiple of {n_sections}; "
                "use the sections that X was made with."
            )
        self.n_features = X.shape[1] // n_sections
        self.finest, self.computed = finest, {finest: X}

    def at(self, sections: Shape) -> Any:
        """Return X at these sections."""
        if sections not in self.computed:
            if not divides(sections, self.finest):
                raise ValueError(
                    f"sections={sections} must divide x_sections={self.finest}; make X with finer sections."
                )
            self.computed[sections] = coarsen(self.computed[self.finest], self.n_features, self.finest, sections)
        return self.computed[sections]
