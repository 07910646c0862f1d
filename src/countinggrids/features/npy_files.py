"""NumPy's .npy and .npz files, whose headers are checked before anything is allocated, inflated or mapped."""

import ast
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.limits import BYTES_VARIABLE, TooLargeError, max_bytes

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
"""Bytes of a header, which is a Python literal: parsing a long one can take all memory."""
DESCRIPTIONS = r"[<>|=]?(b1|[iu][1248]|f([248]|16)|[SU]\d{1,2})"
"""The types that are read: booleans, numbers, and short words such as the format of a sparse matrix."""
PIECE = 2**20
"""Bytes that are inflated at a time."""


class Header(NamedTuple):
    """The header of a .npy array.

    Attributes
    ----------
    dtype : dtype
        Type of the numbers, in the byte order of the file.
    shape : tuple of int
        Lengths of the axes.
    is_fortran : bool
        Whether the first axis varies fastest.
    begin : int
        Byte at which the numbers begin.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    begin: int

    @property
    def n_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def order(self) -> Literal["C", "F"]:
        return "F" if self.is_fortran else "C"


def check_size(path: str | os.PathLike[str], n_bytes: int) -> None:
    """Raise if a file takes more memory than is allowed.

    Parameters
    ----------
    path : path-like
        The file.
    n_bytes : int
        Bytes that it takes in memory, by its headers.
    """
    limit = max_bytes()
    if n_bytes > limit:
        raise TooLargeError(
            f"{path} takes {n_bytes:,} bytes in memory, and the limit is {limit:,}; set the environment variable "
            f"{BYTES_VARIABLE}={n_bytes} to read it, or save the counts as .npy or as a collection, which are mapped "
            "instead."
        )


@contextmanager
def named(path: str | os.PathLike[str], what: str, writer: str) -> Iterator[None]:
    """Turn an error while a file is parsed into a ValueError that names the file and how to write it."""
    broken = (ValueError, LookupError, OverflowError, EOFError, OSError, MemoryError, RuntimeError)
    try:
        yield
    except TooLargeError:
        raise
    except (*broken, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise ValueError(f"{path} is no {what} ({error}); write it with {writer}.") from error


def mapped(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Map a .npy file into memory.

    Parameters
    ----------
    path : path-like
        A file that numpy.save wrote; its values are booleans or numbers.

    Returns
    -------
    array : ndarray
        The values, read from the file where they are used.

    Raises
    ------
    ValueError
        If the file is damaged, truncated or holds something else.
    """
    with open(path, "rb") as file, named(path, "array of numbers", "numpy.save"):
        header = read_header(file)
        n_bytes = os.fstat(file.fileno()).st_size - header.begin
        if header.dtype.kind not in "biuf":
            raise ValueError(f"its values are {header.dtype}")
        if header.n_bytes > n_bytes:
            raise ValueError(f"its shape {header.shape} needs {header.n_bytes} bytes, and {n_bytes} are there")
        if not header.n_bytes:
            return np.zeros(header.shape, header.dtype)
        return np.memmap(path, header.dtype, "r", header.begin, header.shape, header.order)


def read_header(file: IO[bytes]) -> Header:
    """Read the header of a .npy array, and leave the file at its first value."""
    start = file.read(len(MAGIC) + 2)
    sizes = {b"\1\0": "<H", b"\2\0": "<I"}
    if start[:-2] != MAGIC or start[-2:] not in sizes:
        raise ValueError("it does not begin as a .npy array of version 1 or 2")
    size = sizes[start[-2:]]
    (length,) = struct.unpack(size, file.read(struct.calcsize(size)))
    if length > LONGEST_HEADER:
        raise ValueError(f"its header has {length} bytes, and {LONGEST_HEADER} are allowed")
    text = file.read(length)
    if len(text) < length:
        raise ValueError("its header is cut off")
    return _parsed(text.decode("latin1"), len(start) + struct.calcsize(size) + length)


def _parsed(text: str, begin: int) -> Header:
    """Make sense of the Python literal that a header is."""
    try:
        facts = ast.literal_eval(text.strip())
        description, is_fortran, shape = facts["descr"], facts["fortran_order"], facts["shape"]
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(f"its header makes no sense: {text.strip()[:80]!r}") from error
    if not isinstance(description, str) or not re.fullmatch(DESCRIPTIONS, description):
        raise ValueError(f"its values are {str(description)[:80]}")
    if not isinstance(shape, tuple) or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise ValueError(f"its shape is {str(shape)[:80]}")
    return Header(np.dtype(description), shape, is_fortran is True, begin)


def read_archive(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read some arrays of a .npz file that numpy.savez wrote.

    Parameters
    ----------
    path : path-like
        The file.
    names : sequence of str
        Names of the arrays.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays by name.

    Raises
    ------
    ValueError
        If the file is damaged, lacks an array, or takes more memory than `max_bytes` allows.
    """
    with open(path, "rb") as file, named(path, "archive of arrays", "numpy.savez"):
        archive = Archive(file)
        check_size(path, sum(archive.header(name).n_bytes for name in names))
        return {name: archive.read(name) for name in names}


class Archive:
    """The arrays in a .npz file; their types and sizes are known before any of them is inflated.

    Parameters
    ----------
    file : binary file
        The file, open for reading.
    """

    def __init__(self, file: IO[bytes]):
        self._zip = zipfile.ZipFile(file)

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._zip.NameToInfo

    def header(self, name: str) -> Header:
        """Read the header of an array; raise unless the directory of the archive agrees."""
        with self._member(name) as member:
            header = read_header(member)
        declared = self._zip.NameToInfo[f"{name}.npy"].file_size - header.begin
        if declared != header.n_bytes:
            raise ValueError(f"{name} of shape {header.shape} needs {header.n_bytes} bytes, and {declared} are there")
        return header

    def read(self, name: str) -> NDArray[Any]:
        """Inflate an array, up to the size in its header."""
        header = self.header(name)
        content = np.empty(header.n_bytes, np.uint8)
        with self._member(name) as member:
            member.read(header.begin)
            for start in range(0, header.n_bytes, PIECE):
                piece = content[start : start + PIECE]
                if member.readinto(piece.data) < piece.size:
                    raise ValueError(f"{name} is cut off")
            # At its end the archive compares the checksum.
            if member.read(1):
                raise ValueError(f"{name} is longer than it says")
        array = content.view(header.dtype).reshape(header.shape, order=header.order)
        return array.astype(header.dtype.newbyteorder("="), copy=False)

    def _member(self, name: str) -> Any:
        if name not in self:
            raise ValueError(f"it holds no {name}")
        info = self._zip.NameToInfo[f"{name}.npy"]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{name} is encrypted, or compressed in another way than by deflating")
        return self._zip.open(info)
