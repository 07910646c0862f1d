"""Bags of features, counted by section.

A table of bags has one row per bag and one column per section and feature: column = section * features + feature.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from countinggrids.geometry import Shape, as_shape


def bag(
    maps: Iterable[ArrayLike], sections: int | Sequence[int] | None = None, n_features: int | None = None
) -> sp.csr_array:
    """Count the features of each map, section by section.

    Parameters
    ----------
    maps : integer arrays of feature labels, 0 to n_features - 1; one per image, sizes may differ
    sections : parts along each axis; None counts each map as one bag. A position belongs to the section in which
        it falls when the map is stretched over the window.
    n_features : how many features there are; None takes the largest label plus one

    Returns
    -------
    (maps, sections * features) sparse counts, float32

    Examples
    --------
    >>> import numpy as np
    >>> bag([np.array([[0, 1], [2, 2]])], sections=(2, 1), n_features=3).toarray()
    array([[1., 1., 0., 0., 0., 2.]], dtype=float32)
    """
    counted: list[_Counted] = []
    parts: Shape | None = None
    for index, each in enumerate(maps):
        labels = _as_labels(each, index)
        if parts is None:
            parts = (1,) * labels.ndim if sections is None else as_shape(sections, "sections", labels.ndim)
        counted.append(_count(labels, index, parts, n_features))
    if parts is None:
        raise ValueError("maps is empty; wanted at least one feature map; give a list of integer arrays")
    if n_features is None:
        n_features = 1 + max(int(each.label.max(initial=0)) for each in counted)
    ends = np.cumsum([0] + [each.label.size for each in counted])
    ends = ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)
    columns = np.concatenate([each.section * n_features + each.label for each in counted])
    times = np.concatenate([each.times for each in counted])
    counts = sp.csr_array((times, columns, ends), shape=(len(counted), prod(parts) * n_features))
    counts.sort_indices()
    return counts


def coarsen(counts: Any, n_features: int, fine: Shape, coarse: Shape) -> Any:
    """Add neighbouring sections up: counts at the tessellation `fine` become counts at `coarse`."""
    if fine == coarse:
        return counts
    target = np.zeros(fine, dtype=np.int64)
    for axis, (f, c) in enumerate(zip(fine, coarse, strict=True)):
        along = np.arange(f) * c // f
        target = target * c + along.reshape([-1 if a == axis else 1 for a in range(len(fine))])
    features = np.arange(n_features)
    columns = (target.reshape(-1, 1) * n_features + features).ravel()
    ones = np.ones(columns.size, dtype=counts.dtype)
    shape = (columns.size, prod(coarse) * n_features)
    return counts @ sp.csr_array((ones, columns, np.arange(columns.size + 1)), shape=shape)


def rows_of(counts: Any, rows: slice) -> Any:
    """Give consecutive rows of a dense or CSR table; what they hold is not copied."""
    if not sp.issparse(counts):
        return counts[rows]
    first, last = counts.indptr[rows.start], counts.indptr[rows.stop]
    ends = counts.indptr[rows.start : rows.stop + 1] - first
    parts = (counts.data[first:last], counts.indices[first:last], ends)
    return sp.csr_array(parts, shape=(rows.stop - rows.start, counts.shape[1]), copy=False)


def _as_labels(feature_map: ArrayLike, index: int) -> NDArray[np.integer]:
    labels = np.asarray(feature_map)
    if labels.dtype.kind not in "iu" or labels.ndim == 0:
        raise ValueError(
            f"map {index} is {labels.dtype} with {labels.ndim} axes; wanted an integer array of feature labels; "
            "quantise the features first"
        )
    return labels


class _Counted(NamedTuple):
    """How many times each label occurs in each section of one map; what does not occur is left out."""

    section: NDArray[np.int32]
    label: NDArray[np.int32]
    times: NDArray[np.float32]


def _count(labels: NDArray[np.integer], index: int, parts: Shape, n_features: int | None) -> _Counted:
    if labels.ndim != len(parts):
        raise ValueError(
            f"map {index} has shape {labels.shape} but sections {parts} has {len(parts)} axes; "
            "give every map the same number of axes"
        )
    low, high = int(labels.min(initial=0)), int(labels.max(initial=0))
    if low < 0 or (n_features is not None and high >= n_features):
        limit = "0 or more" if n_features is None else f"0 to {n_features - 1}"
        raise ValueError(
            f"map {index} has label {low if low < 0 else high}; labels must lie in {limit}; "
            "raise n_features or relabel the map"
        )
    section = np.zeros((1,) * labels.ndim, dtype=np.int64)
    for axis, (size, n) in enumerate(zip(labels.shape, parts, strict=True)):
        along = np.arange(size) * n // max(size, 1)
        section = section * n + along.reshape([-1 if a == axis else 1 for a in range(labels.ndim)])
    codes, times = _tally((section * (high + 1) + labels).ravel(), prod(parts) * (high + 1))
    found, label = np.divmod(codes, high + 1)
    return _Counted(found.astype(np.int32), label.astype(np.int32), times.astype(np.float32))


def _tally(codes: NDArray[np.integer], n_codes: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Give the distinct codes in order, and how many times each occurs."""
    if n_codes > 4 * codes.size + 2**16:
        return np.unique(codes, return_counts=True)
    times = np.bincount(codes, minlength=n_codes)
    distinct = np.flatnonzero(times)
    return distinct, times[distinct]
