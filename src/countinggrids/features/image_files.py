"""Pixels from image files and arrays: uint8, upright, gray or RGB."""

import io
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.limits import VARIABLE, check_pixels, max_pixels, raise_pillow_limit
from countinggrids.features.stream import BadItemError

MAX_DECODED = 2**25
"""Largest number of pixels decoded of an uploaded image; larger JPEGs are decoded at half their size."""
MAX_SCANS = 100
"""Largest number of scans of a progressive JPEG; cameras and programs write about ten."""
LARGE = 2**24
"""Images with more pixels are decoded one at a time, however many threads there are."""
STRIP = 2**22
"""Pixels converted at a time."""
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".jp2"})
# Only these decoders see a file, whatever its name: others of Pillow start programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000")


def read(source: Any, is_color: bool = False, max_side: int | None = None) -> NDArray[np.uint8]:
    """Read an image from a path or an array.

    EXIF orientation is applied; of an animation the first frame is read; CMYK, palettes and 16 bits are converted;
    transparent pixels are blended with white.

    Parameters
    ----------
    source : path-like or array-like of shape (n_rows, n_columns) or (n_rows, n_columns, 3 or 4)
        A path, or integers of 8 or 16 bits, or floats from 0 to 1.
    is_color : bool, default=False
        Whether to return RGB; otherwise gray.
    max_side : int, default=None
        Largest number of pixels along the longer side; larger images are downsampled. None keeps them.

    Returns
    -------
    pixels : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, 3)
        Pixels, uint8.

    Raises
    ------
    BadItemError
        If the file is broken, truncated, empty, too large or not an image.
    """
    if not isinstance(source, str | os.PathLike):
        return _finished(pillow().fromarray(_eight_bits(source)), is_color, max_side)
    with _opened(_existing(source), source) as file:
        return _decoded(file, lambda image: _finished(image, is_color, max_side))


def read_small(source: Any, side: int) -> NDArray[np.uint8]:
    """Read an RGB thumbnail with at most `side` pixels along its longer side; JPEGs are decoded at a reduced size."""
    if not isinstance(source, str | os.PathLike):
        return read(source, is_color=True, max_side=side)
    with _opened(_existing(source), source) as file:
        file.draft(None, (2 * side, 2 * side))
        return _decoded(file, lambda image: _finished(image, True, side))


def read_bytes(content: bytes, is_color: bool = True, max_side: int | None = None) -> NDArray[np.uint8]:
    """Read an image from untrusted bytes, such as an upload, within tighter limits than `read`."""
    with _opened(io.BytesIO(content), "the image") as file:
        if file.width * file.height > MAX_DECODED:
            file.draft(None, (file.width // 2, file.height // 2))
        check_pixels("the image", file.size, MAX_DECODED)
        return _decoded(file, lambda image: _finished(image, is_color, max_side))


def resized(pixels: NDArray[np.uint8], size: tuple[int, ...]) -> NDArray[np.uint8]:
    """Resize an image to a height and a width, whatever that does to its proportions."""
    if pixels.shape[:2] == size:
        return pixels
    image = pillow().fromarray(pixels)
    return np.asarray(image.resize((size[1], size[0]), pillow().Resampling.BILINEAR))


def mirrored(images: Iterable[Any], is_color: bool = False) -> Iterator[NDArray[np.uint8]]:
    """Flip images horizontally, one at a time, to augment training data.

    Parameters
    ----------
    images : iterable of path-like or array-like of shape (n_rows, n_columns) or (n_rows, n_columns, 3)
        Paths or arrays.
    is_color : bool, default=False
        Whether to return RGB; otherwise gray.

    Yields
    ------
    pixels : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, 3)
        Pixels, uint8.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import mirrored
    >>> [image.tolist() for image in mirrored([np.uint8([[1, 2]])])]
    [[[2, 1]]]
    """
    for image in images:
        yield np.ascontiguousarray(read(image, is_color)[:, ::-1])


def read_raw(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read the stored numbers of an image file: gray levels or palette indices, not colors."""
    with _opened(_existing(path), path) as file:
        return _decoded(file, _stored_numbers)


def _stored_numbers(image: Any) -> NDArray[Any]:
    pixels = np.asarray(image if image.mode in ("P", "L", "I", "I;16", "1") else image.convert("L"))
    return pixels.astype(np.uint8) if pixels.dtype == bool else pixels


def is_image_path(path: Path) -> bool:
    """Return whether a file is an image, by its suffix."""
    return path.suffix.lower() in SUFFIXES


def _finished(image: Any, is_color: bool, max_side: int | None) -> NDArray[np.uint8]:
    image = _converted(image, "RGB" if is_color else "L")
    if max_side is not None and max(image.size) > max_side:
        scale = max_side / max(image.size)
        width, height = (max(1, round(n * scale)) for n in image.size)
        image = image.resize((width, height), pillow().Resampling.BOX)
    return np.asarray(image)


def _converted(image: Any, mode: str) -> Any:
    """Convert a large image strip by strip, without a second copy of it."""
    if image.mode == mode and "transparency" not in image.info:
        return image
    extent = _extent(image) if image.mode == "F" else (0.0, 1.0)
    n_strips = ceil(image.width * image.height / STRIP)
    if n_strips == 1:
        return _plain(image, extent).convert(mode)
    result = pillow().new(mode, image.size)
    for strip, box in _strips(image, ceil(image.height / n_strips)):
        result.paste(_plain(strip, extent).convert(mode), box)
    return result


def _strips(image: Any, n_rows: int) -> Iterator[tuple[Any, tuple[int, int]]]:
    for top in range(0, image.height, n_rows):
        yield image.crop((0, top, image.width, min(top + n_rows, image.height))), (0, top)


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise errors of Pillow as `BadItemError` with the name of the file."""
    expected = (OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
    try:
        yield
    except BadItemError:
        raise
    except pillow().DecompressionBombError as error:
        expected_size = f"expected at most {max_pixels()} pixels; downsample it first, or set {VARIABLE}."
        raise BadItemError(f"{path} is too large ({error}); {expected_size}") from error
    except (*expected, MemoryError, RuntimeError, struct.error) as error:
        reason = re.sub(" ?<_io.BytesIO object at 0x[0-9a-f]+>", "", str(error)) or type(error).__name__
        raise BadItemError(f"{path} cannot be read ({reason}); expected an image that Pillow opens.") from error


def _existing(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if not os.path.isfile(path):
        raise BadItemError(f"{path} does not exist or is not a file; expected an image; check the path.")
    return path


@contextmanager
def _opened(source: Any, name: str | os.PathLike[str]) -> Iterator[Any]:
    """Open an image whose header is within the limits; nothing is decoded yet."""
    with _named(name):
        raise_pillow_limit(pillow())
        with pillow().open(source, formats=FORMATS) as file:
            check_pixels(name, file.size)
            _check_parts(file, name)
            yield file


def _check_parts(file: Any, name: object) -> None:
    """Raise if a small image has tiles larger than itself, or too many scans."""
    if file.format == "TIFF":
        tile = [file.tag_v2.get(tag, 1) for tag in (322, 323)]  # TileWidth, TileLength
        check_pixels(f"a tile of {name}", [n if isinstance(n, int) else 1 for n in tile], LARGE)
    if file.format in ("JPEG", "MPO") and "progression" in file.info:
        file.fp.seek(0)
        n_scans = sum(1 for _ in re.finditer(b"\xff\xda", file.fp.read()))
        if n_scans > MAX_SCANS:
            raise BadItemError(f"{name} has {n_scans} scans; expected at most {MAX_SCANS}; save it again.")


def _decoded(file: Any, finish: Callable[[Any], Any]) -> Any:
    """Decode the first frame, apply its orientation and return `finish` of it; large images one at a time."""
    from PIL import ImageOps

    def work() -> Any:
        try:
            file.load()
            ImageOps.exif_transpose(file, in_place=True)
            return finish(file)
        finally:
            file.close()

    if file.width * file.height <= LARGE:
        return work()
    return _large_images.thread.submit(work).result()


class _LargeImages:
    """The thread on which large images are decoded.

    Allocators keep freed memory per thread, so with a lock alone memory would grow with the number of threads.
    """

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)  # a child process has no threads

    def renew(self) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="countinggrids-image")


_large_images = _LargeImages()


def pillow() -> Any:
    """Return the module PIL.Image."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            'reading images needs Pillow; install it with pip install "countinggrids[images]".'
        ) from error
    return Image


def _plain(image: Any, extent: tuple[float, float]) -> Any:
    """Convert an image of any mode to eight bits, gray or RGB, without alpha."""
    if image.mode in ("F", "I") or image.mode.startswith("I;16"):
        return pillow().fromarray(_eight_bits(_spread(np.asarray(image), extent)))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = pillow().new("RGBA", image.size, "white")
        ground.alpha_composite(image)
        image = ground
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _extent(image: Any) -> tuple[float, float]:
    """Return the minimum and the maximum of an image of floats, without NaN."""
    low = high = np.float32(np.nan)
    for strip, _ in _strips(image, max(1, STRIP // image.width)):
        pixels = np.asarray(strip)
        low, high = np.fmin(low, np.fmin.reduce(pixels, axis=None)), np.fmax(high, np.fmax.reduce(pixels, axis=None))
    return float(low), float(high)


def _spread(pixels: NDArray[Any], extent: tuple[float, float]) -> NDArray[Any]:
    """Scale pixels to the range of their type: 16 bits, or floats from 0 to 1."""
    if pixels.dtype.kind == "f":
        low, high = extent
        if low >= 0 and high <= 1:
            return pixels
        return np.nan_to_num((pixels - low) / ((high - low) or 1))
    return np.clip(pixels, 0, 65535).astype(np.uint16)


def _eight_bits(source: Any) -> NDArray[np.uint8]:
    pixels = np.asarray(source)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)) or 0 in pixels.shape:
        raise BadItemError(
            f"an image of shape {pixels.shape} must be (rows, columns), (rows, columns, 3) or (rows, columns, 4), "
            "none of them zero; check its axes."
        )
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
        f"an image of {pixels.dtype} from {pixels.min()} to {pixels.max()} must be integers of 8 or 16 bits or floats "
        "from 0 to 1; scale it first."
    )
