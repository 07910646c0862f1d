"""The regions of a map as plain data: for the page, `/regions.json` and `/region/ID.json`."""

from dataclasses import asdict
from typing import Any

import numpy as np

from countinggrids.explore import views
from countinggrids.explore.item_map import ItemMap
from countinggrids.meta.region import Region

View = dict[str, Any]


def of_map(item_map: ItemMap) -> View:
    """Return the regions as the page draws them: in few long lists, without what the page computes itself."""
    found = item_map.regions
    return {
        "levels": [labels.ravel().tolist() for labels in found.labels],
        "is_empty": found.is_empty.ravel().astype(int).tolist(),
        "list": [_summary(region) for region in found.regions],
        "item": found.items[-1].tolist(),
    }


def regions(item_map: ItemMap) -> View:
    """Return all regions, coarse ones first: `/regions.json`."""
    found = item_map.regions
    return found.to_json() | {"regions": [_summary(region) | _shares(region) for region in found.regions]}


def region(item_map: ItemMap, number: int) -> View:
    """Return a region, the regions inside it, and its items: `/region/ID.json`.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    number : int
        Id of the region, as in `regions`.

    Returns
    -------
    view : dict
        Name, words, bounds, labels, `inside` (the regions of the next finer level), `representatives`, and the numbers
        of all `items`.
    """
    found = item_map.regions
    views.check_range("region", number, len(found.regions))
    one = found.regions[number]
    return (
        _summary(one)
        | _shares(one)
        | {
            "inside": [_summary(child) for child in found.children(number)],
            "representatives": [views.summary(item_map, i) for i in one.representatives],
            "items": np.flatnonzero(found.items[one.level] == number).tolist(),
        }
    )


def place_name(item_map: ItemMap, row: int, column: int) -> str:
    """Return the name of the finest region of a window."""
    found = item_map.regions
    return found.regions[int(found.labels[-1][row, column])].name


def _summary(one: Region) -> View:
    kept = asdict(one)
    kept |= {name: [round(value, 2) for value in kept[name]] for name in ("center", "bounds")}
    kept["words"] = [list(word) for word in one.words]
    kept["representatives"] = list(one.representatives)
    kept["is_named"] = one.name != f"Region {one.id}"
    del kept["labels"]
    return kept


def _shares(one: Region) -> View:
    return {"labels": one.labels}
