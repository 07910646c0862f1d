"""Views of a map as plain data: what the page shows, and what the server and `browse --get` return to programs."""

from math import isfinite
from typing import Any

import numpy as np

from countinggrids.core import relevance
from countinggrids.explore.item_map import ItemMap, Posterior
from countinggrids.explore.queries import positive_text
from countinggrids.features.text import Words
from countinggrids.models.componential import ComponentialGrid

MOST_ITEMS = 60
"""Items listed for a window, or found by a search."""
N_NEIGHBORS = 12
LEAST_POSTERIOR = 0.01
"""Items with less posterior around a window are not listed there."""
MOST_CELLS = 400
"""Cells of the posterior of a new bag that are listed."""
N_FEATURES = 10
"""Features listed for an item."""

VIEWS = (
    "/map.json",
    "/regions.json",
    "/region/ID.json",
    "/cell/ROW/COLUMN.json",
    "/item/NUMBER.json",
    "/search.json?q=WORDS",
    "/selection.json?items=GROUP",
    "/compare.json?a=GROUP&b=GROUP",
    "/means.json?column=NAME",
)
"""Addresses of the JSON views; a GROUP is COLUMN:VALUE, region:ID, time:FROM..TO or items:1,2,3."""

View = dict[str, Any]


def index(item_map: ItemMap) -> View:
    """Return what the collection and the grid are: `/index.json`."""
    items = item_map.collection.items
    return {
        "title": item_map.title,
        "items": len(item_map.collection),
        "kind": item_map.collection.vocabulary.kind,
        "features": len(item_map.collection.vocabulary),
        "grid": list(item_map.grid),
        "window": list(item_map.window),
        "capacity": round(item_map.model.capacity, 3),
        "columns": list(items.columns),
        "labels": _counts_of(items["label"]) if "label" in items else {},
        "views": list(VIEWS),
    }


def cell(item_map: ItemMap, row: int, column: int, radius: int = 1) -> View:
    """Return what a window holds, and which items lie there: `/cell/ROW/COLUMN.json`.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    row : int
        Row of the first cell of the window, as in `locate`.
    column : int
        Column of the first cell of the window.
    radius : int, default=1
        Cells around it whose items are listed too.

    Returns
    -------
    view : dict
        Distinctive features, and items by decreasing posterior.
    """
    check_range("row", row, item_map.grid[0])
    check_range("column", column, item_map.grid[1])
    offsets = range(-radius, radius + 1)
    n_rows, n_columns = item_map.grid
    near = [(row + i) % n_rows * n_columns + (column + j) % n_columns for i in offsets for j in offsets]
    posterior = np.asarray(item_map.by_cell[:, np.unique(near)].sum(axis=1)).ravel()
    found = np.flatnonzero(posterior >= LEAST_POSTERIOR)
    found = found[np.argsort(-posterior[found], kind="stable")]
    return {
        "cell": [row, column],
        "window": list(item_map.window),
        "usage": round(float(item_map.usage[row, column]), 4),
        "features": distinctive_features(item_map, row * n_columns + column),
        "n_items": len(found),
        "items": [
            summary(item_map, i) | {"posterior": round(float(posterior[i]), 4)} for i in found[:MOST_ITEMS].tolist()
        ],
    }


def item(item_map: ItemMap, number: int) -> View:
    """Return all that is known of an item, where it lies, and its neighbors: `/item/NUMBER.json`."""
    check_range("item", number, len(item_map.collection))
    known = {
        name: value
        for name, value in item_map.collection.items.row(number).items()
        if value != "" and not (isinstance(value, float) and not isfinite(value))
    }
    return summary(item_map, number) | {
        "known": known,
        "posterior": listed(item_map, item_map.posterior(number)),
        "word_places": word_places(item_map, number),
        "features": _features_of_item(item_map, number),
        "neighbors": [summary(item_map, i) | {"distance": far} for i, far in neighbors(item_map, number)],
    }


def search(item_map: ItemMap, query: str, lists_all: bool = False) -> View:
    """Return the items that contain a query, and where it would lie as a text: `/search.json?q=`.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    query : str
        Words, "phrases", -exclusions and prefixes*, as in `TextSearch.find`.
    lists_all : bool, default=False
        Whether the numbers of all items that were found are returned too, as `all`.

    Returns
    -------
    view : dict
        `found` are the items with the words, best first; `posterior` and `items` are where the words would lie.
    """
    hits = item_map.text_search.find(query)
    found: View = {
        "query": query,
        "n_found": len(hits.items),
        "n_with_all": hits.n_all,
        "found": [
            summary(item_map, i) | {"score": round(score, 4), "snippet": item_map.text_search.snippet(i, query)}
            for i, score in zip(hits.items[:MOST_ITEMS].tolist(), hits.scores.tolist(), strict=False)
        ],
        "posterior": [],
        "items": [],
    }
    if lists_all:
        found["all"] = hits.items.tolist()
    if not is_text(item_map):
        return found
    counts = count_words(item_map, positive_text(query))
    names = item_map.collection.vocabulary.names
    found["words"] = [names[i] for i in counts.indices.tolist()]
    return found | _located(item_map, counts) if counts.nnz else found


def snippets(item_map: ItemMap, query: str, items: list[int]) -> View:
    """Return the part of each text where a query is found: `/snippets.json?q=&items=`."""
    for item in items:
        check_range("items", item, len(item_map.collection))
    return {"snippets": {str(item): item_map.text_search.snippet(item, query) for item in items}}


def locate(item_map: ItemMap, source: Any) -> View:
    """Return where a new image or text would lie: `/locate.json`.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    source : str or ndarray of shape (n_rows, n_columns, 3)
        A text, or the pixels of an image.

    Returns
    -------
    view : dict
        Posterior, and the items that lie there.

    Raises
    ------
    ValueError
        If it has no feature of the map.
    """
    counts = count_words(item_map, source) if is_text(item_map) else item_map.collection.bag([source])
    if not counts.nnz:
        raise ValueError("none of its features is known; expected at least one that the map has; try another.")
    return _located(item_map, counts)


def word_places(item_map: ItemMap, number: int) -> View:
    """Return the window of each word of an item, where the model has one for each; otherwise nothing."""
    if not has_word_places(item_map):
        return {}
    names = item_map.collection.vocabulary.names
    cells = item_map.model.assign(item_map.collection.counts[[number]])
    rows, columns = np.unravel_index(cells.data - 1, item_map.grid)
    words = [names[i % len(names)] for i in cells.indices.tolist()]
    return {word: [row, column] for word, row, column in zip(words, rows.tolist(), columns.tolist(), strict=True)}


def has_word_places(item_map: ItemMap) -> bool:
    """Return whether the model has a window for each word of an item."""
    return is_text(item_map) and isinstance(item_map.model, ComponentialGrid)


def summary(item_map: ItemMap, number: int) -> View:
    """Return the number, title, place and labels of an item."""
    row, column = item_map.places[number].tolist()
    items = item_map.collection.items
    extra = {name: items.columns[name][number] for name in ("label", "split", "sequence") if name in items}
    return {"item": number, "title": title(item_map, number), "place": [row, column]} | extra


def title(item_map: ItemMap, number: int) -> str:
    """Return the title of an item, or else its path, or its number."""
    items = item_map.collection.items
    for name in ("title", "path"):
        if name in items and items.columns[name][number]:
            return str(items.columns[name][number])
    return f"item {number}"


def distinctive_features(item_map: ItemMap, flat: int) -> list[View]:
    """Return the distinctive features of a window, with their frequencies there and on the whole grid."""
    names, found = item_map.collection.vocabulary.names, item_map.distinctive
    return [
        {
            "name": names[feature],
            "feature": feature,
            "frequency": _rounded(frequency),
            "everywhere": _rounded(found.everywhere[feature]),
        }
        for feature, frequency in zip(found.features[flat].tolist(), found.frequencies[flat].tolist(), strict=True)
    ]


def neighbors(item_map: ItemMap, number: int) -> list[tuple[int, float]]:
    """Return the items nearest on the torus, with their distances."""
    distance = distances(item_map, item_map.places[number])
    order = np.argsort(distance, kind="stable")
    return [(i, float(distance[i])) for i in order[: N_NEIGHBORS + 1].tolist() if i != number][:N_NEIGHBORS]


def distances(item_map: ItemMap, place: Any) -> Any:
    """Compute the distance of every item from a place, on the torus, in cells."""
    away = np.abs(item_map.places - np.asarray(place)) % item_map.grid
    away = np.minimum(away, np.array(item_map.grid) - away)
    return np.round(np.hypot(away[:, 0], away[:, 1]), 3)


def listed(item_map: ItemMap, posterior: Posterior) -> list[list[float]]:
    """Return the cells of a posterior as rows, columns and probabilities."""
    rows, columns = np.unravel_index(posterior.cells, item_map.grid)
    probabilities = posterior.probabilities.round(5).tolist()
    return [list(each) for each in zip(rows.tolist(), columns.tolist(), probabilities, strict=True)]


def is_text(item_map: ItemMap) -> bool:
    """Return whether the features are words."""
    return item_map.collection.vocabulary.kind == "words"


def count_words(item_map: ItemMap, text: str) -> Any:
    """Count the known words of a text; a collection without an extractor takes any run of letters."""
    if item_map.collection.steps:
        return item_map.collection.bag([text])
    return Words.of_names(item_map.collection.vocabulary.names).transform([text])


def _located(item_map: ItemMap, counts: Any) -> View:
    """Return the posterior of a new bag, and the items that lie there."""
    q = item_map.locate(counts).ravel()
    cells = np.argsort(-q, kind="stable")[:MOST_CELLS]
    cells = cells[q[cells] > 1e-4]
    place = np.array(np.unravel_index(cells[0], item_map.grid)) + item_map.middle
    # Items in the same windows as the bag come first, then the nearest ones; float32 has six digits.
    order = np.lexsort((distances(item_map, place), -np.round(item_map.by_cell @ q, 5)))[:MOST_ITEMS]
    return {
        "posterior": listed(item_map, Posterior(cells, q[cells])),
        "items": [summary(item_map, i) for i in order.tolist()],
    }


def _features_of_item(item_map: ItemMap, number: int) -> list[View]:
    """Return the features that distinguish an item from the whole grid."""
    vocabulary = item_map.collection.vocabulary
    row = item_map.collection.counts[[number]]
    total = np.bincount(row.indices % len(vocabulary), row.data, minlength=len(vocabulary))
    frequencies = total / max(total.sum(), 1e-12)
    scores = relevance.relevance(frequencies, item_map.distinctive.everywhere)
    best = np.argsort(-scores, kind="stable")[:N_FEATURES]
    return [
        {"name": vocabulary.names[i], "feature": i, "count": float(total[i]), "frequency": _rounded(frequencies[i])}
        for i in best.tolist()
        if total[i] > 0
    ]


def _counts_of(labels: Any) -> dict[str, int]:
    names, counts = np.unique(labels.astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def check_range(name: str, number: int, n: int) -> None:
    """Raise LookupError unless a number is from 0 to n - 1."""
    if not 0 <= number < n:
        raise LookupError(f"{name}={number} must be from 0 to {n - 1}.")
