"""What the page needs to draw the map: `/map.json`, and the pictures that belong to it."""

from typing import Any

import numpy as np

from countinggrids import painting, torus
from countinggrids.explore import pictures, views
from countinggrids.explore.atlas import Atlas

REGIONS = (3, 6, 12, 24, 48)
"""Into how many regions along each axis the map is cut for its words; the page writes as many as fit at each zoom."""
N_EACH = (4, 4, 4, 6, 8)
"""Words of each region, by how fine the cut is."""
N_PAINTED = 4
"""Patches that a cell shows from near."""
LEAD = 90
"""Letters of a text that lists show."""


def chart(atlas: Atlas) -> dict[str, Any]:
    """Give all that is drawn at once, in few long lists; features are numbered anew, only those shown are named."""
    found = atlas.telling
    vocabulary = atlas.collection.vocabulary
    words, painted = _words(atlas), _painted(atlas)
    all_shown = [found.features.ravel(), painted.ravel(), np.array([word[0] for word in words], int)]
    shown, numbers = np.unique(np.concatenate(all_shown), return_inverse=True)
    in_cells, in_paint, in_words = np.split(numbers, np.cumsum([part.size for part in all_shown[:2]]))
    return {
        "title": atlas.title,
        "kind": vocabulary.kind,
        "grid": list(atlas.grid),
        "window": list(atlas.window),
        "start": _start(atlas),
        "names": [vocabulary.names[i] for i in shown.tolist()],
        "feature": shown.tolist(),
        "everywhere": _rounded(found.everywhere[shown]),
        "cells": {"n": found.features.shape[1], "name": in_cells.tolist(), "share": _rounded(found.shares.ravel())},
        "painted": {"n": painted.shape[1], "name": in_paint.tolist()},
        "usage": _rounded(atlas.usage.ravel()),
        "words": [[n, *word[1:]] for n, word in zip(in_words.tolist(), words, strict=True)],
        "items": _items(atlas),
        "picture": pictures.has_picture(atlas),
        "patch": pictures.patch_side(atlas),
        "colours": _colours(vocabulary, shown),
        "sheets": pictures.sheet_table(atlas),
    }


def _start(atlas: Atlas) -> list[float]:
    """Give the place to look at first: the one that has the least used lines of cells farthest from it."""
    shift = painting.seam(torus.covering_sum(atlas.usage, atlas.window))
    return [(n / 2 - by) % n for n, by in zip(atlas.grid, shift, strict=True)]


def _words(atlas: Atlas) -> list[list[Any]]:
    """Choose the words written on the map: of broad regions first, then of finer and finer ones."""
    if atlas.collection.vocabulary.kind not in ("words", "labels"):
        return []
    pi, usage = atlas.pi, torus.covering_sum(atlas.usage, atlas.window)
    found: list[list[Any]] = []
    for rank, (parts, n) in enumerate(zip(REGIONS, N_EACH, strict=True)):
        words = painting.words(pi, usage, (parts, parts), n)
        most = max((word.weight for word in words), default=1.0)
        found += [
            [word.feature, round(word.row, 2), round(word.column, 2), float(f"{word.weight / most:.3g}"), rank]
            for word in words
        ]
        if parts >= max(atlas.grid):
            break
    return found


def _painted(atlas: Atlas) -> Any:
    """Choose the features that a cell is painted with when one comes close, (cells, features), most likely first."""
    pi = atlas.pi.reshape(-1, len(atlas.collection.vocabulary))
    n = N_PAINTED if pictures.patch_side(atlas) else 0
    return np.argsort(-pi, axis=1, kind="stable")[:, :n] if n else np.zeros((len(pi), 0), int)


def _items(atlas: Atlas) -> dict[str, Any]:
    items, kept = atlas.collection.items, atlas._kept
    n = len(atlas.collection)
    columns: dict[str, Any] = {
        "n": n,
        "title": [views.title(atlas, i) for i in range(n)],
        "row": atlas.places[:, 0].tolist(),
        "column": atlas.places[:, 1].tolist(),
        "start": kept.indptr.tolist(),
        "cell": kept.indices.tolist(),
        "posterior": _rounded(kept.data),
    }
    for name in ("label", "split", "sequence"):
        if name in items:
            values, which = np.unique(items[name].astype(str), return_inverse=True)
            columns[name] = {"values": values.tolist(), "which": which.tolist()}
    if "text" in items:
        columns["lead"] = [_lead(text) for text in items["text"]]
    if "time" in items:
        columns["time"] = [None if not np.isfinite(value) else round(value, 3) for value in items["time"].tolist()]
    return columns


def _lead(text: str) -> str:
    """Give how a text begins, on one line."""
    words = text[: 3 * LEAD].split()
    line = " ".join(words)
    return line if len(line) <= LEAD else line[:LEAD].rsplit(" ", 1)[0] + " …"


def _colours(vocabulary: Any, shown: Any) -> list[str] | None:
    if vocabulary.colours is None or vocabulary.patches is not None:
        return None
    return ["#" + bytes(colour).hex() for colour in vocabulary.colours[shown].tolist()]


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in np.asarray(values, dtype=float).tolist()]
