"""Regions, items and words of a map as tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import em, relevance
from countinggrids.data.collection import Collection
from countinggrids.meta.posteriors import sparse_posteriors
from countinggrids.meta.region import Region, Regions
from countinggrids.meta.regions import find_regions


def data_frame(columns: dict[str, Any], index: Sequence[Any] | None = None) -> Any:
    """Return columns as a pandas DataFrame.

    Parameters
    ----------
    columns : dict of str to sequence
        Values by name.
    index : sequence, default=None
        Index of the rows.

    Returns
    -------
    table : DataFrame
        The table.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "tables need pandas, which is not installed; pip install 'countinggrids[frames]', or use "
            "countinggrids.meta.regions.find_regions for plain data."
        ) from error
    return pandas.DataFrame(columns, index=index)


def regions(model: Any, collection: Collection, levels: int | Sequence[int] = 3) -> Any:
    """Return the regions of a grid as a DataFrame; see `CountingGrid.regions`."""
    found = find_regions(model, collection, levels)
    table = data_frame(region_columns(found), [region.id for region in found.regions])
    return table.rename_axis("region").astype({"parent": "Int64"})


def region_columns(found: Regions) -> dict[str, list[Any]]:
    """Return the columns of the table of regions, with a column for each label.

    Parameters
    ----------
    found : Regions
        The regions.

    Returns
    -------
    columns : dict of str to list
        Values by name.
    """
    simple = ("level", "parent", "name", "n_items", "usage", "n_cells", "center", "bounds", "representatives")
    columns = {name: [getattr(region, name) for region in found.regions] for name in simple}
    columns["words"] = [[word for word, _ in region.words] for region in found.regions]
    labels = dict.fromkeys(label for region in found.regions for label in region.labels)
    shares = {f"share {label}": [region.labels.get(label, 0.0) for region in found.regions] for label in labels}
    return columns | shares


def items(model: Any, collection: Collection) -> Any:
    """Return where each item lies as a DataFrame; see `CountingGrid.items`."""
    columns = item_columns(model, collection)
    return data_frame(columns)


def item_columns(model: Any, collection: Collection) -> dict[str, Any]:
    """Return the columns of the table of items.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    collection : Collection
        The items.

    Returns
    -------
    columns : dict of str to ndarray
        Values by name.
    """
    check_is_fitted(model)
    posteriors = sparse_posteriors(model, collection.for_model(model).counts)
    found = find_regions(model, collection, posteriors=posteriors)
    peaks = posteriors.indptr[:-1]
    rows, columns = np.unravel_index(posteriors.indices[peaks], found.grid)
    finest = found.items[-1]
    placed = {
        "row": rows_of(collection),
        "map_row": rows,
        "map_column": columns,
        "posterior": posteriors.data[peaks],
        "region": finest,
        "region_name": [found.regions[id].name for id in finest],
    }
    return placed | {name: collection.items[name] for name in collection.items.columns if name not in placed}


def rows_of(collection: Collection) -> NDArray[np.int64]:
    """Return the row of each item in the table that a collection was made from, or else its number."""
    items = collection.items
    numbers = np.arange(len(collection))
    rows = items["row"].astype(np.int64) if "row" in items and np.isfinite(items["row"]).all() else numbers
    return rows if len(np.unique(rows)) == len(rows) else numbers


def top_words(model: Any, where: Any, collection: Collection | None, n: int) -> list[tuple[Any, float]]:
    """Return the most distinctive words of a window or of a region; see `CountingGrid.top_words`."""
    check_is_fitted(model)
    if isinstance(where, int | np.integer | str):
        if collection is None:
            raise ValueError(f"where={where!r} is a region, which needs the collection; pass it, or use a cell (3, 4).")
        return list(_region(find_regions(model, collection), where).words[:n])
    grid = model.geometry_.grid
    cell = tuple(int(i) for i in where)
    if len(cell) != len(grid) or any(not 0 <= i < length for i, length in zip(cell, grid, strict=True)):
        raise ValueError(f"where={where!r} must be a cell of the grid {grid}, or the id or the name of a region.")
    h = em.histograms(model.planes().pi, model.geometry_.window)
    h = h.reshape(-1, model.pi_.shape[-1], *grid).mean(axis=0)
    everywhere = relevance.mean_histogram(np.moveaxis(h, 0, -1), np.exp(model.log_prior_))
    scores = relevance.relevance(h[(slice(None), *cell)], everywhere)
    best = [i for i in np.argsort(-scores, kind="stable")[:n].tolist() if scores[i] > 0]
    names = range(len(scores)) if collection is None else collection.vocabulary.names
    return [(names[i], float(scores[i])) for i in best]


def _region(found: Regions, where: Any) -> Region:
    named = [region for region in found.regions if where in (region.id, region.name)]
    if not named:
        examples = ", ".join(repr(region.name) for region in found.level(0)[:3])
        raise ValueError(
            f"where={where!r} must be the name of a region, such as {examples}, or its id, at most "
            f"{len(found.regions) - 1}."
        )
    return named[0]
