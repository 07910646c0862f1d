"""What bags have in common: sums of minima, as kernels for support vector machines."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids import engine
from countinggrids.compiling import compiled

BLOCK_ENTRIES = 2**22
"""Entries of the dense block of rows that others are compared with at a time: 16 MB."""
BLOCK_ROWS = 256
"""Rows that a thread compares with it before it takes more."""


def intersections(A: sp.csr_array, B: sp.csr_array) -> NDArray[np.float32]:
    """Sum min(a, b) over columns, for each row of A and each of B, (rows of A, rows of B); no entry is below zero.

    Where A is B, each pair is compared once.
    """
    add = compiled(_add_minima)
    K = np.empty((A.shape[0], B.shape[0]), np.float32)
    step = max(1, BLOCK_ENTRIES // B.shape[1])
    for first in range(0, B.shape[0], step):
        columns = slice(first, first + step)
        starts = range(0, min(first + step, A.shape[0]) if A is B else A.shape[0], BLOCK_ROWS)
        others = np.ascontiguousarray(B[columns].toarray().T)

        def compare(start: int, columns: slice = columns, others: NDArray[np.float32] = others) -> None:
            rows = A[start : start + BLOCK_ROWS]
            found = np.zeros((rows.shape[0], others.shape[1]), np.float32)  # in one piece, for quick loops
            add(rows.indptr, rows.indices, rows.data, others, found)
            K[start : start + BLOCK_ROWS, columns] = found

        list(engine.default().map(compare, starts))
        if A is B:
            K[columns, :first] = K[:first, columns].T
    return K


def _add_minima(indptr: Any, indices: Any, values: Any, others: Any, K: Any) -> None:
    """Add min(value, others[column]) to each row of K, for the values of that row in a sparse table."""
    for i in range(len(indptr) - 1):
        row = K[i]
        rest = indptr[i] + (indptr[i + 1] - indptr[i]) // 4 * 4
        for p in range(indptr[i], rest, 4):  # four values share one pass over the row
            a, b, c, d = values[p], values[p + 1], values[p + 2], values[p + 3]
            to_a, to_b = others[indices[p]], others[indices[p + 1]]
            to_c, to_d = others[indices[p + 2]], others[indices[p + 3]]
            for j in range(len(row)):
                row[j] = row[j] + min(a, to_a[j]) + min(b, to_b[j]) + min(c, to_c[j]) + min(d, to_d[j])
        for p in range(rest, indptr[i + 1]):
            value, other = values[p], others[indices[p]]
            for j in range(len(row)):
                row[j] += min(value, other[j])
