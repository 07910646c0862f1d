"""Where bags lie: from log p(bag | cell) and log P to the posterior q.

What follows the scores is written twice: with array functions, for a few bags and for every device, and as compiled
loops, which keep the cells of one bag in the fastest memory and take a quarter of the time.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countinggrids import arrays
from countinggrids.compiling import compiled, is_much

Array = arrays.Array

LOST = {"float32": np.float32(np.log(1e-6)), "float64": np.log(1e-16)}
"""Logarithm of the posterior, against the best cell's, from which a cell is dropped."""
SPARSE_BELOW = 1 / 20
"""Share of cells a bag's posterior must leave above rounding for its block to be painted from a sparse q."""
FEW_ENTRIES = 2**13
"""Bags times cells below which neither pieces nor a sparse posterior pay."""
WORTH_COMPILING = 2**18
"""Bags times cells of one piece of work from which it is compiled."""


class Scores(NamedTuple):
    """log p(bag, cell) of some bags."""

    joint: Array  # (bags, cells); of a bag in several copies of a grid, one row a copy
    best: Array  # of each bag, (bags,)
    n_near: int  # pairs of bag and cell that count; all of them where they are too few for a sparse q
    copies: int = 1

    @classmethod
    def of(cls, joint: Array, log_prior: Array, copies: int = 1) -> "Scores":
        """Add log P, (cells,), to log p(bag | cell), (bags, cells), in place."""
        xp = arrays.namespace(joint)
        joint += log_prior
        joint = joint.reshape(joint.shape[0] * copies, -1)
        best = xp.max(joint, axis=1)
        if not arrays.is_numpy(joint) or joint.size < FEW_ENTRIES:
            return cls(joint, best, joint.shape[0] * joint.shape[1], copies)
        return cls(joint, best, int(np.count_nonzero(joint > _floor(best))), copies)


def of_few_cells(scores: Scores) -> tuple[Any, Array] | None:
    """Give q, CSR, (bags, cells of all copies), of the cells that count, and log p(bag); None where they are many."""
    joint, best, n_near, copies = scores
    if n_near >= SPARSE_BELOW * joint.shape[0] * joint.shape[1]:
        return None
    if is_much(joint, WORTH_COMPILING):
        q, cells = np.empty(n_near, joint.dtype), np.empty(n_near, np.int32)
        ends, log_likelihood = np.empty(len(joint) + 1, np.int32), np.empty(len(joint))
        compiled(_few_cells, True)(joint, best, LOST["float32"], cells, q, ends, log_likelihood)
    else:
        near = np.flatnonzero(joint > _floor(best))
        bag_of, cells = np.divmod(near, joint.shape[1])
        ends = np.searchsorted(bag_of, np.arange(best.size + 1)).astype(np.int32)
        q = np.exp(joint.ravel().take(near) - best.take(bag_of))
        total = np.add.reduceat(q, ends[:-1])
        q /= total.take(bag_of)
        log_likelihood = best + np.log(total, dtype=np.float64)
    if copies > 1:
        cells = cells + np.repeat(np.arange(len(joint)) % copies * joint.shape[1], np.diff(ends))
    shape = len(joint) // copies, joint.shape[1] * copies
    return sp.csr_array((q, cells.astype(np.int32, copy=False), ends[::copies]), shape=shape), log_likelihood


def of_all_cells(scores: Scores) -> tuple[Array, Array]:
    """Give q, (bags, cells), in place of the scores, and log p(bag), (bags,)."""
    joint, best, *_ = scores
    if is_much(joint, WORTH_COMPILING):
        log_likelihood = np.empty(len(joint))
        compiled(_all_cells, True)(joint, best, arrays.compiled_exp(joint.dtype), log_likelihood)
        return joint, log_likelihood
    xp = arrays.namespace(joint)
    joint -= best[:, None]
    q = xp.exp(joint, out=joint)
    total = xp.sum(q, axis=1)
    q /= total[:, None]
    return q, arrays.fetched(best) + np.log(arrays.fetched(total), dtype=np.float64)


def _floor(best: Array) -> Array:
    return (best + LOST[best.dtype.name])[:, None]


def _few_cells(joint, best, lost, cells, q, ends, log_likelihood):  # type: ignore[no-untyped-def]
    n = 0
    for t in range(joint.shape[0]):
        row, floor, total = joint[t], best[t] + lost, 0.0
        ends[t] = n
        for k in range(row.size):
            if row[k] > floor:
                cells[n] = k
                q[n] = np.exp(row[k] - best[t])
                total += q[n]
                n += 1
        for e in range(ends[t], n):
            q[e] /= total
        log_likelihood[t] = best[t] + np.log(total)
    ends[joint.shape[0]] = n


def _all_cells(joint, best, exp, log_likelihood):  # type: ignore[no-untyped-def]
    for t in range(joint.shape[0]):
        row, total = joint[t], np.float32(0)
        for k in range(row.size):
            row[k] = exp(row[k] - best[t])
            total += row[k]
        for k in range(row.size):
            row[k] /= total
        log_likelihood[t] = best[t] + np.log(np.float64(total))
