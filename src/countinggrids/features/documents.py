"""Documents from folders, tables and lines of files, with a report on how they were read."""

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

from countinggrids.features.dates import DateReader
from countinggrids.features.encodings import BinaryFileError, detect, read_text
from countinggrids.features.notes import Examples, Notes, OnError, handler_of
from countinggrids.features.stream import BadItemError
from countinggrids.features.tables import READERS, ReadingOptions, Row, Table

USUAL = ("text", "body", "content", "abstract", "document")
"""Names of columns that are tried if none is given."""
LONGEST_TITLE, HEAD = 80, 1000
"""Characters of a title that is made from a text, and of the text from which it is made."""
DEFAULTS = ReadingOptions()
PathLike = str | os.PathLike[str]
Facts = dict[str, Any]


class Document(NamedTuple):
    """A text with its metadata; strings are empty where unknown.

    Attributes
    ----------
    text : str
        The text.
    title : str
        Title.
    link : str
        Web address.
    label : str
        Label.
    path : str
        Path of its file.
    time : float
        Seconds since 1970, or NaN.
    row : int
        Number of its row or line, from 1; 0 if there is none.
    source : str
        Name of the file or folder that it was read from.
    """

    text: str
    title: str = ""
    link: str = ""
    label: str = ""
    path: str = ""
    time: float = nan
    row: int = 0
    source: str = ""


class Columns(NamedTuple):
    """Columns of a table, by name or by number from 1; None if there is none.

    Attributes
    ----------
    text : str or None
        Column of the text.
    title : str or None
        Column of the title.
    link : str or None
        Column of the web address.
    label : str or None
        Column of the label.
    date : str or None
        Column of the date.
    """

    text: str | None = None
    title: str | None = None
    link: str | None = None
    label: str | None = None
    date: str | None = None


UNNAMED = Columns()


class Documents:
    """Documents of files and folders, read lazily, as often as they are iterated.

    Parameters
    ----------
    sources : sequence of path-like
        Folders (a document per file, labels from sub-folders), tables (.csv, .tsv, .jsonl, .parquet; a document per
        row), or other files (a document per line).
    columns : Columns
        Columns of tables. That of the text may be left out if it is called text, body, content, abstract or document,
        or if it is the only one.
    on_error : {"raise", "skip"} or callable, default="raise"
        What to do about a part that cannot be read; a callable is called with the error.
    options : ReadingOptions
        Encoding, delimiter, header and format of dates.

    Attributes
    ----------
    report : list of dict
        How each source was read in the last iteration: encoding, columns, rows, dates, and irregularities.
    """

    def __init__(
        self,
        sources: Sequence[PathLike],
        columns: Columns = UNNAMED,
        on_error: OnError = "raise",
        options: ReadingOptions = DEFAULTS,
    ):
        self.sources = [Path(source) for source in sources]
        for path in self.sources:
            if not path.is_dir() and not path.is_file():
                raise ValueError(f"{path} does not exist; expected a file or a folder of texts; check the path.")
        self.columns, self.on_error, self.options = columns, handler_of(on_error), options
        self.report: list[dict[str, Any]] = []

    @property
    def root(self) -> str:
        """Folder that paths are relative to, if the source is a single folder; otherwise empty."""
        is_folder = len(self.sources) == 1 and self.sources[0].is_dir()
        return str(self.sources[0].absolute()) if is_folder else ""

    def __iter__(self) -> Iterator[Document]:
        self.report = []
        for source in self.sources:
            notes = Notes(self.on_error)
            facts: dict[str, Any] = {"source": str(source)}
            self.report.append(facts)
            read = _folder if source.is_dir() else _table if source.suffix.lower() in READERS else _lines
            try:
                for document in read(source, self, notes, facts):
                    notes.n_rows += 1
                    yield document._replace(source=source.name, path=self._path(source, document))
            except BinaryFileError as error:
                notes.add_error(error)
            facts |= notes.facts()

    def _path(self, source: Path, document: Document) -> str:
        """Return the path of a document, absolute if there are several sources."""
        is_relative = len(self.sources) == 1 or not document.path
        return document.path if is_relative else str((source / document.path).absolute())


def read_documents(
    source: PathLike | Sequence[PathLike],
    columns: Columns = UNNAMED,
    on_error: OnError = "raise",
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    has_header: bool = True,
    date_format: str | None = None,
) -> Documents:
    """Return the documents of files and folders; they are read when they are iterated.

    Parameters
    ----------
    source : path-like or sequence of path-like
        A folder (a document per file, labels from sub-folders), a .csv, .tsv, .jsonl or .parquet table (a document per
        row), any other file (a document per line), or several of these.
    columns : Columns
        Columns of tables, by name or by number from 1. That of the text may be left out if it is called text, body,
        content, abstract or document, or if it is the only one.
    on_error : {"raise", "skip"} or callable, default="raise"
        What to do about a part that cannot be read; a callable is called with the error.
    encoding : str, default=None
        Encoding of the files. None detects that of each file: by its byte order mark, as UTF-8, or with
        charset-normalizer.
    delimiter : str, default=None
        Delimiter of .csv and .tsv files. None chooses comma, tab, semicolon or pipe.
    has_header : bool, default=True
        Whether the first record of .csv and .tsv files names the columns; otherwise they are called 1, 2, ...
    date_format : str, default=None
        Format of dates, as of `datetime.strptime`. None tries common formats.

    Returns
    -------
    documents : Documents
        An iterable of `Document`.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    return Documents(sources, columns, on_error, ReadingOptions(encoding, delimiter, has_header, date_format))


def title_of(text: str) -> str:
    """Return the first words of a text.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    title : str
        At most 80 characters.
    """
    head = " ".join(text[:HEAD].split())
    return textwrap.shorten(head, LONGEST_TITLE, placeholder="...") if " " in head else head[:LONGEST_TITLE]


def _folder(folder: Path, how: Documents, notes: Notes, facts: Facts) -> Iterator[Document]:
    encodings: Counter[str] = Counter()
    guessed = Examples()
    for number, path in enumerate(_visible_files(folder), start=1):
        inner = path.relative_to(folder)
        try:
            text, encoding = read_text(path, how.options.encoding)
        except OSError as error:
            notes.add_error(BadItemError(f"{path} cannot be read ({error.strerror}); check its permissions."))
            continue
        except BadItemError as error:
            notes.add_error(error)
            continue
        encodings[encoding.name] += 1
        if encoding.certainty == "guess":
            guessed.add(inner.as_posix())
        label = inner.parent.as_posix() if inner.parent.name else ""
        yield Document(text.replace("\0", ""), path.stem, label=label, path=inner.as_posix(), row=number)
    facts |= {"encodings": dict(encodings)} | ({"guessed_encodings": guessed.facts()} if guessed.n else {})


def _visible_files(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _lines(path: Path, how: Documents, notes: Notes, facts: Facts) -> Iterator[Document]:
    encoding = detect(path, how.options.encoding)
    facts["encoding"] = encoding.facts()
    with open(path, encoding=encoding.name, errors=encoding.errors) as file:
        for number, line in enumerate(file, start=1):
            text = line.replace("\0", "").strip()
            notes.n_zeros += line.count("\0")
            notes.n_blank += not text
            if text:
                yield Document(text, title_of(text), row=number)


def _table(path: Path, how: Documents, notes: Notes, facts: Facts) -> Iterator[Document]:
    table = READERS[path.suffix.lower()](path, how.options)
    facts |= table.facts()
    columns, reason = _resolved(table, how.columns, path)
    if columns.text is None:
        return
    facts["column"] = {"name": columns.text, "reason": reason}
    used = [name for name in columns if name is not None]
    dates = DateReader(how.options.date_format)
    if columns.date is not None and how.options.date_format is None:
        dates.fit(row.get(columns.date) for row in table.rows(Notes(), [columns.date]))
    for number, row in enumerate(table.rows(notes, used), start=1):
        text = _text(row.get(columns.text))
        if text is None:
            kind = type(row[columns.text]).__name__
            notes.add_error(BadItemError(f"{path}, row {number}, column {columns.text!r}, is a {kind}; expected text."))
            continue
        title, link, label = (_text(_value(row, name)) or "" for name in columns[1:4])
        time = dates.read(row.get(columns.date)) if columns.date is not None else nan
        yield Document(text, title or title_of(text), link, label, time=time, row=number)
    if columns.date is not None:
        facts["dates"] = {"column": columns.date} | dates.facts()


def _value(row: Row, name: str | None) -> Any:
    return None if name is None else row.get(name)


def _text(value: Any) -> str | None:
    """Return a value as text: empty if it is missing, None if it is a list or a record."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return None if isinstance(value, dict | list | bytes) else str(value).replace("\0", "")


def _resolved(table: Table, columns: Columns, path: Path) -> tuple[Columns, str]:
    """Return the names of the columns, and how that of the text was found."""
    wanted = [str(name) for name in columns if name is not None]
    names = table.find_names(wanted)
    if not names:
        return columns._replace(text=None), ""
    found = {name: _column(name, names) for name in wanted}
    missing = [name for name, column in found.items() if column is None]
    if missing:
        raise ValueError(
            f"{path} has columns {', '.join(names)}; expected {', '.join(missing)}; check the names, and the delimiter."
        )
    columns = Columns(*(None if name is None else found[str(name)] for name in columns))
    if columns.text is not None:
        return columns, "given"
    text, reason = usual_column(names)
    if text is None:
        raise ValueError(
            f"{path} has columns {', '.join(names)}; expected the name of that of the text; pass it as --text, or "
            "as Columns(text=...)."
        )
    return columns._replace(text=text), reason


def _column(name: str, names: list[str]) -> str | None:
    """Return a column by its name, or else by its number from 1."""
    if name in names:
        return name
    is_number = name.isascii() and name.isdigit() and 1 <= int(name) <= len(names)
    return names[int(name) - 1] if is_number else None


def usual_column(names: list[str]) -> tuple[str | None, str]:
    """Return the column that probably holds the text, or None, and how it was found."""
    usual = [name for name in names if name.lower() in USUAL]
    if usual:
        return usual[0], "usual name" + (f"; {', '.join(usual[1:])} not used" if usual[1:] else "")
    return (names[0], "only column") if len(names) == 1 else (None, "")
