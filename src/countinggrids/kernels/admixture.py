"""Weights of the cells in every bag of a componential grid, for bags held dense or sparse."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.core import arrays, torus
from countinggrids.core.arrays import Array
from countinggrids.core.em import SMALLEST
from countinggrids.core.protocols import Admixture, InnerSteps
from countinggrids.kernels import native

COUNTING = 2e-3
"""Weight of a cell, as a fraction of the largest one of its bag, below which only its pseudocounts are kept."""


def sparse_admixture(bags: Any, prepared: Array, mean: Array, alpha: float, steps: InnerSteps) -> Admixture:
    """Update the weights over all cells, then over the few that count.

    Parameters
    ----------
    bags : SparseCounts
        The bags.
    prepared : ndarray of shape (n_features, n_padded_cells)
        h, padded.
    mean : ndarray of shape (n_features,)
        Mean of h over the cells.
    alpha : float
        Pseudocounts of a bag in total.
    steps : InnerSteps
        Number of updates.

    Returns
    -------
    admixture : Admixture
        The weights.
    """
    matrix, dtype, n_bags = bags.matrix, prepared.dtype, bags.shape[0]
    counts, ends = matrix.data.astype(dtype, copy=False), matrix.indptr.astype(np.int64)
    held = (ends, bags.positions(matrix.indices, native.stride_of(prepared)), counts)
    rest = mean[matrix.indices % bags.n_features]
    tokens = _by_bag(counts, ends)
    floor = _floor(tokens, alpha, bags.cell_positions.size)
    scales = (_divided(1, tokens + alpha).astype(dtype), floor.astype(dtype))
    is_cell = np.zeros(-(-bags.n_positions // arrays.VECTOR) * arrays.VECTOR, dtype)
    is_cell[bags.cell_positions] = 1
    ratios, scratch = np.empty_like(counts), np.empty_like(is_cell)
    weights = arrays.padded_rows(n_bags, bags.n_positions, dtype)
    weights[:] = is_cell[: bags.n_positions] * _divided(tokens, (tokens + alpha) * bags.cell_positions.size)[:, None]
    np.divide(counts, rest, out=ratios)
    sizes = (bags.n_positions, native.stride_of(weights), steps.over_all)
    native.call("admix", dtype, *held, n_bags, prepared, is_cell, *scales, *sizes, ratios, scratch, weights)
    few = _counting(weights if weights.shape[1] == bags.cell_positions.size else weights[:, bags.cell_positions])
    few_ends, cells = few.indptr.astype(np.int64), bags.cell_positions[few.indices].astype(np.int64)
    rest = rest * np.repeat(_divided(alpha, tokens + alpha), np.diff(ends)).astype(dtype)
    widest = -(-np.diff(few_ends).max(initial=0) // arrays.VECTOR) * arrays.VECTOR
    scratch = np.empty(int(widest * (np.diff(ends).max(initial=0) + 2)) + arrays.VECTOR, dtype)
    totals = _divided(tokens, tokens + alpha).astype(dtype)
    entries = (few_ends, cells, few.data, rest, totals, *scales, steps.over_few)
    native.call("admix_few", dtype, *held, n_bags, prepared, *entries, scratch, ratios)
    log_p = _by_bag(counts * np.log(counts / ratios), ends)
    excess = np.zeros((n_bags, bags.cell_positions.size), dtype)
    excess[np.repeat(np.arange(n_bags), np.diff(few.indptr)), few.indices] = few.data
    return Admixture(excess, floor, bags.holding(ratios), log_p)


def _by_bag(values: Array, ends: Array) -> Array:
    """Sum the values of each bag, float64."""
    sums = np.add.reduceat(np.r_[values, values.dtype.type(0)], ends[:-1], dtype=np.float64)
    return np.where(np.diff(ends) > 0, sums, 0.0)


def _divided(tokens: Any, total: Array) -> Array:
    """Divide, where a bag without tokens and pseudocounts has nothing to be divided."""
    return np.asarray(tokens / np.maximum(total, SMALLEST))


def _counting(excess: Array) -> sp.csr_array:
    """Return weights without those that are small against the largest one of their bag."""
    kept = excess > COUNTING * excess.max(axis=1, keepdims=True)
    rows, cells = np.nonzero(kept)
    ends = np.searchsorted(rows, np.arange(len(excess) + 1)).astype(np.int32)
    return sp.csr_array((excess[kept], cells.astype(np.int32), ends), shape=excess.shape)


def dense_admixture(bags: Any, counts: Array, prepared: Array, alpha: float, steps: InnerSteps) -> Admixture:
    """Update the weights over all cells by matrix products, on the device of h.

    Parameters
    ----------
    bags : DenseCounts
        The bags.
    counts : ndarray or tensor of shape (n_bags, n_sections * n_features)
        Their counts.
    prepared : ndarray or tensor of shape (n_features, n_cells)
        The histograms h.
    alpha : float
        Pseudocounts of a bag in total.
    steps : InnerSteps
        Number of updates.

    Returns
    -------
    admixture : Admixture
        The weights.
    """
    xp, n_cells = arrays.namespace(prepared), prepared.shape[1]
    tokens = arrays.summed(counts, axis=1)
    floor = arrays.like(prepared, _floor(tokens, alpha, n_cells))[:, None]
    scale = arrays.like(prepared, 1 / np.maximum(tokens + alpha, SMALLEST))[:, None]
    excess = xp.zeros((len(tokens), n_cells), dtype=prepared.dtype, device=prepared.device)
    excess += 1 / n_cells - floor
    sums = xp.empty_like(excess)
    for _ in range(sum(steps)):
        ratios = bags.holding(counts / _mixed(excess + floor, prepared, bags))
        sums = ratios.match(prepared, slice(0, len(tokens)), out=sums)
        excess = (excess + floor) * sums * scale
    p = _mixed(excess + floor, prepared, bags)
    log_p = arrays.summed(counts * xp.log(p), axis=1)
    return Admixture(excess, arrays.fetched(floor)[:, 0].astype(np.float64), bags.holding(counts / p), log_p)


def _mixed(theta: Array, prepared: Array, bags: Any) -> Array:
    """Compute p, (bags, sections * features)."""
    planes = theta.reshape(-1, *bags.grid)
    parts = [torus.shift(planes, [-d for d in offset]).reshape(theta.shape) @ prepared.T for offset in bags.offsets]
    return arrays.namespace(theta).concat(parts, axis=1) + SMALLEST


def _floor(tokens: Array, alpha: float, n_cells: int) -> Array:
    """Compute the weight that pseudocounts give to every cell of a bag; all of it where there are no tokens."""
    return np.where(tokens > 0, alpha / np.maximum(tokens + alpha, SMALLEST), 1.0) / n_cells
