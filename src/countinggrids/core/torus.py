"""Window sums, shifts and distances on a torus with any number of axes.

Arrays here are *planes*: leading axes of any kind, then the axes of the grid. Everything wraps around.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from countinggrids.core.arrays import Array, namespace


def window_sum(planes: Array, window: Sequence[int]) -> Array:
    """Sum, for every cell k, the window whose lowest corner is k (Eq. h without its 1/|W|).

    No two large sums are ever subtracted, so float32 keeps its digits; a cumulative sum would lose them.

    Parameters
    ----------
    planes : ndarray or tensor of shape (..., *grid)
        Values of the cells.
    window : sequence of int
        One length for each axis of the grid, none longer than the grid.

    Returns
    -------
    sums : ndarray or tensor of shape (..., *grid)
        Sum over the window at each cell.
    """
    for axis, length in zip(range(-len(window), 0), window, strict=True):
        if length > 1:
            planes = _sum_runs([planes, _cut(planes, axis, 0, length - 1)], length, axis)
    return planes


def covering_sum(planes: Array, window: Sequence[int]) -> Array:
    """Sum, for every cell i, the values at all corners k whose window covers i (the adjoint of `window_sum`)."""
    for axis, length in zip(range(-len(window), 0), window, strict=True):
        if length > 1:
            size = planes.shape[axis]
            planes = _sum_runs([_cut(planes, axis, size - length + 1, size), planes], length, axis)
    return planes


def shift(planes: Array, offset: Sequence[int]) -> Array:
    """Move the planes so that cell k of the result is cell k + offset of the input."""
    if not any(offset):
        return planes
    back = tuple(-step for step in offset)
    return namespace(planes).roll(planes, back, axis=tuple(range(-len(offset), 0)))


def displacement(start: ArrayLike, end: ArrayLike, grid: Sequence[int]) -> Array:
    """Return the shortest displacement from start to end along each axis, (..., n_axes)."""
    lengths = np.asarray(grid, dtype=float)
    way = np.asarray(end, dtype=float) - np.asarray(start, dtype=float)
    return way - lengths * np.round(way / lengths)


def _sum_runs(parts: list[Array], length: int, axis: int) -> Array:
    """Sum runs of neighbors along one axis of joined planes by adding shifted copies in doubling strides."""
    run = namespace(parts[0]).concat(parts, axis=axis)
    size, done = run.shape[axis] - length + 1, 0
    pieces = []
    for stride in (2**bit for bit in range(length.bit_length())):
        if length & stride:
            pieces.append(_cut(run, axis, done, done + size))
            done += stride
        if done < length:
            end = run.shape[axis]
            run = _cut(run, axis, 0, end - stride) + _cut(run, axis, stride, end)
    total: Array = sum(pieces[1:], start=pieces[0])
    return total


def _cut(planes: Array, axis: int, start: int, stop: int) -> Array:
    chosen: list[slice] = [slice(None)] * planes.ndim
    chosen[axis] = slice(start, stop)
    return planes[tuple(chosen)]


def section_offsets(window: Sequence[int], sections: Sequence[int]) -> list[tuple[int, ...]]:
    """List where each section of a window starts, counted from the window's corner, last axis fastest."""
    starts = (range(0, length, length // parts) for length, parts in zip(window, sections, strict=True))
    return list(itertools.product(*starts))


def pad(planes: Array, after: Sequence[int]) -> Array:
    """Repeat the first cells of each axis behind its last, (..., *grid) to (..., *(grid + after))."""
    for axis, length in zip(range(-len(after), 0), after, strict=True):
        if length:
            planes = namespace(planes).concat([planes, _cut(planes, axis, 0, length)], axis=axis)
    return planes


def fold(planes: Array, after: Sequence[int]) -> Array:
    """Add the cells behind each axis back onto its first (the adjoint of `pad`)."""
    for axis, length in zip(range(-len(after), 0), after, strict=True):
        if length:
            size = planes.shape[axis] - length
            folded = _cut(planes, axis, 0, size) * 1
            _cut(folded, axis, 0, length)[...] += _cut(planes, axis, size, size + length)
            planes = folded
    return planes
