"""The map as a Jupyter widget: selections come back to Python, filters go to the page."""

from collections.abc import Sequence
from importlib.resources import files as resources
from typing import Any

import anywidget
import numpy as np
import traitlets
from numpy.typing import NDArray

from countinggrids.explore.item_map import ItemMap
from countinggrids.explore.page import LARGEST, Page, in_frame
from countinggrids.features.dates import DateReader
from countinggrids.meta.map_tables import rows_of


class MapWidget(anywidget.AnyWidget):
    """A map in a notebook whose selection is at hand in Python.

    A notebook that was saved, or exported as HTML, still shows the map, without a kernel.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    height : int, default=640
        Height in pixels.
    largest : float, default=25.0
        Largest size in megabytes, as in `export`.

    Attributes
    ----------
    items : list of int
        Items that are selected on the page, as numbers of the collection; `observe(f, "items")` follows it.
    filters : dict
        What the page shows; set by `filter`.
    """

    _esm = resources("countinggrids.explore").joinpath("assets", "widget.js").read_text(encoding="utf-8")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)
    items = traitlets.List(traitlets.Int()).tag(sync=True)
    filters = traitlets.Dict().tag(sync=True)

    def __init__(self, item_map: ItemMap, height: int = 640, largest: float = LARGEST):
        self.item_map = item_map
        super().__init__(page=Page(item_map, height, largest).text, height=height)

    @property
    def text(self) -> str:
        """The page, as HTML."""
        return str(self.page)

    @property
    def selection(self) -> NDArray[np.int64]:
        """Rows of the table that the collection was made from, of the selected items.

        They are the numbers of the items in the collection if it was not made from one table.
        """
        return rows_of(self.item_map.collection)[np.array(self.items, dtype=np.int64)]

    def filter(
        self,
        labels: Sequence[str] | None = None,
        split: str | None = None,
        time: tuple[Any, Any] | None = None,
        color: str | None = None,
        query: str | None = None,
    ) -> None:
        """Show some of the items; what is not given is not filtered.

        Parameters
        ----------
        labels : sequence of str, default=None
            Labels to show.
        split : str, default=None
            Split to show.
        time : tuple of two, default=None
            First and last moment, as dates or as seconds since 1970; None is open.
        color : str, default=None
            Column that gives the colors; None leaves them.
        query : str, default=None
            Words to search for.
        """
        chosen: dict[str, Any] = {"split": split, "color": color, "query": query}
        if labels is not None:
            chosen["labels"] = self._known("labels", [labels] if isinstance(labels, str) else labels, "label")
        if split is not None:
            self._known("split", [split], "split")
        if time is not None:
            chosen["time"] = [_seconds(moment) for moment in time]
        self.filters = {name: value for name, value in chosen.items() if value is not None}

    def _known(self, name: str, values: Sequence[str], column: str) -> Any:
        items = self.item_map.collection.items
        if column not in items:
            raise ValueError(f"{name}={values!r}: items have no column {column!r}; it has {', '.join(items.columns)}.")
        known = sorted(set(items[column].tolist()))
        unknown = [value for value in values if value not in known]
        if unknown:
            listed = ", ".join(map(repr, known[:8])) + (", ..." if len(known) > 8 else "")
            raise ValueError(f"{name}: no item has {unknown[0]!r}; use some of {listed}.")
        return list(values)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the widget, and the page in a frame for readers without widgets."""
        data, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        return data | {"text/html": in_frame(self.page, self.height)}, metadata


def _seconds(moment: Any) -> float | None:
    """Return a moment in seconds since 1970; None stays None."""
    if moment is None or isinstance(moment, int | float | np.number):
        return None if moment is None else float(moment)
    seconds = DateReader().fit([moment]).read(moment)
    if np.isnan(seconds):
        raise ValueError(f"time={moment!r} must be a date such as '2024-05-17', or seconds since 1970.")
    return seconds
