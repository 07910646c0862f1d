"""Arrays and JSON metadata in one safetensors file: written atomically, mapped into memory, never unpickled."""

import errno
import json
import mmap
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from countinggrids.data import digests, paths
from countinggrids.data.digests import DTYPES

COUNTS = (".npy", ".npz")
"""Suffixes of files that hold counts alone."""
Arrays = digests.Arrays


def write(path: str | os.PathLike[str], facts: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write metadata and arrays with their digests, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to write.
    facts : dict
        Metadata, stored as JSON; `read` checks "format" and "version".
    arrays : mapping of str to ndarray
        The arrays by name.
    """
    text = json.dumps(facts, default=lambda value: value.item() if isinstance(value, np.generic) else str(value))
    ordered = digests.aligned(dict(arrays))
    header = digests.encode(text, ordered)

    def fill(name: str) -> None:
        with open(name, "wb") as file:
            file.write(header)
            for array in ordered.values():
                file.write(digests.octets_of(array))

    write_whole(Path(path), fill)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text, whole or not at all."""
    write_whole(Path(path), lambda name: Path(name).write_text(text, encoding="utf-8", errors="backslashreplace"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes, whole or not at all."""
    write_whole(Path(path), lambda name: Path(name).write_bytes(content))


def write_figure(path: str | os.PathLike[str], figure: Any, **options: Any) -> None:
    """Write a figure of matplotlib in the format that the name ends in, whole or not at all."""
    kind = Path(path).suffix[1:]
    write_whole(Path(path), lambda name: figure.savefig(name, format=kind, **options))


def write_whole(path: Path, fill: Callable[[str], object]) -> None:
    """Write a file whole or not at all: a hidden file beside the target, which is then renamed.

    A link is followed. An existing file keeps its permissions; a new one gets those that the umask leaves.

    Parameters
    ----------
    path : Path
        The target.
    fill : callable
        Writes the content, given the name of the hidden file.
    """
    target = paths.target_of(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = paths.temporary_beside(target)
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o666 if mode is None else mode | stat.S_IWUSR))
        fill(str(temporary))
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        reason = f"{path} could not be written ({error.strerror or error}); an existing file is unchanged."
        raise OSError(error.errno or errno.EIO, reason) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


class StoredArrays(Mapping[str, NDArray[Any]]):
    """Arrays of a file, mapped into memory; each is verified against its digest when it is first used.

    Parameters
    ----------
    path : Path
        The file, for errors.
    mapped : dict of str to ndarray
        The arrays, not verified.
    wanted : dict of str to str
        Their digests.
    """

    def __init__(self, path: Path, mapped: Arrays, wanted: dict[str, str]):
        self.path, self.mapped, self.wanted = path, mapped, dict(wanted)

    def __getitem__(self, name: str) -> NDArray[Any]:
        self.verify(name)
        return self.mapped[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.mapped)

    def __len__(self) -> int:
        return len(self.mapped)

    def verify(self, *names: str) -> None:
        """Raise if arrays do not match their digests; each is hashed once, in chunks that are not kept in memory."""
        for name in names:
            if name in self.wanted and digests.digest_of(self.mapped[name], let_go) != self.wanted[name]:
                raise ValueError(
                    f"{self.path} is damaged: array {name!r} does not match its digest; "
                    "restore the file from a copy, or make it again."
                )
            self.wanted.pop(name, None)


def read(path: str | os.PathLike[str], form: str, version: int) -> tuple[dict[str, Any], StoredArrays]:
    """Read the metadata of a file that `write` made, and map its arrays into memory.

    Parameters
    ----------
    path : path-like
        The file.
    form : str
        The expected "format", such as "model".
    version : int
        The supported version.

    Returns
    -------
    facts : dict
        The metadata.
    arrays : StoredArrays
        The arrays.

    Raises
    ------
    ValueError
        If the file is damaged, not one of ours, of another format or of another version.
    """
    facts, arrays = _opened(Path(path))
    if facts.get("format") != form:
        raise ValueError(f"{path} is a {facts.get('format')} and must be a {form}; pass another file.")
    if not isinstance(facts.get("version"), int):
        raise ValueError(f"{path} has no version; use a file that save() wrote.")
    if facts["version"] > version:
        raise ValueError(f"{path} has version {facts['version']}; this release reads version {version}; upgrade it.")
    if facts["version"] < version:
        raise ValueError(
            f"{path} has version {facts['version']}; this release reads version {version}; make the {form} again."
        )
    return facts, arrays


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the metadata of a file, without its arrays."""
    return _opened(Path(path))[0]


def verify(path: str | os.PathLike[str]) -> int:
    """Verify every byte of a file against its digests; return the number of its arrays."""
    _, arrays = _opened(Path(path))
    arrays.verify(*arrays)
    return len(arrays)


def _opened(path: Path) -> tuple[dict[str, Any], StoredArrays]:
    """Read and verify the header of a file, and map its arrays."""
    try:
        with safe_open(path, framework="numpy"):  # which checks that the header and the file's length agree
            pass
        with open(path, "rb") as file:
            everything = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = digests.decode(everything[: 8 + int.from_bytes(everything[:8], "little")])
        facts = json.loads(header.text)
    except (SafetensorError, json.JSONDecodeError, RecursionError, MemoryError) as error:
        if path.suffix in COUNTS:
            raise ValueError(
                f"{path} holds counts alone and must be a file that save() wrote; make a Collection of the counts, the "
                "items and the names of the features."
            ) from error
        raise ValueError(
            f"{path} is damaged or no file of countinggrids ({error}); use a file that save() wrote."
        ) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} {error}; use a file that save() wrote.") from None
    if not isinstance(facts, dict):
        raise ValueError(f"{path} has no metadata; use a file that save() wrote.")
    return facts, StoredArrays(path, _mapped(path, everything, header), header.digests)


def _mapped(path: Path, everything: mmap.mmap, header: digests.Header) -> Arrays:
    """Map every array of a file whose header is verified."""
    if header.file_size != len(everything) or set(header.digests) != set(header.entries):
        raise ValueError(f"{path} is damaged: its header does not cover its bytes; make it again.")
    unknown = {entry["dtype"] for entry in header.entries.values()} - set(DTYPES)
    if unknown:
        raise ValueError(f"{path} has arrays of {', '.join(sorted(unknown))}; supported are {', '.join(DTYPES)}.")
    with fitting_together(path):
        return {name: _view(everything, header.n_bytes, entry) for name, entry in header.entries.items()}


@contextmanager
def fitting_together(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error about parts of a file that are inconsistent into a ValueError that names the file."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is inconsistent ({error}); use a file that save() wrote.") from error


def _view(everything: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
    if 0 in shape:
        return np.zeros(shape, dtype)
    # A buffer of its own for each array: SciPy copies arrays that are small parts of larger ones.
    array = np.frombuffer(everything, dtype, prod(shape), start + entry["data_offsets"][0]).reshape(shape)
    # Compiled loops may load several numbers at once, and crash where these lie at odd addresses.
    return array if array.flags.aligned else array.copy()


def is_mapped(array: Any) -> bool:
    """Return whether an array lies in a file that is mapped into memory."""
    return _mapping(array) is not None


def let_go(table: Any) -> None:
    """Release the pages that were read of a mapped array, or of a sparse matrix of such arrays."""
    parts = (table.data, table.indices) if hasattr(table, "indptr") else (table,)
    for part in parts:
        mapping = _mapping(part)
        if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)


def _mapping(array: Any) -> mmap.mmap | None:
    """Find the map behind an array, through its views."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


class Texts(Sequence[str]):
    """A sequence of texts in two arrays: their bytes, and the end of each; a text is decoded when it is used.

    Parameters
    ----------
    packed : ndarray of uint8, of shape (n_bytes,)
        The texts one after the other, in UTF-8.
    ends : ndarray of int64, of shape (n_texts,)
        Where each text ends.
    verify : callable, default=None
        Called once, before the bytes are first used; raises if they are damaged.
    """

    def __init__(self, packed: NDArray[np.uint8], ends: NDArray[np.int64], verify: Callable[[], None] | None = None):
        if (
            (packed.dtype.str, packed.ndim, ends.dtype.str, ends.ndim) != ("|u1", 1, "<i8", 1)
            or (np.diff(ends, prepend=0) < 0).any()
            or (ends[-1:] > packed.size).any()
        ):
            raise ValueError("the bytes of texts and their ends are inconsistent")
        self._packed, self.ends, self._verify = packed, ends, verify

    @property
    def packed(self) -> NDArray[np.uint8]:
        """The bytes of all texts."""
        if self._verify is not None:
            self._verify()
            self._verify = None
        return self._packed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.packed, self.ends)

    @classmethod
    def pack(cls, texts: Iterable[str]) -> Self:
        """Encode texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(each) for each in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        begin = int(self.ends[index - 1]) if index else 0
        content = self.packed[begin : int(self.ends[index])].tobytes()
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise ValueError(f"text {index} in the file is damaged ({error}); make the file again.") from error
