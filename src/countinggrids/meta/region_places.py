"""Where a part of a torus lies: its middle and its bounds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core import torus

Array = NDArray[Any]


def center(is_inside: Array, weights: Array) -> tuple[float, float]:
    """Return the cell of a part that is nearest to its weighted circular mean.

    Parameters
    ----------
    is_inside : ndarray of bool of shape (n_rows, n_columns)
        The part, not empty.
    weights : ndarray of shape (n_rows, n_columns)
        Weights of the cells.

    Returns
    -------
    center : tuple of float
        Row and column.
    """
    cells = np.argwhere(is_inside)
    masses = weights[is_inside] + 1e-9
    angles = 2 * np.pi * cells / is_inside.shape
    mean = np.angle(masses @ np.exp(1j * angles)) / (2 * np.pi) * is_inside.shape
    away = (torus.displacement(mean, cells, is_inside.shape) ** 2).sum(axis=1)
    row, column = cells[np.argmin(away.round(6))]
    return float(row), float(column)


def bounds(is_inside: Array) -> tuple[float, float, float, float]:
    """Return the smallest box around a part: top, left, height, width; it may go beyond the last row and column.

    Parameters
    ----------
    is_inside : ndarray of bool of shape (n_rows, n_columns)
        The part, not empty.

    Returns
    -------
    bounds : tuple of float
        First row, first column, number of rows and number of columns.
    """
    (top, height), (left, width) = (
        _span(np.flatnonzero(is_inside.sum(axis=1 - axis)), size) for axis, size in enumerate(is_inside.shape)
    )
    return float(top), float(left), float(height), float(width)


def _span(used: Array, size: int) -> tuple[int, int]:
    """Return the start and the length of the shortest run on a circle that contains all that is used."""
    gaps = np.diff(np.r_[used, used[0] + size])
    last = int(gaps.argmax())
    start = int(used[(last + 1) % len(used)])
    return (0, size) if gaps[last] == 1 else (start, size - int(gaps[last]) + 1)
