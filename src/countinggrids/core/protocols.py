"""What an iteration asks of the bags that kernels hold, and of the threads that it runs on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from countinggrids.core.arrays import Array
from countinggrids.core.geometry import Shape


class Counts(Protocol):
    """Bags as the kernels hold them: the two sums over features and sections that an iteration needs."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dense_width(self) -> int:
        """Entries of a bag that are held dense while it is multiplied."""

    @property
    def offsets(self) -> Sequence[Shape]: ...

    @property
    def matches_cells_apart(self) -> bool:
        """Whether `match` is fastest with all bags at once, on threads that have some of the cells each."""

    def rows(self, rows: slice) -> "Counts": ...

    def part(self, sections: Sequence[int], offsets: Sequence[Shape]) -> "Counts":
        """Return the bags with some sections only, at other offsets."""

    def prepare(self, log_h: Array) -> Array:
        """Arrange log h as `match` reads it."""

    def match(self, prepared: Array, rows: slice, out: Array, pool: "Pool | None" = None) -> Array:
        """Compute sum_s counts_s . log h[k + d_s], (rows, cells), for some bags, in this thread without a pool."""

    def canvas(self, log_h: Array) -> Array:
        """Return zeros that `paint` adds to."""

    def paint(self, q: Array, canvas: Array, pool: "Pool") -> None:
        """Add sum_t sum_s q_t[j - d_s] counts_ts to a canvas, in place."""

    def planes(self, canvas: Array) -> Array:
        """Return what was painted on a canvas, (features, *grid)."""

    def entries(self) -> Any:
        """Return the counts as csr_array of shape (n_bags, n_sections * n_features), in memory."""

    def summed(self, weights: Array) -> Array:
        """Compute sum_t sum_s weights_t counts_ts, (features,), float64."""

    def admix(self, prepared: Array, mean: Array, alpha: float, steps: "InnerSteps") -> "Admixture":
        """Compute the weights of the cells in every bag (`core.componential`); `prepared` and `mean` are h's."""

    def joined(self, parts: Sequence["Counts"]) -> "Counts":
        """Return the bags of several parts, in their order."""


class InnerSteps(NamedTuple):
    """How often the weights of a bag are updated: over all cells, and then over those that count."""

    over_all: int
    over_few: int


class Admixture(NamedTuple):
    """Weights of the cells in some bags: theta = excess + floor.

    Attributes
    ----------
    excess : ndarray of shape (n_bags, n_cells)
        What tokens add to the floor; most of it is zero.
    floor : ndarray of shape (n_bags,)
        What pseudocounts give to every cell.
    ratios : Counts
        R = counts / p, held as the counts are.
    log_p : ndarray of shape (n_bags,)
        sum_z counts[z] log p[z], float64.
    """

    excess: Array
    floor: Array
    ratios: "Counts"
    log_p: Array


class Bags(NamedTuple):
    """Bags with a weight each, held for matching and for painting."""

    matched: Counts
    painted: Counts
    weights: Array

    def rows(self, rows: slice) -> "Bags":
        return Bags(self.matched.rows(rows), self.painted.rows(rows), self.weights[rows])


class Pool(Protocol):
    """Runs independent pieces of work, and limits how many bags times cells are held at a time."""

    @property
    def block_entries(self) -> int: ...

    @property
    def piece_entries(self) -> int: ...

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]: ...
