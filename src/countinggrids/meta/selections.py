"""Selections of items: by row numbers, masks, labels, columns and times."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data.collection import Collection
from countinggrids.data.items import Items, row_numbers
from countinggrids.features.dates import DateReader

Mask = NDArray[np.bool_]
MOST_LISTED = 8


def select(collection: Collection, which: Any, name: str = "which") -> Mask:
    """Return a mask of the items that are selected.

    Parameters
    ----------
    collection : Collection
        The items.
    which : str, mapping, array-like of int or bool
        A label; a dict of columns and values, all of which must agree, where a tuple of two is a range from the first
        (included) to the second (not included; None is open) of a column of numbers or times; row numbers; or a mask.
    name : str, default="which"
        Name of the argument in errors.

    Returns
    -------
    mask : ndarray of bool of shape (n_items,)
        Whether each item is selected.

    Raises
    ------
    ValueError
        If a column or a value is not there, or nothing is selected.
    """
    if isinstance(which, str):
        which = {"label": which}
    if isinstance(which, Mapping):
        parts = [_of_column(collection.items, column, value, name) for column, value in which.items()]
        mask = np.logical_and.reduce(parts) if parts else np.zeros(len(collection), bool)
    else:
        mask = np.zeros(len(collection), bool)
        mask[row_numbers(which, len(collection))] = True
    if not mask.any():
        raise ValueError(f"{name}={which!r} selects none of {len(collection)} items; expected at least one.")
    return mask


def numbers_of(items: Items, column: str) -> NDArray[np.float64]:
    """Return a column as numbers; empty entries are NaN.

    Parameters
    ----------
    items : Items
        The items.
    column : str
        Name of the column.

    Returns
    -------
    numbers : ndarray of shape (n_items,)
        The numbers.

    Raises
    ------
    ValueError
        If the column is not there, or an entry is neither empty nor a number.
    """
    values = _column(items, column, "column")
    try:
        return np.array([float(value) if value != "" else np.nan for value in values])
    except ValueError:
        wrong = next(value for value in values if not _is_number(value))
        raise ValueError(
            f"column {column!r} holds {str(wrong)[:40]!r} and must hold numbers; choose another column."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return bool(value == "")
    return True


def _column(items: Items, column: str, name: str) -> NDArray[Any]:
    if column not in items:
        known = ", ".join(items.columns)
        raise ValueError(f"{name}: items have no column {column!r}; use one of {known}, or row numbers.")
    return items[column]


def _of_column(items: Items, column: str, value: Any, name: str) -> Mask:
    values = _column(items, column, name)
    if isinstance(value, tuple):
        return _in_range(items, column, value, name)
    mask: Mask = values == (value if values.dtype == float else str(value))
    if not mask.any():
        known = sorted(set(map(str, values.tolist())))
        listed = ", ".join(map(repr, known[:MOST_LISTED])) + (", ..." if len(known) > MOST_LISTED else "")
        raise ValueError(f"{name}: no item has {value!r} in the column {column!r}; use one of {listed}.")
    return mask


def _in_range(items: Items, column: str, limits: tuple[Any, ...], name: str) -> Mask:
    if len(limits) != 2:
        raise ValueError(f"{name}: {column}={limits!r} must be two limits; use for instance ('2024-01-01', None).")
    low, high = (_limit(limit, name) for limit in limits)
    numbers = numbers_of(items, column)
    return (numbers >= (-np.inf if low is None else low)) & (numbers < (np.inf if high is None else high))


def _limit(limit: Any, name: str) -> float | None:
    """Return a limit as a number: itself, or the seconds since 1970 of a date."""
    if limit is None or isinstance(limit, int | float | np.number):
        return None if limit is None else float(limit)
    seconds = DateReader().fit([limit]).read(limit)
    if np.isnan(seconds):
        raise ValueError(f"{name}: {limit!r} must be a number or a date such as '2024-05-17'.")
    return seconds
