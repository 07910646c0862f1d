"""Posteriors with few non-zero entries, as sparse matrices."""

import numpy as np
import scipy.sparse as sp

from countinggrids.core.arrays import Array, is_numpy
from countinggrids.core.pieces import pieces
from countinggrids.core.protocols import Pool
from countinggrids.kernels.tuning import Tuning

ROUNDING = {"float32": 1e-6, "float64": 1e-16}
"""Fraction of a bag's largest posterior below which a cell is dropped."""


def compressed(q: Array, tuning: Tuning, pool: Pool) -> sp.csr_array | None:
    """Return q as CSR without entries that are lost in rounding, or None if many entries remain.

    Parameters
    ----------
    q : ndarray of shape (n_bags, n_cells)
        Posterior, times the weight of each bag.
    tuning : Tuning
        Says how many entries are many.
    pool : Pool
        Runs pieces of the work.

    Returns
    -------
    compressed : csr_array of shape (n_bags, n_cells) or None
        Rows have the same sums as those of q.
    """
    if not is_numpy(q):
        return None
    is_large = np.empty(q.shape, bool)

    def compare(rows: slice) -> int:
        floor = ROUNDING[q.dtype.name] * q[rows].max(axis=1, keepdims=True)
        return int(np.count_nonzero(np.greater(q[rows], floor, out=is_large[rows])))

    n_large = sum(pool.map(compare, pieces(len(q), max(1, pool.piece_entries // q.shape[1]))))
    if n_large >= tuning.sparse_posterior * q.size:
        return None
    entries = np.flatnonzero(is_large)
    bags, cells = np.divmod(entries, q.shape[1])
    ends = np.searchsorted(bags, np.arange(len(q) + 1)).astype(np.int32)
    return sp.csr_array((q.ravel()[entries], cells.astype(np.int32), ends), shape=q.shape)
