"""The two sums of an EM iteration over features and sections, for bags held dense or sparse.

Matching compares every bag with every window, painting adds every bag to the grid where its windows are:

    match:  L[t, k] = sum_s sum_z  counts[t, s, z] log_h[z, k + d_s]
    paint:  A[z, j] = sum_s sum_t  counts[t, s, z] q[t, j - d_s]

`d_s` is the offset of section s. Both forms implement `core.protocols.Counts`.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.core import arrays, torus
from countinggrids.core.arrays import Array
from countinggrids.core.geometry import Shape
from countinggrids.core.pieces import pieces
from countinggrids.core.protocols import Admixture, Counts, InnerSteps, Pool
from countinggrids.kernels import native
from countinggrids.kernels.admixture import dense_admixture, sparse_admixture
from countinggrids.kernels.tuning import Tuning, current

Offsets = Sequence[Shape]
TILE = 128
"""Cells that compiled loops sum at a time, in registers."""


def rows_of(counts: Any, rows: slice) -> Any:
    """Return consecutive rows of a dense or CSR table, without copying what they hold."""
    if not sp.issparse(counts):
        return counts[rows]
    first, last = counts.indptr[rows.start], counts.indptr[rows.stop]
    ends = counts.indptr[rows.start : rows.stop + 1] - first
    parts = (counts.data[first:last], counts.indices[first:last], ends)
    return sp.csr_array(parts, shape=(rows.stop - rows.start, counts.shape[1]), copy=False)


def columns_of(sections: Sequence[int], n_features: int) -> Any:
    """Return the columns of some sections: a slice, which copies nothing of a dense table, where they are neighbors."""
    first, last = sections[0], sections[-1]
    if list(sections) == list(range(first, last + 1)):
        return slice(first * n_features, (last + 1) * n_features)
    return (np.array(sections)[:, None] * n_features + np.arange(n_features)).ravel()


def as_counts(matrix: Any, n_features: int, offsets: Offsets, grid: Shape, tuning: Tuning | None = None) -> Counts:
    """Choose the form in which bags are multiplied: by BLAS, or non-zero by non-zero."""
    tuning = tuning or current()
    entries = prod(matrix.shape)
    is_large = entries * prod(grid) > tuning.small_product
    if sp.issparse(matrix) and is_large and matrix.nnz < tuning.dense_from * entries:
        kind = SparseProducts if native.library() is None else SparseCounts
        return kind(matrix, n_features, offsets, grid, tuning)
    return DenseCounts(matrix, n_features, offsets, grid, tuning)


class DenseCounts:
    """Bags multiplied by BLAS, section by section; on the device of log h, a block at a time.

    Parameters
    ----------
    matrix : ndarray, csr_array or tensor of shape (n_bags, n_sections * n_features)
        The counts.
    n_features : int
        Number of features.
    offsets : sequence of tuple of int
        Offset of every section from the corner of the window.
    grid : tuple of int
        Shape of the grid.
    tuning : Tuning, default=None
        Thresholds; None takes those in force.
    """

    matches_cells_apart = False

    def __init__(self, matrix: Any, n_features: int, offsets: Offsets, grid: Shape, tuning: Tuning | None = None):
        self.matrix, self.n_features, self.offsets, self.grid = matrix, n_features, offsets, grid
        self.tuning = tuning or current()
        self.shape = matrix.shape
        self.dense_width = matrix.shape[1]

    def rows(self, rows: slice) -> "DenseCounts":
        return DenseCounts(rows_of(self.matrix, rows), self.n_features, self.offsets, self.grid, self.tuning)

    def part(self, sections: Sequence[int], offsets: Offsets) -> "DenseCounts":
        columns = columns_of(sections, self.n_features)
        return DenseCounts(self.matrix[:, columns], self.n_features, offsets, self.grid, self.tuning)

    def prepare(self, log_h: Array) -> Array:
        return log_h.reshape(self.n_features, -1)

    def match(self, prepared: Array, rows: slice, out: Array, pool: Pool | None = None) -> Array:
        counts = arrays.like(prepared, _dense(self.matrix[rows]))
        arrays.namespace(prepared).matmul(counts[:, self._columns(0)], prepared, out=out)
        for section, offset in enumerate(self.offsets[1:], 1):
            part = counts[:, self._columns(section)] @ prepared
            out += torus.shift(part.reshape(-1, *self.grid), offset).reshape(part.shape)
        return out

    def canvas(self, log_h: Array) -> Array:
        xp = arrays.namespace(log_h)
        return xp.zeros((self.n_features, *self.grid), dtype=log_h.dtype, device=log_h.device)

    def paint(self, q: Array, canvas: Array, pool: Pool) -> None:
        counts = arrays.like(canvas, _dense(self.matrix))
        # NumPy is fastest with all sections in one product; a device may not have the memory for that.
        at_once = len(self.offsets) if arrays.is_numpy(canvas) else 1
        for first in range(0, len(self.offsets), at_once):
            some = counts[:, first * self.n_features : (first + at_once) * self.n_features]
            planes = self._products(q, some, pool).reshape(at_once, self.n_features, *self.grid)
            for plane, offset in zip(planes, self.offsets[first : first + at_once], strict=True):
                canvas += torus.shift(plane, [-d for d in offset])

    def planes(self, canvas: Array) -> Array:
        return canvas

    def entries(self) -> Any:
        return sp.csr_array(self.matrix if sp.issparse(self.matrix) else arrays.fetched(self.matrix))

    def summed(self, weights: Array) -> Array:
        matrix = self.matrix if sp.issparse(self.matrix) else arrays.fetched(self.matrix)
        return np.asarray(matrix.T @ weights, np.float64).reshape(-1, self.n_features).sum(axis=0)

    def admix(self, prepared: Array, mean: Array, alpha: float, steps: InnerSteps) -> Admixture:
        return dense_admixture(self, arrays.like(prepared, _dense(self.matrix)), prepared, alpha, steps)

    def joined(self, parts: Sequence[Counts]) -> "DenseCounts":
        matrices = [part.matrix for part in parts]  # type: ignore[attr-defined]
        return self.holding(arrays.namespace(matrices[0]).concat(matrices) if len(matrices) > 1 else matrices[0])

    def holding(self, matrix: Any) -> "DenseCounts":
        """Return other values held like these."""
        return DenseCounts(matrix, self.n_features, self.offsets, self.grid, self.tuning)

    def _products(self, q: Array, counts: Array, pool: Pool) -> Array:
        """Compute counts.T @ q, a stripe of cells at a time."""
        painted = arrays.namespace(q).empty((counts.shape[1], q.shape[1]), dtype=q.dtype, device=q.device)
        n_stripes = min(8, 1 + prod(q.shape) * counts.shape[1] // self.tuning.thread_product)

        def stripe(cells: slice) -> None:
            painted[:, cells] = counts.T @ q[:, cells]

        list(pool.map(stripe, pieces(q.shape[1], -(-q.shape[1] // n_stripes))))
        return painted

    def _columns(self, section: int) -> slice:
        return slice(section * self.n_features, (section + 1) * self.n_features)


class SparseCounts:
    """Bags multiplied non-zero by non-zero in compiled loops, all sections in one pass over padded planes.

    A plane is padded by wrapping, so that the shift of a section is one number: the position in the padded plane at
    which the section starts. Cells are worked on in one run from the first to the last, what lies between the rows of
    the grid included.

    Parameters
    ----------
    matrix : csr_array of shape (n_bags, n_sections * n_features)
        The counts.
    n_features : int
        Number of features.
    offsets : sequence of tuple of int
        Offset of every section from the corner of the window.
    grid : tuple of int
        Shape of the grid.
    tuning : Tuning, default=None
        Thresholds; None takes those in force.
    """

    matches_cells_apart = True

    def __init__(self, matrix: Any, n_features: int, offsets: Offsets, grid: Shape, tuning: Tuning | None = None):
        self.matrix, self.n_features, self.offsets, self.grid = matrix, n_features, offsets, grid
        self.tuning = tuning or current()
        self.shape = matrix.shape
        self.dense_width = 0
        self.pad = tuple(max(along) for along in zip(*offsets, strict=True))
        self.padded = tuple(e + p for e, p in zip(grid, self.pad, strict=True))
        self.section_start = np.array([np.ravel_multi_index(offset, self.padded) for offset in offsets])
        self.n_positions = int(np.ravel_multi_index([e - 1 for e in grid], self.padded)) + 1

    def rows(self, rows: slice) -> "SparseCounts":
        if rows == slice(0, self.shape[0]):
            return self
        return SparseCounts(rows_of(self.matrix, rows), self.n_features, self.offsets, self.grid, self.tuning)

    def part(self, sections: Sequence[int], offsets: Offsets) -> "SparseCounts":
        columns = columns_of(sections, self.n_features)
        return SparseCounts(self.matrix[:, columns], self.n_features, offsets, self.grid, self.tuning)

    def prepare(self, log_h: Array) -> Array:
        planes = log_h.reshape(self.n_features, -1)
        if not any(self.pad) and native.is_padded(planes):
            return planes
        table = self.canvas(log_h)
        table[:] = torus.pad(log_h, self.pad).reshape(self.n_features, -1)
        return table

    def match(self, prepared: Array, rows: slice, out: Array, pool: Pool | None = None) -> Array:
        ends = self.matrix.indptr[rows.start : rows.stop + 1].astype(np.int64)
        some = slice(ends[0], ends[-1])
        where = self.positions(self.matrix.indices[some], native.stride_of(prepared))
        data = self.matrix.data[some].astype(prepared.dtype, copy=False)
        is_direct = not any(self.pad) and native.is_padded(out)
        cells = out if is_direct else arrays.padded_rows(len(out), self.n_positions, out.dtype)
        bags = (ends - ends[0], where, data, len(out))

        def stripe(some: slice) -> None:
            part = (prepared[:, some.start :], some.stop - some.start, cells[:, some.start :], native.stride_of(cells))
            native.call("match", out.dtype, *bags, *part)

        list((map if pool is None else pool.map)(stripe, self._stripes(len(where))))
        if not is_direct:
            out[:] = self._cells_of(cells)
        return out

    def canvas(self, log_h: Array) -> Array:
        # Sections that start late are painted from the same run of cells, and end a vector behind the plane.
        width = prod(self.padded) + (arrays.VECTOR if any(self.pad) else 0)
        return arrays.padded_rows(self.n_features, width, log_h.dtype, is_zero=True)[:, : prod(self.padded)]

    def paint(self, q: Array, canvas: Array, pool: Pool) -> None:
        columns = self.matrix.tocsc()
        ends, data = columns.indptr.astype(np.int64), columns.data.astype(q.dtype, copy=False)
        target = self.positions(np.arange(columns.shape[1]), native.stride_of(canvas))
        q = self._spread(q)
        where = columns.indices.astype(np.int64) * native.stride_of(q)

        def stripe(features: slice) -> None:
            some = np.arange(features.start, features.stop)[:, None] + self.n_features * np.arange(len(self.offsets))
            some = some.ravel()
            bags = (some, some.size, ends, columns.nnz, where, data)
            native.call("paint", q.dtype, *bags, q, self.n_positions, target, canvas)

        list(pool.map(stripe, self._feature_ranges(columns)))

    def planes(self, canvas: Array) -> Array:
        return torus.fold(canvas.reshape(-1, *self.padded), self.pad)

    def entries(self) -> Any:
        return self.matrix

    def summed(self, weights: Array) -> Array:
        return np.asarray(self.matrix.T @ weights, np.float64).reshape(-1, self.n_features).sum(axis=0)

    def admix(self, prepared: Array, mean: Array, alpha: float, steps: InnerSteps) -> Admixture:
        return sparse_admixture(self, prepared, mean, alpha, steps)

    def joined(self, parts: Sequence[Counts]) -> "SparseCounts":
        return self.holding(np.concatenate([part.matrix.data for part in parts]))  # type: ignore[attr-defined]

    def holding(self, values: Array) -> "SparseCounts":
        """Return other values at the same places."""
        matrix = sp.csr_array((values, self.matrix.indices, self.matrix.indptr), shape=self.shape)
        return SparseCounts(matrix, self.n_features, self.offsets, self.grid, self.tuning)

    def _stripes(self, n_entries: int) -> list[slice]:
        """Cut the positions into stripes of whole tiles, so few that each is worth a call."""
        n_stripes = min(8, 1 + n_entries * self.n_positions // self.tuning.thread_product)
        tiles = pieces(-(-self.n_positions // TILE), -(-self.n_positions // TILE // n_stripes) or 1)
        return [slice(TILE * tile.start, min(TILE * tile.stop, self.n_positions)) for tile in tiles]

    def positions(self, columns: Array, stride: int) -> Array:
        """Return where in a table with rows of features each column starts, shifted to its section."""
        sections, features = np.divmod(columns.astype(np.int64), self.n_features)
        return features * stride + self.section_start[sections]

    @cached_property
    def cell_positions(self) -> Array:
        """Position of every cell in a padded plane."""
        positions = np.arange(prod(self.padded)).reshape(self.padded)
        return positions[tuple(slice(n) for n in self.grid)].ravel()

    def _cells_of(self, positions: Array) -> Array:
        """Leave out what lies between the rows of the grid."""
        return positions[:, self.cell_positions] if any(self.pad) else positions

    def _spread(self, q: Array) -> Array:
        """Return q, (bags, positions), with zeros between the rows of the grid, in padded rows."""
        if not any(self.pad) and native.is_padded(q):
            return q
        table = arrays.padded_rows(len(q), self.n_positions, q.dtype, is_zero=True)
        table[:, self.cell_positions] = q
        return table

    def _feature_ranges(self, columns: sp.csc_array) -> list[slice]:
        """Cut the features into ranges of about equal work, so few that each is worth a call."""
        n_ranges = min(8, 1 + columns.nnz * prod(self.grid) // self.tuning.thread_product)
        uses = np.diff(columns.indptr).reshape(-1, self.n_features).sum(axis=0)
        done = np.cumsum(uses + 1) / (uses + 1).sum()
        cuts = np.unique(np.r_[0, np.searchsorted(done, np.arange(1, n_ranges) / n_ranges), self.n_features])
        return [slice(a, b) for a, b in pairwise(cuts.tolist())]


class SparseProducts(DenseCounts):
    """Sparse bags multiplied by SciPy, section by section, where there are no compiled loops.

    The parameters are those of `SparseCounts`.
    """

    def __init__(self, matrix: Any, n_features: int, offsets: Offsets, grid: Shape, tuning: Tuning | None = None):
        super().__init__(matrix, n_features, offsets, grid, tuning)
        self.dense_width = 0

    def rows(self, rows: slice) -> "SparseProducts":
        return SparseProducts(rows_of(self.matrix, rows), self.n_features, self.offsets, self.grid, self.tuning)

    def match(self, prepared: Array, rows: slice, out: Array, pool: Pool | None = None) -> Array:
        counts = rows_of(self.matrix, rows)
        out[:] = 0
        for section, offset in enumerate(self.offsets):
            part = counts[:, self._columns(section)] @ prepared
            out += torus.shift(part.reshape(-1, *self.grid), offset).reshape(part.shape)
        return out

    def paint(self, q: Array, canvas: Array, pool: Pool) -> None:
        def product(section: int) -> Array:
            return self.matrix[:, self._columns(section)].T @ np.ascontiguousarray(q)

        for painted, offset in zip(pool.map(product, range(len(self.offsets))), self.offsets, strict=True):
            canvas += torus.shift(painted.reshape(canvas.shape), [-d for d in offset])

    def admix(self, prepared: Array, mean: Array, alpha: float, steps: InnerSteps) -> Admixture:
        found = super().admix(prepared, mean, alpha, steps)
        matrix = sp.csr_array(found.ratios.matrix)  # type: ignore[attr-defined]
        return found._replace(ratios=self.held_sparse(matrix))

    def joined(self, parts: Sequence[Counts]) -> "SparseProducts":
        matrices = [part.matrix for part in parts]  # type: ignore[attr-defined]
        return self.held_sparse(sp.csr_array(sp.vstack(matrices, format="csr")))

    def held_sparse(self, matrix: sp.csr_array) -> "SparseProducts":
        """Return other sparse values held like these."""
        return SparseProducts(matrix, self.n_features, self.offsets, self.grid, self.tuning)


def _dense(matrix: Any) -> Array:
    return matrix.toarray() if sp.issparse(matrix) else matrix
