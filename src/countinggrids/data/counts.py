"""Tables of bags: sections summed, one form, tokens.

A table of bags has one row per bag and one column per section and feature: column = section * features + feature.
"""

from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core.geometry import Shape


def coarsen(counts: Any, n_features: int, fine: Shape, coarse: Shape) -> Any:
    """Sum neighboring sections: counts at the tessellation `fine` become counts at `coarse`."""
    if fine == coarse:
        return counts
    target = np.zeros(fine, dtype=np.int64)
    for axis, (f, c) in enumerate(zip(fine, coarse, strict=True)):
        along = np.arange(f) * c // f
        target = target * c + along.reshape([-1 if a == axis else 1 for a in range(len(fine))])
    features = np.arange(n_features)
    columns = (target.reshape(-1, 1) * n_features + features).ravel()
    ones = np.ones(columns.size, dtype=counts.dtype)
    shape = (columns.size, prod(coarse) * n_features)
    return counts @ sp.csr_array((ones, columns, np.arange(columns.size + 1)), shape=shape)


def in_one_form(counts: Any, dtype: Any = None) -> Any:
    """Return counts in C order, or as CSR with sorted indices and no zeros, without a copy if they are already.

    The same counts then give the same bits, whatever form they came in.
    """
    if not sp.issparse(counts):
        return np.asanyarray(counts, dtype=dtype or counts.dtype, order="C")
    counts = counts.astype(dtype or counts.dtype, copy=False)
    if not (counts.has_canonical_format and counts.data[: counts.nnz].all()):
        counts = counts.copy()
        counts.sum_duplicates()
        counts.eliminate_zeros()
    return counts


def tokens_of(counts: Any) -> NDArray[np.float64]:
    """Return the sum of each bag, (bags,)."""
    if not sp.issparse(counts):
        return np.asarray(counts.sum(axis=1, dtype=np.float64))
    tokens = np.zeros(counts.shape[0])
    is_filled = np.diff(counts.indptr) > 0
    if is_filled.any():
        values, starts = counts.data[: counts.indptr[-1]], counts.indptr[:-1][is_filled]
        tokens[is_filled] = np.add.reduceat(values, starts, dtype=np.float64)
    return tokens
