"""The compiled loops of `loops.c`, where they were compiled when the package was built.

Without them the same sums are made by NumPy and SciPy: equal to rounding, and slower.
"""

import ctypes
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from countinggrids.core.arrays import VECTOR, Array

LIBRARY = Path(__file__).with_name("_loops.library")
"""Where `tools/build_kernels.py` puts the compiled loops."""


@lru_cache
def library() -> Any:
    """Return the compiled loops, or None, with one warning in a process, where there are none."""
    try:
        return ctypes.CDLL(str(LIBRARY))
    except OSError:
        warnings.warn(
            "countinggrids was installed without its compiled loops, and is several times slower on texts; "
            "install it again where there is a C compiler.",
            stacklevel=2,
        )
        return None


def call(name: str, dtype: Any, *arguments: Any) -> None:
    """Call a loop for a precision; arrays are passed by address, and numbers as 64-bit integers.

    The caller keeps the arrays alive, and sees to their types.
    """
    passed = [
        ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else ctypes.c_int64(each)
        for each in arguments
    ]
    getattr(library(), f"{name}_{np.dtype(dtype).name}")(*passed)


def stride_of(table: Array) -> int:
    """Return how many items apart the rows of a table start."""
    return int(table.strides[0] // table.itemsize)


def is_padded(table: Array) -> bool:
    """Return whether loops may work on the rows of a table, (n_rows, width): see `arrays.padded_rows`."""
    width = -(-table.shape[1] // VECTOR) * VECTOR
    return len(table) == 0 or (table.strides[1] == table.itemsize and stride_of(table) >= width)
