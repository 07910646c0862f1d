"""Arrays and facts in one file: safetensors, written whole or not at all, read without copying, never unpickled."""

import json
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

PACKAGE = "countinggrids"
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], facts: dict[str, Any], arrays: Arrays) -> None:
    """Write facts and arrays beside the target, flush to disk, then rename: the old file is whole until the new one is.

    Parameters
    ----------
    path : where to
    facts : what goes into the metadata as JSON; "format" and "version" tell `read` what the file is
    arrays : the arrays by name
    """
    text = json.dumps(facts, default=lambda value: value.item() if isinstance(value, np.generic) else str(value))
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    write_whole(Path(path), lambda name: save_file(contiguous, name, {PACKAGE: text}))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text, whole or not at all."""
    write_whole(Path(path), lambda name: Path(name).write_text(text, encoding="utf-8", errors="backslashreplace"))


def write_whole(path: Path, fill: Callable[[str], object]) -> None:
    """Let `fill` write a hidden file beside the target, given its name, then rename it: whole or not at all."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no folder; wanted one to write {path.name} into; make it first")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        fill(name)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~UMASK)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, SafetensorError):
            raise OSError(f"could not write {path} ({error}); the old file, if any, is as it was") from error
        raise


def read(path: str | os.PathLike[str], form: str, version: int) -> tuple[dict[str, Any], Arrays]:
    """Read the facts of a file that `write` made, and map its arrays into memory: they load where they are touched.

    Parameters
    ----------
    path : the file
    form : the "format" that is wanted, such as "model"
    version : the latest version that is understood

    Raises
    ------
    ValueError
        If the file is truncated, not one of ours, of another format or from a later version.
    """
    path = Path(path)
    facts = read_facts(path)
    if facts.get("format") != form:
        raise ValueError(f"{path} holds a {facts.get('format')}; wanted a {form}; check which file belongs where")
    if not isinstance(facts.get("version"), int):
        raise ValueError(f"{path} does not say its version; wanted a file that save() wrote; save it again")
    if facts["version"] > version:
        raise ValueError(f"{path} is of version {facts['version']}; this release reads up to {version}; upgrade it")
    return facts, _mapped(path)


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a file says about itself; arrays stay where they are."""
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(PACKAGE)
        if text is None:
            raise ValueError(f"{path} is a safetensors file but not one of countinggrids; wanted one that save() wrote")
        facts = json.loads(text)
    except (SafetensorError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged or no file of countinggrids ({error}); wanted one that save() wrote"
        ) from error
    if not isinstance(facts, dict):
        raise ValueError(f"{path} says nothing about itself; wanted a file that save() wrote; save it again")
    return facts


DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1"}
DTYPES |= {"U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?"}


def _mapped(path: Path) -> Arrays:
    """Map every array; `safe_open` has checked by now that the header and the file's length agree."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    unknown = {entry["dtype"] for entry in header.values()} - set(DTYPES)
    if unknown:
        raise ValueError(f"{path} holds arrays of {', '.join(sorted(unknown))}; wanted {', '.join(DTYPES)}")
    with open(path, "rb") as file:
        everything = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {name: _view(everything, 8 + length, entry) for name, entry in header.items()}


def _view(everything: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
    if 0 in shape:
        return np.zeros(shape, dtype)
    # A buffer of its own for each array: SciPy copies arrays that are small parts of larger ones.
    return np.frombuffer(everything, dtype, prod(shape), start + entry["data_offsets"][0]).reshape(shape)


def is_mapped(array: Any) -> bool:
    """Tell whether an array lies in a file that is mapped into memory."""
    return _mapping(array) is not None


def let_go(table: Any) -> None:
    """Let the system take back the memory of what was read of a mapped array, or of a sparse matrix of such arrays."""
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
    """Many texts in two arrays, all their bytes and where each one ends; a text is decoded when it is asked for."""

    def __init__(self, packed: NDArray[np.uint8], ends: NDArray[np.int64]):
        if (
            packed.ndim != 1
            or ends.ndim != 1
            or (np.diff(ends, prepend=0) < 0).any()
            or (ends[-1:] > packed.size).any()
        ):
            raise ValueError("texts and their ends do not fit together")
        self.packed, self.ends = packed, ends

    @classmethod
    def pack(cls, texts: Iterable[str]) -> Self:
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
        return self.packed[begin : int(self.ends[index])].tobytes().decode("utf-8", "surrogatepass")


UMASK = os.umask(0)
"""Which permissions new files do not get; it can only be read by setting it, so this is done once, at import."""
os.umask(UMASK)
