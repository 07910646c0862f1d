"""Arrays of NumPy, or of torch on any device: the functions for either, and the ways between them.

Code for both takes its functions from `namespace`, under the names of the array API, and may write into arrays by
`out=`, which both have. NumPy users load nothing more by it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def summed(array: Any, axis: int) -> Array:
    """Add up along an axis, in float64 where the device knows it; give NumPy's float64."""
    if is_numpy(array):
        return array.sum(axis=axis, dtype=np.float64)
    xp = namespace(array)
    dtype = array.dtype if array.device.type in WITHOUT_FLOAT64 else xp.float64
    return fetched(xp.sum(array, axis=axis, dtype=dtype)).astype(np.float64)
