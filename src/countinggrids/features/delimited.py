"""A reader of delimited text files, such as CSV and TSV, that recovers from stray quotes."""

import csv
import io
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from countinggrids.features.encodings import Encoding
from countinggrids.features.notes import Notes
from countinggrids.features.stream import BadItemError

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
ONE_COLUMN = "\x1f"
"""Delimiter of files of one column: a character that texts do not contain."""
SNIFFED_CHARACTERS, SNIFFED_RECORDS = 1 << 20, 200
LONGEST_FIELD = 1 << 27


class Delimited:
    """A table in a text file, with a record per line, or per several lines if a quoted field has line breaks.

    Parameters
    ----------
    path : Path
        The file.
    encoding : Encoding
        Its encoding.
    delimiter : str, default=None
        The delimiter. None chooses comma, tab, semicolon or pipe: that by which most records have as many fields as
        the first.
    has_header : bool, default=True
        Whether the first record names the columns. Otherwise they are called 1, 2, ...

    Attributes
    ----------
    names : list of str
        The columns.
    delimiter : str
        The delimiter.
    """

    def __init__(self, path: Path, encoding: Encoding, delimiter: str | None = None, has_header: bool = True):
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        self.path, self.encoding, self.has_header = path, encoding, has_header
        self.delimiter = self._sniffed() if delimiter is None else _checked(delimiter)
        with self._opened() as file:
            first = next(self._records(_Lines(file, Notes()), None, Notes()), [])
        self.names = _unique(first) if has_header else [str(i) for i in range(1, len(first) + 1)]

    def find_names(self, wanted: Iterable[str]) -> list[str]:
        """Return the columns."""
        return self.names

    def rows(self, notes: Notes, columns: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
        """Iterate over rows, as dictionaries by column."""
        with self._opened() as file:
            lines = _Lines(file, notes)
            records = self._records(lines, len(self.names), notes)
            for record in islice(records, int(self.has_header), None):
                if len(record) != len(self.names):
                    notes.ragged_rows.add(f"line {lines.number}: {len(record)} fields for {len(self.names)} columns")
                yield dict(zip(self.names, record, strict=False))

    def facts(self) -> dict[str, Any]:
        """Return how the file is read, as plain data."""
        name = "none" if self.delimiter == ONE_COLUMN else DELIMITERS.get(self.delimiter, self.delimiter)
        return {"encoding": self.encoding.facts(), "delimiter": name, "header": self.has_header}

    def _opened(self) -> Any:
        return open(self.path, encoding=self.encoding.name, errors=self.encoding.errors, newline="")

    def _records(self, lines: "_Lines", width: int | None, notes: Notes) -> Iterator[list[str]]:
        """Iterate over records; one that a stray quote has merged with others is read again without quotes."""
        while True:
            record = self._record(lines, width, notes)
            if record is None:
                return
            if record:
                yield record
            else:
                notes.n_blank += 1

    def _record(self, lines: "_Lines", width: int | None, notes: Notes) -> list[str] | None:
        lines.begin()
        try:
            record = next(csv.reader(lines, delimiter=self.delimiter), None)
        except csv.Error:
            record = None
        if not lines.taken:
            return None
        if record is None or lines.ran_out or not self._is_plausible(record, lines.taken, width):
            return self._unquoted(record, lines, width, notes)
        return record

    def _is_plausible(self, record: list[str], taken: list[str], width: int | None) -> bool:
        """Return whether a record of several lines has the expected number of fields and balanced quotes."""
        if len(taken) == 1:
            return True
        try:
            list(csv.reader(taken, delimiter=self.delimiter, strict=True))
        except csv.Error:
            return False
        return width in (None, len(record))

    def _unquoted(self, record: list[str] | None, lines: "_Lines", width: int | None, notes: Notes) -> list[str]:
        """Read the first line of a record without quotes, unless only quotes give it the expected number of fields."""
        first, rest = lines.taken[0], lines.taken[1:]
        try:
            plain = next(csv.reader([first], delimiter=self.delimiter, quoting=csv.QUOTE_NONE))
        except csv.Error as error:
            number = lines.push_back(rest)
            notes.add_error(BadItemError(f"{self.path}, line {number}, cannot be read ({error}); correct it."))
            return []
        if record is not None and width not in (None, len(plain)):
            return record
        notes.stray_quotes.add(f"line {lines.push_back(rest)}")
        return plain

    def _sniffed(self) -> str:
        """Return the delimiter by which most records have as many fields as the first."""
        with self._opened() as file:
            head = file.read(SNIFFED_CHARACTERS)
        is_cut = len(head) == SNIFFED_CHARACTERS
        scores = {delimiter: _consistency(head, delimiter, is_cut) for delimiter in DELIMITERS}
        best = max(scores, key=lambda delimiter: scores[delimiter])
        # A line of prose has commas too, so a file without a header needs stronger evidence.
        is_credible = scores[best][0] > (0 if self.has_header else 0.5)
        return best if is_credible else ONE_COLUMN


class _Lines:
    """Lines without zero bytes; those of the last record can be pushed back."""

    def __init__(self, file: Iterable[str], notes: Notes):
        self._file, self._pushed, self._notes = iter(file), deque[str](), notes
        self.taken: list[str] = []
        self.number = 0
        self.ran_out = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._pushed.popleft() if self._pushed else next(self._file, None)
        if line is None:
            self.ran_out = True
            raise StopIteration
        if "\0" in line:
            self._notes.n_zeros += line.count("\0")
            line = line.replace("\0", "")
        self.number += 1
        self.taken.append(line)
        return line

    def begin(self) -> None:
        """Begin a record."""
        self.taken, self.ran_out = [], False

    def push_back(self, lines: list[str]) -> int:
        """Push lines back to be read again; return the number of the line before them."""
        self._pushed.extendleft(reversed(lines))
        self.number -= len(lines)
        return self.number


def _consistency(head: str, delimiter: str, is_cut: bool) -> tuple[float, float, int]:
    """Return how well a delimiter fits: records with as many fields as the first, fields without a space before them.

    The first two are fractions, the third is the number of fields; all are 0 for a single field.
    """
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        records = [record for record in islice(reader, SNIFFED_RECORDS) if record]
    except csv.Error:
        return 0.0, 0.0, 0
    if is_cut and 1 < len(records) < SNIFFED_RECORDS:
        records.pop()
    if not records or len(records[0]) == 1:
        return 0.0, 0.0, 0
    width = len(records[0])
    later = [field for record in records for field in record[1:]]
    # Punctuation of prose has a space behind it, delimiters seldom do.
    unspaced = sum(not field.startswith(" ") for field in later) / len(later)
    return sum(len(record) == width for record in records) / len(records), unspaced, width


def _checked(delimiter: str) -> str:
    named = {name: mark for mark, name in DELIMITERS.items()} | {"\\t": "\t"}
    mark = named.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n\0':
        raise ValueError(f"delimiter={delimiter!r} must be one character, or one of {', '.join(named)}.")
    return mark


def _unique(names: list[str]) -> list[str]:
    """Return distinct names; columns without one are called by their number."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = name.strip() or str(number)
        found.append(plain if plain not in found else f"{plain} ({number})")
    return found
