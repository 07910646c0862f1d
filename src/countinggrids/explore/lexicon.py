"""Words and where on the grid they are at home, small enough to travel inside a page that has no server."""

from typing import Any

import numpy as np

from countinggrids.explore.atlas import Atlas

MOST_BYTES = 4_000_000
STEP = 0.06
"""Steps in which log-probabilities are kept: a byte spans from -7.7 to 7.6 around a word's mean."""


def lexicon(atlas: Atlas, most_bytes: int = MOST_BYTES) -> tuple[dict[str, Any], bytes]:
    """Give, for the most frequent words, log h over a lattice of windows.

    Histograms of windows are smooth: every cell for small windows, every second or third for larger ones, is enough.

    Returns
    -------
    facts : the words, the lattice and the log prior on it
    levels : a byte for each word and place of the lattice, words one after the other
    """
    rows, columns = (np.arange(0, n, max(1, w // 4)) for n, w in zip(atlas.grid, atlas.window, strict=True))
    places = (rows[:, None] * atlas.grid[1] + columns).ravel()
    totals = np.asarray(atlas.collection.counts.sum(axis=0)).ravel()
    n_words = min(len(totals), max(1, most_bytes // len(places)))
    chosen = np.sort(np.argsort(-totals, kind="stable")[:n_words])
    levels = np.empty((n_words, len(places)), np.uint8)
    for first, h in atlas.histograms():
        inside = (chosen >= first) & (chosen < first + len(h))
        # A bag's posterior does not change when a word's log-probabilities all move by the same amount.
        logs = np.log(h[chosen[inside] - first][:, places] + 1e-30)
        levels[inside] = np.clip(np.round((logs - logs.mean(axis=1, keepdims=True)) / STEP) + 128, 0, 255)
    log_prior = atlas.model.log_prior_.reshape(atlas.grid)[np.ix_(rows, columns)].ravel()
    facts = {
        "names": [atlas.collection.vocabulary.names[i] for i in chosen.tolist()],
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "step": STEP * atlas.model._beta(),
        "log_prior": [round(max(float(value), -60.0), 3) for value in log_prior],
        "n_left_out": len(totals) - n_words,
    }
    return facts, levels.tobytes()
