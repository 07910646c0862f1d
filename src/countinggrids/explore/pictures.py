"""The images of the page: the painted grid, the patches of the features, and sheets of thumbnails."""

import io
import os
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data.items import Items
from countinggrids.explore.item_map import ItemMap
from countinggrids.features import image_files
from countinggrids.plot import painting

SIDE, ACROSS = 64, 16
"""Pixels along the longer side of a thumbnail, and thumbnails along the side of a sheet."""
PICTURE_SIDE, FINEST = 2048, 32
"""Largest number of pixels along the longer side of the painted grid, and along a cell."""
FULL_SIDE = 1600
"""Largest number of pixels along the longer side of the image of an item."""
GRAY = 200
"""Level of gray in place of an image that cannot be read."""

Pixels = NDArray[np.uint8]


def has_picture(item_map: ItemMap) -> bool:
    """Return whether the grid can be painted with its features."""
    vocabulary = item_map.collection.vocabulary
    return vocabulary.kind != "words" and (vocabulary.colors is not None or vocabulary.patches is not None)


def painted(item_map: ItemMap) -> bytes:
    """Paint the grid with its features, as a JPEG."""
    pitch = int(np.clip(PICTURE_SIDE // max(item_map.grid), 1, FINEST))
    return encoded(painting.picture(item_map.pi, item_map.collection.vocabulary, pitch), 85)


def patch_side(item_map: ItemMap) -> int:
    """Return the pixels along the patch of a feature; 0 where features have none."""
    patches = item_map.collection.vocabulary.patches
    return 0 if patches is None else int(patches.shape[1])


def patches(item_map: ItemMap) -> bytes:
    """Return the patches of all features side by side, as a PNG."""
    found = item_map.collection.vocabulary.patches
    if found is None:
        raise LookupError("the features have no patches; expected a collection of visual words or textons.")
    return encoded(np.concatenate(list(found), axis=1), None)


def has_thumbnails(item_map: ItemMap) -> bool:
    """Return whether the items are images in a folder that may be read."""
    try:
        return _are_images(item_map) and bool(item_map.collection.items.folder())
    except ValueError:
        return False


def left_out(item_map: ItemMap) -> list[str]:
    """Return the reason for each image that is not shown: its file is missing, or outside the folder."""
    items = item_map.collection.items
    if not _are_images(item_map):
        return []
    try:
        folder = items.folder()
    except ValueError as error:
        return [str(error)] * len(items)
    reasons = (_reason(items, number, folder) for number in range(len(items)))
    return [f"item {number}: {reason}" for number, reason in enumerate(reasons) if reason]


def _are_images(item_map: ItemMap) -> bool:
    return item_map.collection.vocabulary.kind != "words" and "path" in item_map.collection.items


def _reason(items: Items, number: int, folder: Path) -> str:
    try:
        path = items.file(number, folder)
        if not os.path.isfile(path):
            return f"{path} does not exist or is not a file"
        return "" if os.access(path, os.R_OK) else f"{path} is not readable"
    except ValueError as error:
        return str(error)


def sheet_table(item_map: ItemMap, side: int = SIDE) -> dict[str, Any] | None:
    """Return the place of each thumbnail on the sheets; items near each other on the map are on the same sheet."""
    if not has_thumbnails(item_map):
        return None
    slots = np.empty(len(item_map.collection), dtype=int)
    slots[_order(item_map)] = np.arange(len(slots))
    return {
        "side": side,
        "across": ACROSS,
        "n": ceil(len(slots) / ACROSS**2),
        "slot": slots.tolist(),
        "width": [shape[1] for shape in _shapes(item_map, side)],
        "height": [shape[0] for shape in _shapes(item_map, side)],
    }


def sheet(item_map: ItemMap, number: int, side: int = SIDE, quality: int = 75) -> bytes:
    """Return one sheet of thumbnails, as a JPEG; images that cannot be read are gray."""
    order = _order(item_map)[number * ACROSS**2 : (number + 1) * ACROSS**2]
    if not has_thumbnails(item_map) or number < 0 or not len(order):
        raise LookupError(f"sheet={number} does not exist; expected one of those that /map.json counts.")
    pixels = np.full((ceil(len(order) / ACROSS) * side, ACROSS * side, 3), GRAY, np.uint8)
    for slot, index in enumerate(order.tolist()):
        top, left = slot // ACROSS * side, slot % ACROSS * side
        try:
            small = item_map.collection.thumbnail(index, side)
        except ValueError:
            continue
        pixels[top : top + small.shape[0], left : left + small.shape[1]] = small
    return encoded(pixels, quality)


def full(item_map: ItemMap, number: int) -> bytes:
    """Return the image of an item, encoded anew so that nothing but pixels leaves this machine."""
    if not has_thumbnails(item_map) or not 0 <= number < len(item_map.collection):
        raise LookupError(f"item={number} has no image; expected the number of an image.")
    try:
        return encoded(item_map.collection.thumbnail(number, FULL_SIDE), 90)
    except ValueError as error:
        raise LookupError(f"the image of item={number} cannot be read; check that the files have not moved.") from error


def encoded(pixels: Pixels, quality: int | None) -> bytes:
    """Encode pixels as a JPEG of a quality, or as a PNG if that is None."""
    image = image_files.pillow().fromarray(pixels)
    into = io.BytesIO()
    if quality is None:
        image.save(into, "PNG", optimize=True)
    else:
        image.save(into, "JPEG", quality=quality, optimize=True)
    return into.getvalue()


def _order(item_map: ItemMap) -> NDArray[np.int64]:
    """Sort items along the map, in bands as high as a window."""
    bands = (item_map.places[:, 0] // max(1, item_map.window[0])).astype(int)
    return np.lexsort((item_map.places[:, 1], bands))


def _shapes(item_map: ItemMap, side: int) -> list[tuple[int, int]]:
    """Return the heights and widths of thumbnails, from the sizes in the table of items."""
    items = item_map.collection.items
    if "height" not in items or "width" not in items:
        return [(side, side)] * len(items)
    sizes = np.stack([items["height"], items["width"]], axis=1)
    is_known = np.isfinite(sizes).all(axis=1, keepdims=True) & (sizes >= 1).all(axis=1, keepdims=True)
    sizes = np.where(is_known, sizes, side)
    scale = np.minimum(1, side / sizes.max(axis=1, keepdims=True))
    return [(max(1, round(h)), max(1, round(w))) for h, w in (sizes * scale).tolist()]
