"""Groups of items as plain data: what distinguishes a selection, and two groups from each other."""

import re
from math import isnan
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core.log_odds import log_odds
from countinggrids.explore import views
from countinggrids.explore.item_map import ItemMap
from countinggrids.meta import comparison
from countinggrids.meta.selections import Mask, select

N_WORDS = 16
"""Features listed for a selection."""
N_COMPARED = 40
"""Features listed on each side of a comparison."""
LEAST_Z = 1e-9
"""Smaller z-scores are rounding errors."""
N_REPRESENTATIVES = 8
N_PERMUTATIONS, MOST_PERMUTATIONS = 200, 2000

View = dict[str, Any]


def rows_of(item_map: ItemMap, group: Any, name: str = "items") -> Mask:
    """Return the items of a group as a mask.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    group : str or sequence of int
        `region:ID`, `items:1,2,3`, `time:FROM..TO` (dates or seconds, the second not included; either may be empty),
        `COLUMN:VALUE` such as `label:sport`, or numbers of items.
    name : str, default="items"
        Name of the argument in errors.

    Returns
    -------
    mask : ndarray of bool of shape (n_items,)
        Whether each item is in the group.

    Raises
    ------
    ValueError
        If it makes no sense, or no item is in it.
    """
    if not isinstance(group, str):
        return select(item_map.collection, _numbers(group, len(item_map.collection), name), name)
    kind, is_kind, value = group.partition(":")
    if not is_kind:
        raise ValueError(f"{name}={group[:80]!r} must be COLUMN:VALUE, region:ID, time:FROM..TO or items:1,2,3.")
    if kind == "region":
        return _of_region(item_map, value, name)
    if kind == "items":
        return rows_of(item_map, [part.strip() for part in value.split(",") if part.strip()], name)
    if kind == "time":
        first, is_range, last = value.partition("..")
        if not is_range:
            raise ValueError(
                f"{name}={group[:80]!r} must have two limits; use for instance time:2024-01-01..2024-07-01."
            )
        return select(item_map.collection, {"time": (_limit(first), _limit(last))}, name)
    return select(item_map.collection, {kind: value}, name)


def selection(item_map: ItemMap, group: Any) -> View:
    """Return what distinguishes some items from all others: `/selection.json`.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    group : str or sequence of int
        The items, as in `rows_of`.

    Returns
    -------
    view : dict
        `words` with z-scores of their log-odds, `labels` with fractions, `representatives`, and the numbers of `items`.
    """
    is_inside = rows_of(item_map, group)
    counts = item_map.feature_counts
    everywhere = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    inside = np.asarray(counts[is_inside].sum(axis=0), dtype=np.float64).ravel()
    odds, z = log_odds(inside, everywhere - inside, comparison.PRIOR * everywhere)
    top = [i for i in np.argsort(-z, kind="stable")[:N_WORDS].tolist() if z[i] > 0]
    names = item_map.collection.vocabulary.names
    return {
        "n_items": int(is_inside.sum()),
        "words": [
            {
                "word": names[i],
                "feature": i,
                "z": round(float(z[i]), 4),
                "log_odds": round(float(odds[i]), 4),
                "count": float(inside[i]),
            }
            for i in top
        ],
        "labels": _labels(item_map, is_inside),
        "representatives": [views.summary(item_map, i) for i in _representatives(counts, is_inside, z, top)],
        "items": np.flatnonzero(is_inside).tolist(),
    }


def compare(item_map: ItemMap, a: Any, b: Any = None, n_permutations: int = N_PERMUTATIONS) -> View:
    """Return the words and the regions that distinguish two groups: `/compare.json`.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    a, b : str or sequence of int
        The groups, as in `rows_of`; b=None, or "rest", is all other items.
    n_permutations : int, default=200
        Random assignments of the test.

    Returns
    -------
    view : dict
        `over` and `under`, the words that a uses more and less, and `regions`; see `cg.compare`.
    """
    if not 0 <= n_permutations <= MOST_PERMUTATIONS:
        raise ValueError(f"permutations={n_permutations} must be from 0 to {MOST_PERMUTATIONS}; use for instance 200.")
    in_a = rows_of(item_map, a, "a")
    in_b = None if b is None or b == "rest" else rows_of(item_map, b, "b")
    try:
        found = comparison.compare(
            item_map.model,
            item_map.collection,
            in_a,
            in_b,
            regions=item_map.regions,
            n_permutations=n_permutations,
        )
    except ValueError as error:
        raise ValueError(_readable(str(error))) from error
    numbers = {name: number for number, name in enumerate(item_map.collection.vocabulary.names)}
    words = [_plain(row) | {"feature": numbers[row["word"]]} for row in found.words]
    return {
        "n_a": found.n_a,
        "n_b": found.n_b,
        "n_permutations": n_permutations,
        "n_significant": sum(row["is_significant"] for row in words),
        "over": [row for row in words[:N_COMPARED] if row["z"] > LEAST_Z],
        "under": [row for row in words[: -N_COMPARED - 1 : -1] if row["z"] < -LEAST_Z],
        "regions": [_plain(row) for row in found.regions],
    }


def means(item_map: ItemMap, column: str) -> View:
    """Return the mean of a column of numbers in each region, with its 95% confidence interval: `/means.json`."""
    found = comparison.region_means(item_map.model, item_map.collection, column, regions=item_map.regions)
    return {"column": column, "regions": [_plain(row) for row in found]}


def _numbers(group: Any, n: int, name: str) -> list[int]:
    try:
        numbers = [int(number) for number in group]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a text or a list of numbers of items, from 0 to {n - 1}.") from None
    wrong = [number for number in numbers if not 0 <= number < n]
    if wrong or not numbers:
        raise ValueError(f"{name} holds {wrong[0] if wrong else 'nothing'}; expected numbers of items, 0 to {n - 1}.")
    return sorted(set(numbers))


def _of_region(item_map: ItemMap, value: str, name: str) -> Mask:
    found = item_map.regions
    if not re.fullmatch(r"\d{1,6}", value, re.ASCII) or int(value) >= len(found.regions):
        raise ValueError(f"{name}=region:{value[:20]} does not exist; expected 0 to {len(found.regions) - 1}.")
    return select(item_map.collection, found.items[found.regions[int(value)].level] == int(value), name)


def _limit(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text.strip() or None


def _readable(message: str) -> str:
    """Return a message without the masks that it repeats."""
    return re.sub(r"array\(.*?\)", "the group", message, flags=re.DOTALL)


def _labels(item_map: ItemMap, is_inside: Mask) -> dict[str, float]:
    if "label" not in item_map.collection.items:
        return {}
    names, counts = np.unique(item_map.collection.items["label"][is_inside].astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(names[k]): round(float(counts[k] / counts.sum()), 4) for k in order}


def _representatives(counts: sp.csr_array, is_inside: Mask, z: NDArray[np.float64], top: list[int]) -> list[int]:
    """Return items with many of the distinctive features for their length."""
    rows = np.flatnonzero(is_inside)
    weights = np.zeros(counts.shape[1])
    weights[top] = z[top]
    presence = sp.csr_array((counts[rows] > 0).astype(np.float64))
    score = (presence @ weights) / np.sqrt(np.maximum(np.diff(presence.indptr), 1))
    return rows[np.argsort(-np.round(score, 9), kind="stable")[:N_REPRESENTATIVES]].tolist()


def _plain(row: dict[str, Any]) -> View:
    """Return a row without NaN, which JSON has not."""
    return {name: None if isinstance(value, float) and isnan(value) else value for name, value in row.items()}
