"""Bags of features, counted by section.

A table of bags has one row per bag and one column per section and feature: column = section * features + feature.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

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
    labels = [_as_labels(each, index) for index, each in enumerate(maps)]
    if not labels:
        raise ValueError("maps is empty; wanted at least one feature map; give a list of integer arrays")
    n_axes = labels[0].ndim
    parts = (1,) * n_axes if sections is None else as_shape(sections, "sections", n_axes)
    if n_features is None:
        n_features = 1 + max(int(each.max(initial=0)) for each in labels)
    columns = [_columns(each, index, parts, n_features) for index, each in enumerate(labels)]
    ends = np.cumsum([0] + [each.size for each in columns])
    joined = np.concatenate(columns)
    shape = (len(labels), prod(parts) * n_features)
    counts = sp.csr_array((np.ones(joined.size, np.float32), joined, ends), shape=shape)
    counts.sum_duplicates()
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


def _as_labels(feature_map: ArrayLike, index: int) -> NDArray[np.integer]:
    labels = np.asarray(feature_map)
    if labels.dtype.kind not in "iu" or labels.ndim == 0:
        raise ValueError(
            f"map {index} is {labels.dtype} with {labels.ndim} axes; wanted an integer array of feature labels; "
            "quantise the features first"
        )
    return labels


def _columns(labels: NDArray[np.integer], index: int, parts: Shape, n_features: int) -> NDArray[np.int64]:
    """Give the column of X that each position of one map adds one to."""
    if labels.ndim != len(parts):
        raise ValueError(
            f"map {index} has shape {labels.shape} but sections {parts} has {len(parts)} axes; "
            "give every map the same number of axes"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < n_features:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise ValueError(
            f"map {index} has label {wrong}; labels must lie in 0 to {n_features - 1}; "
            "raise n_features or relabel the map"
        )
    section = np.zeros((1,) * labels.ndim, dtype=np.int64)
    for axis, (size, n) in enumerate(zip(labels.shape, parts, strict=True)):
        along = np.arange(size) * n // max(size, 1)
        section = section * n + along.reshape([-1 if a == axis else 1 for a in range(labels.ndim)])
    return (section * n_features + labels).ravel()
