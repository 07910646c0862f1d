"""Views of an atlas as plain data: what the page draws, and what `--get` and the server give to programs."""

from math import isfinite
from typing import Any

import numpy as np

from countinggrids.explore.atlas import Atlas, Posterior
from countinggrids.features.text import Words

MOST_ITEMS = 60
"""Items listed for a window, or found by a search."""
N_NEIGHBOURS = 12
LEAST_SHARE = 0.01
"""Items with less posterior around a window are not listed there."""
N_LIT = 400
"""Cells of a search's posterior that are told."""

View = dict[str, Any]


def whole(atlas: Atlas) -> View:
    """Tell what the collection and the grid are: `/index.json`."""
    items = atlas.collection.items
    return {
        "title": atlas.title,
        "items": len(atlas.collection),
        "kind": atlas.collection.vocabulary.kind,
        "features": len(atlas.collection.vocabulary),
        "grid": list(atlas.grid),
        "window": list(atlas.window),
        "capacity": round(atlas.model.capacity, 3),
        "columns": list(items.columns),
        "labels": _counted(items["label"]) if "label" in items else {},
        "views": ["/map.json", "/cell/ROW/COLUMN.json", "/item/NUMBER.json", "/search.json?q=WORDS"],
    }


def cell(atlas: Atlas, row: int, column: int, radius: int = 1) -> View:
    """Tell what a window holds, and which items lie there: `/cell/ROW/COLUMN.json`.

    Parameters
    ----------
    atlas : the atlas
    row, column : the window's first cell, as `locate` gives it
    radius : how many cells around count as there
    """
    _within("row", row, atlas.grid[0])
    _within("column", column, atlas.grid[1])
    near = [
        ((row + i) % atlas.grid[0]) * atlas.grid[1] + (column + j) % atlas.grid[1]
        for i in range(-radius, radius + 1)
        for j in range(-radius, radius + 1)
    ]
    shares = np.asarray(atlas.by_cell[:, np.unique(near)].sum(axis=1)).ravel()
    found = np.flatnonzero(shares >= LEAST_SHARE)
    found = found[np.argsort(-shares[found], kind="stable")]
    return {
        "cell": [row, column],
        "window": list(atlas.window),
        "usage": round(float(atlas.usage[row, column]), 4),
        "features": telling(atlas, row * atlas.grid[1] + column),
        "n_items": len(found),
        "items": [brief(atlas, i) | {"posterior": round(float(shares[i]), 4)} for i in found[:MOST_ITEMS].tolist()],
    }


def item(atlas: Atlas, number: int) -> View:
    """Tell all that is known of an item, where it lies, and what lies beside it: `/item/NUMBER.json`."""
    _within("item", number, len(atlas.collection))
    known = {
        name: value
        for name, value in atlas.collection.items.row(number).items()
        if value != "" and not (isinstance(value, float) and not isfinite(value))
    }
    found = atlas.posterior(number)
    return (
        brief(atlas, number)
        | {"known": known, "posterior": lit(atlas, found), "features": _own_features(atlas, number)}
        | {"neighbours": [brief(atlas, i) | {"distance": d} for i, d in neighbours(atlas, number)]}
    )


def search(atlas: Atlas, query: str) -> View:
    """Tell where a text would fall, and which items have it in their title, label or file name: `/search.json?q=`."""
    wanted = query.strip().casefold()
    named = [i for i, names in enumerate(atlas.names) if wanted and wanted in names]
    listed = [brief(atlas, i) for i in named[:MOST_ITEMS]]
    found: View = {"query": query, "named": listed, "n_named": len(named), "posterior": [], "items": []}
    if not is_text(atlas):
        return found
    counts = counted(atlas, query)
    names = atlas.collection.vocabulary.names
    found["words"] = [names[i] for i in counts.indices.tolist()]
    return found | _fallen(atlas, counts) if counts.nnz else found


def dropped(atlas: Atlas, source: Any) -> View:
    """Tell where a new image (pixels) or text would fall; or raise if nothing in it is known: `/locate.json`."""
    counts = counted(atlas, source) if is_text(atlas) else atlas.collection.bag([source])
    if not counts.nnz:
        raise ValueError("none of the features is known here; wanted at least one that the map has; try another")
    return _fallen(atlas, counts)


def brief(atlas: Atlas, number: int) -> View:
    """Tell an item in few words."""
    row, column = atlas.places[number].tolist()
    items = atlas.collection.items
    extra = {name: items.columns[name][number] for name in ("label", "split", "sequence") if name in items}
    return {"item": number, "title": title(atlas, number), "place": [row, column]} | extra


def title(atlas: Atlas, number: int) -> str:
    """Give an item's title, or its file, or its number."""
    items = atlas.collection.items
    for name in ("title", "path"):
        if name in items and items.columns[name][number]:
            return str(items.columns[name][number])
    return f"item {number}"


def telling(atlas: Atlas, flat: int) -> list[View]:
    """List the telling features of a window, with how often they occur there and on the whole grid."""
    names, found = atlas.collection.vocabulary.names, atlas.telling
    return [
        {
            "name": names[feature],
            "feature": feature,
            "share": _four(share),
            "everywhere": _four(found.everywhere[feature]),
        }
        for feature, share in zip(found.features[flat].tolist(), found.shares[flat].tolist(), strict=True)
    ]


def neighbours(atlas: Atlas, number: int) -> list[tuple[int, float]]:
    """Give the items nearest on the torus and how far they are."""
    distance = distances(atlas, atlas.places[number])
    order = np.argsort(distance, kind="stable")
    return [(i, float(distance[i])) for i in order[: N_NEIGHBOURS + 1].tolist() if i != number][:N_NEIGHBOURS]


def distances(atlas: Atlas, place: Any) -> Any:
    """Give how far every item lies from a place, on the torus, in cells."""
    away = np.abs(atlas.places - np.asarray(place)) % atlas.grid
    away = np.minimum(away, np.array(atlas.grid) - away)
    return np.round(np.hypot(away[:, 0], away[:, 1]), 3)


def lit(atlas: Atlas, found: Posterior) -> list[list[float]]:
    """List the cells of a posterior as row, column and share."""
    rows, columns = np.unravel_index(found.cells, atlas.grid)
    return [
        [*each[:2], round(each[2], 5)]
        for each in zip(rows.tolist(), columns.tolist(), found.shares.tolist(), strict=True)
    ]


def _fallen(atlas: Atlas, counts: Any) -> View:
    """Tell where a bag falls, and which items lie there."""
    q = atlas.locate(counts).ravel()
    cells = np.argsort(-q, kind="stable")[:N_LIT]
    cells = cells[q[cells] > 1e-4]
    place = np.array(np.unravel_index(cells[0], atlas.grid)) + atlas.middle
    # Items that share windows with the bag come first, and after them those that lie nearest; float32 has six digits.
    order = np.lexsort((distances(atlas, place), -np.round(atlas.by_cell @ q, 5)))[:MOST_ITEMS]
    return {
        "posterior": lit(atlas, Posterior(cells, q[cells])),
        "items": [brief(atlas, i) for i in order.tolist()],
    }


def _own_features(atlas: Atlas, number: int, n: int = 10) -> list[View]:
    """List the features of an item that stand out against the whole grid."""
    vocabulary = atlas.collection.vocabulary
    row = atlas.collection.counts[[number]]
    total = np.bincount(row.indices % len(vocabulary), row.data, minlength=len(vocabulary))
    shares = total / max(total.sum(), 1e-12)
    score = shares * np.log((shares + 1e-12) / atlas.telling.everywhere)
    best = np.argsort(-score, kind="stable")[:n]
    return [
        {"name": vocabulary.names[i], "feature": i, "count": float(total[i]), "share": _four(shares[i])}
        for i in best.tolist()
        if total[i] > 0
    ]


def is_text(atlas: Atlas) -> bool:
    """Tell whether the features are words."""
    return atlas.collection.vocabulary.kind == "words"


def counted(atlas: Atlas, text: str) -> Any:
    """Count the known words of a text; a collection of bare counts does not say how, and takes any run of letters."""
    if atlas.collection.steps:
        return atlas.collection.bag([text])
    words = Words()
    words.names_ = list(atlas.collection.vocabulary.names)
    return words.transform([text])


def _counted(labels: Any) -> dict[str, int]:
    names, counts = np.unique(labels.astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _four(value: float) -> float:
    return float(f"{value:.4g}")


def _within(what: str, number: int, n: int) -> None:
    if not 0 <= number < n:
        raise LookupError(f"{what} is {number}; wanted 0 to {n - 1}")
