"""The table of items behind the bags: where each comes from, what it is called, when it was."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.files import Texts

NUMBERS = frozenset({"time", "rows", "columns", "height", "width"})
Column = Texts | NDArray[np.float64]


class Items:
    """One row per item, one column per thing known of it.

    Columns that others rely on: path (relative to `root`, or absolute), title, link, label, split, sequence, text;
    and as numbers: time (seconds), rows and columns (of the feature map), height and width (of the image).

    Parameters
    ----------
    columns : values by name, all of one length; those named above as numbers are numbers, all others texts
    root : the folder that paths are relative to

    Examples
    --------
    >>> items = Items({"title": ["a cup", "a tree"], "time": [0, 1]})
    >>> items["title"].tolist(), items.row(1)
    (['a cup', 'a tree'], {'title': 'a tree', 'time': 1.0})
    """

    def __init__(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]], root: str | Path = ""):
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns have lengths {lengths}; wanted one length for all; check how they were made")
        self.columns: dict[str, Column] = {name: _column(name, values) for name, values in columns.items()}
        self.root = Path(root)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Give a column: float64 for numbers, Python strings for texts."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns) or 'none'}")
        column = self.columns[name]
        if isinstance(column, np.ndarray):
            return column
        values = np.empty(len(column), dtype=object)
        values[:] = list(column)
        return values

    def row(self, index: int) -> dict[str, Any]:
        """Give what is known of one item."""
        return {
            name: float(column[index]) if isinstance(column, np.ndarray) else column[index]
            for name, column in self.columns.items()
        }

    def path(self, index: int) -> Path:
        """Give where the file of an item is."""
        return self.root / self.columns["path"][index]

    def take(self, which: Any) -> "Items":
        """Give some of the items, by their numbers or by a mask."""
        places = chosen(which, len(self)).tolist()
        return Items({name: [column[i] for i in places] for name, column in self.columns.items()}, self.root)

    def with_columns(self, **columns: Sequence[Any] | NDArray[Any]) -> "Items":
        """Give the items with more columns, or with others in place of old ones."""
        return Items({**self.columns, **columns}, self.root)

    def run_lengths(self) -> list[int]:
        """Give the lengths of runs of items that follow one another: same sequence, no jump in time."""
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
        """Put tables one below the other; what one of them does not know is empty, or not a number."""
        names = list(dict.fromkeys(name for part in parts for name in part.columns))
        is_same_root = len({part.root for part in parts}) == 1
        parts = [part if is_same_root else part._absolute() for part in parts]
        joined = {name: [value for part in parts for value in part._or_missing(name)] for name in names}
        return Items(joined, parts[0].root if is_same_root else "")

    def _absolute(self) -> "Items":
        if "path" not in self:
            return Items(self.columns)
        return Items(self.columns | {"path": [str(self.path(i).absolute()) for i in range(len(self))]})

    def _or_missing(self, name: str) -> Iterable[Any]:
        return self.columns.get(name, [np.nan if name in NUMBERS else ""] * len(self))


def chosen(which: Any, n: int) -> NDArray[np.int64]:
    """Turn a mask or numbers, also negative ones, into numbers from 0 to n - 1."""
    wanted = np.asarray(which)
    if (
        wanted.ndim != 1
        or (wanted.dtype == bool and len(wanted) != n)
        or (wanted.size and wanted.dtype.kind not in "biu")
    ):
        raise ValueError(
            f"got {wanted.dtype} of shape {wanted.shape} to choose by; wanted numbers below {n}, or a mask of {n}"
        )
    return np.arange(n)[wanted if wanted.size else []]


def _column(name: str, values: Any) -> Column:
    if isinstance(values, Texts):
        return values
    if name in NUMBERS:
        return np.asarray(values, dtype=np.float64)
    return Texts.pack("" if value is None else str(value) for value in values)
