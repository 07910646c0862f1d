"""An index of words for searches in an exported page: log h of each word over a lattice of windows, a byte each."""

from typing import Any

import numpy as np

from countinggrids.explore.item_map import ItemMap
from countinggrids.features.text import Words

MOST_BYTES = 4_000_000
STEP = 0.06
"""Quantization step of log h: a byte spans from -7.7 to 7.6 around the mean of a word."""


def word_index(item_map: ItemMap, most_bytes: int = MOST_BYTES) -> tuple[dict[str, Any], bytes]:
    """Return log h of the most frequent words over a lattice of windows.

    Histograms of windows are smooth, so that every cell for small windows, and every second or third for larger ones,
    is enough.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    most_bytes : int, default=4_000_000
        Largest size of `levels`; rarer words are left out.

    Returns
    -------
    facts : dict
        The words, how a query is tokenized, the lattice, and the log prior on it.
    levels : bytes
        Quantized log h of each place of the lattice, word after word.
    """
    rows, columns = (np.arange(0, n, max(1, w // 4)) for n, w in zip(item_map.grid, item_map.window, strict=True))
    places = (rows[:, None] * item_map.grid[1] + columns).ravel()
    totals = np.asarray(item_map.collection.counts.sum(axis=0)).ravel()
    n_words = min(len(totals), max(1, most_bytes // len(places)))
    chosen = np.sort(np.argsort(-totals, kind="stable")[:n_words])
    levels = np.empty((n_words, len(places)), np.uint8)
    for first, h in item_map.histograms():
        inside = (chosen >= first) & (chosen < first + len(h))
        # Adding the same number to all of a word's log-probabilities leaves posteriors unchanged.
        logs = np.log(h[chosen[inside] - first][:, places] + 1e-30)
        levels[inside] = np.clip(np.round((logs - logs.mean(axis=1, keepdims=True)) / STEP) + 128, 0, 255)
    log_prior = item_map.model.log_prior_.reshape(item_map.grid)[np.ix_(rows, columns)].ravel()
    facts = {
        "names": [item_map.collection.vocabulary.names[i] for i in chosen.tolist()],
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "step": STEP * item_map.model.inverse_temperature_,
        "log_prior": [round(max(float(value), -60.0), 3) for value in log_prior],
        "n_left_out": len(totals) - n_words,
    } | _tokenization(item_map)
    return facts, levels.tobytes()


def _tokenization(item_map: ItemMap) -> dict[str, Any]:
    """Return how the texts of the collection were tokenized; queries are tokenized alike."""
    counters = [step for step in item_map.collection.steps if isinstance(step, Words)]
    words = counters[0] if counters else Words.of_names(())
    return {
        "tokenizer": words.tokenizer if isinstance(words.tokenizer, str) else "auto",
        "stop_words": words.stop_words_,
        "lowercase": bool(words.lowercase),
        "ngram_range": list(words.ngram_range),
    }
