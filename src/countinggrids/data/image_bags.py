"""Bags of images: feature maps of one image after another, counted by section."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.geometry import Shape
from countinggrids.data.crops import CropFinder
from countinggrids.data.items import Items
from countinggrids.features.bagger import bag
from countinggrids.features.channels import Channels
from countinggrids.features.codebook import Codebook
from countinggrids.features.descriptors import as_map
from countinggrids.features.image_files import is_image_path
from countinggrids.features.outside import FunctionDescriptors, OutsideExtractor
from countinggrids.features.stream import Skipped, Stream


class BaggedImages(NamedTuple):
    """The bags of images.

    Attributes
    ----------
    counts : csr_array of shape (n_used, n_sections * n_features)
        The bags.
    items : Items
        The items of these bags, with the sizes of their feature maps and images.
    steps : list of transformer
        The extractors: functions as transformers, and the last with crops of its features, if they were found.
    skipped : list of Skipped
        Images that could not be used.
    """

    counts: sp.csr_array
    items: Items
    steps: list[Any]
    skipped: list[Skipped]


def bag_images(items: Items, steps: Sequence[Any], sections: Shape, images: Iterable[Any] | None) -> BaggedImages:
    """Extract features of images and count them.

    Parameters
    ----------
    items : Items
        One row for each image; the column `path` names the files.
    steps : sequence of transformer or callable
        Fitted extractors, in order.
    sections : tuple of int
        Sections of the bags, along both axes.
    images : iterable of ndarray or path-like, or None
        What to read instead of the column `path`.

    Returns
    -------
    bagged : BaggedImages
        The bags.
    """
    if not steps:
        raise ValueError("steps=[] must hold at least one extractor; use for instance [DenseSIFT(), codebook].")
    steps = [_as_step(step) for step in steps]
    _check_last(steps[-1])
    stream: Any = images if images is not None else [items.path(i) for i in range(len(items))]
    if hasattr(stream, "__len__") and len(stream) != len(items):
        raise ValueError(f"got {len(stream)} images for {len(items)} items; pass one image for each item.")
    for step in steps[:-1]:
        stream = step.transform(stream)
    finder = CropFinder(len(steps[-1].vocabulary_)) if _lacks_crops(steps[-1], items) else None
    stream = steps[-1].transform(stream) if finder is None else _with_places(stream, steps[-1])
    sizes: dict[int, Shape] = {}
    maps = _sized(stream, sizes, finder, len(items))
    first = next(maps, None)
    if first is None:
        reason = f" (the first: {stream.skipped[0].reason})" if stream.skipped else ""
        raise ValueError(f"none of {len(items)} images could be read{reason}; check the files.")
    counts = bag(chain([first], maps), sections, len(steps[-1].vocabulary_))
    if finder is not None:
        steps[-1] = copy(steps[-1])
        steps[-1].patches_ = finder.cut(items)
    return BaggedImages(counts, _with_sizes(items, sizes), steps, stream.skipped)


def _as_step(step: Any) -> Any:
    """Return an extractor with what a collection keeps of it; a function becomes one."""
    if isinstance(step, OutsideExtractor) and not hasattr(step, "digest_"):
        return clone(step).fit(())
    if hasattr(step, "transform"):
        return step
    if not callable(step):
        raise ValueError(
            f"steps holds a {type(step).__name__} and must hold extractors, or functions of an image that return "
            "descriptors; use for instance [DenseSIFT(), codebook]."
        )
    return FunctionDescriptors(step).fit(())


def _check_last(last: Any) -> None:
    """Raise unless the last step is fitted and knows what its features are."""
    if hasattr(last, "fit"):
        check_is_fitted(last)
    if not hasattr(last, "vocabulary_"):
        raise ValueError(
            f"steps ends with {type(last).__name__}, which returns no features to count, and must end with an "
            "extractor of words or channels; add a fitted Codebook or Channels."
        )


def _lacks_crops(last: Any, items: Items) -> bool:
    """Return whether nothing shows what the features are, and there are images to cut."""
    if not isinstance(last, Codebook | Channels) or last.patches_ is not None:
        return False
    return "path" in items and len(items) > 0 and is_image_path(items.path(0))


def _with_places(stream: Any, last: Any) -> Stream:
    """Count features, and return with each map the descriptors, and where they come nearest to each feature."""
    descriptors = stream if isinstance(stream, Stream) else Stream(stream, lambda item: item)

    def work(item: Any) -> Any:
        found = as_map(item)
        [counted] = last.transform([found])
        return counted, (found, *last.best_places(found))

    return descriptors.then(work)


def _sized(stream: Any, sizes: dict[int, Shape], finder: CropFinder | None, n_items: int) -> Iterator[Any]:
    """Iterate over feature maps, and enter the size of each, by the number of its image."""
    index = -1
    for index, result in stream.enumerate():
        feature_map, seen = result if finder is not None else (result, ())
        if index >= n_items:
            break
        if len(feature_map.size) != 2:
            raise ValueError(
                f"images[{index}] has descriptors without rows and columns, {feature_map.shape} places; "
                "reshape them to (rows, columns, channels)."
            )
        sizes[index] = (*feature_map.shape[:2], *feature_map.size)
        if finder is not None:
            finder.see(index, *seen)
        yield feature_map
    n_images = max([index, *(each.place for each in stream.skipped)]) + 1
    if n_images != n_items:
        given = n_images if n_images < n_items else f"more than {n_items}"
        raise ValueError(f"got {given} images for {n_items} items; pass one image for each item.")


def _with_sizes(items: Items, sizes: dict[int, Shape]) -> Items:
    rows, columns, height, width = np.array(list(sizes.values())).T
    return items.take(list(sizes)).with_columns(rows=rows, columns=columns, height=height, width=width)
