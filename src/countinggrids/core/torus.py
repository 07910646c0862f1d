"""Window sums, shifts and distances on a torus with any number of axes.

Arrays here are *planes*: leading axes of any kind, then the axes of the grid. Everything wraps around.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countinggrids.core.arrays import Array, is_numpy, namespace

LONGEST_BAND = 64
"""Up to this length of an axis a product with a band matrix beats adding shifted copies, whatever the window."""
Sum = Callable[[Array, tuple[int, ...], bool], Array | None]
"""Sums windows of NumPy planes, or the windows that cover a cell; None leaves it to the functions here."""
_compiled: list[Sum] = []


def use_compiled(sum_windows: Sum) -> None:
    """Sum NumPy planes by compiled loops: `kernels.native` passes its own."""
    _compiled[:] = [sum_windows]


def _compiled_sum(planes: Array, window: Sequence[int], is_covering: bool) -> Array | None:
    if not _compiled or not is_numpy(planes) or all(length == 1 for length in window):
        return None
    return _compiled[0](planes, tuple(window), is_covering)


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
    sums = _compiled_sum(planes, window, is_covering=False)
    if sums is not None:
        return sums
    for axis, length in zip(range(-len(window), 0), window, strict=True):
        if length > 1:
            is_short = planes.shape[axis] <= LONGEST_BAND
            planes = _band_sum(planes, length, axis) if is_short else _doubling_sum(planes, length, axis)
    return planes


def covering_sum(planes: Array, window: Sequence[int]) -> Array:
    """Sum, for every cell i, the values at all corners k whose window covers i (the adjoint of `window_sum`)."""
    sums = _compiled_sum(planes, window, is_covering=True)
    if sums is not None:
        return sums
    for axis, length in zip(range(-len(window), 0), window, strict=True):
        if length > 1 and planes.shape[axis] <= LONGEST_BAND:
            planes = _band_sum(planes, length, axis, is_covering=True)
        elif length > 1:
            planes = namespace(planes).roll(_doubling_sum(planes, length, axis), length - 1, axis=axis)
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


def _band_sum(planes: Array, length: int, axis: int, is_covering: bool = False) -> Array:
    """Sum runs of neighbors along one axis as a matrix product."""
    size = planes.shape[axis]
    band = _band(size, length, namespace(planes), planes.dtype, planes.device)
    if is_covering:
        band = band.T
    if axis == -1:
        return (planes.reshape(-1, size) @ band.T).reshape(planes.shape)
    tail = prod(planes.shape[axis + 1 :])
    return (band @ planes.reshape(-1, size, tail)).reshape(planes.shape)


@lru_cache(maxsize=64)
def _band(size: int, length: int, xp: Any, dtype: Any, device: Any) -> Array:
    places = xp.arange(size, device=device)
    return xp.astype((places - places[:, None]) % size < length, dtype)


def _doubling_sum(planes: Array, length: int, axis: int) -> Array:
    """Sum runs of neighbors along one axis by adding shifted copies in doubling strides."""
    size = planes.shape[axis]
    run = namespace(planes).concat([planes, _cut(planes, axis, 0, length - 1)], axis=axis)
    pieces = []
    done = 0
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
