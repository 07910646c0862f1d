"""The protocol of a backend, and the fixed order in which statistics of chunks are summed."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Protocol

from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags, Pool

FAN, HIGHER = 8, 4
"""Terms summed from left to right at the lowest level of the tree, and at every other level."""


class Backend(Protocol):
    """Where the bags of a fit are kept, and where their E step runs.

    `training.loop` calls `prepare` once, and then `e_step` in every iteration. The M step runs in this process, on
    arrays where `place` has put them.
    """

    @property
    def pool(self) -> Pool:
        """Runs pieces of work in this process."""

    @property
    def local(self) -> "Backend":
        """The backend for bags that are in this process."""

    def prepare(self, table: Any, weights: Any, n_features: int, geometry: Geometry) -> Any:
        """Cut bags into chunks and keep them where they are worked on."""

    def iter_chunks(self, table: Any, weights: Any, n_features: int, geometry: Geometry) -> Iterable[Bags]:
        """Cut bags of this process into chunks, for a single pass."""

    def place(self, grid: Grid) -> Grid:
        """Put the parameters where the work is done."""

    def e_step(self, chunks: Any, grid: Grid, geometry: Geometry, beta: float) -> Statistics:
        """Compute the expected sufficient statistics of all chunks."""


def tree_sum(terms: Iterable[Any], plus: Callable[[Any, Any], Any]) -> Any:
    """Sum terms in a fixed tree: FAN at a time from left to right, then those sums HIGHER at a time, and so on.

    The order does not depend on where the terms come from, so that the result is the same to the last bit on any
    number of threads or workers. One sum for each level of the tree is held at a time.
    """
    levels: list[list[Any]] = []
    for term in terms:
        _push(levels, 0, term, plus)
        del term  # or it would be held while the next one is computed
    rest = [level[0] for level in levels if level]
    return reduce(lambda lower, higher: plus(higher, lower), rest)


def _push(levels: list[list[Any]], level: int, term: Any, plus: Callable[[Any, Any], Any]) -> None:
    """Add a term to the sum of its level, stored as [sum, number of terms]; a full sum moves one level up."""
    if level == len(levels):
        levels.append([])
    here = levels[level]
    here[:] = [plus(here[0], term), here[1] + 1] if here else [term, 1]
    if here[1] == (HIGHER if level else FAN):
        full = here[0]
        here.clear()
        _push(levels, level + 1, full, plus)
