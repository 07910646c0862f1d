"""The table of items: path, title, label and time of each bag."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data.container import Texts

NUMBERS = frozenset({"time", "row", "rows", "columns", "height", "width"})
Column = Texts | NDArray[np.float64]


class Items:
    """A table with one row for each item.

    Columns with a meaning are, as texts, path (relative to `root`), title, link, label, split, sequence and text; as
    numbers, time (seconds), row (position in the input, from 0), rows and columns (of the feature map), height and
    width (of the image).

    Parameters
    ----------
    columns : mapping of str to sequence
        Values by name, all of one length. The columns listed above as numbers are numbers, all others texts.
    root : path-like, default=""
        The folder that paths are relative to.
    is_root_trusted : bool, default=True
        Whether the user chose the root. One that a file names may not be a home directory or a whole drive.

    Examples
    --------
    >>> items = Items({"title": ["a cup", "a tree"], "time": [0, 1]})
    >>> items["title"].tolist(), items.row(1)
    (['a cup', 'a tree'], {'title': 'a tree', 'time': 1.0})
    """

    def __init__(
        self, columns: Mapping[str, Sequence[Any] | NDArray[Any]], root: str | Path = "", is_root_trusted: bool = True
    ):
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of lengths {lengths} must have one length; pass one value for each item.")
        self.columns: dict[str, Column] = {name: _column(name, values) for name, values in columns.items()}
        self.root, self.is_root_trusted = Path(root), is_root_trusted

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column: float64 for numbers, Python strings for texts."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; use one of {', '.join(self.columns) or 'none'}.")
        column = self.columns[name]
        if isinstance(column, np.ndarray):
            return column
        values = np.empty(len(column), dtype=object)
        values[:] = list(column)
        return values

    def row(self, index: int) -> dict[str, Any]:
        """Return one item as a dict."""
        return {
            name: float(column[index]) if isinstance(column, np.ndarray) else column[index]
            for name, column in self.columns.items()
        }

    def path(self, index: int) -> Path:
        """Return the path of an item as the table has it; `file` checks it."""
        return self.root / self.columns["path"][index]

    def folder(self) -> Path:
        """Return the folder of the items' files, links followed.

        Raises
        ------
        ValueError
            If the root is not trusted, and is empty, relative, the root of a drive, a home directory or a folder that
            holds one.
        """
        if not self.is_root_trusted and not self.root.is_absolute():
            raise ValueError(f"the collection's root={str(self.root)!r} must be an absolute path; pass root.")
        folder = _resolved(self.root)
        if not self.is_root_trusted and _is_broad(folder):
            raise ValueError(f"the collection's root={str(folder)!r} must be a folder of its own; pass root.")
        return folder

    def file(self, index: int, folder: Path | None = None) -> Path:
        """Return the file of an item, links followed; raise unless it lies below the folder.

        Parameters
        ----------
        index : int
            Number of the item.
        folder : Path, default=None
            Return value of `folder`, to check it once for many items.

        Raises
        ------
        ValueError
            If the path is absolute, leads out of the folder by itself or by a link, or is no path at all.
        """
        name, folder = self.columns["path"][index], folder or self.folder()
        inner, found = Path(name), _resolved(folder / name)
        if inner.is_absolute() or inner.drive or ".." in inner.parts or not found.is_relative_to(folder):
            raise ValueError(f"path {name!r} must be a file below {folder}; correct the path, or pass another root.")
        return found

    def take(self, which: Any) -> "Items":
        """Return some of the items, by their numbers or by a mask."""
        places = row_numbers(which, len(self)).tolist()
        return self._with({name: [column[i] for i in places] for name, column in self.columns.items()})

    def with_columns(self, **columns: Sequence[Any] | NDArray[Any]) -> "Items":
        """Return the items with columns added or replaced."""
        return self._with({**self.columns, **columns})

    def _with(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> "Items":
        return Items(columns, self.root, self.is_root_trusted)

    def run_lengths(self) -> list[int]:
        """Return the lengths of runs of consecutive items: same sequence, no jump in time."""
        if "sequence" not in self:
            return [len(self)]
        sequence = self["sequence"]
        is_new = np.r_[True, sequence[1:] != sequence[:-1]]
        if "time" in self:
            steps = np.diff(self["time"])
            usual = np.median(steps[~is_new[1:]]) if (~is_new[1:]).any() else 0
            is_new[1:] |= steps > 1.5 * usual
        return np.diff(np.r_[np.flatnonzero(is_new), len(sequence)]).tolist()

    @staticmethod
    def join(parts: Sequence["Items"]) -> "Items":
        """Concatenate tables; a column that one of them lacks is empty or NaN there.

        Tables with files in different folders get the folder that contains them all.
        """
        names = list(dict.fromkeys(name for part in parts for name in part.columns))
        root = _common_folder([part.root for part in parts if "path" in part] or [part.root for part in parts])
        parts = [part._moved(root) for part in parts]
        joined = {name: [value for part in parts for value in part._or_missing(name)] for name in names}
        return Items(joined, root, all(part.is_root_trusted for part in parts))

    def _moved(self, root: Path) -> "Items":
        """Return the same items with paths relative to a folder that contains theirs."""
        if root == self.root or "path" not in self:
            return self
        own = self.root.absolute()
        inner = own.relative_to(root) if root.is_absolute() else own
        return self.with_columns(path=[(inner / name).as_posix() if name else "" for name in self.columns["path"]])

    def _or_missing(self, name: str) -> Iterable[Any]:
        return self.columns.get(name, [np.nan if name in NUMBERS else ""] * len(self))


def _resolved(path: Path) -> Path:
    """Follow links; raise about a name that no file can have."""
    try:
        return Path(os.fsdecode(os.path.realpath(os.fsencode(path))))
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"path {str(path)!r} must be the name of a file ({error}); correct it.") from error


def _common_folder(roots: Sequence[Path]) -> Path:
    """Return the folder that contains all others, or an empty path if there is none."""
    if len(set(roots)) == 1:
        return roots[0]
    if Path("") in roots:
        return Path("")
    try:
        return Path(os.path.commonpath([root.absolute() for root in roots]))
    except ValueError:  # on different drives
        return Path("")


def _is_broad(folder: Path) -> bool:
    """Return whether a folder is a whole drive, a home directory, or contains one."""
    home = Path(os.path.expanduser("~")).resolve()
    is_other_home = len(home.parents) > 1 and folder.parent == home.parent
    return folder == Path(folder.anchor) or home.is_relative_to(folder) or is_other_home


def row_numbers(which: Any, n: int) -> NDArray[np.int64]:
    """Return the numbers, from 0 to n - 1, that a mask or numbers (also negative ones) select."""
    given = np.asarray(which)
    is_mask = given.dtype == bool
    if given.ndim != 1 or (is_mask and len(given) != n) or (given.size and given.dtype.kind not in "biu"):
        raise ValueError(
            f"{given.dtype} of shape {given.shape} must be a list of integers below {n}, or a mask of length {n}."
        )
    return np.arange(n)[given if given.size else []]


def _column(name: str, values: Any) -> Column:
    if name in NUMBERS:
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.ndim != 1:
            raise ValueError(f"column {name!r} of shape {numbers.shape} must have one number for each item.")
        return numbers
    if isinstance(values, Texts):
        return values
    return Texts.pack("" if value is None else str(value) for value in values)
