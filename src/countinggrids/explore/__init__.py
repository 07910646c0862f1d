"""The explorer: a fitted grid and its collection as a map to walk through in the browser."""

from countinggrids.explore.atlas import Atlas
from countinggrids.explore.page import Page, export

__all__ = ["Atlas", "Page", "export"]
