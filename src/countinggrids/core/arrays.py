"""Array namespaces: the same code on NumPy arrays and on torch tensors of any device.

Code for both takes its functions from `namespace`, under the names of the array API standard, and may write into
arrays by `out=`, which both libraries have. torch is never imported unless a torch tensor is given.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Type of an array. Functions that use `namespace` accept torch tensors too."""
WITHOUT_FLOAT64 = ("mps",)
"""Types of devices that do not support float64."""

NEARLY_ZERO = 0.9
"""Power of the smallest normal number that counts as 0: products with weights and priors stay normal."""

VECTOR = 16
"""Items that compiled loops work on at a time, and may read or write behind the end of a padded row."""


def is_numpy(array: Any) -> bool:
    """Return whether an array belongs to NumPy."""
    return isinstance(array, np.ndarray)


def namespace(array: Any) -> Any:
    """Return the module whose functions work on an array, with the names of the array API standard."""
    if is_numpy(array):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def like(array: Any, values: Any) -> Any:
    """Convert values to the library, device and dtype of an array, without a copy where they match already.

    Parameters
    ----------
    array : ndarray or tensor
        The example.
    values : ndarray or tensor
        The values to convert.

    Returns
    -------
    converted : ndarray or tensor
        The values, where `array` lives.
    """
    if is_numpy(array):
        return values.astype(array.dtype, copy=False)
    if not is_numpy(values):
        return values
    # Cast on the host, because not every device supports the source dtype; torch cannot read arrays that are read-only
    # or have negative strides.
    cast = np.require(values, str(array.dtype).rpartition(".")[2], ["C", "W"])
    return namespace(array).asarray(cast, device=array.device)


def fetched(array: Any) -> Array:
    """Return an array as a NumPy array, wherever it is."""
    return array if is_numpy(array) else np.asarray(array.cpu())


def summed(array: Any, axis: int) -> Array:
    """Sum along an axis, in float64 where the device supports it.

    Parameters
    ----------
    array : ndarray or tensor
        The values.
    axis : int
        The axis to sum over.

    Returns
    -------
    total : ndarray of float64
        The sums, as a NumPy array.
    """
    if is_numpy(array):
        return array.sum(axis=axis, dtype=np.float64)
    xp = namespace(array)
    dtype = array.dtype if array.device.type in WITHOUT_FLOAT64 else xp.float64
    return fetched(xp.sum(array, axis=axis, dtype=dtype)).astype(np.float64)


def exp_in_place(logs: Any) -> Any:
    """Replace logarithms of at most 0 by their exponentials, in place; the smallest ones become 0.

    Numbers below the smallest normal one are left out: processors take a hundred times as long for them, and most cells
    have so small a posterior once a layout has formed.

    Parameters
    ----------
    logs : ndarray or tensor
        The logarithms, overwritten.

    Returns
    -------
    values : ndarray or tensor
        The same memory.
    """
    xp = namespace(logs)
    lowest = NEARLY_ZERO * math.log(xp.finfo(logs.dtype).smallest_normal)
    xp.maximum(logs, like(logs, np.asarray(lowest)), out=logs)
    values = xp.exp(logs, out=logs)
    values *= values > 2 * math.exp(lowest)
    return values


def padded_rows(n_rows: int, width: int, dtype: Any, is_zero: bool = False) -> Array:
    """Allocate a NumPy table whose rows end with room for a vector, (n_rows, width).

    Rows start an odd number of cache lines apart: rows that start at multiples of a power of two would compete for the
    same few lines of the cache.

    Parameters
    ----------
    n_rows, width : int
        Shape of the table.
    dtype : dtype
        Type of its values.
    is_zero : bool, default=False
        Whether it holds zeros; otherwise it holds anything.

    Returns
    -------
    table : ndarray of shape (n_rows, width)
        A view of rows that are longer.
    """
    line = 64 // np.dtype(dtype).itemsize
    n_lines = -(-width // VECTOR) * VECTOR // line
    table = np.empty((n_rows, (n_lines + 1 - n_lines % 2) * line), dtype)
    if is_zero:
        table[:] = 0
    return table[:, :width]


def rows_like(array: Any, n_rows: int, width: int) -> Any:
    """Allocate a table, (n_rows, width), of the library, device and dtype of an array; NumPy's has padded rows."""
    if is_numpy(array):
        return padded_rows(n_rows, width, array.dtype)
    return namespace(array).empty((n_rows, width), dtype=array.dtype, device=array.device)
