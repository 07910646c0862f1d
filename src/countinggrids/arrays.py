"""Arrays of NumPy, or of torch on any device: the functions for either, and the ways between them.

Code for both takes its functions from `namespace`, under the names of the array API, and may write into arrays by
`out=`, which both have. NumPy users load nothing more by it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.compiling import compiled

Array = NDArray[Any]
"""What the types call an array; where the code is for both, one of torch does as well."""
WITHOUT_FLOAT64 = ("mps",)
"""Kinds of devices that know no float64."""


def is_numpy(array: Any) -> bool:
    """Tell whether an array is NumPy's."""
    return isinstance(array, np.ndarray)


def namespace(array: Any) -> Any:
    """Give the module whose functions work on an array, with the names of the array API."""
    if is_numpy(array):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def like(array: Any, values: Any) -> Any:
    """Bring values to the library, the device and the dtype of an array; what is there already is not copied."""
    if is_numpy(array):
        return values.astype(array.dtype, copy=False)
    if not is_numpy(values):
        return values
    # Turned here, for not every device has the dtype they come in; torch can read neither what is read-only nor what
    # runs backwards.
    turned = np.require(values, str(array.dtype).rpartition(".")[2], ["C", "W"])
    return namespace(array).asarray(turned, device=array.device)


def fetched(array: Any) -> Array:
    """Give an array as NumPy's, wherever it is."""
    return array if is_numpy(array) else np.asarray(array.cpu())


def log(values: Any, out: Any, is_compiled: bool = False) -> Any:
    """Take the logarithm of positive numbers, into `out`.

    Compiled, for NumPy's float32, it takes a third of the time if `out` is another array, and both are in C order.
    """
    if is_compiled and values.flags.c_contiguous and out.flags.c_contiguous:
        compiled(_log, True)(values.reshape(-1), out.reshape(-1))
        return out
    return namespace(values).log(values, out=out)


def compiled_exp(dtype: Any) -> Any:
    """Give an exponential of numbers that are not positive, for compiled loops to call."""
    return compiled(_exp, True) if dtype == np.float32 else compiled(_library_exp)


def turned(matrix: Array) -> Array:
    """Transpose into C order, compiled: in a quarter of the time of NumPy's copy."""
    out = np.empty(matrix.shape[::-1], matrix.dtype)
    compiled(_turn)(matrix, out)
    return out


def summed(array: Any, axis: int) -> Array:
    """Add up along an axis, in float64 where the device knows it; give NumPy's float64."""
    if is_numpy(array):
        return array.sum(axis=axis, dtype=np.float64)
    xp = namespace(array)
    dtype = array.dtype if array.device.type in WITHOUT_FLOAT64 else xp.float64
    return fetched(xp.sum(array, axis=axis, dtype=dtype)).astype(np.float64)


def summed_logs(values: Any, is_compiled: bool) -> Array:
    """Add up the logarithms of numbers between 1e-30 and 1e30 along the last axis, (rows, numbers); as `summed`.

    Eight of them are multiplied before one logarithm is taken, where that is quicker than to take it of each.
    """
    if is_compiled or not is_numpy(values):
        return summed(log(values, namespace(values).empty_like(values), is_compiled), axis=1)
    products = values
    for _ in range(3):
        half, is_odd = divmod(products.shape[1], 2)
        if not is_odd:
            products = np.multiply(products[:, :half], products[:, half:], dtype=np.float64)
    logs: Array = np.log(products, dtype=np.float64).sum(axis=1)
    return logs


def _log(values, out):  # type: ignore[no-untyped-def]
    """Split a number into two to a whole power and 1 + x between 0.7 and 1.4.

    What log(1 + x) has beyond x - x^2 / 2, divided by x^3, is a polynomial: the one of degree 8 through its values at
    the Chebyshev points. Library functions take one number at a time; this loop takes as many as the processor can.
    """
    for i in range(values.size):
        bits = np.float32(values[i]).view(np.int32)
        power = (bits - np.int32(0x3F3504F3)) >> np.int32(23)  # the bits of the root of a half
        x = np.int32(bits - (power << np.int32(23))).view(np.float32) - np.float32(1)
        series = np.float32(6.971611459e-2)
        series = series * x - np.float32(1.147973384e-1)
        series = series * x + np.float32(1.168541992e-1)
        series = series * x - np.float32(1.242568733e-1)
        series = series * x + np.float32(1.424905765e-1)
        series = series * x - np.float32(1.666780232e-1)
        series = series * x + np.float32(2.000071575e-1)
        series = series * x - np.float32(2.499999696e-1)
        series = series * x + np.float32(3.333333118e-1)
        rest = x + (series * x - np.float32(0.5)) * x * x
        # The logarithm of two in two parts: the first times a power is exact.
        small = rest + np.float32(power) * np.float32(np.log(2) - 355 / 512)
        out[i] = small + np.float32(power) * np.float32(355 / 512)


def _exp(x):  # type: ignore[no-untyped-def]
    """Exponentiate in float32: two to a whole power, times a polynomial for what is left of the exponent.

    Library functions take one number at a time; loops with this take as many as the processor can.
    """
    x = np.float32(-80) if x < np.float32(-80) else x  # float32 ends at -87; the rest is for divisions
    power = np.floor(x * np.float32(1 / np.log(2)) + np.float32(0.5))
    x = (x - power * np.float32(355 / 512)) - power * np.float32(np.log(2) - 355 / 512)  # as in `_log`
    series = np.float32(1 / 720)
    series = series * x + np.float32(1 / 120)
    series = series * x + np.float32(1 / 24)
    series = series * x + np.float32(1 / 6)
    series = series * x + np.float32(1 / 2)
    series = series * x * x + x + np.float32(1)
    return series * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)


def _library_exp(x):  # type: ignore[no-untyped-def]
    return np.exp(x)


def _turn(matrix, out):  # type: ignore[no-untyped-def]
    """Transpose block by block, which stay in cache; rows a power of two apart do so no more than eight at a time."""
    for first in range(0, len(matrix), 64):
        for start in range(0, len(out), 8):
            for row in range(first, min(first + 64, len(matrix))):
                for column in range(start, min(start + 8, len(out))):
                    out[column, row] = matrix[row, column]
