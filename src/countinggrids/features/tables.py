"""Readers of tables: CSV and TSV, JSON lines, Parquet. Rows are dictionaries."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from countinggrids.features.delimited import Delimited
from countinggrids.features.encodings import Encoding, detect
from countinggrids.features.notes import Notes
from countinggrids.features.parquet_tables import Parquet
from countinggrids.features.stream import BadItemError

Row = dict[str, Any]
SAMPLED_ROWS = 100
"""Rows whose columns are always collected."""


class ReadingOptions(NamedTuple):
    """Options for reading text files.

    Attributes
    ----------
    encoding : str or None
        Encoding of the files; None detects it.
    delimiter : str or None
        Delimiter of CSV and TSV files; None chooses comma, tab, semicolon or pipe.
    has_header : bool
        Whether the first record of CSV and TSV files names the columns; otherwise they are called 1, 2, ...
    date_format : str or None
        Format of dates, as of `datetime.strptime`; None tries common formats.
    """

    encoding: str | None = None
    delimiter: str | None = None
    has_header: bool = True
    date_format: str | None = None


class Table(Protocol):
    """A file of rows with named columns."""

    def find_names(self, wanted: Iterable[str]) -> list[str]:
        """Return the columns; if each row names its own, those of the rows up to the wanted ones."""

    def rows(self, notes: Notes, columns: Iterable[str]) -> Iterator[Row]:
        """Iterate over rows, with the given columns at least, and add irregularities to the notes."""

    def facts(self) -> dict[str, Any]:
        """Return how the file is read, as plain data."""


class JsonLines:
    """A table with a JSON object per line."""

    def __init__(self, path: Path, encoding: Encoding):
        self.path, self.encoding = path, encoding

    def find_names(self, wanted: Iterable[str]) -> list[str]:
        """Return the columns of the first rows, and of as many as it takes to find the wanted ones."""
        names: dict[str, None] = {}
        for number, row in enumerate(self.rows(Notes()), start=1):
            names |= dict.fromkeys(row)
            if number >= SAMPLED_ROWS and names.keys() >= set(wanted):
                break
        return list(names)

    def rows(self, notes: Notes, columns: Iterable[str] = ()) -> Iterator[Row]:
        """Iterate over objects."""
        with open(self.path, encoding=self.encoding.name, errors=self.encoding.errors) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    notes.n_blank += 1
                    continue
                row = _object(line)
                if isinstance(row, dict):
                    yield row
                else:
                    notes.add_error(
                        BadItemError(f"{self.path}, line {number}, is {row}; expected an object; correct it.")
                    )

    def facts(self) -> dict[str, Any]:
        """Return the encoding."""
        return {"encoding": self.encoding.facts()}


def _object(line: str) -> Row | str:
    """Return the object of a line, or a description of the line."""
    try:
        row = json.loads(line)
    except (RecursionError, ValueError) as error:
        return f"not JSON ({error})"
    return row if isinstance(row, dict) else f"a {type(row).__name__}"


def _delimited(path: Path, options: ReadingOptions) -> Table:
    encoding = detect(path, options.encoding, may_hold_zeros=True)
    return Delimited(path, encoding, options.delimiter, options.has_header)


def _json_lines(path: Path, options: ReadingOptions) -> Table:
    return JsonLines(path, detect(path, options.encoding, may_hold_zeros=True))


READERS: dict[str, Callable[[Path, ReadingOptions], Table]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".tab": _delimited,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": lambda path, options: Parquet(path),
}
"""Readers by suffix."""
