"""Loops that are compiled when they are first run, where there is much for them to do."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache
def compiled(kernel: Callable[..., Any], sums_freely: bool = False) -> Callable[..., Any]:
    """Compile a kernel at its first use; nothing is kept on disk.

    Where it sums freely, several terms are added at a time: in another order than written, but always the same one.
    """
    import numba

    how = {"reassoc", "contract", "nsz"} if sums_freely else False
    quick: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy", fastmath=how)(kernel)
    return quick


def is_much(array: Any, least: float) -> bool:
    """Tell whether an array is one that compiled loops are written for, NumPy's and float32, and has enough numbers."""
    return isinstance(array, np.ndarray) and array.dtype == np.float32 and array.size >= least
