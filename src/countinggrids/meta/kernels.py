"""Histogram intersection: sums of minima, as kernels for support vector machines."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.kernels import native, threads

BLOCK_ENTRIES = 2**22
"""Entries of the dense block of rows that others are compared with at a time: 16 MB."""
BLOCK_ROWS = 256
"""Rows that a thread compares with it before it takes more."""


def intersections(A: sp.csr_array, B: sp.csr_array) -> NDArray[np.float32]:
    """Sum min(a, b) over columns, for each row of A and each row of B.

    Parameters
    ----------
    A : csr_array of shape (n_rows, n_columns)
        Values of at least 0.
    B : csr_array of shape (n_others, n_columns)
        Values of at least 0. Where it is A itself, each pair is compared once.

    Returns
    -------
    K : ndarray of shape (n_rows, n_others)
        The kernel.
    """
    K = np.empty((A.shape[0], B.shape[0]), np.float32)
    step = max(1, BLOCK_ENTRIES // B.shape[1])
    for first in range(0, B.shape[0], step):
        columns = slice(first, first + step)
        starts = range(0, min(first + step, A.shape[0]) if A is B else A.shape[0], BLOCK_ROWS)
        others = np.ascontiguousarray(B[columns].toarray().T, np.float32)

        def compare(start: int, columns: slice = columns, others: NDArray[np.float32] = others) -> None:
            rows = A[start : start + BLOCK_ROWS]
            block = np.zeros((rows.shape[0], others.shape[1]), np.float32)  # contiguous, so that the loop vectorizes
            _add_minima(rows, others, block)
            K[start : start + BLOCK_ROWS, columns] = block

        list(threads.default().map(compare, starts))
        if A is B:
            K[columns, :first] = K[:first, columns].T
    return K


def _add_minima(rows: sp.csr_array, others: NDArray[np.float32], K: NDArray[np.float32]) -> None:
    """Add min(value, others[column]) to each row of K, for the values of that row in a sparse table."""
    if native.library() is not None:
        ends, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False)
        values = rows.data.astype(np.float32, copy=False)
        native.call("add_minima", np.float32, ends, columns, values, len(K), others, others.shape[1], K)
        return
    for i, row in enumerate(K):
        some = slice(rows.indptr[i], rows.indptr[i + 1])
        row += np.minimum(rows.data[some, None], others[rows.indices[some]]).sum(axis=0)
