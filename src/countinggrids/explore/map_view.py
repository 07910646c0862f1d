"""The data from which the page draws the map: `/map.json`."""

from typing import Any

import numpy as np

from countinggrids.core import torus
from countinggrids.explore import column_values, pictures, region_view, views
from countinggrids.explore.item_map import ItemMap
from countinggrids.meta.region_names import is_telling
from countinggrids.plot import painting

REGIONS = (3, 6, 12, 24, 48)
"""Regions along each axis for which words are chosen, coarse to fine; the page shows as many as fit at each zoom."""
N_WORDS = (4, 4, 4, 6, 8)
"""Words of each region, coarse to fine."""
N_PATCHES = 4
"""Patches that a cell shows when zoomed in."""
LEAD = 90
"""Characters of a text that lists show."""


def map_view(item_map: ItemMap) -> dict[str, Any]:
    """Return all that the page draws, in few long lists; features are renumbered, and only those shown are named."""
    found = item_map.distinctive
    vocabulary = item_map.collection.vocabulary
    words, patches = _words(item_map), _patches(item_map)
    all_shown = [found.features.ravel(), patches.ravel(), np.array([word[0] for word in words], int)]
    shown, numbers = np.unique(np.concatenate(all_shown), return_inverse=True)
    in_cells, in_patches, in_words = np.split(numbers, np.cumsum([part.size for part in all_shown[:2]]))
    return (
        {
            "title": item_map.title,
            "kind": vocabulary.kind,
            "grid": list(item_map.grid),
            "window": list(item_map.window),
            "start": _start(item_map),
            "names": [vocabulary.names[i] for i in shown.tolist()],
            "feature": shown.tolist(),
            "everywhere": _rounded(found.everywhere[shown]),
            "cells": {
                "n": found.features.shape[1],
                "name": in_cells.tolist(),
                "frequency": _rounded(found.frequencies.ravel()),
            },
            "painted": {"n": patches.shape[1], "name": in_patches.tolist()},
            "usage": _rounded(item_map.usage.ravel()),
            "words": [[n, *word[1:]] for n, word in zip(in_words.tolist(), words, strict=True)],
            "items": _items(item_map),
            "regions": region_view.of_map(item_map),
        }
        | column_values.of_map(item_map)
        | {
            "picture": pictures.has_picture(item_map),
            "patch": pictures.patch_side(item_map),
            "colors": _colors(vocabulary, shown),
            "sheets": pictures.sheet_table(item_map),
        }
    )


def _start(item_map: ItemMap) -> list[float]:
    """Return the place to show first: that farthest from the least used lines of cells."""
    shift = painting.seam(torus.covering_sum(item_map.usage, item_map.window))
    return [(n / 2 - by) % n for n, by in zip(item_map.grid, shift, strict=True)]


def _words(item_map: ItemMap) -> list[list[Any]]:
    """Choose the words of the map: those of coarse regions first, then of finer ones."""
    if item_map.collection.vocabulary.kind not in ("words", "labels"):
        return []
    features = _telling_features(item_map)
    pi, usage = item_map.pi[..., features], torus.covering_sum(item_map.usage, item_map.window)
    found: list[list[Any]] = []
    for rank, (parts, n) in enumerate(zip(REGIONS, N_WORDS, strict=True)):
        words = painting.words(pi, usage, (parts, parts), n)
        most = max((word.weight for word in words), default=1.0)
        found += [
            [
                int(features[word.feature]),
                round(word.row, 2),
                round(word.column, 2),
                float(f"{word.weight / most:.3g}"),
                rank,
            ]
            for word in words
        ]
        if parts >= max(item_map.grid):
            break
    return found


def _telling_features(item_map: ItemMap) -> Any:
    """Return the features that may be written on the map; all of them if none says anything."""
    vocabulary = item_map.collection.vocabulary
    found = [i for i, name in enumerate(vocabulary.names) if vocabulary.kind == "labels" or is_telling(name)]
    return np.array(found or range(len(vocabulary)))


def _patches(item_map: ItemMap) -> Any:
    """Choose the patches that a cell shows when zoomed in, (n_cells, n_patches), most likely first."""
    pi = item_map.pi.reshape(-1, len(item_map.collection.vocabulary))
    n = N_PATCHES if pictures.patch_side(item_map) else 0
    return np.argsort(-pi, axis=1, kind="stable")[:, :n] if n else np.zeros((len(pi), 0), int)


def _items(item_map: ItemMap) -> dict[str, Any]:
    items, kept = item_map.collection.items, item_map.posteriors
    n = len(item_map.collection)
    columns: dict[str, Any] = {
        "n": n,
        "title": [views.title(item_map, i) for i in range(n)],
        "row": item_map.places[:, 0].tolist(),
        "column": item_map.places[:, 1].tolist(),
        "start": kept.indptr.tolist(),
        "cell": kept.indices.tolist(),
        "posterior": _rounded(kept.data),
    }
    for name in ("label", "split", "sequence"):
        if name in items:
            values, which = np.unique(items[name].astype(str), return_inverse=True)
            columns[name] = {"values": values.tolist(), "which": which.tolist()}
    columns["columns"] = column_values.categories(items)
    if "text" in items:
        columns["lead"] = [_lead(text) for text in items["text"]]
    if "time" in items:
        columns["time"] = [None if not np.isfinite(value) else round(value, 3) for value in items["time"].tolist()]
    return columns


def _lead(text: str) -> str:
    """Return the beginning of a text, on one line."""
    words = text[: 3 * LEAD].split()
    line = " ".join(words)
    return line if len(line) <= LEAD else line[:LEAD].rsplit(" ", 1)[0] + " …"


def _colors(vocabulary: Any, shown: Any) -> list[str] | None:
    if vocabulary.colors is None or vocabulary.patches is not None:
        return None
    return ["#" + bytes(color).hex() for color in vocabulary.colors[shown].tolist()]


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in np.asarray(values, dtype=float).tolist()]
