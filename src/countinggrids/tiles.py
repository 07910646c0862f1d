"""Cells in groups of neighbours, and the posterior of bags that lie in few of these groups.

Bags are matched with whole tiles and painted onto whole tiles: what is read of a bag serves all cells of one. The order
in which anything is added up depends only on the tiles that hold a cell that counts, so that a tile more, looked at
in vain, changes no bit.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from countinggrids import arrays
from countinggrids.compiling import compiled
from countinggrids.geometry import Shape

Array = arrays.Array

SIDE = {1: 16, 2: 4, 3: 3}
"""Cells along each axis of a tile, by the number of axes; two where there are more axes."""
TOGETHER = 8
"""Bags that `_paint`, written out for so many, takes in one pass over a cell; tiles are made up to multiples of it."""


class Tiles(NamedTuple):
    """Cells in groups of neighbours.

    Attributes
    ----------
    cells : of each tile, (tiles, size); where a tile is cut off by the end of the grid, its first cell fills it up
    is_real : whether a cell is the tile's own, (tiles, size)
    places : where each section of a window at each cell begins, (sections, tiles, size)
    slots : where each cell is among those of all tiles, (cells,)
    """

    cells: Array
    is_real: Array
    places: Array
    slots: Array

    def of_cells(self, values: Array, filling: float) -> Array:
        """Bring values of the cells into the order of the tiles, (tiles, size); what fills tiles up gets another."""
        return np.where(self.is_real, values.ravel()[self.cells], values.dtype.type(filling))


@lru_cache(maxsize=16)
def tiles_of(grid: Shape, offsets: tuple[Shape, ...]) -> Tiles:
    """Cut a grid into tiles."""
    side = SIDE.get(len(grid), 2)
    at = np.indices(grid).reshape(len(grid), -1)
    counts = [-(-e // side) for e in grid]
    tile = np.atleast_1d(np.ravel_multi_index(tuple(at // side), counts))
    size = -(-(side ** len(grid)) // 4) * 4
    order = np.argsort(tile, kind="stable")
    ends = np.searchsorted(tile[order], np.arange(prod(counts) + 1))
    within = np.arange(size)
    is_real = within < np.diff(ends)[:, None]
    cells = order[ends[:-1, None] + np.where(is_real, within, 0)]
    begins = [np.ravel_multi_index(tuple(at + np.array(offset)[:, None]), grid, mode="wrap") for offset in offsets]
    slots = np.empty(prod(grid), np.int64)
    slots[cells[is_real]] = np.flatnonzero(is_real)
    return Tiles(cells, is_real, np.stack(begins)[:, cells], slots)


class Part(NamedTuple):
    """q of a run of bags, for pairs of a bag and a tile in which it lies.

    Attributes
    ----------
    rows : the run
    bags : of the pairs, counted from the first bag of the run; tile after tile, (pairs,)
    q : in the cells of the tile, (pairs, size); zero in pairs that make a tile up to a multiple of `TOGETHER`
    ends : where the pairs of each tile begin, and where the last ones end, (tiles + 1,)
    """

    rows: slice
    bags: Array
    q: Array
    ends: Array


class TiledPosterior:
    """q of bags that lie in few tiles.

    Parameters
    ----------
    tiles : of the grid
    parts : run after run of the bags
    """

    def __init__(self, tiles: Tiles, parts: Sequence[Part]):
        self.tiles, self.parts = tiles, parts

    def weigh(self, weights: Array) -> None:
        """Multiply the q of each bag by a weight, (bags,)."""
        for rows, bags, q, _ in self.parts:
            q *= weights[rows].astype(q.dtype, copy=False)[bags, None]

    def sum(self, axis: int) -> Array:
        """Add q up over the bags, which are axis 0; gives (cells,)."""
        assert axis == 0
        total = np.zeros(self.tiles.cells.shape)
        for _, _, q, ends in self.parts:
            compiled(_add_up)(q, ends, total)
        return total.ravel()[self.tiles.slots]

    def write(self, out: Array) -> None:
        """Write q of these bags into an array, (bags, cells)."""
        for rows, bags, q, ends in self.parts:
            pairs, within = np.nonzero(q)
            tile = np.searchsorted(ends, pairs, side="right") - 1
            out[rows] = 0
            out[rows.start + bags[pairs], self.tiles.cells[tile, within]] = q[pairs, within]

    def paint(self, counts: Array, tiles: slice, by_cell: Array) -> None:
        """Compute q.T @ counts for the cells of some tiles, into `by_cell`, (cells, columns)."""
        cells, is_real = self.tiles.cells[tiles], self.tiles.is_real[tiles]
        painted = np.zeros((*cells.shape, counts.shape[1]), by_cell.dtype)
        for rows, bags, q, ends in self.parts:
            compiled(_paint, True)(counts[rows], bags, q, ends[tiles.start : tiles.stop + 1], painted)
        by_cell[cells[is_real]] = painted[is_real]


def find(
    counts: Array, table: Array, tiles: Tiles, prior: Array, upper: Array, slots: Array,
    lost: float, rounding: float, most: float, few: float, rows: slice,
) -> tuple[Part, Array] | None:  # fmt: skip
    """Work out the posterior of a run of bags from the tiles that may matter; None where too many of them do.

    Parameters
    ----------
    counts : of the bags, (bags, columns)
    table : beta log h, (cells, features)
    prior : log P, (tiles, size)
    upper : what log p(bag, cell) cannot exceed in each tile, (tiles, bags); exact after it where a tile was looked at
    slots : of a cell that is likely to be the best of each bag, (bags,); of the best one after it
    lost : logarithm of the posterior, against the best cell's, from which a cell is dropped
    rounding : of log p(bag, cell), by which bounds may be off, as a share of it
    most, few : share of the tiles that may be looked at, and that may count, made up to multiples of `TOGETHER`
    rows : the run

    Returns
    -------
    q, and log p(bag), (bags,)
    """
    n_tiles, n_bags = upper.shape
    number, most_pairs = table.dtype.type, int(most * n_tiles * n_bags)
    places, lost, floor = tiles.places, number(lost), np.empty(n_bags, table.dtype)
    ends, bags = np.zeros(n_tiles + 1, np.int64), np.empty(most_pairs + n_bags + 1, np.int32)
    n = compiled(_open, True)(
        counts, table, places, prior, upper, slots, lost, number(rounding), most_pairs, bags, ends, floor
    )
    if n < 0:
        return None
    scores, best = np.empty((n, prior.shape[1]), table.dtype), np.full(n_bags, -np.inf, table.dtype)
    n_pairs = compiled(_match, True)(
        counts, table, places, prior, bags, ends, lost, TOGETHER, scores, upper, best, slots
    )
    if n_pairs > few * n_tiles * n_bags:
        return None
    kept, q = np.empty(n_pairs, np.int32), np.empty((n_pairs, prior.shape[1]), table.dtype)
    kept_ends, total = np.zeros(n_tiles + 1, np.int64), np.zeros(n_bags, table.dtype)
    exp = arrays.compiled_exp(table.dtype)
    compiled(_weigh, True)(bags, ends, scores, upper, best, lost, TOGETHER, exp, kept, q, kept_ends, total)
    return Part(rows, kept, q, kept_ends), best + np.log(total, dtype=np.float64)


def _open(counts, table, places, prior, upper, slots, lost, rounding, most, bags, ends, floor):  # type: ignore[no-untyped-def]
    """List the bags of each tile that may come near their best cell; give how many, or -1 if that is too many."""
    n, size, n_features = 0, prior.shape[1], table.shape[1]
    for t in range(floor.size):
        tile, k = slots[t] // size, slots[t] % size
        total = prior[tile, k]
        for section in range(places.shape[0]):
            cell = places[section, tile, k]
            for z in range(n_features):
                total += counts[t, section * n_features + z] * table[cell, z]
        floor[t] = total + (lost - rounding * abs(total))
    for tile in range(prior.shape[0]):
        for t in range(floor.size):
            bags[n] = t
            n += upper[tile, t] >= floor[t]
        ends[tile + 1] = n
        if n > most:
            return -1
    return n


def _match(  # type: ignore[no-untyped-def]
    counts, table, places, prior, bags, ends, lost, together, scores, upper, best, slots
):
    """Compute log p(bag, cell) of tiles, the highest of each tile and of each bag; give how many pairs are to paint."""
    size, n_features = prior.shape[1], table.shape[1]
    for tile in range(prior.shape[0]):
        last = ends[tile + 1] - 1
        for i in range(ends[tile], last + 1, 2):  # two bags share what is read of the table; the last may be alone
            j = min(i + 1, last)
            for k in range(0, size, 4):
                a, b, c, d = prior[tile, k], prior[tile, k + 1], prior[tile, k + 2], prior[tile, k + 3]
                e, f, g, h = a, b, c, d
                for section in range(places.shape[0]):
                    at, start = places[section, tile], section * n_features
                    at_a, at_b, at_c, at_d = table[at[k]], table[at[k + 1]], table[at[k + 2]], table[at[k + 3]]
                    one = counts[bags[i], start : start + n_features]
                    other = counts[bags[j], start : start + n_features]
                    for z in range(n_features):
                        a += one[z] * at_a[z]
                        b += one[z] * at_b[z]
                        c += one[z] * at_c[z]
                        d += one[z] * at_d[z]
                        e += other[z] * at_a[z]
                        f += other[z] * at_b[z]
                        g += other[z] * at_c[z]
                        h += other[z] * at_d[z]
                scores[i, k], scores[i, k + 1], scores[i, k + 2], scores[i, k + 3] = a, b, c, d
                scores[j, k], scores[j, k + 1], scores[j, k + 2], scores[j, k + 3] = e, f, g, h
        for i in range(ends[tile], last + 1):
            t, row, top = bags[i], scores[i], scores[i, 0]
            for k in range(1, size):
                top = max(top, row[k])
            upper[tile, t] = top
            if top > best[t]:
                best[t] = top
                for k in range(size):
                    if row[k] == top:
                        slots[t] = tile * size + k
    n_pairs = 0
    for tile in range(prior.shape[0]):
        n = 0
        for i in range(ends[tile], ends[tile + 1]):
            n += upper[tile, bags[i]] > best[bags[i]] + lost
        n_pairs += -(-n // together) * together
    return n_pairs


def _weigh(bags, ends, scores, upper, best, lost, together, exp, kept, q, kept_ends, total):  # type: ignore[no-untyped-def]
    """Exponentiate the scores of tiles that count, and divide them by each bag's total."""
    n, size = 0, scores.shape[1]
    for tile in range(ends.size - 1):
        for i in range(ends[tile], ends[tile + 1]):
            if upper[tile, bags[i]] > best[bags[i]] + lost:
                kept[n] = bags[i]
                for k in range(size):
                    q[n, k] = scores[i, k] - best[bags[i]]
                n += 1
        while (n - kept_ends[tile]) % together:
            kept[n] = kept[n - 1]
            for k in range(size):
                q[n, k] = lost
            n += 1
        kept_ends[tile + 1] = n
    flat = q.reshape(-1)
    for e in range(flat.size):  # one long loop takes many at a time
        flat[e] = exp(flat[e]) if flat[e] > lost else lost - lost
    for i in range(n):
        part = lost - lost
        for k in range(size):
            part += q[i, k]
        total[kept[i]] += part
    share = np.empty_like(total)
    for t in range(total.size):
        share[t] = 1 / total[t]
    for i in range(n):
        of_bag = share[kept[i]]
        for k in range(size):
            q[i, k] *= of_bag


def _paint(counts, bags, q, ends, painted):  # type: ignore[no-untyped-def]
    for tile in range(ends.size - 1):
        for i in range(ends[tile], ends[tile + 1], 8):
            a, b, c, d = counts[bags[i]], counts[bags[i + 1]], counts[bags[i + 2]], counts[bags[i + 3]]
            e, f, g, h = counts[bags[i + 4]], counts[bags[i + 5]], counts[bags[i + 6]], counts[bags[i + 7]]
            for k in range(q.shape[1]):
                of_a, of_b, of_c, of_d = q[i, k], q[i + 1, k], q[i + 2, k], q[i + 3, k]
                of_e, of_f, of_g, of_h = q[i + 4, k], q[i + 5, k], q[i + 6, k], q[i + 7, k]
                if of_a + of_b + of_c + of_d + of_e + of_f + of_g + of_h == 0:
                    continue
                cell = painted[tile, k]
                for z in range(cell.size):
                    first = (of_a * a[z] + of_b * b[z]) + (of_c * c[z] + of_d * d[z])
                    cell[z] += first + ((of_e * e[z] + of_f * f[z]) + (of_g * g[z] + of_h * h[z]))


def _add_up(q, ends, total):  # type: ignore[no-untyped-def]
    for tile in range(ends.size - 1):
        for i in range(ends[tile], ends[tile + 1]):
            for k in range(q.shape[1]):
                total[tile, k] += q[i, k]
