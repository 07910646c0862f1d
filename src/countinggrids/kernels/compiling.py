"""Loops that numba compiles at their first use."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any


@lru_cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop at its first use, with the GIL released.

    Sums may be vectorized, which changes the order of their terms, but to one order that is always the same.
    """
    import numba

    freedom = {"reassoc", "contract", "nsz"}
    fast: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy", fastmath=freedom)(loop)
    return fast
