"""Which cells can matter to a bag: bounds that are carried from one iteration to the next.

The cells are grouped into tiles. For every bag and tile a number is kept that log p(bag, cell) cannot exceed anywhere
in the tile. When the grid moves, this bound rises by what the bag has in common with the largest rise of log h in the
tile: a product of a sixteenth the size of the whole matching. Tiles that cannot come near the best cell are left alone,
the others are worked out cell by cell, and their bounds are exact again.

No bound decides about a result: a posterior with few cells is always worked out by the same loops from the same
cells, whether bounds or a full product found them. So it is the same to the last bit with and without bounds.
"""

from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countinggrids import arrays
from countinggrids.compiling import compiled
from countinggrids.geometry import Shape
from countinggrids.posterior import LOST, SPARSE_BELOW, Scores
from countinggrids.products import Counts, DenseCounts

Array = arrays.Array

TILE_SIDE = {1: 16, 2: 4, 3: 3}
"""Cells along each axis of a tile, by the number of axes; two where there are more axes."""
WORTHWHILE = 2**28
"""Multiplications of a full matching from which bounds pay, compiling the loops included."""
LARGEST_TABLE = 2**22
"""Numbers of log h, of which two more copies are held, up to which bounds are used."""
MOST_BOUNDS = 2**23
"""Bags times tiles whose bounds may be kept (32 MB)."""
FEW_TILES = 1 / 4
"""Share of the tiles from which it is quicker to match all cells."""
NEARLY = 1.1
"""Times the most cells, from which on rounding cannot make them few."""
ROUNDING = 1000
"""Roundings of the best log-likelihood that bounds may be off by, after hundreds of iterations."""


class Windows:
    """What bags are matched with.

    Parameters
    ----------
    table : beta log h, (features, *grid)
    log_prior : log P, (*grid,)
    """

    def __init__(self, table: Array, log_prior: Array):
        self.table, self.log_prior = table, log_prior
        self._rise: tuple[Windows, Array, Array] | None = None

    def __sizeof__(self) -> int:
        """Give the bytes of its arrays, for who has to send it."""
        return int(self.table.nbytes + self.log_prior.nbytes)

    @cached_property
    def by_cell(self) -> Array:
        """Give the table as (cells, features)."""
        planes = self.table.reshape(len(self.table), -1)
        turned = np.empty(planes.shape[::-1], planes.dtype)
        compiled(_turn)(planes, turned)
        return turned

    def rise_since(self, before: "Windows", tiles: "Tiles") -> tuple[Array, Array]:
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


class Tiles(NamedTuple):
    """Cells in groups of neighbours.

    Attributes
    ----------
    cells : of each tile, (tiles, size); where a tile is cut off by the end of the grid, its first cell fills it up
    is_real : whether a cell is the tile's own, (tiles, size)
    places : where each section of a window at each cell begins, (sections, tiles, size)
    """

    cells: Array
    is_real: Array
    places: Array


@lru_cache(maxsize=16)
def tiles_of(grid: Shape, offsets: tuple[Shape, ...]) -> Tiles:
    """Cut a grid into tiles."""
    side = TILE_SIDE.get(len(grid), 2)
    at = np.indices(grid).reshape(len(grid), -1)
    counts = [-(-e // side) for e in grid]
    tile = np.atleast_1d(np.ravel_multi_index(tuple(at // side), counts))
    size = -(-(side ** len(grid)) // 4) * 4
    order = np.argsort(tile, kind="stable")
    ends = np.searchsorted(tile[order], np.arange(prod(counts) + 1))
    slots = np.arange(size)
    is_real = slots < np.diff(ends)[:, None]
    cells = order[ends[:-1, None] + np.where(is_real, slots, 0)]
    begins = [np.ravel_multi_index(tuple(at + np.array(offset)[:, None]), grid, mode="wrap") for offset in offsets]
    return Tiles(cells, is_real, np.stack(begins)[:, cells])


class Shortlist:
    """What one iteration leaves to the next about a share of the bags: their bounds, and the windows these held for.

    It is taken out and put back as a whole, so that an iteration that is broken off leaves nothing half done.

    Parameters
    ----------
    room : bags times tiles that may be kept
    """

    def __init__(self, room: int = MOST_BOUNDS):
        self.room = room
        self._kept: list[tuple[Array, Windows]] = []

    def take(self) -> tuple[Array, Windows] | None:
        """Take out what was left, if anything was."""
        try:
            return self._kept.pop()
        except IndexError:
            return None

    def put(self, upper: Array, windows: Windows) -> None:
        """Leave bounds, if there is room for them."""
        if upper.size <= self.room:
            self._kept = [(upper, windows)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process without what is kept: it is made again sooner than moved."""
        return Shortlist, (self.room,)


class Search:
    """Looks for the few cells that matter to each of some bags, at one iteration.

    Parameters
    ----------
    counts : the bags
    windows : what they are matched with
    upper : what log p(bag, cell) cannot exceed in each tile, (bags, tiles), before the windows rose; infinite where
        nothing is known
    rise : of the windows since then, as `Windows.rise_since` gives it
    """

    def __init__(self, counts: DenseCounts, windows: Windows, upper: Array, rise: tuple[Array, Array] | None):
        self.counts, self.windows, self.upper, self.rise = counts, windows, upper, rise
        self.tiles = tiles_of(counts.grid, tuple(counts.offsets))
        prior = windows.log_prior.ravel()[self.tiles.cells]
        self.prior = np.where(self.tiles.is_real, prior, -np.inf).astype(upper.dtype, copy=False)

    @classmethod
    def of(cls, counts: Counts, windows: Windows, shortlist: Shortlist | None) -> "Search | None":
        """Begin a search; None where the bags are so few, or held such, that it does not pay."""
        if (
            not isinstance(counts, DenseCounts)
            or not (arrays.is_numpy(counts.matrix) and arrays.is_numpy(windows.table))
            or counts.shape[1] * prod(counts.grid) > LARGEST_TABLE
            or prod(counts.shape) * prod(counts.grid) < WORTHWHILE
        ):
            return None
        tiles = tiles_of(counts.grid, tuple(counts.offsets))
        left = shortlist.take() if shortlist else None
        if left:
            return cls(counts, windows, left[0], windows.rise_since(left[1], tiles))
        return cls(counts, windows, np.full((counts.shape[0], len(tiles.cells)), np.inf, windows.table.dtype), None)

    def rows(self, rows: slice) -> "Search":
        """Search for some of the bags; their bounds are the same ones."""
        return Search(self.counts.rows(rows), self.windows, self.upper[rows], self.rise)

    def leave(self, shortlist: Shortlist) -> None:
        """Leave the bounds to the next iteration, if any are known."""
        if (self.upper[:, 0] < np.inf).any():
            shortlist.put(self.upper, self.windows)

    def by_bounds(self, rows: slice) -> tuple[Any, Array] | None:
        """Give q, CSR, and log p(bag) of some bags; None where the bounds leave too many tiles."""
        upper = self.upper[rows]
        if self.rise is None or upper[0, 0] == np.inf:
            return None
        rise, of_prior = self.rise
        upper += self.counts.matrix[rows] @ rise.T
        upper += of_prior
        return self._found(rows, FEW_TILES)

    def by_scores(self, rows: slice, scores: Scores) -> tuple[Any, Array] | None:
        """The same from log p(bag, cell) of all cells; None where too many cells matter."""
        upper = self.upper[rows]
        found = None
        if scores.n_near <= NEARLY * SPARSE_BELOW * scores.joint.size:
            compiled(_highest)(scores.joint, self.tiles.cells, upper)
            found = self._found(rows, 1.0)
        floor = scores.best + LOST[scores.best.dtype.name]
        if found is None or np.count_nonzero(upper > floor[:, None]) > FEW_TILES / 2 * upper.size:
            upper[:] = np.inf  # bounds would not pay in the next iteration
        return found

    def _found(self, rows: slice, few: float) -> tuple[Any, Array] | None:
        counts, upper = self.counts.matrix[rows], self.upper[rows]
        n_bags, n_cells = len(counts), prod(self.counts.grid)
        dtype = upper.dtype
        cells = np.empty(int(SPARSE_BELOW * n_bags * n_cells), np.int32)
        q, ends = np.empty(cells.size, dtype), np.empty(n_bags + 1, np.int32)
        log_likelihood = np.empty(n_bags)
        n_kept = compiled(_work_out, True)(
            counts, self.windows.by_cell, self.tiles.places, self.prior, self.tiles.cells, upper, LOST[dtype.name],
            dtype.type(ROUNDING * np.finfo(dtype).eps), dtype.type(-np.inf), few, cells, q, ends, log_likelihood,
        )  # fmt: skip
        if n_kept < 0:
            return None
        return sp.csr_array((q[:n_kept], cells[:n_kept], ends), shape=(n_bags, n_cells)), log_likelihood


def _work_out(  # type: ignore[no-untyped-def]
    counts, table, places, prior, cells, upper, lost, rounding, lowest, few, kept, q, ends, log_likelihood
):
    """Work out q of bags from the tiles that may matter; give how many cells it has, or -1 where they are too many."""
    n_bags, n_tiles, size = counts.shape[0], cells.shape[0], cells.shape[1]
    n_features = table.shape[1]
    scores = np.empty((int(few * n_bags * n_tiles) + 1, size), table.dtype)
    scored = np.full((n_bags, n_tiles), -1, np.int32)
    best = np.full(n_bags, lowest)
    floor = np.full(n_bags, lowest)
    first = np.empty(n_bags, np.int32)
    waiting, n_waiting = np.empty((n_tiles, n_bags + 1), np.int32), np.zeros(n_tiles, np.int32)
    n_scored = 0
    for is_first in (True, False):  # the tile that promises most, then those it leaves
        n_waiting[:] = 0
        for t in range(n_bags):
            if is_first:
                first[t] = np.argmax(upper[t])
                waiting[first[t], n_waiting[first[t]]] = t
                n_waiting[first[t]] += 1
                continue
            for tile in range(n_tiles):
                if upper[t, tile] >= floor[t] and tile != first[t]:
                    waiting[tile, n_waiting[tile]] = t
                    n_waiting[tile] += 1
        for tile in range(n_tiles):
            bags, n_here = waiting[tile], 0
            for i in range(n_waiting[tile]):
                if upper[bags[i], tile] >= floor[bags[i]]:  # other tiles may have raised it since
                    bags[n_here] = bags[i]
                    n_here += 1
            if n_scored + n_here >= len(scores):
                return -1
            bags[n_here] = bags[max(n_here - 1, 0)]
            for i in range(0, n_here, 2):  # two bags share what is read of the table; the last may be its own neighbour
                for k in range(0, size, 4):
                    a = b = c = d = e = f = g = h = rounding - rounding
                    for section in range(places.shape[0]):
                        at, start = places[section, tile], section * n_features
                        at_a, at_b, at_c, at_d = table[at[k]], table[at[k + 1]], table[at[k + 2]], table[at[k + 3]]
                        one = counts[bags[i], start : start + n_features]
                        other = counts[bags[i + 1], start : start + n_features]
                        for z in range(n_features):
                            a += one[z] * at_a[z]
                            b += one[z] * at_b[z]
                            c += one[z] * at_c[z]
                            d += one[z] * at_d[z]
                            e += other[z] * at_a[z]
                            f += other[z] * at_b[z]
                            g += other[z] * at_c[z]
                            h += other[z] * at_d[z]
                    of_one, of_other, of_prior = scores[n_scored + i], scores[n_scored + i + 1], prior[tile]
                    of_one[k], of_other[k] = a + of_prior[k], e + of_prior[k]
                    of_one[k + 1], of_other[k + 1] = b + of_prior[k + 1], f + of_prior[k + 1]
                    of_one[k + 2], of_other[k + 2] = c + of_prior[k + 2], g + of_prior[k + 2]
                    of_one[k + 3], of_other[k + 3] = d + of_prior[k + 3], h + of_prior[k + 3]
            for i in range(n_here):
                t, top = bags[i], lowest
                for k in range(size):
                    top = max(top, scores[n_scored, k])
                upper[t, tile] = top
                scored[t, tile] = n_scored
                n_scored += 1
                if top > best[t]:
                    best[t] = top
                    floor[t] = top + lost - rounding * abs(top)
    n_kept = 0
    for t in range(n_bags):
        total = 0.0
        ends[t] = n_kept
        for tile in range(n_tiles):
            if scored[t, tile] < 0 or upper[t, tile] <= best[t] + lost:
                continue
            for k in range(size):
                score = scores[scored[t, tile], k]
                if score > best[t] + lost:
                    if n_kept == kept.size:
                        return -1
                    kept[n_kept] = cells[tile, k]
                    q[n_kept] = np.exp(score - best[t])
                    total += q[n_kept]
                    n_kept += 1
        for at_q in range(ends[t], n_kept):
            q[at_q] /= total
        log_likelihood[t] = best[t] + np.log(total)
    ends[n_bags] = n_kept
    return n_kept


def _rise(now, before, places, rise):  # type: ignore[no-untyped-def]
    """Find by how much each column has risen at the most in each tile."""
    n_features = now.shape[1]
    for section in range(places.shape[0]):
        for tile in range(places.shape[1]):
            at, most = places[section, tile], rise[tile, section * n_features : (section + 1) * n_features]
            most[:] = now[at[0]] - before[at[0]]
            for k in range(1, at.size):
                new, old = now[at[k]], before[at[k]]
                for z in range(n_features):
                    most[z] = max(most[z], new[z] - old[z])


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
            upper[t, tile] = max(max(a, b), max(c, d))


def _turn(planes, turned):  # type: ignore[no-untyped-def]
    """Transpose, a few cells at a time: both sides stay in cache."""
    for start in range(0, len(turned), 16):
        stop = min(start + 16, len(turned))
        for z in range(len(planes)):
            for cell in range(start, stop):
                turned[cell, z] = planes[z, cell]
