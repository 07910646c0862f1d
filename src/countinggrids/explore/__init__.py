"""The explorer: a collection on its fitted grid, as an interactive map in the browser."""

from countinggrids.explore.item_map import ItemMap
from countinggrids.explore.page import Page, export

__all__ = ["ItemMap", "Page", "export"]
