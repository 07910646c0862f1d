"""The pictures of the page: the painted grid, the features' patches, and the items' thumbnails on sheets."""

import io
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids import painting
from countinggrids.explore.atlas import Atlas
from countinggrids.features import pictures
from countinggrids.features.stream import BadItemError

SIDE, ACROSS = 64, 16
"""Pixels along a thumbnail's longer side, and thumbnails along the side of a sheet."""
PICTURE_SIDE, FINEST = 2048, 32
"""Pixels along the painted grid's longer side at the most, and pixels for a cell at the most."""
FULL_SIDE = 1600
"""Pixels along the longer side of an item's own image at the most."""
GREY = 200
"""What stands for an image that cannot be read."""

Pixels = NDArray[np.uint8]


def has_picture(atlas: Atlas) -> bool:
    """Tell whether the grid can be painted with its features."""
    vocabulary = atlas.collection.vocabulary
    return vocabulary.kind != "words" and (vocabulary.colours is not None or vocabulary.patches is not None)


def painted(atlas: Atlas) -> bytes:
    """Paint the grid with its features, as a JPEG."""
    pitch = int(np.clip(PICTURE_SIDE // max(atlas.grid), 1, FINEST))
    return encoded(painting.picture(atlas.pi, atlas.collection.vocabulary, pitch), 85)


def patch_side(atlas: Atlas) -> int:
    """Give the pixels along a feature's patch; 0 where features have none."""
    patches = atlas.collection.vocabulary.patches
    return 0 if patches is None else int(patches.shape[1])


def patches(atlas: Atlas) -> bytes:
    """Put the patches of all features side by side, as a PNG."""
    found = atlas.collection.vocabulary.patches
    if found is None:
        raise LookupError("the features have no patches; wanted a collection of visual words or textons")
    return encoded(np.concatenate(list(found), axis=1), None)


def has_thumbnails(atlas: Atlas) -> bool:
    """Tell whether the items are images."""
    return atlas.collection.vocabulary.kind != "words" and "path" in atlas.collection.items


def n_missing(atlas: Atlas) -> int:
    """Count the images that are not where the collection says, or that lie outside its folder."""
    if not has_thumbnails(atlas):
        return 0
    items = atlas.collection.items
    return sum(not items.path(i).is_file() or not _is_within(atlas, i) for i in range(len(items)))


def sheet_table(atlas: Atlas, side: int = SIDE) -> dict[str, Any] | None:
    """Tell on which sheet and where on it each item's thumbnail is; items that lie near each other share sheets."""
    if not has_thumbnails(atlas):
        return None
    slots = np.empty(len(atlas.collection), dtype=int)
    slots[_order(atlas)] = np.arange(len(slots))
    return {
        "side": side,
        "across": ACROSS,
        "n": ceil(len(slots) / ACROSS**2),
        "slot": slots.tolist(),
        "width": [shape[1] for shape in _shapes(atlas, side)],
        "height": [shape[0] for shape in _shapes(atlas, side)],
    }


def sheet(atlas: Atlas, number: int, side: int = SIDE, quality: int = 75) -> bytes:
    """Put one sheet of thumbnails together, as a JPEG; what cannot be read stays grey."""
    order = _order(atlas)[number * ACROSS**2 : (number + 1) * ACROSS**2]
    if not has_thumbnails(atlas) or number < 0 or not len(order):
        raise LookupError(f"there is no sheet {number}; wanted one of those that /map.json counts")
    pixels = np.full((ceil(len(order) / ACROSS) * side, ACROSS * side, 3), GREY, np.uint8)
    for slot, index in enumerate(order.tolist()):
        top, left = slot // ACROSS * side, slot % ACROSS * side
        try:
            small = _own(atlas, index, side)
        except BadItemError:
            continue
        pixels[top : top + small.shape[0], left : left + small.shape[1]] = small
    return encoded(pixels, quality)


def full(atlas: Atlas, number: int) -> bytes:
    """Give an item's own image, decoded and encoded anew, so that nothing but pixels leaves this machine."""
    if not has_thumbnails(atlas) or not 0 <= number < len(atlas.collection):
        raise LookupError(f"item {number} has no image; wanted the number of an image")
    try:
        return encoded(_own(atlas, number, FULL_SIDE), 90)
    except BadItemError as error:
        raise LookupError(f"the image of item {number} cannot be read; check that the files have not moved") from error


def _own(atlas: Atlas, number: int, side: int) -> Pixels:
    """Read the image of an item; one outside the collection's folder is not the collection's."""
    if not _is_within(atlas, number):
        raise BadItemError(f"the file of item {number} lies outside the collection's folder; wanted one within it")
    return atlas.collection.thumbnail(number, side)


def _is_within(atlas: Atlas, number: int) -> bool:
    """Tell whether an item's file lies in the collection's folder, links followed; without a folder all do."""
    items = atlas.collection.items
    return items.root == Path("") or items.path(number).resolve().is_relative_to(items.root.resolve())


def encoded(pixels: Pixels, quality: int | None) -> bytes:
    """Encode pixels as a JPEG of some quality, or without loss as a PNG."""
    image = pictures.pillow().fromarray(pixels)
    into = io.BytesIO()
    if quality is None:
        image.save(into, "PNG", optimize=True)
    else:
        image.save(into, "JPEG", quality=quality, optimize=True)
    return into.getvalue()


def _order(atlas: Atlas) -> NDArray[np.int64]:
    """Order items along the map, in bands as high as a window."""
    bands = (atlas.places[:, 0] // max(1, atlas.window[0])).astype(int)
    return np.lexsort((atlas.places[:, 1], bands))


def _shapes(atlas: Atlas, side: int) -> list[tuple[int, int]]:
    """Give the thumbnails' heights and widths, from what the table of items says of the images."""
    items = atlas.collection.items
    if "height" not in items or "width" not in items:
        return [(side, side)] * len(items)
    sizes = np.stack([items["height"], items["width"]], axis=1)
    scale = np.minimum(1, side / sizes.max(axis=1, keepdims=True))
    return [(max(1, round(h)), max(1, round(w))) for h, w in (sizes * scale).tolist()]
