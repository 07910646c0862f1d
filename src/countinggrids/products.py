"""The two matrix products of one EM iteration, for bags held dense or sparse.

*Matching* compares every bag with every window; *painting* lays every bag down where its windows are:

    match:  L[t, k] = sum_s sum_z  counts[t, s, z] table[z, k + d_s]
    paint:  A[z, j] = sum_s sum_t  counts[t, s, z] q[t, j - d_s]

`d_s` is the offset of section s. Painting adds to a *canvas*, so that many blocks of bags need only one; `planes` turns
it into A. Work is handed out through `run.map`; how it is cut never changes a result.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from countinggrids import arrays, torus
from countinggrids.bags import rows_of
from countinggrids.compiling import compiled
from countinggrids.geometry import Shape
from countinggrids.tiles import TiledPosterior

Array = arrays.Array

DENSE_FROM = 1 / 8
"""Share of non-zero counts from which a BLAS product beats a sparse one (measured)."""
SMALL = 2**26
"""Products of fewer multiplications than this are dense whatever the share: nothing needs compiling then."""
WORTH_A_THREAD = 2**24
"""Multiplications below which handing a product to another thread costs more than it saves."""
LONGEST_RUN = 2
"""Padded cells for each cell, up to which sparse bags are matched with all of them in one go."""
WORTH_COMPILING = 2**28
"""Multiplications of the dense product from which painting from a sparse q is compiled."""


class Runner(Protocol):
    """Carries out independent pieces of work and gives their results in order."""

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]: ...


class DenseCounts:
    """Bags multiplied by BLAS, section by section; on the device of the table, where a few go at a time."""

    is_dense = True

    def __init__(self, matrix: Any, n_features: int, offsets: Sequence[Shape], grid: Shape):
        self.matrix, self.n_features, self.offsets, self.grid = matrix, n_features, offsets, grid
        self.shape = matrix.shape

    def rows(self, rows: slice) -> "DenseCounts":
        return DenseCounts(rows_of(self.matrix, rows), self.n_features, self.offsets, self.grid)

    def prepare(self, table: Array) -> Array:
        """Bring a table of planes, (features, *grid), into the form that `match` reads."""
        return table.reshape(self.n_features, -1)

    def match(self, table: Array, rows: slice, out: Array) -> Array:
        """Compute L for some rows, into `out`, (rows, cells)."""
        counts = arrays.like(table, _dense(self.matrix[rows]))
        arrays.namespace(table).matmul(counts[:, self._columns(0)], table, out=out)  # at the window's corner
        for section, offset in enumerate(self.offsets[1:], 1):
            part = counts[:, self._columns(section)] @ table
            out += torus.shift(part.reshape(-1, *self.grid), offset).reshape(part.shape)
        return out

    def canvas(self, table: Array) -> Array:
        """Make what `paint` adds to, of the table's kind."""
        xp = arrays.namespace(table)
        return xp.zeros((self.n_features, *self.grid), dtype=table.dtype, device=table.device)

    def paint(self, q: Any, run: Runner, canvas: Array) -> None:
        """Add A of these bags to the canvas."""
        counts = arrays.like(canvas, _dense(self.matrix))
        paint = _paint_tiles if isinstance(q, TiledPosterior) else _paint_sparsely if sp.issparse(q) else _paint_densely
        # NumPy is quickest with all sections in one product; a device may not have the memory for that.
        at_once = len(self.offsets) if arrays.is_numpy(canvas) else 1
        for first in range(0, len(self.offsets), at_once):
            columns = slice(first * self.n_features, (first + at_once) * self.n_features)
            planes = paint(q, counts[:, columns], run).reshape(at_once, self.n_features, *self.grid)
            for plane, offset in zip(planes, self.offsets[first : first + at_once], strict=True):
                canvas += torus.shift(plane, [-d for d in offset])

    def planes(self, canvas: Array) -> Array:
        """Turn a canvas into A, (features, *grid)."""
        return canvas

    def _columns(self, section: int) -> slice:
        return slice(section * self.n_features, (section + 1) * self.n_features)


def _paint_densely(q: Array, counts: Array, run: Runner) -> Array:
    """Compute counts.T @ q, a stripe of cells at a time."""
    painted = arrays.namespace(q).empty((counts.shape[1], q.shape[1]), dtype=q.dtype, device=q.device)
    n_stripes = min(8, 1 + prod(q.shape) * counts.shape[1] // WORTH_A_THREAD)

    def stripe(cells: slice) -> None:
        painted[:, cells] = counts.T @ q[:, cells]

    list(run.map(stripe, _slices(q.shape[1], -(-q.shape[1] // n_stripes))))
    return painted


def _paint_tiles(q: TiledPosterior, counts: Array, run: Runner) -> Array:
    """Compute counts.T @ q, some tiles at a time."""
    by_cell = np.empty((q.tiles.slots.size, counts.shape[1]), counts.dtype)
    n_tiles = len(q.tiles.cells)
    list(run.map(lambda tiles: q.paint(counts, tiles, by_cell), _slices(n_tiles, -(-n_tiles // 4))))
    return arrays.turned(by_cell)


def _paint_sparsely(q: Any, counts: Array, run: Runner) -> Array:
    """Compute counts.T @ q; where that is much work, a stripe of cells at a time."""
    if prod(counts.shape) * q.shape[1] < WORTH_COMPILING:
        return (q.T @ counts).T
    by_cell = q.tocsc()
    painted = np.empty((counts.shape[1], q.shape[1]), q.dtype)

    def stripe(cells: slice) -> None:
        ends = by_cell.indptr[cells.start : cells.stop + 1]
        part = np.empty((len(ends) - 1, counts.shape[1]), q.dtype)
        compiled(_paint_cells, True)(ends, by_cell.indices, by_cell.data, counts, part)
        painted[:, cells] = part.T

    list(run.map(stripe, _slices(q.shape[1], -(-q.shape[1] // 8))))
    return painted


class SparseCounts:
    """Bags multiplied non-zero by non-zero, all sections in one pass over padded planes.

    Planes are padded by wrapping, so that a section's shift is one number: where in the plane to start. `is_kept` says
    that the transpose may be kept from one iteration to the next.
    """

    is_dense = False

    def __init__(self, matrix: Any, n_features: int, offsets: Sequence[Shape], grid: Shape, is_kept: bool = False):
        self.is_kept = is_kept
        self.matrix, self.n_features, self.offsets, self.grid = matrix, n_features, offsets, grid
        self.shape = matrix.shape
        self.pad = tuple(max(along) for along in zip(*offsets, strict=True))
        self.padded = tuple(e + p for e, p in zip(grid, self.pad, strict=True))
        self.section_start = np.array([np.ravel_multi_index(offset, self.padded) for offset in offsets])
        self.cell_start = np.arange(prod(self.padded)).reshape(self.padded)[tuple(slice(n) for n in grid)].ravel()
        run_length = grid[-1] if any(self.pad) else prod(grid)
        self.run_start = self.cell_start[::run_length].copy()

    def rows(self, rows: slice) -> "SparseCounts":
        if rows == slice(0, self.shape[0]):
            return self
        return SparseCounts(rows_of(self.matrix, rows), self.n_features, self.offsets, self.grid)

    def prepare(self, table: Array) -> Array:
        return torus.pad(table, self.pad).reshape(self.n_features, -1)

    def match(self, table: Array, rows: slice, out: Array) -> Array:
        padded_length = int(self.cell_start[-1]) + 1
        # One long run through the padding takes less than many short ones past it.
        is_one_run = self.run_start.size > 1 and padded_length <= LONGEST_RUN * prod(self.grid)
        runs = self.run_start[:1] if is_one_run else self.run_start
        found = np.empty((len(out), padded_length), table.dtype) if is_one_run else out
        ends = self.matrix.indptr[rows.start : rows.start + len(out) + 1]
        data = self.matrix.data.astype(table.dtype, copy=False)
        by_run = found.reshape(len(out), runs.size, -1)
        compiled(_match, True)(
            ends, self.matrix.indices, data, self.n_features, table, self.section_start, runs, by_run
        )
        if is_one_run:
            np.take(found, self.cell_start, axis=1, out=out, mode="clip")
        return out

    def canvas(self, table: Array) -> Array:
        return np.zeros((self.n_features, prod(self.padded)), table.dtype)

    def paint(self, q: Any, run: Runner, canvas: Array) -> None:
        columns = self._kept_transpose if self.is_kept else self.matrix.tocsc()
        data = columns.data.astype(q.dtype, copy=False)

        def stripe(features: slice) -> None:
            some = (columns.indptr, columns.indices, data, self.n_features, features.start, features.stop)
            if sp.issparse(q):
                compiled(_paint_sparse)(*some, q.indptr, q.indices, q.data, self.section_start, self.cell_start, canvas)
            else:
                runs = q.reshape(q.shape[0], self.run_start.size, -1)
                compiled(_paint, True)(*some, runs, self.section_start, self.run_start, canvas)

        list(run.map(stripe, self._feature_ranges))

    def planes(self, canvas: Array) -> Array:
        return torus.fold(canvas.reshape(-1, *self.padded), self.pad)

    @cached_property
    def _kept_transpose(self) -> Any:
        return self.matrix.tocsc()

    @cached_property
    def _feature_ranges(self) -> list[slice]:
        """Cut the features into ranges of about equal work."""
        uses = np.bincount(self.matrix.indices % self.n_features, minlength=self.n_features)
        share = np.cumsum(uses + 1) / (uses + 1).sum()
        cuts = np.unique(np.r_[0, np.searchsorted(share, np.arange(1, 64) / 64), self.n_features])
        return [slice(a, b) for a, b in pairwise(cuts.tolist())]


Counts = DenseCounts | SparseCounts


def as_counts(matrix: Any, n_features: int, offsets: Sequence[Shape], grid: Shape, is_kept: bool = False) -> Counts:
    """Choose how a table of bags is multiplied: by BLAS, or non-zero by non-zero."""
    entries = prod(matrix.shape)
    if sp.issparse(matrix) and entries * prod(grid) > SMALL and matrix.nnz < DENSE_FROM * entries:
        return SparseCounts(matrix, n_features, offsets, grid, is_kept)
    return DenseCounts(matrix, n_features, offsets, grid)


def _dense(matrix: Any) -> Array:
    return matrix.toarray() if sp.issparse(matrix) else matrix


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _match(ends, columns, counts, n_features, table, section_start, run_start, out):  # type: ignore[no-untyped-def]
    length = out.shape[2]
    for t in range(out.shape[0]):
        out[t] = 0
        rest = ends[t] + (ends[t + 1] - ends[t]) // 4 * 4
        for p in range(ends[t], rest, 4):  # four counts share one pass over the cells
            at_a, a = divmod(columns[p], n_features)
            at_b, b = divmod(columns[p + 1], n_features)
            at_c, c = divmod(columns[p + 2], n_features)
            at_d, d = divmod(columns[p + 3], n_features)
            n_a, n_b, n_c, n_d = counts[p], counts[p + 1], counts[p + 2], counts[p + 3]
            for r in range(run_start.shape[0]):
                of_a = table[a, section_start[at_a] + run_start[r] :]
                of_b = table[b, section_start[at_b] + run_start[r] :]
                of_c = table[c, section_start[at_c] + run_start[r] :]
                of_d = table[d, section_start[at_d] + run_start[r] :]
                total = out[t, r]
                for k in range(length):
                    total[k] += (n_a * of_a[k] + n_b * of_b[k]) + (n_c * of_c[k] + n_d * of_d[k])
        for p in range(rest, ends[t + 1]):
            section, z = divmod(columns[p], n_features)
            count = counts[p]
            for r in range(run_start.shape[0]):
                plane = table[z, section_start[section] + run_start[r] :]
                total = out[t, r]
                for k in range(length):
                    total[k] += count * plane[k]


def _paint(ends, bags, counts, n_features, first, last, q, section_start, run_start, out):  # type: ignore[no-untyped-def]
    length = q.shape[2]
    for z in range(first, last):
        for section in range(section_start.shape[0]):
            column = section * n_features + z
            rest = ends[column] + (ends[column + 1] - ends[column]) // 4 * 4
            for r in range(run_start.shape[0]):
                start = section_start[section] + run_start[r]
                plane = out[z, start : start + length]
                for p in range(ends[column], rest, 4):  # four bags share one pass over the cells
                    a, b, c, d = q[bags[p], r], q[bags[p + 1], r], q[bags[p + 2], r], q[bags[p + 3], r]
                    n_a, n_b, n_c, n_d = counts[p], counts[p + 1], counts[p + 2], counts[p + 3]
                    for k in range(length):
                        plane[k] += (n_a * a[k] + n_b * b[k]) + (n_c * c[k] + n_d * d[k])
                for p in range(rest, ends[column + 1]):
                    count, source = counts[p], q[bags[p], r]
                    for k in range(length):
                        plane[k] += count * source[k]


def _paint_cells(ends, bags, q, counts, out):  # type: ignore[no-untyped-def]
    for k in range(out.shape[0]):
        total = out[k]
        total[:] = 0
        rest = ends[k] + (ends[k + 1] - ends[k]) // 4 * 4
        for e in range(ends[k], rest, 4):  # four bags share one pass over the cell
            a, b, c, d = counts[bags[e]], counts[bags[e + 1]], counts[bags[e + 2]], counts[bags[e + 3]]
            for z in range(total.size):
                total[z] += (q[e] * a[z] + q[e + 1] * b[z]) + (q[e + 2] * c[z] + q[e + 3] * d[z])
        for e in range(rest, ends[k + 1]):
            a = counts[bags[e]]
            for z in range(total.size):
                total[z] += q[e] * a[z]


def _paint_sparse(  # type: ignore[no-untyped-def]
    ends, bags, counts, n_features, first, last, q_ends, q_cells, q, section_start, cell_start, out
):
    for z in range(first, last):
        for section in range(section_start.shape[0]):
            column = section * n_features + z
            plane = out[z, section_start[section] :]
            for p in range(ends[column], ends[column + 1]):
                count = counts[p]
                for e in range(q_ends[bags[p]], q_ends[bags[p] + 1]):
                    plane[cell_start[q_cells[e]]] += count * q[e]
