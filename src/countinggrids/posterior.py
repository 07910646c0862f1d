"""Where bags lie: from log p(bag | cell) and log P to the posterior q.

Each step is written twice: with array functions, for a few bags and for every device, and as compiled loops, which keep
the cells of one bag in the fastest memory and take a quarter of the time.
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

    joint: Array  # (bags, cells)
    best: Array  # of each bag, (bags,)
    n_near: int  # pairs of bag and cell that count; all of them where they are too few for a sparse q

    @classmethod
    def of(cls, joint: Array, log_prior: Array) -> "Scores":
        """Add log P, (cells,), to log p(bag | cell), in place."""
        if is_much(joint, WORTH_COMPILING):
            best = np.empty(len(joint), joint.dtype)
            n_near = compiled(_add_prior, True)(joint, log_prior, LOST["float32"], best)
            return cls(joint, best, n_near)
        xp = arrays.namespace(joint)
        joint += log_prior
        best = xp.max(joint, axis=1)
        if not arrays.is_numpy(joint) or joint.size < FEW_ENTRIES:
            return cls(joint, best, joint.shape[0] * joint.shape[1])
        return cls(joint, best, int(np.count_nonzero(joint > _floor(best))))


def of_few_cells(scores: Scores) -> tuple[Any, Array] | None:
    """Give q, CSR, of the cells that count, and log p(bag); None where they are many."""
    joint, best, n_near = scores
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
    return sp.csr_array((q, cells.astype(np.int32, copy=False), ends), shape=joint.shape), log_likelihood


def of_all_cells(scores: Scores) -> tuple[Array, Array]:
    """Give q, (bags, cells), in place of the scores, and log p(bag), (bags,)."""
    joint, best, _ = scores
    if is_much(joint, WORTH_COMPILING):
        log_likelihood = np.empty(len(joint))
        compiled(_all_cells, True)(joint, best, log_likelihood)
        return joint, log_likelihood
    xp = arrays.namespace(joint)
    joint -= best[:, None]
    q = xp.exp(joint, out=joint)
    total = xp.sum(q, axis=1)
    q /= total[:, None]
    return q, arrays.fetched(best) + np.log(arrays.fetched(total), dtype=np.float64)


def _floor(best: Array) -> Array:
    return (best + LOST[best.dtype.name])[:, None]


def _add_prior(joint, log_prior, lost, best):  # type: ignore[no-untyped-def]
    """Add the prior, find the best cell of each bag, and count the cells near it."""
    n_near = 0
    for t in range(joint.shape[0]):
        row = joint[t]
        top = row[0] + log_prior[0]
        for k in range(row.size):
            row[k] += log_prior[k]
            top = top if row[k] <= top else row[k]  # a number that is none is not passed over
        floor = top + lost
        for k in range(row.size):
            n_near += row[k] > floor
        best[t] = top
    return n_near


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


def _all_cells(joint, best, log_likelihood):  # type: ignore[no-untyped-def]
    """Exponentiate in float32: two to a whole power, times a polynomial for what is left of the exponent.

    Library functions take one number at a time; this loop takes as many as the processor can.
    """
    for t in range(joint.shape[0]):
        row, total = joint[t], np.float32(0)
        for k in range(row.size):
            x = row[k] - best[t]
            x = np.float32(-80) if x < np.float32(-80) else x  # float32 ends at -87; the rest is for the division
            power = np.floor(x * np.float32(1 / np.log(2)) + np.float32(0.5))
            # The logarithm of two in two parts: the first times a power is exact.
            x = (x - power * np.float32(355 / 512)) - power * np.float32(np.log(2) - 355 / 512)
            series = np.float32(1 / 720)
            series = series * x + np.float32(1 / 120)
            series = series * x + np.float32(1 / 24)
            series = series * x + np.float32(1 / 6)
            series = series * x + np.float32(1 / 2)
            series = series * x * x + x + np.float32(1)
            two_to = np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
            row[k] = series * two_to
            total += row[k]
        for k in range(row.size):
            row[k] /= total
        log_likelihood[t] = best[t] + np.log(np.float64(total))
