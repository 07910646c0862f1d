"""Readers of bags: whatever a user passes as X becomes a `Table`."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from countinggrids.core.pieces import pieces
from countinggrids.data import collection_file, container, sparse_files, validation
from countinggrids.data.table import Files, Table, as_table, named_blocks
from countinggrids.features import npy_files
from countinggrids.kernels.counts import rows_of

SURVEY_BAGS = 2**15
"""Bags that are checked at a time."""


def is_lazy(X: Any) -> bool:
    """Return whether X is a Dask array, or a list with delayed blocks or futures in it; Dask is not imported."""
    if isinstance(X, list | tuple):
        return any(_is_lazy(block) for block in X)
    return _is_lazy(X)


def _is_lazy(X: Any) -> bool:
    return hasattr(type(X), "__dask_graph__") or type(X).__module__.startswith("distributed.")


def read(model: Any, X: Any, is_fitting: bool) -> Table:
    """Return what a user passed as X as a table, or raise.

    Parameters
    ----------
    model : estimator
        The model, whose dtype and number of columns are used.
    X : array-like, sparse matrix, data frame, path-like, list of path-like, iterable of blocks, or Table
        The bags. Blocks must be readable again; a table is returned as it is.
    is_fitting : bool
        Whether the model takes its number of columns from X.

    Returns
    -------
    table : Table
        The bags.
    """
    if isinstance(X, Table):
        return X
    validation.refuse_maps(X)
    if not _comes_in_blocks(X):
        return Table.of(*validation.check_counts(model, X, is_fitting))
    paths = paths_of(X)
    blocks = Files(paths, load) if paths else X
    sizes, n_columns, tokens = _survey(blocks)
    validation.check_columns(model, n_columns, is_fitting)
    if is_fitting:
        validation.check_enough(tokens)
    return Table(blocks, sizes, n_columns, validation.dtype_of(model, is_fitting), is_held=False, tokens=tokens)


def load(path: str | os.PathLike[str], is_verified: bool = False) -> Any:
    """Open a file of counts: a .npy array or a collection, which are mapped, or a .npz of scipy.sparse.save_npz.

    Parameters
    ----------
    path : path-like
        The file.
    is_verified : bool, default=False
        Whether the counts of a collection were verified against their digests before, so that this is not done again.

    Returns
    -------
    counts : ndarray or csr_array of shape (n_bags, n_columns)
        The counts.
    """
    path = Path(path)
    if path.suffix == ".npz":
        return sparse_files.read(path)
    if path.suffix == ".npy":
        return as_table(str(path), npy_files.mapped(path))
    facts, arrays = container.read(path, collection_file.FORMAT, collection_file.VERSION)
    if not is_verified:
        arrays.verify(*collection_file.LARGE_COUNTS)
    with container.fitting_together(path):
        return collection_file.mapped_counts(facts, arrays)


def paths_of(X: Any) -> list[Path]:
    """Return the paths of X if it is a path or a list of paths, else an empty list."""
    given = [X] if _is_path(X) else X
    return [Path(path) for path in given] if isinstance(given, list | tuple) and all(map(_is_path, given)) else []


def collection_paths(X: Any) -> list[Path]:
    """Return the paths of X that are files of collections, which know their features; none if a file is missing."""
    paths = paths_of(X)
    are_there = all(path.is_file() for path in paths)
    return [path for path in paths if are_there and path.suffix not in (".npy", ".npz")]


def _is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def _comes_in_blocks(X: Any) -> bool:
    """Return whether X is blocks of bags rather than a table; raise about blocks that can be read only once."""
    if _is_path(X):
        return True
    if hasattr(X, "__next__"):
        raise ValueError(
            f"X is a {type(X).__name__}, which can be read once, and must be readable again; "
            "pass a list of blocks, or an object whose __iter__ starts anew."
        )
    if isinstance(X, list | tuple):
        return bool(X) and (_is_path(X[0]) or getattr(X[0], "ndim", 0) == 2)
    is_table = hasattr(X, "shape") or hasattr(X, "__array__") or hasattr(X, "__dataframe__")
    return hasattr(X, "__iter__") and not is_table and not isinstance(X, dict | set | frozenset | bytes)


def _survey(blocks: Iterable[Any]) -> tuple[list[int], int, Any]:
    """Read and check all blocks; return their sizes, their number of columns and the tokens of each bag."""
    return checked_surveys((name, *survey(name, block)) for name, block in named_blocks(blocks))


def survey(name: str, block: Any) -> tuple[int, Any]:
    """Check the counts of a block; return its number of columns and the tokens of each bag."""
    tokens = []
    for run in pieces(block.shape[0], SURVEY_BAGS):
        tokens.append(validation.check_values(rows_of(block, run), name, run.start))
        container.let_go(block)
    return block.shape[1], np.concatenate(tokens)


def checked_surveys(surveys: Iterable[tuple[str, int, Any]]) -> tuple[list[int], int, Any]:
    """Combine the surveys of blocks, each with the name of its block; raise if their columns differ."""
    found: list[Any] = []
    wanted = 0
    for name, n_columns, tokens in surveys:
        wanted = wanted if found else n_columns
        if n_columns != wanted:
            raise ValueError(
                f"{name} has {n_columns} columns and must have {wanted}, as the blocks before it; "
                "build all blocks with the same sections and vocabulary."
            )
        found.append(tokens)
    if not found:
        raise ValueError("X has no blocks and must have at least one; pass a list of tables or of files.")
    return [tokens.size for tokens in found], wanted, np.concatenate(found)
