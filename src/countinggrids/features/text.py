"""Words as features, and the documents they come from."""

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple, Self

import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.features.stream import BadItemError
from countinggrids.features.vocabulary import Vocabulary

USUAL = ("text", "body", "content", "abstract", "document")  # columns tried where none is named


class Words(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Counts words with scikit-learn's `CountVectorizer`; texts may come from a generator, counts are sparse.

    Parameters
    ----------
    min_df, max_df : documents a word must and may occur in: a number of them, or a share if a float
    stop_words : words to leave out: "english", a list, or None
    ngram_range : shortest and longest sequence of words that counts as one
    max_features : keep this many words, the most frequent; None keeps all
    lowercase : whether case is ignored
    token_pattern : the regular expression of a word

    Attributes
    ----------
    names_ : the words, in the order of the columns

    Examples
    --------
    >>> from countinggrids.features import Words
    >>> words = Words().fit(["a cup of tea", "tea and tea"])
    >>> words.names_, words.transform(["tea, a cup, tea"]).toarray().tolist()
    (['and', 'cup', 'of', 'tea'], [[0.0, 1.0, 0.0, 2.0]])
    """

    def __init__(
        self,
        min_df: float = 1,
        max_df: float = 1.0,
        stop_words: Any = None,
        ngram_range: tuple[int, int] = (1, 1),
        max_features: int | None = None,
        lowercase: bool = True,
        token_pattern: str = r"(?u)\b\w\w+\b",
    ):
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.max_features = max_features
        self.lowercase = lowercase
        self.token_pattern = token_pattern

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the vocabulary."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> sp.csr_array:
        """Learn the vocabulary and count, in one pass."""
        vectoriser = self._vectoriser()
        try:
            counts = vectoriser.fit_transform(texts)
        except ValueError as error:
            if not any(part in str(error) for part in ("vocabulary", "no terms remain", "max_df corresponds")):
                raise
            raise ValueError(
                f"no word is left (min_df {self.min_df}, max_df {self.max_df}, stop words {self.stop_words}); "
                "wanted at least one; give more texts, or lower min_df and raise max_df"
            ) from error
        self.names_ = vectoriser.get_feature_names_out().tolist()
        return sp.csr_array(counts)

    def transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Count the known words of each text."""
        check_is_fitted(self)
        return sp.csr_array(self._vectoriser(vocabulary=self.names_).transform(texts))

    @property
    def vocabulary_(self) -> Vocabulary:
        return Vocabulary("words", tuple(self.names_))

    def _vectoriser(self, **more: Any) -> Any:
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(dtype="float32", **self.get_params() | more)


class Document(NamedTuple):
    """A text and what is known of it.

    Attributes
    ----------
    text : the text
    title, link, label, path : empty where unknown
    time : seconds since 1970, or not a number
    """

    text: str
    title: str = ""
    link: str = ""
    label: str = ""
    path: str = ""
    time: float = nan


class Columns(NamedTuple):
    """Which columns of a table hold what; None where none does."""

    text: str | None = None
    title: str | None = None
    link: str | None = None
    label: str | None = None
    date: str | None = None


UNNAMED = Columns()
Complain = Callable[[BadItemError], None]


def raise_it(error: BadItemError) -> None:
    """Complain by raising."""
    raise error


def read_documents(
    source: str | os.PathLike[str], columns: Columns = UNNAMED, complain: Complain = raise_it
) -> Iterator[Document]:
    """Read documents one after another.

    Parameters
    ----------
    source : a folder (a document per file, labels from sub-folders), a .csv, .tsv, .jsonl or .parquet table (a
        document per row), or any other file (a document per line)
    columns : which columns of a table hold what; a column of text called text, body, content, abstract or document
        is found without being named
    complain : called with what cannot be read; it may raise, or note it down and return
    """
    path = Path(source)
    if path.is_dir():
        return _folder(path, complain)
    if not path.is_file():
        raise ValueError(f"{path} is not there; wanted a file or a folder of texts; check the path")
    readers = {".csv": _delimited, ".tsv": _delimited, ".jsonl": _json_lines, ".ndjson": _json_lines}
    readers |= {".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    return _lines(path, complain) if reader is None else _table(reader(path, complain), columns, path, complain)


def _folder(folder: Path, complain: Complain) -> Iterator[Document]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inner = path.relative_to(folder)
        if any(part.startswith(".") for part in inner.parts):
            continue
        try:
            content = path.read_bytes()
        except OSError as error:
            complain(BadItemError(f"{path} cannot be read ({error.strerror}); wanted a text; check its permissions"))
            continue
        if _is_binary(content):
            complain(BadItemError(f"{path} holds zero bytes; wanted a text; remove it or convert it"))
            continue
        label = inner.parent.as_posix() if inner.parent.name else ""
        yield Document(content.decode("utf-8", "replace"), path.stem, label=label, path=inner.as_posix())


def _lines(path: Path, complain: Complain) -> Iterator[Document]:
    with open(path, "rb") as file:
        if _is_binary(file.read(4096)):
            complain(BadItemError(f"{path} holds zero bytes; wanted a text; give text, or a table by its usual ending"))
            return
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield Document(line.strip(), f"{path.stem} {number}")


def _is_binary(content: bytes) -> bool:
    return b"\0" in content[:4096]


Row = dict[str, Any]
Table = tuple[list[str] | None, Iterator[Row]]  # the columns, where a table names them before its rows


def _table(table: Table, columns: Columns, path: Path, complain: Complain) -> Iterator[Document]:
    names, rows = table
    if names is not None:
        columns = _resolved(columns, names, path)
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        seen.update(row)
        column = columns.text or _usual(row)
        text = None if column is None else row.get(column)
        if not isinstance(text, str):
            wanted = "a usual column of text" if column is None else f"column {column!r}"
            complain(BadItemError(f"{path}, row {number}, has no text in {wanted}; wanted some; fill it in"))
            continue
        title, link, label = ("" if name is None else _plain(row.get(name)) for name in columns[1:4])
        yield Document(text, title or f"{path.stem} {number}", link, label, time=_seconds(row.get(str(columns.date))))
    if names is None and seen:
        _resolved(columns, sorted(seen), path)


def _usual(names: Iterable[str]) -> str | None:
    return next((name for name in names if str(name).lower() in USUAL), None)


def _resolved(columns: Columns, names: list[str], path: Path) -> Columns:
    """Find the column of text where none was named; raise about columns that are not there."""
    missing = [name for name in columns if name is not None and name not in names]
    if missing:
        raise ValueError(f"{path} has columns {', '.join(names)}; wanted {', '.join(missing)}; check the names")
    text = columns.text or _usual(names)
    if text is None:
        raise ValueError(f"{path} has columns {', '.join(names)}; which holds the text? name its column")
    return columns._replace(text=text)


def _delimited(path: Path, complain: Complain) -> Table:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    # Tabs are for texts as they are; commas need quotes, and a quote that is never closed is an error.
    how: dict[str, Any] = (
        {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if path.suffix.lower() == ".tsv" else {"strict": True}
    )

    def rows() -> Iterator[Row]:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.DictReader(file, **how)
            while True:
                try:
                    row = next(reader, None)
                except csv.Error as error:
                    where = f"{path}, line {reader.line_num}"
                    complain(BadItemError(f"{where}, cannot be read ({error}); wanted a row; correct it"))
                    continue
                if row is None:
                    return
                yield row

    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            names = csv.DictReader(file, **how).fieldnames
        except csv.Error as error:
            raise ValueError(
                f"{path}, line 1, cannot be read ({error}); wanted names of columns; correct it"
            ) from error
    return list(names or ()), rows()


def _json_lines(path: Path, complain: Complain) -> Table:
    def rows() -> Iterator[Row]:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (RecursionError, ValueError) as error:
                    complain(BadItemError(f"{path}, line {number}, is no JSON ({error}); wanted an object; correct it"))
                    continue
                if isinstance(row, dict):
                    yield row
                else:
                    kind = type(row).__name__
                    complain(BadItemError(f"{path}, line {number}, is a {kind}; wanted an object; correct it"))

    return None, rows()


def _parquet(path: Path, complain: Complain) -> Table:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError(f"{path} needs the package pyarrow; install it, or convert the table to CSV") from error
    wrong = (ArrowException, OSError, ValueError, ArithmeticError)

    def named(error: Exception) -> ValueError:
        return ValueError(f"{path} cannot be read ({error}); wanted a Parquet table; write it again")

    def rows() -> Iterator[Row]:
        try:
            for batch in file.iter_batches(1024):
                yield from batch.to_pylist()
        except wrong as error:
            raise named(error) from error

    try:
        file = parquet.ParquetFile(path)
        return list(file.schema_arrow.names), rows()
    except wrong as error:
        raise named(error) from error


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _seconds(value: Any) -> float:
    """Read a date: ISO 8601, a year, as in e-mail, or seconds since 1970; not a number if it is none of these."""
    if isinstance(value, datetime):
        return _posix(value)
    text = _plain(value).strip()
    if re.fullmatch("[0-9]{4}", text):
        text = f"{text}-01-01"
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return _posix(parse(text))
        except (ValueError, TypeError, OverflowError, OSError):
            continue
    try:
        return float(text) if isfinite(float(text)) else nan
    except ValueError:
        return nan


def _posix(date: datetime) -> float:
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
