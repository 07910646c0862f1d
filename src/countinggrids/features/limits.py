"""Limits for pixels and bytes; a file that declares more is treated as a decompression bomb."""

import os
from collections.abc import Sequence
from typing import Any

from countinggrids.features.stream import BadItemError

VARIABLE = "COUNTINGGRIDS_MAX_PIXELS"
MAX_PIXELS = 2**26
"""Default limit for an image."""
MAX_FRAME_PIXELS = 2**25
"""Default limit for a frame of a video: 8K fits. Decoders hold many frames at a time."""
BYTES_VARIABLE = "COUNTINGGRIDS_MAX_BYTES"
MAX_BYTES = 2**30
"""Default limit for the bytes that a compressed table takes in memory."""


class TooLargeError(ValueError):
    """A file would take more memory than is allowed."""


def max_bytes() -> int:
    """Return the largest number of bytes that a .npz file or a Parquet table may take in memory."""
    given = os.environ.get(BYTES_VARIABLE, "")
    try:
        limit = int(float(given)) if given else MAX_BYTES
    except (ValueError, OverflowError):
        limit = 0
    if limit < 1:
        raise ValueError(
            f"{BYTES_VARIABLE}={given!r} must be a number of bytes; use for instance {BYTES_VARIABLE}=4e9."
        )
    return limit


def max_pixels(default: int = MAX_PIXELS) -> int:
    """Return the limit that the environment sets, or a default."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{VARIABLE}={text!r} must be a number of pixels; use for instance {VARIABLE}={default}.")
    return int(text)


def check_pixels(name: object, size: Sequence[int], most: int | None = None) -> None:
    """Raise if an image is too large to be decoded.

    Parameters
    ----------
    name : object
        Name of the image in the message.
    size : sequence of int
        Width and height that the file declares.
    most : int, default=None
        A fixed limit; None uses `max_pixels`, which users can change.
    """
    width, height = size
    limit = max_pixels() if most is None else most
    if width * height > limit:
        remedy = f"downsample it first, or set {VARIABLE}" if most is None else "downsample it first"
        raise BadItemError(f"{name} has {width}x{height} pixels; expected at most {limit}; {remedy}.")


def check_frame(name: object, width: float, height: float) -> None:
    """Raise if the frames of a video are too large to be decoded."""
    limit = max_pixels(MAX_FRAME_PIXELS)
    if not width * height <= limit:
        raise BadItemError(
            f"{name} has frames of {width:.0f}x{height:.0f} pixels; expected at most {limit}; "
            f"convert it to smaller ones, or set {VARIABLE}."
        )


def raise_pillow_limit(image_module: Any) -> None:
    """Raise the limit of Pillow to that of the environment, because Pillow checks its own first."""
    if os.environ.get(VARIABLE) and image_module.MAX_IMAGE_PIXELS is not None:
        image_module.MAX_IMAGE_PIXELS = max(image_module.MAX_IMAGE_PIXELS, max_pixels())
