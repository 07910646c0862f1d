"""Documents from tables in memory (pandas, polars, Arrow, dicts of lists) and from plain texts."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from countinggrids.features.dates import DateReader
from countinggrids.features.documents import USUAL, Columns, Document, title_of, usual_column

CONVERSIONS = ("to_pylist", "to_list", "tolist")
"""Methods that turn a column into a list: of Arrow, of polars and pandas, of NumPy."""
FIELDS = ("text", "title", "link", "label", "time")


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a table as lists.

    Parameters
    ----------
    frame : DataFrame, Table or mapping of str to sequence
        A table of pandas, polars or Arrow, or anything else with `columns` or `column_names` that is indexed by names.

    Returns
    -------
    columns : dict of str to list
        Values by name; missing ones are None.

    Raises
    ------
    TypeError
        If it is no table.
    ValueError
        If two columns have the same name.
    """
    names = frame if isinstance(frame, Mapping) else getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None or callable(names) or hasattr(frame, "collect"):
        raise TypeError(
            f"frame is a {type(frame).__name__} and must be a table: a pandas or polars DataFrame, an Arrow Table or a "
            "dict of lists; use from_texts for a list of texts, and collect() for a lazy frame."
        )
    repeated = [str(name) for name, n in Counter(map(str, names)).items() if n > 1]
    if repeated:
        raise ValueError(f"frame has several columns called {', '.join(repeated)}; rename all but one of each.")
    return {str(name): [None if _is_missing(value) else value for value in _listed(frame[name])] for name in names}


def documents_of(columns: Mapping[str, list[Any]], names: Columns) -> list[Document]:
    """Return a document for each row of a table.

    Parameters
    ----------
    columns : mapping of str to list
        Values by name.
    names : Columns
        Columns of the text, title, link, label and date. That of the text may be None if it has a usual name.

    Returns
    -------
    documents : list of Document
        Documents with the numbers of their rows, from 1.

    Raises
    ------
    ValueError
        If a column is missing, the text is not text, or no date can be read.
    """
    names = Columns(*(None if name is None else str(name) for name in names))
    _check_columns(columns, names)
    text = names.text if names.text is not None else _usual_text(columns)
    texts = columns[text]
    _check_texts(text, texts)
    empty = [None] * len(texts)
    titles, links, labels = (empty if name is None else columns[name] for name in names[1:4])
    times = [float("nan")] * len(texts) if names.date is None else _times(names.date, columns[names.date])
    parts = zip(texts, titles, links, labels, times, strict=True)
    return [
        Document(plain(body), plain(title) or title_of(plain(body)), plain(link), plain(label), time=time, row=row)
        for row, (body, title, link, label, time) in enumerate(parts, start=1)
    ]


def as_documents(texts: Iterable[Any]) -> Iterator[Document]:
    """Return documents from texts in any form.

    Parameters
    ----------
    texts : iterable of Document, str or mapping
        Mappings have a text, and may have a title, link, label and time. A Series of strings is such an iterable.

    Yields
    ------
    document : Document
        A document.

    Raises
    ------
    TypeError
        If an entry, or the whole, is something else.
    """
    is_table = any(hasattr(texts, name) for name in ("column_names", "columns"))
    if isinstance(texts, str | bytes | Mapping) or is_table or getattr(texts, "ndim", 1) != 1:
        raise TypeError(
            f"texts is a {type(texts).__name__} and must be a list of texts; use [text] for a single one, and "
            "Collection.from_frame for a table."
        )
    dates = DateReader()
    listed = texts.to_pylist() if hasattr(texts, "to_pylist") else texts
    for number, given in enumerate(listed, start=1):
        yield _document(given, number, dates)


def _document(given: Any, number: int, dates: DateReader) -> Document:
    if isinstance(given, Document):
        return given
    if isinstance(given, Mapping):
        if "text" not in given:
            raise TypeError(f"texts[{number - 1}] has keys {', '.join(map(str, given))} and must have the key text.")
        text, title, link, label = (plain(given.get(name)) for name in FIELDS[:4])
        return Document(text, title or title_of(text), link, label, time=dates.read(given.get("time")), row=number)
    if isinstance(given, str) or _is_missing(given):
        text = "" if _is_missing(given) else given
        return Document(text, title_of(text), row=number)
    raise TypeError(
        f"texts[{number - 1}] is a {type(given).__name__} and must be a text, a dict with the key text, or a Document; "
        "use for instance str(value)."
    )


def plain(value: Any) -> str:
    """Return a value as text: empty if it is missing, whole numbers without a decimal point.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    text : str
        The text.
    """
    if _is_missing(value):
        return ""
    if isinstance(value, float) and isfinite(value) and value == int(value):
        return str(int(value))
    return str(value).replace("\0", "")


def _listed(column: Any) -> list[Any]:
    convert = next((getattr(column, name) for name in CONVERSIONS if hasattr(column, name)), None)
    return list(column) if convert is None else convert()


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value, and neither has an array
        return type(value).__name__ == "NAType"


def _check_columns(columns: Mapping[str, list[Any]], names: Columns) -> None:
    missing = [str(name) for name in names if name is not None and name not in columns]
    if missing:
        raise ValueError(
            f"frame has columns {', '.join(columns) or 'none'}; expected {', '.join(missing)}; check the names."
        )


def _usual_text(columns: Mapping[str, list[Any]]) -> str:
    text, _ = usual_column(list(columns))
    if text is None:
        raise ValueError(
            f"frame has columns {', '.join(columns) or 'none'}, none of them called {', '.join(USUAL)}; pass text=, "
            "the name of the column of the texts."
        )
    return text


def _check_texts(name: str, values: list[Any]) -> None:
    wrong = next((value for value in values if value is not None and not isinstance(value, str)), None)
    if wrong is not None:
        raise ValueError(
            f"text={name!r} holds {str(wrong)[:40]!r}, a {type(wrong).__name__}; expected a column of strings; pass "
            "another column as text=."
        )


def _times(name: str, values: list[Any]) -> list[float]:
    dates = DateReader().fit(values)
    times = [dates.read(value) for value in values]
    facts = f"{dates.n_unread} of {len(values)} times, such as {', '.join(map(repr, dates.examples[:2]))}"
    if dates.n_ambiguous:
        raise ValueError(
            f"time={name!r}: {facts}, cannot be read, for day and month may be either; convert the column first, for "
            "instance with pandas.to_datetime(column, dayfirst=True)."
        )
    if dates.n_unread and not dates.n_read:
        raise ValueError(
            f"time={name!r}: {facts}, cannot be read; expected dates such as 2024-05-17 or seconds since 1970; convert "
            "the column first."
        )
    if dates.n_unread:
        warnings.warn(f"time={name!r}: {facts}, cannot be read and are missing", UserWarning, stacklevel=4)
    return times
