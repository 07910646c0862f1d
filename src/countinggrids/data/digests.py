"""The header of a file: positions of its arrays, metadata, and digests that cover every byte.

The layout is that of safetensors. The digest of an array covers its bytes. The digest of the header covers the rest:
names, dtypes, shapes, metadata and the digests of the arrays.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

PACKAGE = "countinggrids"
DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1"}
DTYPES |= {"U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?"}
CODES = {np.dtype(name): code for code, name in DTYPES.items()}
CHUNK = 2**24
"""Bytes that are hashed at a time."""
BEGINNING = b'{"__metadata__":{"digest":"'
"""The header starts with its digest, so that it is found without parsing."""
UNKNOWN = b"0" * 64
"""Placeholder of the header's digest while that is computed."""


class Header(NamedTuple):
    """The decoded header.

    Attributes
    ----------
    text : str
        Metadata, as JSON.
    entries : dict of str to dict
        Dtype, shape and data_offsets of each array.
    digests : dict of str to str
        Digest of each array.
    n_bytes : int
        Length of the header; the arrays begin there.
    """

    text: str
    entries: dict[str, dict[str, Any]]
    digests: dict[str, str]
    n_bytes: int

    @property
    def file_size(self) -> int:
        """The length of the whole file."""
        return self.n_bytes + max((entry["data_offsets"][1] for entry in self.entries.values()), default=0)


def aligned(arrays: Arrays) -> Arrays:
    """Return arrays as they are written: contiguous, and in an order that aligns each to its item size."""
    native = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("=")) for name, array in arrays.items()}
    for name, array in native.items():
        if array.dtype not in CODES:
            listed = ", ".join(map(str, CODES))
            raise ValueError(f"array {name!r} of dtype {array.dtype} must be one of {listed}; convert it first.")
    return dict(sorted(native.items(), key=lambda item: (-item[1].itemsize, item[0])))


def encode(text: str, arrays: Arrays) -> bytes:
    """Return the header for metadata as JSON and arrays that follow it in their order."""
    digests = json.dumps({name: digest_of(array) for name, array in arrays.items()})
    header: dict[str, Any] = {"__metadata__": {"digest": UNKNOWN.decode(), "arrays": digests, PACKAGE: text}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": CODES[array.dtype], "shape": array.shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    encoded = len(encoded).to_bytes(8, "little") + encoded
    return encoded.replace(UNKNOWN, sha256(encoded).hexdigest().encode(), 1)


def decode(encoded: bytes) -> Header:
    """Decode a header, or raise a ValueError with what is wrong with it."""
    start, stop = 8 + len(BEGINNING), 8 + len(BEGINNING) + len(UNKNOWN)
    if encoded[8:start] == BEGINNING:
        blank = encoded[:start] + UNKNOWN + encoded[stop:]
        if sha256(blank).hexdigest().encode() != encoded[start:stop]:
            raise ValueError("is damaged: its header does not match its digest")
    header = json.loads(encoded[8:])
    metadata = header.pop("__metadata__", None) or {}
    if PACKAGE not in metadata:
        raise ValueError("is a safetensors file but not one of countinggrids")
    if encoded[8:start] != BEGINNING or "arrays" not in metadata:
        raise ValueError("has no digest: it is damaged, or older than this format")
    return Header(metadata[PACKAGE], header, dict(json.loads(metadata["arrays"])), len(encoded))


def digest_of(array: NDArray[Any], release: Callable[[Any], None] = lambda _: None) -> str:
    """Return the SHA-256 of an array's bytes; `release` is called with the array after every chunk."""
    digest, octets = sha256(), octets_of(array)
    for start in range(0, len(octets), CHUNK):
        digest.update(octets[start : start + CHUNK])
        release(array)
    return digest.hexdigest()


def octets_of(array: NDArray[Any]) -> memoryview:
    """Return a view of the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data
