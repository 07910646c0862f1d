"""Parsing of dates, in the one order of day and month that fits the whole column."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite, isnan, nan
from typing import Any

MOST_EXAMPLES = 5
MILLISECONDS = 1e11
"""Numbers from here on are milliseconds since 1970: in seconds they would be beyond the year 5000."""
ORDERS = ("day first", "month first")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

CLOCK = r"(?:,? +(?:at +)?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)? *([ap]\.?m\.?)?)?"
NUMERIC = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){CLOCK}", re.ASCII | re.IGNORECASE)
YEAR_FIRST = re.compile(rf"(\d{{4}})[/.-](\d{{1,2}})(?:[/.-](\d{{1,2}}))?{CLOCK}", re.ASCII | re.IGNORECASE)
DAY_NAMED = re.compile(rf"(\d{{1,2}})[ -]([a-z]{{3,9}})\.?,?[ -](\d{{4}}|\d{{2}}){CLOCK}", re.ASCII | re.IGNORECASE)
MONTH_NAMED = re.compile(rf"([a-z]{{3,9}})\.? (\d{{1,2}}),? (\d{{4}}){CLOCK}", re.ASCII | re.IGNORECASE)


class DateReader:
    """A parser of the dates of one column, which infers the order of day and month from all of them.

    It reads ISO 8601, years, e-mail dates, English names of months, seconds or milliseconds since 1970, and numeric
    dates. Whether 1/6/2023 is in January or in June is inferred from the column: one with 13/6/2023 in it has the day
    first. Dots (1.6.2023) have the day first. Dates that remain ambiguous are not read.

    Parameters
    ----------
    format : str, default=None
        Format of `datetime.strptime`, such as "%d/%m/%Y". None reads all of the above.

    Attributes
    ----------
    order : str or None
        "day first", "month first", or None if the column leaves it open.
    n_read : int
        Dates that were read.
    n_missing : int
        Empty ones.
    n_unread : int
        Dates that were not read.
    n_ambiguous : int
        Those of them that are ambiguous.
    examples : list of str
        Some dates that were not read.
    """

    def __init__(self, format: str | None = None):
        if format is not None:
            _check_format(format)
        self.format = format
        self.order: str | None = None
        self.n_read = self.n_missing = self.n_unread = self.n_ambiguous = 0
        self.examples: list[str] = []
        self._span = [nan, nan]

    def fit(self, values: Iterable[Any]) -> "DateReader":
        """Infer whether the day or the month comes first."""
        found = {order for value in values for order in _deciding(_plain(value))}
        self.order = next(iter(found)) if len(found) == 1 else None
        return self

    def read(self, value: Any) -> float:
        """Return seconds since 1970, or NaN if there is no date or it cannot be read."""
        text = _plain(value)
        if not text:
            self.n_missing += 1
            return nan
        seconds = _of_format(text, self.format) if self.format else self._of_any(value, text)
        if isnan(seconds):
            self._note_unread(text)
            return nan
        self.n_read += 1
        self._span = [min(seconds, self._span[0]), max(seconds, self._span[1])] if self.n_read > 1 else [seconds] * 2
        return seconds

    def facts(self) -> dict[str, Any]:
        """Return the numbers of dates read and not read, as plain data."""
        found: dict[str, Any] = {
            "format": self.format or (f"common formats, {self.order}" if self.order else "common formats"),
            "read": self.n_read,
            "missing": self.n_missing,
            "unread": self.n_unread,
            "ambiguous": self.n_ambiguous,
            "examples": self.examples,
        }
        return found | ({"first": _iso(self._span[0]), "last": _iso(self._span[1])} if self.n_read else {})

    def _of_any(self, value: Any, text: str) -> float:
        if isinstance(value, datetime):
            return _posix(value)
        orders = _orders(text)
        if not orders:
            return _unambiguous(text)
        order = orders[0] if len(orders) == 1 else self.order
        return nan if order is None else _numeric(text, order)

    def _note_unread(self, text: str) -> None:
        self.n_unread += 1
        self.n_ambiguous += self.format is None and len(_orders(text)) == 2
        if len(self.examples) < MOST_EXAMPLES and text[:80] not in self.examples:
            self.examples.append(text[:80])


def _check_format(format: str) -> None:
    sample = datetime(2001, 2, 3)
    try:
        is_date = datetime.strptime(sample.strftime(format), format).year == sample.year
    except (ValueError, re.error) as error:
        raise ValueError(f"date_format={format!r} is invalid ({error}); use for instance '%d/%m/%Y'.") from error
    if not is_date:
        raise ValueError(f"date_format={format!r} has no year; use for instance '%d/%m/%Y'.")


def _plain(value: Any) -> str:
    is_missing = value is None or (isinstance(value, float) and isnan(value))
    return "" if is_missing else str(value).strip()


def _orders(text: str) -> list[str]:
    """Return the possible orders of a numeric date: two, if it is ambiguous."""
    found = NUMERIC.fullmatch(text)
    if found is None:
        return []
    possible = ("day first",) if found[2] == "." or int(found[1]) == int(found[3]) else ORDERS
    return [order for order in possible if not isnan(_numeric(text, order))]


def _deciding(text: str) -> list[str]:
    """Return the order of a numeric date if its numbers allow only one."""
    found, orders = NUMERIC.fullmatch(text), _orders(text)
    is_deciding = found is not None and len(orders) == 1 and found[2] != "." and int(found[1]) != int(found[3])
    return orders if is_deciding else []


def _numeric(text: str, order: str) -> float:
    found = NUMERIC.fullmatch(text)
    if found is None:
        return nan
    day, month = (found[1], found[3]) if order == "day first" else (found[3], found[1])
    return _seconds(found[4], int(month), day, found.groups()[4:])


def _unambiguous(text: str) -> float:
    """Read a date in a format that is not ambiguous."""
    for read in (_year_first, _iso_seconds, _named, _mail, _number):
        seconds = read(text)
        if not isnan(seconds):
            return seconds
    return nan


def _year_first(text: str) -> float:
    if re.fullmatch(r"\d{4}", text, re.ASCII):
        return _seconds(text, 1, "1", ())
    found = YEAR_FIRST.fullmatch(text)
    return nan if found is None else _seconds(found[1], int(found[2]), found[3] or "1", found.groups()[3:])


def _iso_seconds(text: str) -> float:
    text = re.sub(r" ?(UTC|GMT)$", "Z", text)
    return _tried(datetime.fromisoformat, re.sub(r" (?=[+-]\d\d:?\d\d$)", "", text))


def _named(text: str) -> float:
    text = re.sub(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? +", "", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", text)
    if found := DAY_NAMED.fullmatch(text):
        return _seconds(found[3], _month(found[2]), found[1], found.groups()[3:])
    if found := MONTH_NAMED.fullmatch(text):
        return _seconds(found[3], _month(found[1]), found[2], found.groups()[3:])
    return nan


def _month(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1 if name[:3].lower() in MONTHS else 0


def _mail(text: str) -> float:
    return _tried(parsedate_to_datetime, text[:100])


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return nan
    return (number / 1000 if abs(number) >= MILLISECONDS else number) if isfinite(number) else nan


def _of_format(text: str, format: str) -> float:
    return _tried(lambda given: datetime.strptime(given, format), text)


def _seconds(year: str, month: int, day: str, clock: tuple[str | None, ...]) -> float:
    hour, minute, second, half = clock or (None,) * 4
    # Years of two digits are from 1969 to 2068, as in POSIX.
    whole = int(year) if len(year) == 4 else int(year) + (2000 if int(year) < 69 else 1900)
    hours = int(hour or 0) % 12 + 12 * (half[0] in "pP") if half else int(hour or 0)
    return _tried(lambda _: datetime(whole, month, int(day), hours, int(minute or 0), int(second or 0)), year)


def _tried(parse: Any, text: str) -> float:
    try:
        return _posix(parse(text))
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return nan


def _posix(date: datetime) -> float:
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"
