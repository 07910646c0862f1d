"""A compact form of pi for files: one byte for each probability, on a logarithmic scale for each feature."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data.container import Arrays

N_STEPS = 254
"""Steps between the smallest and the largest probability of a feature; code 0 is a probability of zero."""
SMALLEST = 1e-12
"""Smaller probabilities are rounded up to this one, which keeps the steps of a feature below 11 percent."""


def encode(pi: NDArray[Any], n_grid_axes: int) -> Arrays:
    """Round the logarithms of pi to codes of one byte.

    Parameters
    ----------
    pi : ndarray of shape (*grid, ..., n_features)
        Probabilities.
    n_grid_axes : int
        Number of axes of the grid.

    Returns
    -------
    arrays : dict of str to ndarray
        `pi.codes`, uint8, of the shape of pi, and `pi.scale`, float64, of shape (2, ..., n_features): the logarithm of
        code 1, and the step between two codes.
    """
    axes = tuple(range(n_grid_axes))
    largest = np.log(np.maximum(pi.max(axis=axes), SMALLEST), dtype=np.float64)
    smallest = pi.min(axis=axes, where=pi > 0, initial=1.0).astype(np.float64)
    lowest = np.minimum(np.log(np.maximum(smallest, SMALLEST)), largest)
    step = (largest - lowest) / N_STEPS
    codes = np.zeros(pi.shape, np.uint8)
    for row in range(len(pi)):
        is_positive = pi[row] > 0
        logs = np.log(pi[row], where=is_positive, out=np.zeros(pi[row].shape, np.float64))
        rounded = np.rint((logs - lowest) / np.where(step > 0, step, 1)).clip(0, N_STEPS)
        codes[row] = np.where(is_positive, rounded + 1, 0)
    return {"pi.codes": codes, "pi.scale": np.stack([lowest, step])}


def decode(codes: NDArray[Any], scale: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return pi, normalized, from what `encode` returned; raise about arrays that it cannot have returned.

    Parameters
    ----------
    codes, scale : ndarray
        The arrays `pi.codes` and `pi.scale`.
    dtype : str
        dtype of the model.

    Returns
    -------
    pi : ndarray of shape (*grid, ..., n_features)
        Probabilities.
    """
    check(codes, scale)
    lowest, step = scale
    pi = np.empty(codes.shape, dtype)
    for row in range(len(codes)):
        values = np.exp(lowest + step * (codes[row].astype(np.float64) - 1))
        values[codes[row] == 0] = 0
        totals = values.sum(axis=-1, keepdims=True)
        if not totals.all():
            raise ValueError(f"pi.codes holds cells without any feature in row {row}")
        pi[row] = values / totals
    return pi


def check(codes: NDArray[Any], scale: NDArray[Any]) -> None:
    """Raise unless codes and scale have the dtypes, shapes and values of the compact form."""
    if codes.dtype != np.uint8 or scale.dtype != np.float64:
        raise ValueError(f"pi.codes is {codes.dtype} and pi.scale {scale.dtype}")
    if not 2 <= scale.ndim <= codes.ndim or scale.shape != (2, *codes.shape[codes.ndim - scale.ndim + 1 :]):
        raise ValueError(f"pi.codes has shape {codes.shape} and pi.scale {scale.shape}")
    highest = scale[0] + N_STEPS * scale[1]
    # No probability is above one, or far below the smallest one; a comparison with NaN is false.
    if not ((scale[0] >= 1.01 * np.log(SMALLEST)) & (scale[1] >= 0) & (highest <= 0.01)).all():
        raise ValueError("pi.scale holds numbers that no compact model has")
