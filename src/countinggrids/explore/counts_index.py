"""The counts of features by item in an exported page, from which it compares groups."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countinggrids.explore import search_index
from countinggrids.explore.item_map import ItemMap


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
