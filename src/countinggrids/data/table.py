"""A table of bags: counts in memory, or blocks of counts that are read again in every pass."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.data import container, validation
from countinggrids.data.counts import in_one_form, tokens_of
from countinggrids.kernels.counts import rows_of

SAME = "blocks must be the same in every pass; pass blocks that do not change while the model reads them."


class Files:
    """Files of counts, opened one after another; collections are verified in the first pass.

    Parameters
    ----------
    paths : list of Path
        The files.
    load : callable
        Opens a file, given its path and whether it was verified before.
    """

    def __init__(self, paths: list[Path], load: Callable[[Path, bool], Any]):
        self.paths, self.load = paths, load
        self.is_verified = False
        for path in self.paths:
            if not path.is_file():
                raise FileNotFoundError(f"{path} must be a file of counts; correct the path.")

    def __iter__(self) -> Iterator[Any]:
        for path in self.paths:
            yield self.load(path, self.is_verified)
        self.is_verified = True


class Table:
    """Counts of bags that can be iterated over again, a block at a time.

    Parameters
    ----------
    blocks : iterable of ndarray or sparse matrix
        Consecutive bags; the same in every pass.
    sizes : sequence of int
        Number of bags of each block.
    n_columns : int
        Number of columns of every block.
    dtype : dtype
        Type that the counts are converted to.
    is_held : bool
        Whether all blocks are in memory.
    tokens : ndarray of shape (n_bags,), default=None
        Sum of each bag, if it is known.

    Attributes
    ----------
    shape : tuple of int
        Number of bags and of columns.
    runs : list of slice
        Rows of each chunk, if they do not follow from the number of bags.
    """

    def __init__(
        self,
        blocks: Iterable[Any],
        sizes: Sequence[int],
        n_columns: int,
        dtype: Any,
        is_held: bool,
        tokens: Any = None,
    ):
        self.tokens, self.runs = tokens, list[slice]()
        self.blocks, self.sizes, self.dtype, self.is_held = blocks, list(sizes), np.dtype(dtype), is_held
        self.shape = (sum(sizes), n_columns)

    @classmethod
    def of(cls, counts: Any, tokens: Any = None) -> "Table":
        """Return a table of counts that are in memory, or mapped into it."""
        is_held = not container.is_mapped(counts.data if sp.issparse(counts) else counts)
        tokens = tokens_of(counts) if tokens is None else tokens
        return cls([counts], [counts.shape[0]], counts.shape[1], counts.dtype, is_held, tokens)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the blocks; pages of a mapped one are released after use."""
        number = -1
        for number, (name, block) in enumerate(named_blocks(self.blocks)):
            wanted = (self.sizes[number] if number < len(self.sizes) else 0, self.shape[1])
            if block.shape != wanted:
                raise ValueError(f"{name} has shape {block.shape} and had {wanted} before; {SAME}")
            yield block
            container.let_go(block)
        if number + 1 < len(self.sizes):
            raise ValueError(f"X has {number + 1} blocks and had {len(self.sizes)} before; {SAME}")

    def cut(self, runs: Sequence[slice]) -> Iterator[Any]:
        """Iterate over runs of consecutive rows, from the first bag to the last."""
        parts: list[Any] = []
        done, ends = 0, iter([run.stop for run in runs])
        end = next(ends)
        for block in self:
            start = 0
            while start < block.shape[0]:
                stop = min(block.shape[0], start + end - done)
                parts.append(in_one_form(rows_of(block, slice(start, stop)), self.dtype))
                done, start = done + stop - start, stop
                if done == end:
                    yield stacked(parts)
                    container.let_go(block)
                    parts, end = [], next(ends, 0)

    def take(self, rows: Any) -> Any:
        """Return some bags by their numbers, in increasing order, in one pass."""
        if self.is_held and len(self.sizes) == 1:
            return next(iter(self))[rows]
        firsts = np.cumsum([0, *self.sizes])
        parts = []
        for first, last, block in zip(firsts, firsts[1:], self, strict=False):
            some = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)] - first
            parts.append(in_one_form(block[some], self.dtype))
        return stacked([part for part in parts if part.shape[0]])

    def each(self, runs: Sequence[slice], function: Callable[..., Any], *common: Any) -> Iterator[Any]:
        """Iterate over function(counts, *common) of every run of rows."""
        return (function(counts, *common) for counts in self.cut(runs))

    def parts(self, runs: Sequence[slice]) -> "Iterator[Table]":
        """Iterate over runs of rows as tables."""
        return map(Table.of, self.cut(runs))


def named_blocks(blocks: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over blocks as arrays or CSR, each with a name for errors."""
    for number, block in enumerate(blocks):
        name = f"block {number}"
        if isinstance(blocks, Files):
            name = str(blocks.paths[number])
        yield name, as_table(name, block)


def as_table(name: str, block: Any) -> Any:
    """Return a block as an array or as CSR, or raise about it by its name."""
    if sp.issparse(block):
        validation.check_ends(block, name)
        return block if isinstance(block, sp.csr_array) else sp.csr_array(block)
    table = np.asanyarray(block)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} of dtype {table.dtype} with {table.ndim} axes must be counts of shape (n_bags, n_columns); "
            "pass arrays or sparse matrices of numbers."
        )
    return table


def stacked(parts: list[Any]) -> Any:
    """Concatenate tables."""
    if len(parts) == 1:
        return parts[0]
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)
