"""Which tiles can matter to a bag: bounds that are carried from one iteration to the next.

For every bag and tile a number is kept that log p(bag, cell) cannot exceed anywhere in the tile. When the grid moves,
this bound rises by what the bag has in common with the largest rise of log h in the tile: a product of a sixteenth the
size of the whole matching. Tiles that cannot come near the best cell are left alone, the others are worked out cell by
cell, and their bounds are exact again.

No bound decides about a result: a posterior in few tiles is always worked out by the same loops from the same cells,
whether bounds or a full product found them. So it is the same to the last bit with and without bounds.
"""

from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from countinggrids import arrays, tiles
from countinggrids.compiling import compiled
from countinggrids.posterior import LOST, Scores
from countinggrids.products import Counts, DenseCounts
from countinggrids.tiles import Part, Tiles

Array = arrays.Array

WORTHWHILE = 2**28
"""Multiplications of a full matching from which bounds pay; compiling their loops first takes what a few fits gain."""
LARGEST_TABLE = 2**22
"""Numbers of log h, of which two more copies are held, up to which bounds are used."""
MOST_BOUNDS = 2**23
"""Bags times tiles whose bounds may be kept (32 MB)."""
FEW_TILES = 0.4
"""Share of the tiles that may hold a cell that counts; where more do, all cells are matched and painted."""
MOST_TILES = 0.6
"""Share of the tiles that bounds may leave; where they leave more, it is quicker to match all cells."""
NEARLY = 1.1
"""Times the most tiles or cells, from which on rounding cannot make them few."""
ROUNDING = 1000
"""Roundings of the best log-likelihood that bounds may be off by, after hundreds of iterations."""


class Windows:
    """What bags are matched with.

    Parameters
    ----------
    table : beta log h, (features, *grid)
    log_prior : log P, (*grid,)
    copies : of the grid, side by side
    """

    def __init__(self, table: Array, log_prior: Array, copies: int = 1):
        self.table, self.log_prior, self.copies = table, log_prior, copies
        self._rise: tuple[Windows, Array, Array] | None = None

    def __sizeof__(self) -> int:
        """Give the bytes of its arrays, for who has to send it."""
        return int(self.table.nbytes + self.log_prior.nbytes)

    @cached_property
    def by_cell(self) -> Array:
        """Give the table as (cells, features)."""
        return arrays.turned(self.table.reshape(len(self.table), -1))

    def rise_since(self, before: "Windows", tiles: Tiles) -> tuple[Array, Array]:
        """Give by how much log h has risen at the most in each tile, (tiles, columns), and log P, (tiles,).

        All shares of the bags ask for the same, so it is kept.
        """
        known = self._rise
        if known is None or known[0] is not before:
            n_sections, n_tiles, _ = tiles.places.shape
            rise = np.empty((n_tiles, n_sections * len(self.table)), self.table.dtype)
            compiled(_rise)(self.by_cell, before.by_cell, tiles.places, rise)
            of_prior = (self.log_prior - before.log_prior).ravel()[tiles.cells].max(axis=1)
            before._rise = None  # or every iteration would hold the one before it
            self._rise = known = before, rise, of_prior
        return known[1:]


class Bounds(NamedTuple):
    """What is known of bags at some iteration.

    Attributes
    ----------
    upper : what log p(bag, cell) cannot exceed in each tile, (tiles, bags); infinite where nothing is known
    slots : where their best cell was, among those of all tiles, (bags,)
    """

    upper: Array
    slots: Array

    def of(self, rows: slice) -> "Bounds":
        """Give those of some bags; they are the same ones."""
        return Bounds(self.upper[:, rows], self.slots[rows])


class Shortlist:
    """What one iteration leaves to the next about a share of the bags: their bounds, and the windows these held for.

    It is taken out and put back as a whole, so that an iteration that is broken off leaves nothing half done.

    Parameters
    ----------
    room : bags times tiles that may be kept
    """

    def __init__(self, room: int = MOST_BOUNDS):
        self.room = room
        self._kept: list[tuple[Bounds, Windows]] = []

    def take(self) -> tuple[Bounds, Windows] | None:
        """Take out what was left, if anything was."""
        try:
            return self._kept.pop()
        except IndexError:
            return None

    def put(self, bounds: Bounds, windows: Windows) -> None:
        """Leave bounds, if there is room for them."""
        if bounds.upper.size <= self.room:
            self._kept = [(bounds, windows)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process without what is kept: it is made again sooner than moved."""
        return Shortlist, (self.room,)


class Search:
    """Looks for the few tiles that matter to each of some bags, at one iteration.

    Parameters
    ----------
    counts : the bags
    windows : what they are matched with
    bounds : of the bags, before the windows rose
    rise : of the windows since then, as `Windows.rise_since` gives it
    """

    def __init__(self, counts: DenseCounts, windows: Windows, bounds: Bounds, rise: tuple[Array, Array] | None):
        self.counts, self.windows, self.bounds, self.rise = counts, windows, bounds, rise
        self.tiles = tiles.tiles_of(counts.grid, tuple(counts.offsets))
        self.prior = self.tiles.of_cells(windows.log_prior, -np.inf)

    @classmethod
    def of(cls, counts: Counts, windows: Windows, shortlist: Shortlist | None) -> "Search | None":
        """Begin a search; None where the bags are so few, or held such, that it does not pay."""
        if (
            not isinstance(counts, DenseCounts)
            or windows.copies > 1
            or not (arrays.is_numpy(counts.matrix) and arrays.is_numpy(windows.table))
            or counts.shape[1] * prod(counts.grid) > LARGEST_TABLE
            or prod(counts.shape) * prod(counts.grid) < WORTHWHILE
        ):
            return None
        grid_tiles = tiles.tiles_of(counts.grid, tuple(counts.offsets))
        left = shortlist.take() if shortlist else None
        if left:
            return cls(counts, windows, left[0], windows.rise_since(left[1], grid_tiles))
        n_bags = counts.shape[0]
        upper = np.full((len(grid_tiles.cells), n_bags), np.inf, windows.table.dtype)
        return cls(counts, windows, Bounds(upper, np.zeros(n_bags, np.int64)), None)

    def rows(self, rows: slice) -> "Search":
        """Search for some of the bags; their bounds are the same ones."""
        return Search(self.counts.rows(rows), self.windows, self.bounds.of(rows), self.rise)

    def leave(self, shortlist: Shortlist) -> None:
        """Leave the bounds to the next iteration, if any are known."""
        if (self.bounds.upper[0] < np.inf).any():
            shortlist.put(self.bounds, self.windows)

    def by_bounds(self, rows: slice) -> tuple[Part, Array] | None:
        """Give q and log p(bag) of some bags; None where the bounds leave too many tiles."""
        upper = self.bounds.upper[:, rows]
        if self.rise is None or upper[0, 0] == np.inf:
            return None
        rise, of_prior = self.rise
        upper += rise @ self.counts.matrix[rows].T
        upper += of_prior[:, None]
        return self._found(rows, MOST_TILES)

    def by_scores(self, rows: slice, scores: Scores) -> tuple[Part, Array] | None:
        """The same from log p(bag, cell) of all cells; None where too many tiles matter."""
        upper, slots = self.bounds.of(rows)
        found, most = None, NEARLY * FEW_TILES * upper.size
        if scores.n_near <= most * self.prior.shape[1]:
            compiled(_highest)(scores.joint, self.tiles.cells, upper)
            if np.count_nonzero(upper > scores.best + LOST[scores.best.dtype.name]) <= most:
                slots[:] = self.tiles.slots[scores.joint.argmax(axis=1)]
                found = self._found(rows, 1.0)  # however many are looked at: only what counts may decide
        if found is None:
            upper[:] = np.inf  # bounds would not pay in the next iteration
        return found

    def _found(self, rows: slice, most: float) -> tuple[Part, Array] | None:
        bounds, dtype = self.bounds.of(rows), self.windows.table.dtype
        return tiles.find(
            self.counts.matrix[rows], self.windows.by_cell, self.tiles, self.prior, *bounds,
            LOST[dtype.name], ROUNDING * np.finfo(dtype).eps, most, FEW_TILES, rows,
        )  # fmt: skip


def _rise(now, before, places, rise):  # type: ignore[no-untyped-def]
    """Find by how much each column has risen at the most in each tile."""
    n_features = now.shape[1]
    for section in range(places.shape[0]):
        for tile in range(places.shape[1]):
            at, most = places[section, tile], rise[tile, section * n_features : (section + 1) * n_features]
            for k in range(at.size):
                new, old = now[at[k]], before[at[k]]
                for z in range(n_features):
                    change = new[z] - old[z]
                    most[z] = change if k == 0 else max(most[z], change)


def _highest(joint, cells, upper):  # type: ignore[no-untyped-def]
    """Find the highest number of every row in each tile."""
    for t in range(joint.shape[0]):
        row = joint[t]
        for tile in range(cells.shape[0]):
            at = cells[tile]
            a, b, c, d = row[at[0]], row[at[1]], row[at[2]], row[at[3]]
            for k in range(4, at.size, 4):
                a, b = max(a, row[at[k]]), max(b, row[at[k + 1]])
                c, d = max(c, row[at[k + 2]]), max(d, row[at[k + 3]])
            upper[tile, t] = max(max(a, b), max(c, d))
