"""Descriptors that others have computed: arrays, and files of arrays."""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features import npy_files
from countinggrids.features.maps import FeatureMap
from countinggrids.features.stream import BadItemError

MANY_CHANNELS, MANY_SQUARE, TALLEST = 64, 32, 3
"""A first axis of so many entries is regarded as that of the channels if it is the longest, and so many times as long
as the second one, or, of the second number of entries, if the other axes are equal."""
ORDER = "(rows, columns, channels)"


class Descriptors(Sequence[NDArray[Any]]):
    """Arrays of descriptors in .npy files, mapped into memory when they are used.

    A file holds the descriptors of one image, (rows, columns, channels), or those of several images of one size,
    (images, rows, columns, channels). All headers are checked at once; values are checked where they are used.

    Parameters
    ----------
    files : path-like or iterable of path-like
        A folder, a pattern such as "tokens/*.npy", a file, or a list of files. The files of a folder or a pattern are
        in natural order: frame_2 before frame_10.

    Attributes
    ----------
    n_channels : int
        Number of channels.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from countinggrids.features import Codebook, Descriptors
    >>> folder = tempfile.TemporaryDirectory()
    >>> for i in range(3):
    ...     np.save(f"{folder.name}/{i}.npy", np.random.default_rng(i).random((4, 6, 8), dtype=np.float32))
    >>> tokens = Descriptors(f"{folder.name}/*.npy")
    >>> len(tokens), tokens[0].shape
    (3, (4, 6, 8))
    >>> [words.shape for words in Codebook(5, random_state=0).fit_transform(tokens)]
    [(4, 6), (4, 6), (4, 6)]
    """

    def __init__(self, files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]):
        self._entries: list[tuple[Path, int | None]] = []
        channels: dict[int, Path] = {}
        for path in _listed(files):
            header = _checked_header(path)
            channels.setdefault(header.shape[-1], path)
            images: list[int | None] = [None] if len(header.shape) == 3 else list(range(header.shape[0]))
            self._entries += [(path, image) for image in images]
        if len(channels) > 1:
            (n, first), (other_n, other) = list(channels.items())[:2]
            raise ValueError(
                f"{first} has {n} channels and {other} has {other_n}; expected files of one extractor; check the files."
            )
        self.n_channels = next(iter(channels))

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        path, image = self._entries[index]
        array = npy_files.mapped(path)
        array = array if image is None else array[image]
        if not np.isfinite(array).all():
            raise BadItemError(f"{path} has NaN or infinity; expected finite descriptors; compute them again.")
        return array

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))

    def take(self, images: Iterable[int]) -> "Descriptors":
        """Return the descriptors of some of the images.

        Parameters
        ----------
        images : iterable of int
            Their numbers.

        Returns
        -------
        descriptors : Descriptors
            Arrays that are mapped when they are used.
        """
        some = copy(self)
        some._entries = [self._entries[i] for i in images]
        return some

    @classmethod
    def of_images(cls, names: Iterable[str | os.PathLike[str]], folder: str | os.PathLike[str]) -> "Descriptors":
        """Return the descriptors of images: FOLDER/a/b.npy for the image a/b.jpg.

        Parameters
        ----------
        names : iterable of path-like
            Images, relative to their own folder.
        folder : path-like
            Folder of the descriptors.

        Returns
        -------
        descriptors : Descriptors
            One array for each image, in the order of the images.
        """
        if not Path(folder).is_dir():
            raise ValueError(
                f"{folder} is not a folder; expected one of .npy files, one for each image; check the path."
            )
        files = [Path(folder, name).with_suffix(".npy") for name in names]
        missing = [path for path in files if not path.is_file()]
        if missing:
            raise ValueError(
                f"{folder} lacks {len(missing)} of {len(files)} files, such as {missing[0]}; expected a .npy file for "
                "each image, in the same sub-folders; check the names."
            )
        return cls(files)


def as_map(item: Any, n_channels: int | None = None) -> FeatureMap:
    """Check the descriptors of an image.

    Parameters
    ----------
    item : FeatureMap or array-like of shape (rows, columns, channels) or (tokens, channels)
        Descriptors.
    n_channels : int, default=None
        Number of channels that is expected; None takes any.

    Returns
    -------
    feature_map : FeatureMap
        The same descriptors. Those of an array have patches of one pixel in an image of the size of the array.

    Raises
    ------
    BadItemError
        If it is something else, has its channels first, another number of channels, or NaN.
    """
    is_array = not isinstance(item, FeatureMap)
    values = np.asarray(item)
    if values.dtype.kind not in "fiu" or values.ndim < 2 or 0 in values.shape:
        what = f"{values.dtype} of shape {values.shape}" if values.ndim else f"a {type(item).__name__}"
        raise BadItemError(
            f"descriptors are {what} and must be numbers of shape {ORDER}; put an extractor such as DenseSIFT() "
            "first, or pass arrays of descriptors."
        )
    if is_array and values.ndim > 3:
        raise BadItemError(
            f"descriptors of an image have shape {values.shape} and must have shape {ORDER}; pass one array for each "
            "image."
        )
    if is_array and values.ndim == 3 and _is_channels_first(values.shape, n_channels):
        raise BadItemError(
            f"descriptors of shape {values.shape} have their channels first and must be {ORDER}; "
            "pass array.transpose(1, 2, 0)."
        )
    if n_channels not in (None, values.shape[-1]):
        raise BadItemError(
            f"descriptors of shape {values.shape} have {values.shape[-1]} channels and must have {n_channels}, as "
            f"those that were fitted; pass arrays {ORDER} of the same extractor."
        )
    if not is_array:
        return item
    if not np.isfinite(values).all():
        raise BadItemError(
            f"descriptors of shape {values.shape} have NaN or infinity and must be finite; compute them again."
        )
    places = values.shape[:-1]
    return FeatureMap(values, (0,) * len(places), 1, 1, places)


def natural_key(name: object) -> list[tuple[bool, int, str]]:
    """Return a sort key by which frame_2 comes before frame_10.

    Parameters
    ----------
    name : object
        The name, or something that is one as text.

    Returns
    -------
    key : list of tuple
        To be compared.
    """
    parts = re.split(r"([0-9]+)", str(name))  # every second part is a number
    return [(i % 2 == 1, int(part) if i % 2 else 0, part) for i, part in enumerate(parts)]


def _is_channels_first(shape: tuple[int, ...], n_channels: int | None) -> bool:
    if n_channels is not None:
        return shape[0] == n_channels != shape[2]
    rows, columns, channels = shape
    is_tall = rows >= MANY_CHANNELS and rows >= TALLEST * columns and rows > channels
    return is_tall or (rows >= MANY_SQUARE and rows != columns == channels)


def _listed(files: Any) -> list[Path]:
    """Return the files that a folder, a pattern, a name or a list stands for; there is at least one."""
    if not isinstance(files, str | os.PathLike):
        found = [Path(each) for each in files]
    elif Path(files).is_file():
        found = [Path(files)]
    else:
        pattern = os.path.join(files, "**", "*.npy") if Path(files).is_dir() else os.fspath(files)
        found = sorted(map(Path, glob.glob(pattern, recursive=True)), key=natural_key)
    if not found:
        raise ValueError(f"files={str(files)!r} names no file; expected .npy files; check the folder or the pattern.")
    return found


def _checked_header(path: Path) -> npy_files.Header:
    """Read the header of a file of descriptors; raise about another number of axes or channels that come first."""
    with open(path, "rb") as file, npy_files.named(path, "array of descriptors", "numpy.save"):
        header = npy_files.read_header(file)
    shape = header.shape
    if header.dtype.kind not in "fiu" or len(shape) not in (3, 4) or 0 in shape:
        raise ValueError(
            f"{path} holds {header.dtype} of shape {shape} and must hold descriptors of shape {ORDER}; reshape the "
            "tokens of an image to their rows and columns before you save them."
        )
    if _is_channels_first(shape[-3:], None):
        raise ValueError(
            f"{path} of shape {shape} has its channels first and must be {ORDER}; save array.transpose(1, 2, 0)."
        )
    return header
