"""Words as features, and the documents they come from."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import nan
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
            if "vocabulary" not in str(error) and "no terms remain" not in str(error):
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
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _table(_parquet(path), columns, path, complain)
    if suffix in readers:
        return _table(readers[suffix](path, complain), columns, path, complain)
    return _lines(path)


def _folder(folder: Path, complain: Complain) -> Iterator[Document]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        content = path.read_bytes()
        if b"\0" in content[:4096]:
            complain(BadItemError(f"{path} holds zero bytes; wanted a text; remove it or convert it"))
            continue
        inner = path.relative_to(folder)
        label = inner.parent.as_posix() if inner.parent.name else ""
        yield Document(content.decode("utf-8", "replace"), path.stem, label=label, path=inner.as_posix())


def _lines(path: Path) -> Iterator[Document]:
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield Document(line.strip(), f"{path.stem} {number}")


def _table(rows: Iterator[dict[str, Any]], columns: Columns, path: Path, complain: Complain) -> Iterator[Document]:
    for number, row in enumerate(rows, start=1):
        if number == 1:
            columns = _resolved(columns, list(row), path)
        text = row.get(str(columns.text))
        if not isinstance(text, str):
            complain(
                BadItemError(f"{path}, row {number}, has no text in column {columns.text!r}; wanted some; fill it in")
            )
            continue
        title, link, label = ("" if name is None else _plain(row.get(name)) for name in columns[1:4])
        yield Document(text, title or f"{path.stem} {number}", link, label, time=_seconds(row.get(str(columns.date))))


def _resolved(columns: Columns, names: list[str], path: Path) -> Columns:
    """Find the column of text where none was named; raise about columns that are not there."""
    wanted = {key: name for key, name in columns._asdict().items() if name is not None}
    if columns.text is None:
        usual = next((name for name in names if str(name).lower() in USUAL), None)
        if usual is None:
            raise ValueError(f"{path} has columns {', '.join(map(str, names))}; which holds the text? name its column")
        columns = columns._replace(text=usual)
    missing = [name for name in wanted.values() if name not in names]
    if missing:
        raise ValueError(
            f"{path} has columns {', '.join(map(str, names))}; wanted {', '.join(missing)}; check the names"
        )
    return columns


def _delimited(path: Path, complain: Complain) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                complain(
                    BadItemError(f"{path}, line {rows.line_num}, cannot be read ({error}); wanted a row; correct it")
                )
                continue
            if row is None:
                return
            yield row


def _json_lines(path: Path, complain: Complain) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (json.JSONDecodeError, RecursionError, ValueError) as error:
                complain(BadItemError(f"{path}, line {number}, is no JSON ({error}); wanted an object; correct it"))
                continue
            if isinstance(row, dict):
                yield row
            else:
                complain(
                    BadItemError(f"{path}, line {number}, is a {type(row).__name__}; wanted an object; correct it")
                )


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError(f"{path} needs the package pyarrow; install it, or convert the table to CSV") from error
    try:
        for batch in parquet.ParquetFile(path).iter_batches(1024):
            yield from batch.to_pylist()
    except (ArrowException, OSError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{path} cannot be read ({error}); wanted a Parquet table; write it again") from error


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _seconds(value: Any) -> float:
    """Read a date: a number of seconds, ISO 8601, or as in e-mail; not a number if it is none of these."""
    if isinstance(value, datetime):
        return _posix(value)
    text = _plain(value).strip()
    for parse in (
        float,
        lambda each: _posix(datetime.fromisoformat(each)),
        lambda each: _posix(parsedate_to_datetime(each)),
    ):
        try:
            return parse(text)
        except (ValueError, TypeError, OverflowError, OSError):
            continue
    return nan


def _posix(date: datetime) -> float:
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
