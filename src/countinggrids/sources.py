"""Bags wherever they are: one table in memory, or blocks that are read one after the other, as often as wanted.

Blocks are files, or anything else that can be gone through again. What is in memory is a single block.
"""

import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids import checks, em, files
from countinggrids.bags import coarsen, rows_of
from countinggrids.geometry import Geometry
from countinggrids.products import as_counts
from countinggrids.shortlist import MOST_BOUNDS, Shortlist

COLLECTION, COLLECTION_VERSION = "collection", 1
MOST_SHARES = 64
"""Shares at the most: what they give is added up in a tree of two levels, of which three sums are held at a time."""
SHARE_BAGS = 2048
"""Bags that a share has at the least."""
BAGS_PER_FEATURE = 1 / 2
"""The same per feature: adding up what a share has seen costs as much as going through this share of its bags."""
SURVEY_BAGS = 2**15
"""Bags that are checked at a time."""
KEPT_TRANSPOSES = 2**23
"""Non-zeros of a table up to which its transpose is kept between iterations (64 MB)."""


class Table:
    """Counts of bags, gone through a few at a time and as often as wanted.

    Parameters
    ----------
    blocks : tables one below the other, dense or CSR; they must be the same every time
    sizes : how many bags each block has
    n_columns : of every block
    dtype : what the counts are turned into
    is_held : whether all of it is in memory anyway
    """

    def __init__(self, blocks: Iterable[Any], sizes: Sequence[int], n_columns: int, dtype: Any, is_held: bool):
        self.blocks, self.sizes, self.dtype, self.is_held = blocks, list(sizes), np.dtype(dtype), is_held
        self.shape = (sum(sizes), n_columns)

    @classmethod
    def of(cls, counts: Any) -> "Table":
        """Make a table of counts that are in memory, or mapped there."""
        is_held = not files.is_mapped(counts.data if sp.issparse(counts) else counts)
        return cls([counts], [counts.shape[0]], counts.shape[1], counts.dtype, is_held)

    def __iter__(self) -> Iterator[Any]:
        """Give one block after the other; what of it is mapped is let go after use."""
        number = -1
        for number, (name, block) in enumerate(_named(self.blocks)):
            wanted = (self.sizes[number] if number < len(self.sizes) else 0, self.shape[1])
            if block.shape != wanted:
                raise ValueError(f"{name} has shape {block.shape} and had {wanted} before; {SAME}")
            yield block
            files.let_go(block)
        if number + 1 < len(self.sizes):
            raise ValueError(f"X has {number + 1} blocks and had {len(self.sizes)} before; {SAME}")

    def cut(self, runs: Sequence[slice]) -> Iterator[Any]:
        """Give the bags in runs of rows that follow each other, from the first bag to the last."""
        parts: list[Any] = []
        done, ends = 0, iter([run.stop for run in runs])
        end = next(ends)
        for block in self:
            start = 0
            while start < block.shape[0]:
                stop = min(block.shape[0], start + end - done)
                parts.append(rows_of(block, slice(start, stop)).astype(self.dtype, copy=False))
                done, start = done + stop - start, stop
                if done == end:
                    yield stacked(parts)
                    files.let_go(block)
                    parts, end = [], next(ends, 0)

    def take(self, rows: Any) -> Any:
        """Give some bags by their numbers, in rising order, in one pass."""
        if self.is_held and len(self.sizes) == 1:
            return next(iter(self))[rows]
        firsts = np.cumsum([0, *self.sizes])
        parts = []
        for first, last, block in zip(firsts, firsts[1:], self, strict=False):
            some = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)] - first
            parts.append(block[some].astype(self.dtype, copy=False))
        return stacked([part for part in parts if part.shape[0]])

    def each(self, runs: Sequence[slice], function: Callable[..., Any], *common: Any) -> Iterator[Any]:
        """Give function(counts, *common) of every run of rows."""
        return (function(counts, *common) for counts in self.cut(runs))

    def parts(self, runs: Sequence[slice]) -> "Iterator[Table]":
        """Give every run of rows as a table of its own."""
        return map(Table.of, self.cut(runs))

    def shares(self, weights: Any, n_features: int, geometry: Geometry) -> Iterable[em.Bags]:
        """Cut the bags into shares; those of a table in memory are made once, and not copied."""
        made = Shares(self, weights, n_features, geometry)
        return list(made) if self.is_held else made


SAME = "wanted the same bags every time; give blocks that do not change while the model reads them"


class Shares:
    """The bags of a table in shares, in the forms that EM wants.

    How they are cut depends on the numbers of bags and features alone, so that the sums of an iteration are the same
    wherever the bags are.
    """

    def __init__(self, table: Table, weights: Any, n_features: int, geometry: Geometry):
        self.table, self.weights, self.n_features, self.geometry = table, weights, n_features, geometry
        self.runs = runs_of(table.shape[0], n_features)
        self.shortlists = [shortlist_of(len(self.runs)) for _ in self.runs]

    def __iter__(self) -> Iterator[em.Bags]:
        how = (self.n_features, self.geometry, len(self.runs))
        for run, counts, shortlist in zip(self.runs, self.table.cut(self.runs), self.shortlists, strict=True):
            yield bags_of(counts, self.weights[run], *how, shortlist)


def shortlist_of(n_shares: int) -> Shortlist:
    """Make the shortlist of one of so many shares, which share the room."""
    return Shortlist(MOST_BOUNDS // n_shares)


def runs_of(n_bags: int, n_features: int) -> list[slice]:
    """Cut bags into runs, one a share."""
    return em.pieces(n_bags, max(-(-n_bags // MOST_SHARES), SHARE_BAGS, int(n_features * BAGS_PER_FEATURE)))


def bags_of(
    counts: Any, weights: Any, n_features: int, geometry: Geometry, n_shares: int, shortlist: Shortlist
) -> em.Bags:
    """Bring the counts of one of so many shares into the forms that EM wants."""
    matched = coarsen(counts, n_features, geometry.painted, geometry.matched)
    is_kept = sp.issparse(counts) and counts.nnz * n_shares <= KEPT_TRANSPOSES
    return em.Bags(
        as_counts(matched, n_features, geometry.matched_offsets, geometry.grid),
        as_counts(counts, n_features, geometry.painted_offsets, geometry.grid, is_kept),
        weights,
        shortlist,
    )


def shares(table: Table, weights: Any, n_features: int, geometry: Geometry) -> Iterable[em.Bags]:
    """Cut a table into shares."""
    return table.shares(weights, n_features, geometry)


def batches(
    table: Table, weights: Any, n_features: int, geometry: Geometry, size: int, rng: np.random.RandomState
) -> Iterator[tuple[Iterable[em.Bags], float]]:
    """Cut a table into batches of about so many bags, and give them again and again.

    Those of a table in memory are drawn at random and copied once; those from elsewhere follow each other as the bags
    do.
    """
    runs = em.pieces(table.shape[0], size)
    order = rng.permutation(table.shape[0]) if table.is_held else np.arange(table.shape[0])
    rows = [np.sort(order[run]) for run in runs]
    whole = float(weights.sum(dtype=np.float64))

    def once() -> Iterator[tuple[Iterable[em.Bags], float]]:
        tables = (Table.of(table.take(some)) for some in rows) if table.is_held else table.parts(runs)
        for some, part in zip(rows, tables, strict=True):
            total = float(weights[some].sum(dtype=np.float64))
            if total > 0:
                yield _without_bounds(part.shares(weights[some], n_features, geometry)), whole / total

    return cycle(list(once())) if table.is_held else chain.from_iterable(once() for _ in count())


def _without_bounds(shares: Iterable[em.Bags]) -> Iterable[em.Bags]:
    """Leave nothing to the next iteration: when a batch comes again its bounds are too old, and they hold windows."""
    return [bags._replace(shortlist=None) for bags in shares] if isinstance(shares, list) else shares


def read(model: Any, X: Any, is_fitting: bool) -> Table:
    """Make a table of what a user gave, or raise.

    Parameters
    ----------
    model : the estimator, whose dtype and number of columns count
    X : an array, a sparse matrix, a data frame; a file of counts, a list of files, or blocks that can be read again
    is_fitting : whether the model takes its number of columns from X
    """
    if not _comes_in_blocks(X):
        return Table.of(checks.check_counts(model, X, is_fitting))
    blocks = _Files(X) if _is_path(X) or (isinstance(X, list | tuple) and all(map(_is_path, X))) else X
    sizes, n_columns, has_counts = _survey(blocks)
    table = Table(blocks, sizes, n_columns, model.dtype, is_held=False)
    checks.check_columns(model, n_columns, is_fitting)
    if is_fitting:
        checks.check_enough(table.shape[0], has_counts)
    return table


def load(path: str | os.PathLike[str]) -> Any:
    """Open a file of counts: a .npy array or a collection, which are mapped, or a .npz of scipy.sparse.save_npz."""
    path = Path(path)
    try:
        if path.suffix == ".npz":
            return sp.csr_array(sp.load_npz(path))
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is no table of counts; wanted a .npy array or a .npz that scipy.sparse.save_npz wrote"
        ) from error
    return mapped_counts(*files.read(path, COLLECTION, COLLECTION_VERSION))


def mapped_counts(facts: dict[str, Any], arrays: files.Arrays) -> sp.csr_array:
    """Give the counts of a collection's file as they lie there, unchecked."""
    data, indices, ends = (arrays[f"counts.{part}"] for part in ("data", "indices", "indptr"))
    # SciPy would bring the indices, and with them a copy of them all into memory, to the type of the ends.
    if ends[-1] <= np.iinfo(indices.dtype).max:
        ends = ends.astype(indices.dtype, copy=False)
    return sp.csr_array((data, indices, ends), shape=tuple(facts["shape"]), copy=False)


class _Files:
    """Files of counts, opened one after the other."""

    def __init__(self, paths: Any):
        self.paths = [Path(path) for path in ([paths] if _is_path(paths) else paths)]
        for path in self.paths:
            if not path.is_file():
                raise FileNotFoundError(f"{path} is no file; wanted a table of counts; check the list of files")

    def __iter__(self) -> Iterator[Any]:
        return map(load, self.paths)


def _is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def _comes_in_blocks(X: Any) -> bool:
    """Tell blocks of bags from a table; raise about blocks that can be read only once."""
    if _is_path(X):
        return True
    if hasattr(X, "__next__"):
        raise ValueError(
            f"X is a {type(X).__name__}, which can be read once; wanted blocks that can be read again and again; "
            "give a list of blocks, or an object whose __iter__ starts anew"
        )
    if isinstance(X, list | tuple):
        return bool(X) and (_is_path(X[0]) or getattr(X[0], "ndim", 0) == 2)
    is_table = hasattr(X, "shape") or hasattr(X, "__array__") or hasattr(X, "__dataframe__")
    return hasattr(X, "__iter__") and not is_table and not isinstance(X, dict | set | frozenset | bytes)


def _survey(blocks: Iterable[Any]) -> tuple[list[int], int, bool]:
    """Go through all blocks once and check them; give their sizes, their columns and whether they count anything."""
    return checked_surveys((name, *survey(name, block)) for name, block in _named(blocks))


def survey(name: str, block: Any) -> tuple[int, int, bool]:
    """Check what a block holds; give its bags, its columns and whether it counts anything."""
    has_counts = False
    for run in em.pieces(block.shape[0], SURVEY_BAGS):
        has_counts |= bool(checks.check_values(rows_of(block, run), name, run.start).any())
        files.let_go(block)
    return block.shape[0], block.shape[1], has_counts


def checked_surveys(surveys: Iterable[tuple[str, int, int, bool]]) -> tuple[list[int], int, bool]:
    """Put together what was seen of every block, given with its name, or raise about blocks that do not fit."""
    sizes: list[int] = []
    wanted, has_any = 0, False
    for name, n_bags, n_columns, has_counts in surveys:
        wanted = wanted if sizes else n_columns
        if n_columns != wanted:
            raise ValueError(
                f"{name} has {n_columns} columns and those before it {wanted}; "
                "wanted the same in every block; build all with the same sections and vocabulary"
            )
        sizes.append(n_bags)
        has_any |= has_counts
    if not sizes:
        raise ValueError("X has no blocks; wanted at least one; give a list of tables or of files")
    return sizes, wanted, has_any


def _named(blocks: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Give every block as an array or as CSR, with a name for errors."""
    for number, block in enumerate(blocks):
        name = str(blocks.paths[number]) if isinstance(blocks, _Files) else f"block {number}"
        yield name, as_table(name, block)


def as_table(name: str, block: Any) -> Any:
    """Give a block as an array or as CSR, or raise about it by its name."""
    if sp.issparse(block):
        checks.check_ends(block, name)
        return block if isinstance(block, sp.csr_array) else sp.csr_array(block)
    table = np.asanyarray(block)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} is {table.dtype} with {table.ndim} axes; wanted counts, (bags, columns); "
            "give arrays or sparse matrices of numbers"
        )
    return table


def stacked(parts: list[Any]) -> Any:
    """Put tables one below the other."""
    if len(parts) == 1:
        return parts[0]
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)
