"""The counts of features by item in an exported page, from which it compares groups, and the places of words."""

import gzip
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countinggrids.explore import search_index
from countinggrids.explore.item_map import ItemMap
from countinggrids.explore.views import has_word_places


class CountsIndex(NamedTuple):
    """Counts as the page holds them.

    Attributes
    ----------
    content : bytes
        Postings, as in `search_index.encode`.
    facts : dict
        `features`, the numbers of the features in it, and `n_left_out`.
    """

    content: bytes
    facts: dict[str, Any]


def encode(item_map: ItemMap, most_bytes: int) -> CountsIndex | None:
    """Return the counts, or None where they are not whole numbers.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    most_bytes : int
        Largest size; the most frequent features are left out where it is exceeded.

    Returns
    -------
    index : CountsIndex or None
        The counts.
    """
    counts = sp.csc_array(item_map.feature_counts)
    if not np.array_equal(counts.data, np.round(counts.data)) or counts.data.min(initial=0) < 0:
        return None
    names = [" ".join(name.split("\n")) for name in item_map.collection.vocabulary.names]
    content, kept = search_index.encode(names, counts, most_bytes)
    return CountsIndex(content, {"features": kept.tolist(), "n_left_out": len(names) - len(kept)})


def encode_regions(item_map: ItemMap, index: CountsIndex, most_bytes: int) -> bytes | None:
    """Return the finest region of each word of each item, where the model has a place for each.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    index : CountsIndex
        The counts, whose words are described.
    most_bytes : int
        Largest size.

    Returns
    -------
    content : bytes or None
        For each count of `index`, in the same order, the region less the first of the finest level, as
        variable-length integers that are compressed with gzip. None if words have no places of their own, or if it
        is larger than `most_bytes`.
    """
    if not has_word_places(item_map):
        return None
    cells = sp.csc_array(item_map.model.assign(item_map.feature_counts))[:, index.facts["features"]]
    cells.sort_indices()
    finest = item_map.regions.labels[-1].ravel()
    content = gzip.compress(search_index.variable_length(finest[cells.data - 1] - finest.min()), mtime=0)
    return content if len(content) <= most_bytes else None
