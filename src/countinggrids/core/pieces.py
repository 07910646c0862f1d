"""How bags, features and cells are cut into pieces that fit into memory and that threads share."""

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

from countinggrids.core.arrays import Array
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags, Pool

PLANE_ENTRIES = 2**17
"""Features times cells processed at a time, so that the operations on the grid stay in cache."""
FEWEST_PIECES = 4
"""Pieces that an E step is cut into at least, for threads to share, unless it is small."""
SMALL_BLOCK = 2**15
"""Bags times cells up to which an E step is small."""


def blocks(bags: Bags, geometry: Geometry, pool: Pool) -> list[slice]:
    """Cut bags into consecutive ones whose posterior stays within the pool's limit of entries."""
    widest = max(geometry.n_cells, bags.painted.dense_width)
    return pieces(bags.painted.shape[0], max(1, pool.block_entries // widest))


def for_features(function: Callable[[slice], Any], planes: Array, pool: Pool) -> list[Any]:
    """Apply a function to pieces of the features, few enough to stay in cache; return the results in order."""
    return list(pool.map(function, pieces(len(planes), max(1, PLANE_ENTRIES // prod(planes.shape[1:])))))


def largest_piece(n: int, entries: int) -> int:
    """Return the length of pieces of n rows or columns, so that threads have enough of them."""
    return -(-n // FEWEST_PIECES) if entries > SMALL_BLOCK else n


def pieces(n: int, size: int) -> list[slice]:
    """Cut n into pieces of nearly equal length, none longer than size."""
    count = max(1, -(-n // size))
    cuts = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(cuts)]
