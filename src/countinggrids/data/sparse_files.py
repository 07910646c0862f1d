"""Sparse matrices in .npz files, checked before they are built: SciPy's compiled code trusts every index."""

import os
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.features import npy_files
from countinggrids.features.npy_files import Archive, Header

Array = NDArray[Any]
Shape = tuple[int, int]
PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
INDEX_BYTES = 8


def read(path: str | os.PathLike[str]) -> sp.csr_array:
    """Read a sparse matrix of counts.

    Parameters
    ----------
    path : path-like
        A file that scipy.sparse.save_npz wrote, in any of its formats.

    Returns
    -------
    counts : csr_array
        The matrix.

    Raises
    ------
    ValueError
        If the file is damaged, holds something else, or takes more memory than `npy_files.max_bytes` allows.
    """
    with open(path, "rb") as file, npy_files.named(path, "table of counts", "scipy.sparse.save_npz"):
        archive = Archive(file)
        layout, shape = _layout(archive), _shape(archive)
        headers = {name: _checked(name, archive.header(name)) for name in PARTS[layout]}
        n_bytes = sum(header.n_bytes for header in headers.values())
        npy_files.check_size(path, n_bytes + _converted_bytes(layout, shape, headers["data"]))
        data, *indices = (archive.read(name) for name in PARTS[layout])
        return BUILDERS[layout](shape, _supported(data), *map(_signed, indices))


def check_ends(indptr: Array, n_rows: int, n_stored: int) -> None:
    """Raise unless rows lie one behind the other within what is stored.

    Parameters
    ----------
    indptr : array of int
        Where each row begins, and the end of the last.
    n_rows : int
        Rows of the matrix; columns where columns are compressed.
    n_stored : int
        Entries that are stored.
    """
    if indptr.shape != (n_rows + 1,):
        raise ValueError(f"indptr has shape {indptr.shape} for {n_rows} rows")
    if indptr[0] != 0 or indptr[-1] > n_stored or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"indptr does not rise from 0 to at most the {n_stored} entries")


def check_parts(shape: Any, data: Array, indices: Array, indptr: Array) -> None:
    """Raise unless arrays of a file make a CSR matrix; which columns they name is left to `check_indices`.

    Parameters
    ----------
    shape : list of int
        Rows and columns, from the file.
    data, indices, indptr : ndarray
        Entries, their columns, and where each row begins.
    """
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
        raise ValueError(f"counts have shape {str(shape)[:80]}")
    if data.dtype.kind not in "biuf" or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError(f"counts are {data.dtype}, with indices {indices.dtype} and indptr {indptr.dtype}")
    if data.ndim != 1 or data.shape != indices.shape:
        raise ValueError(f"counts of shape {data.shape} have indices of shape {indices.shape}")
    check_ends(indptr, shape[0], data.size)


def check_indices(indices: Array, n: int, name: str = "indices") -> None:
    """Raise about an index that lies outside 0 to n - 1."""
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(f"{name} holds {wrong}, outside 0 to {n - 1}")


def _layout(archive: Archive) -> str:
    """Read the format of a matrix, one of SciPy's."""
    header = archive.header("format")
    if header.shape != () or header.dtype.kind not in "SU":
        raise ValueError("its format is no word")
    word = archive.read("format").item()
    layout = word.decode("latin1") if isinstance(word, bytes) else word
    if layout not in PARTS:
        raise ValueError(f"its format is {layout!r}, not one of {', '.join(PARTS)}")
    return layout


def _shape(archive: Archive) -> Shape:
    header = archive.header("shape")
    if header.shape != (2,) or header.dtype.kind not in "iu":
        raise ValueError("its shape is not two integers")
    n_rows, n_columns = archive.read("shape").tolist()
    if not (0 <= n_rows < 2**63 - 1 and 0 <= n_columns < 2**63 - 1):
        raise ValueError(f"its shape is ({n_rows}, {n_columns})")
    return n_rows, n_columns


def _checked(name: str, header: Header) -> Header:
    """Raise unless a part has the dtype and axes that it must have."""
    kinds = "biuf" if name == "data" else "iu"
    if header.dtype.kind not in kinds:
        raise ValueError(f"{name} is {header.dtype}")
    if name != "data" and len(header.shape) != 1:
        raise ValueError(f"{name} has {len(header.shape)} axes")
    return header


def _converted_bytes(layout: str, shape: Shape, data: Header) -> int:
    """Return the bytes of the rows and columns of all entries, and of indptr, if the matrix is converted."""
    if layout == "csr":
        return 0
    return prod(data.shape) * (data.dtype.itemsize + 2 * INDEX_BYTES) + (shape[0] + 1) * INDEX_BYTES


def _supported(data: Array) -> Array:
    """Return numbers of a type that SciPy's compiled code supports, which float16 is not."""
    return data.astype(np.float32) if data.dtype == np.float16 else data


def _signed(indices: Array) -> Array:
    """Return indices of a type that SciPy takes without a cast that could wrap."""
    if indices.dtype == np.uint64 and indices.size and indices.max() >= 2**63:
        raise ValueError(f"an index is {indices.max()}")
    return indices.astype(np.int64, copy=False) if indices.dtype.kind == "u" else indices


def _csr(shape: Shape, data: Array, indices: Array, indptr: Array) -> sp.csr_array:
    data, indices = _compressed(shape, data, indices, indptr)
    return sp.csr_array((data, indices, indptr), shape=shape)


def _csc(shape: Shape, data: Array, indices: Array, indptr: Array) -> sp.csr_array:
    data, indices = _compressed(shape[::-1], data, indices, indptr)
    return sp.csr_array(sp.csc_array((data, indices, indptr), shape=shape))


def _bsr(shape: Shape, data: Array, indices: Array, indptr: Array) -> sp.csr_array:
    if data.ndim != 3 or 0 in data.shape[1:] or any(n % block for n, block in zip(shape, data.shape[1:], strict=True)):
        raise ValueError(f"blocks of shape {data.shape[1:]} do not fill a matrix of shape {shape}")
    n_rows, n_columns = (n // block for n, block in zip(shape, data.shape[1:], strict=True))
    data, indices = _entries((n_rows, n_columns), data, indices, indptr)
    return sp.csr_array(sp.bsr_array((data, indices, indptr), shape=shape))


def _compressed(shape: Shape, data: Array, indices: Array, indptr: Array) -> tuple[Array, Array]:
    if data.ndim != 1:
        raise ValueError(f"data has shape {data.shape}")
    return _entries(shape, data, indices, indptr)


def _entries(shape: Shape, data: Array, indices: Array, indptr: Array) -> tuple[Array, Array]:
    """Return the entries that rows, or columns, refer to; raise unless they lie within the matrix."""
    if len(data) != len(indices):
        raise ValueError(f"data has shape {data.shape} for {len(indices)} indices")
    check_ends(indptr, shape[0], len(indices))
    data, indices = data[: indptr[-1]], indices[: indptr[-1]]
    check_indices(indices, shape[1])
    return data, indices


def _coo(shape: Shape, data: Array, row: Array, col: Array) -> sp.csr_array:
    if not data.shape == row.shape == col.shape:
        raise ValueError(f"data, row and col have shapes {data.shape}, {row.shape} and {col.shape}")
    check_indices(row, shape[0], "row")
    check_indices(col, shape[1], "col")
    return sp.csr_array(sp.coo_array((data, (row, col)), shape=shape))


def _dia(shape: Shape, data: Array, offsets: Array) -> sp.csr_array:
    if data.ndim != 2 or len(data) != len(offsets) or len(np.unique(offsets)) < len(offsets):
        raise ValueError(f"data has shape {data.shape} for {len(offsets)} diagonals, which must differ")
    is_inside = (offsets > -shape[0]) & (offsets < shape[1])
    return sp.csr_array(sp.dia_array((data[is_inside], offsets[is_inside]), shape=shape))


BUILDERS: dict[str, Callable[..., sp.csr_array]] = {"csr": _csr, "csc": _csc, "bsr": _bsr, "coo": _coo, "dia": _dia}
