"""The map in a notebook: a widget, or a page if anywidget is not installed."""

from importlib.util import find_spec
from typing import Any

from countinggrids.explore.item_map import ItemMap
from countinggrids.explore.page import LARGEST, Page


def shown(item_map: ItemMap, height: int = 640, largest: float = LARGEST) -> Any:
    """Return a map for a notebook: a widget if anywidget is installed, otherwise a page without a way back to Python.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    height : int, default=640
        Height in pixels.
    largest : float, default=25.0
        Largest size in megabytes, as in `export`.

    Returns
    -------
    view : MapWidget or Page
        What a notebook displays.
    """
    if find_spec("anywidget") is None:
        return Page(item_map, height, largest)
    from countinggrids.explore.widget import MapWidget

    return MapWidget(item_map, height, largest)
