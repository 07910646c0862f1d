"""Chunks of consecutive bags, in the forms that the E and M steps use.

How bags are cut depends only on the numbers of bags and features, also where they are on the workers of a cluster. So
the sums of an iteration have the same order wherever the bags are, and results the same bits.
"""

from collections.abc import Iterator
from typing import Any

from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import pieces
from countinggrids.core.protocols import Bags
from countinggrids.data.counts import coarsen
from countinggrids.data.table import Table
from countinggrids.kernels.counts import as_counts

MOST_CHUNKS = 64
"""Largest number of chunks, whose statistics are summed in a tree."""
CHUNK_BAGS = 2048
"""Number of bags, about, up to which a chunk is not cut."""
BAGS_PER_FEATURE = 1
"""Smallest number of bags per feature: summing two chunks costs as much as an E step of that many bags."""


class Chunks:
    """The bags of a table in chunks, made anew in every pass.

    Parameters
    ----------
    table : Table
        The bags.
    weights : ndarray of shape (n_bags,)
        Weights of the bags.
    n_features : int
        Number of features.
    geometry : Geometry
        Grid, window and sections.
    """

    def __init__(self, table: Table, weights: Any, n_features: int, geometry: Geometry):
        self.table, self.weights, self.n_features, self.geometry = table, weights, n_features, geometry
        self.rows = table.runs or chunk_rows(table.shape[0], n_features)

    def __iter__(self) -> Iterator[Bags]:
        for rows, counts in zip(self.rows, self.table.cut(self.rows), strict=True):
            yield bags_of(counts, self.weights[rows], self.n_features, self.geometry)


def chunk_rows(n_bags: int, n_features: int) -> list[slice]:
    """Cut bags into chunks."""
    return pieces(n_bags, max(-(-n_bags // MOST_CHUNKS), CHUNK_BAGS, n_features * BAGS_PER_FEATURE))


def bags_of(counts: Any, weights: Any, n_features: int, geometry: Geometry) -> Bags:
    """Hold the counts of a chunk for matching and for painting."""
    matched = coarsen(counts, n_features, geometry.painted, geometry.matched)
    return Bags(
        as_counts(matched, n_features, geometry.matched_offsets, geometry.grid),
        as_counts(counts, n_features, geometry.painted_offsets, geometry.grid),
        weights,
    )
