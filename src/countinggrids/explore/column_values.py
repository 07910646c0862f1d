"""Columns of a table of items that the page colors and compares by: few values, or numbers."""

from typing import Any

import numpy as np

from countinggrids.data.items import Items
from countinggrids.explore import groups
from countinggrids.explore.item_map import ItemMap
from countinggrids.meta.selections import numbers_of

KNOWN = {*("path", "title", "link", "label", "split", "sequence", "text"), *("time", "row", "rows", "columns")}
"""Columns that the page shows in other ways."""
SIZES = frozenset({"height", "width"})
MOST_VALUES, MOST_COLUMNS = 60, 8


def categories(items: Items) -> dict[str, Any]:
    """Return other columns with few values, as distinct values and an index for each item."""
    found: dict[str, Any] = {}
    for name in _others(items):
        values, which = np.unique(items[name].astype(str), return_inverse=True)
        if 1 < len(values) <= min(MOST_VALUES, len(items) // 2) and not _numbers(items, name):
            found[name] = {"values": values.tolist(), "which": which.tolist()}
        if len(found) == MOST_COLUMNS:
            break
    return found


def of_map(item_map: ItemMap) -> dict[str, Any]:
    """Return columns of numbers, and their means by region as number, mean and confidence interval."""
    items = item_map.collection.items
    numbers = {name: values for name in _others(items) if (values := _numbers(items, name))}
    names = list(numbers)[:MOST_COLUMNS]
    return {
        "numbers": {name: numbers[name] for name in names},
        "means": {name: _means(item_map, name) for name in names},
    }


def _others(items: Items) -> list[str]:
    return [name for name in items.columns if name not in KNOWN | SIZES]


def _numbers(items: Items, name: str) -> list[float | None]:
    """Return a column as numbers, None where it is empty; an empty list if it holds others, or only one number."""
    try:
        numbers = numbers_of(items, name)
    except ValueError:
        return []
    known = numbers[np.isfinite(numbers)]
    if len(np.unique(known)) < 2:
        return []
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in numbers.tolist()]


def _means(item_map: ItemMap, name: str) -> list[list[float | None]]:
    rows = groups.means(item_map, name)["regions"]
    return [[row["n"], *(_rounded(row[part]) for part in ("mean", "low", "high"))] for row in rows]


def _rounded(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")
