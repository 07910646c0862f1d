"""Pixels from files and arrays: eight bits, upright, grey or RGB; or a plain word on why not."""

import io
import os
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.stream import BadItemError

MAX_PIXELS = 2**26  # above this a file is taken for a decompression bomb
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".jp2"})
# Whatever a file is called, only these decoders see it: others of Pillow's start programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000")


def read(source: Any, is_colour: bool = False, max_side: int | None = None) -> NDArray[np.uint8]:
    """Read an image from a path or an array.

    Cameras' rotation marks are obeyed; of an animation the first frame is taken; CMYK, palettes and 16 bits are
    converted; what is transparent is laid on white.

    Parameters
    ----------
    source : a path, or an array (rows, columns), (rows, columns, 3) or (rows, columns, 4): integers of 8 or 16 bits,
        or floats from 0 to 1
    is_colour : whether to give RGB; otherwise grey
    max_side : images with a longer side are shrunk to this many pixels; None keeps them

    Returns
    -------
    (rows, columns) or (rows, columns, 3), uint8

    Raises
    ------
    BadItemError
        If the file is broken, truncated, empty, too large or no image.
    """
    if not isinstance(source, str | os.PathLike):
        return _finished(pillow().fromarray(_eight_bits(source)), is_colour, max_side)
    with _named(source):
        return _finished(_decoded(_there(source), source), is_colour, max_side)


def read_bytes(content: bytes, is_colour: bool = True) -> NDArray[np.uint8]:
    """Read an image that is in memory, such as one that was dropped onto a page; as `read` does."""
    with _named("the image"):
        return _finished(_decoded(io.BytesIO(content), "the image"), is_colour, None)


def mirrored(images: Iterable[Any], is_colour: bool = False) -> Iterator[NDArray[np.uint8]]:
    """Give images left for right, one at a time: more to learn from, where a scene may be either way round.

    Parameters
    ----------
    images : paths or arrays
    is_colour : whether to give RGB; otherwise grey

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import mirrored
    >>> [image.tolist() for image in mirrored([np.uint8([[1, 2]])])]
    [[[2, 1]]]
    """
    for image in images:
        yield np.ascontiguousarray(read(image, is_colour)[:, ::-1])


def read_raw(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read the numbers in an image file as they are: grey levels or palette indices, not colours."""
    with _named(path):
        image = _decoded(_there(path), path)
        return np.asarray(image if image.mode in ("P", "L", "I", "I;16", "1") else image.convert("L"))


def is_image_path(path: Path) -> bool:
    """Tell from its name whether a file is an image."""
    return path.suffix.lower() in SUFFIXES


def _finished(image: Any, is_colour: bool, max_side: int | None) -> NDArray[np.uint8]:
    image = _plain(image)
    if image.mode not in ("L", "RGB"):
        image = image.convert("RGB")
    image = image.convert("RGB" if is_colour else "L")
    if max_side is not None and max(image.size) > max_side:
        scale = max_side / max(image.size)
        width, height = (max(1, round(n * scale)) for n in image.size)
        image = image.resize((width, height), pillow().Resampling.BOX)
    return np.asarray(image)


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file it was that could not be read."""
    expected = (OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
    bomb = pillow().DecompressionBombError
    try:
        yield
    except BadItemError:
        raise
    except (*expected, MemoryError, RuntimeError, struct.error, bomb) as error:
        reason = re.sub(" ?<_io.BytesIO object at 0x[0-9a-f]+>", "", str(error)) or type(error).__name__
        raise BadItemError(f"{path} cannot be read ({reason}); wanted an image that Pillow opens") from error


def _there(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if not os.path.isfile(path):
        raise BadItemError(f"{path} is not there or no file; wanted an image; check the path")
    return path


def _decoded(source: Any, name: object) -> Any:
    """Decode the first frame and set it upright."""
    from PIL import ImageOps

    with pillow().open(source, formats=FORMATS) as file:
        if file.width * file.height > MAX_PIXELS:
            raise BadItemError(
                f"{name} has {file.width}x{file.height} pixels; wanted at most {MAX_PIXELS}; shrink it first"
            )
        file.load()
        return ImageOps.exif_transpose(file)


def pillow() -> Any:
    """Give Pillow's module for images, or say how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('reading images needs Pillow; pip install "countinggrids[images]" brings it') from error
    return Image


def _plain(image: Any) -> Any:
    """Bring 16-bit, float and transparent images to eight bits without alpha."""
    if image.mode in ("F", "I") or image.mode.startswith("I;16"):
        return pillow().fromarray(_eight_bits(_spread(np.asarray(image))))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = pillow().new("RGBA", image.size, "white")
        ground.alpha_composite(image)
        return ground
    return image


def _spread(pixels: NDArray[Any]) -> NDArray[Any]:
    """Bring deep pixels to the range that their kind of number stands for: 16 bits, or floats from 0 to 1."""
    if pixels.dtype.kind == "f":
        low, high = float(np.nanmin(pixels)), float(np.nanmax(pixels))
        if low >= 0 and high <= 1:
            return pixels
        return np.nan_to_num((pixels - low) / ((high - low) or 1))
    return np.clip(pixels, 0, 65535).astype(np.uint16)


def _eight_bits(source: Any) -> NDArray[np.uint8]:
    pixels = np.asarray(source)
    wanted = "wanted (rows, columns), (rows, columns, 3) or (rows, columns, 4)"
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)) or 0 in pixels.shape:
        raise BadItemError(f"an image array has shape {pixels.shape}; {wanted}, none of them zero; check its axes")
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == np.uint16:
        return (pixels >> 8).astype(np.uint8)
    if pixels.dtype == bool:
        return pixels.astype(np.uint8) * 255
    if pixels.dtype.kind == "f" and pixels.min() >= 0 and pixels.max() <= 1:
        return (pixels * 255 + 0.5).astype(np.uint8)
    if pixels.dtype.kind in "iu" and pixels.min() >= 0 and pixels.max() <= 255:
        return pixels.astype(np.uint8)
    raise BadItemError(
        f"an image array is {pixels.dtype} from {pixels.min()} to {pixels.max()}; "
        "wanted integers of 8 or 16 bits or floats from 0 to 1; scale it first"
    )
