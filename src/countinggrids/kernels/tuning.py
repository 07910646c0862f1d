"""Thresholds at which one way to compute a sum becomes faster than another."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Measured thresholds; none of them changes a result beyond rounding.

    Parameters
    ----------
    dense_from : float, default=1/8
        Fraction of non-zero counts from which a BLAS product is faster than a sparse one.
    small_product : int, default=2**26
        Multiplications below which products are dense whatever that fraction, so that nothing is compiled.
    thread_product : int, default=2**24
        Multiplications of a product below which a second thread costs more than it saves.
    """

    dense_from: float = 1 / 8
    small_product: int = 2**26
    thread_product: int = 2**24


_chosen = [Tuning()]


def current() -> Tuning:
    """Return the thresholds in force."""
    return _chosen[-1]


@contextmanager
def use(tuning: Tuning) -> Iterator[None]:
    """Use other thresholds for bags that are prepared inside the `with` block."""
    _chosen.append(tuning)
    try:
        yield
    finally:
        _chosen.pop()
