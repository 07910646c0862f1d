"""Bags of images: feature maps of one image after another, counted by section."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.core.geometry import Shape
from countinggrids.data.items import Items
from countinggrids.features.bagger import bag
from countinggrids.features.stream import Skipped


def bag_images(
    items: Items, steps: Sequence[Any], sections: Shape, images: Iterable[Any] | None
) -> tuple[sp.csr_array, Items, list[Skipped]]:
    """Extract features of images and count them.

    Parameters
    ----------
    items : Items
        One row for each image; the column `path` names the files.
    steps : sequence of transformer
        Fitted extractors, in order.
    sections : tuple of int
        Sections of the bags, along both axes.
    images : iterable of ndarray or path-like, or None
        What to read instead of the column `path`.

    Returns
    -------
    counts : csr_array of shape (n_used, n_sections * n_features)
        The bags.
    used : Items
        The items of these bags, with the sizes of their feature maps and images.
    skipped : list of Skipped
        Images that could not be used.
    """
    stream: Any = images if images is not None else [items.path(i) for i in range(len(items))]
    if hasattr(stream, "__len__") and len(stream) != len(items):
        raise ValueError(f"got {len(stream)} images for {len(items)} items; pass one image for each item.")
    for step in steps:
        stream = step.transform(stream)
    sizes: dict[int, Shape] = {}
    maps = _sized(stream, sizes)
    first = next(maps, None)
    if first is None:
        reason = f" (the first: {stream.skipped[0].reason})" if stream.skipped else ""
        raise ValueError(f"none of {len(items)} images could be read{reason}; check the files.")
    counts = bag(chain([first], maps), sections, len(steps[-1].vocabulary_))
    return counts, _with_sizes(items, sizes), stream.skipped


def _sized(stream: Any, sizes: dict[int, Shape]) -> Iterator[Any]:
    """Iterate over feature maps, and enter the size of each, by the number of its image."""
    for index, feature_map in stream.enumerate():
        sizes[index] = (*feature_map.shape[:2], *feature_map.size)
        yield feature_map


def _with_sizes(items: Items, sizes: dict[int, Shape]) -> Items:
    rows, columns, height, width = np.array(list(sizes.values())).T
    return items.take(list(sizes)).with_columns(rows=rows, columns=columns, height=height, width=width)
