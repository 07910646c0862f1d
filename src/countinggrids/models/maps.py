"""Methods of a fitted grid as a map of items: regions, places and words as tables, and the page."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from countinggrids.data.collection import Collection

if TYPE_CHECKING:
    from countinggrids.meta.growth import Placement
    from countinggrids.meta.map_growth import Growth
    from countinggrids.meta.region import Regions


class MapMethods:
    """What a fitted grid tells about a collection."""

    def _collection(self, given: Any, words: Sequence[str] | None) -> Collection:
        check_is_fitted(self)
        return Collection.of(given, words, self)

    def explore(
        self,
        collection: Any,
        height: int = 640,
        title: str = "",
        words: Sequence[str] | None = None,
        new: Any = None,
    ) -> Any:
        """Show a collection on this grid as an interactive map in a notebook.

        Parameters
        ----------
        collection : Collection, array-like or sparse matrix of shape (n_bags, n_features)
            The collection that the grid was fitted to, or one with the same features; or plain counts.
        height : int, default=640
            Height in pixels.
        title : str, default=""
            Heading.
        words : sequence of str, default=None
            Names of the features of plain counts; None numbers them.
        new : Collection, or iterable of str, mapping or Document, default=None
            New items, which are placed on the map as it is and colored apart. Texts are counted as those of
            `collection`.

        Returns
        -------
        view : MapWidget or Page
            The map, which a notebook displays. With anywidget installed it is a widget: `view.selection` has the row
            numbers of what is selected, and `view.filter(labels=["a"])` shows some of the items.
        """
        from countinggrids.explore import ItemMap
        from countinggrids.explore.notebook import shown
        from countinggrids.meta import growth

        items = self._collection(collection, words)
        if new is not None:
            items = growth.with_new_items(items, new)
        return shown(ItemMap(self, items, title), height)

    def regions(self, collection: Any, levels: int | Sequence[int] = 3, words: Sequence[str] | None = None) -> Any:
        """Return the regions of the grid as a table.

        Parameters
        ----------
        collection : Collection, array-like or sparse matrix of shape (n_bags, n_features)
            Items, or plain counts.
        levels : int or sequence of int, default=3
            Number of levels, or the numbers of regions at each, smallest first.
        words : sequence of str, default=None
            Names of the features of plain counts.

        Returns
        -------
        table : DataFrame
            A row for each region, with its id as the index: level, parent, name, words, n_items, usage, n_cells,
            center (row, column), bounds (top, left, height, width), representatives, and the fraction of each label.
        """
        from countinggrids.meta import map_tables

        return map_tables.regions(self, self._collection(collection, words), levels)

    def items(self, collection: Any, words: Sequence[str] | None = None) -> Any:
        """Return where each item lies as a table.

        Parameters
        ----------
        collection : Collection, array-like or sparse matrix of shape (n_bags, n_features)
            Items, or plain counts.
        words : sequence of str, default=None
            Names of the features of plain counts.

        Returns
        -------
        table : DataFrame
            A row for each item: its row in the table that the collection was made from, map_row and map_column of its
            most likely cell, the posterior of that cell, the region of the finest level and its name, and all columns
            of the items.
        """
        from countinggrids.meta import map_tables

        return map_tables.items(self, self._collection(collection, words))

    def top_words(
        self, where: Any, collection: Any = None, n: int = 10, words: Sequence[str] | None = None
    ) -> list[tuple[Any, float]]:
        """Return the most distinctive words of a window or of a region.

        Parameters
        ----------
        where : tuple of int, int or str
            First cell of a window, or the id or the name of a region.
        collection : Collection, array-like or sparse matrix of shape (n_bags, n_features), default=None
            Items, or plain counts. None returns indices of features instead of words, for windows only.
        n : int, default=10
            Largest number of words.
        words : sequence of str, default=None
            Names of the features of plain counts.

        Returns
        -------
        words : list of (str, float)
            Words with p log(p / q) for a window, where p and q are their frequencies in it and on the whole grid, or
            with z-scores of log-odds for a region. Words that are no more frequent there than elsewhere are not listed.
        """
        from countinggrids.meta import map_tables

        given = None if collection is None else self._collection(collection, words)
        return map_tables.top_words(self, where, given, n)

    def place(self, new: Any, collection: Collection | None = None) -> "Placement":
        """Place new items on the map, which stays as it is.

        Parameters
        ----------
        new : Collection, counts, or iterable of texts or images
            New items. Texts and images are bagged with the extractors of `collection`.
        collection : Collection, default=None
            The collection that the grid was fitted to.

        Returns
        -------
        placement : Placement
            Cells, posteriors and how well the map explains each item.
        """
        from countinggrids.meta import growth

        return growth.place(self, new, collection)

    def grow(
        self,
        new: Collection,
        previous: Collection,
        strength: float = 1.0,
        callback: Callable[[Any], Any] | None = None,
        regions: "Regions | None" = None,
    ) -> "Growth":
        """Learn from new items so that the old ones keep their places, and list what changed.

        The expected counts of the old items stay as they are. The new items are annealed beside them, and may use
        land that is free; where there is too little, the grid is extended. Old cells keep their coordinates.

        Parameters
        ----------
        new : Collection
            New items only. Texts may have words that the old ones lack; images must have been bagged with the
            extractors of `previous`.
        previous : Collection
            The collection that the grid was fitted to.
        strength : float, default=1.0
            Weight of the old items, at most 1. With less, the map changes more easily.
        callback : callable, default=None
            Called after every iteration with an `Iteration`.
        regions : Regions, default=None
            Regions of the old map, such as those of a `Growth` before; None finds them.

        Returns
        -------
        growth : Growth
            The new model, the collection of all items, and the regions that were born, grew, drifted and died. The
            model itself stays as it is.
        """
        from countinggrids.meta import map_growth

        return map_growth.grow(self, new, previous, strength, callback, regions)
