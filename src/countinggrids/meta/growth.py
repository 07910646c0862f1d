"""New items on a map that stays as it is."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features.text import Words

Array = NDArray[Any]
BEFORE, NEW = "before", "new"
"""Values of the column of items that distinguishes old items from new ones."""


class Placement(NamedTuple):
    """Where new items lie on a map.

    Attributes
    ----------
    cells : ndarray of shape (n_items, n_axes)
        Most likely cell of each item.
    posteriors : ndarray of shape (n_items,)
        Posterior of that cell.
    scores : ndarray of shape (n_items,)
        Log-likelihood per token; much below that of the items of the map means that the map has no place for it. NaN
        for items without a known word.
    """

    cells: NDArray[np.int64]
    posteriors: NDArray[np.float64]
    scores: NDArray[np.float64]


def place(model: Any, new: Any, collection: Collection | None = None) -> Placement:
    """Place new items on a map, which stays as it is.

    Parameters
    ----------
    model : estimator
        A fitted model.
    new : Collection, counts, or iterable of texts or images
        New items. Texts and images are bagged with the extractors of `collection`.
    collection : Collection, default=None
        The collection that the grid was fitted to.

    Returns
    -------
    placement : Placement
        Cells, posteriors and scores.
    """
    check_is_fitted(model)
    X = _counts(model, new, collection)
    parts = [(q.argmax(axis=1), q.max(axis=1), found) for q, found in model.iter_posteriors(X)]
    cells, posteriors, scores = (np.concatenate(each) for each in zip(*parts, strict=True))
    tokens = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        per_token = np.where(tokens > 0, scores / tokens, np.nan)
    places = np.stack(np.unravel_index(cells, model.geometry_.grid), axis=-1)
    return Placement(places, posteriors.astype(np.float64), per_token)


def with_new_items(collection: Collection, new: Any) -> Collection:
    """Append new items to a collection, counted with its extractors.

    Parameters
    ----------
    collection : Collection
        The items of a map.
    new : Collection, or iterable of str, mapping or Document
        New items; texts without a known word are left out.

    Returns
    -------
    collection : Collection
        Both; the column `split`, or `arrived` if items have a split of their own, is "before" or "new".
    """
    if not isinstance(new, Collection):
        if not collection.steps or not isinstance(collection.steps[-1], Words):
            raise TypeError(
                f"new is a {type(new).__name__} and must be a Collection with the features of {collection!r}; bag the "
                "new items with its extractors."
            )
        new = Collection.from_texts(new, collection.steps[-1])
    return joined(collection, new)


def joined(collection: Collection, new: Collection) -> Collection:
    """Concatenate collections with the same features; a column tells old items from new ones."""
    both = Collection.join([collection, new])
    splits = set(both.items["split"].tolist()) if "split" in both.items else set()
    column = "split" if splits <= {BEFORE, NEW, ""} else "arrived"
    both.items = both.items.with_columns(**{column: [BEFORE] * len(collection) + [NEW] * len(new)})
    return both


def _counts(model: Any, new: Any, collection: Collection | None) -> Any:
    if isinstance(new, Collection):
        return new.for_model(model).counts
    if isinstance(new, str):
        raise TypeError(f"new={new[:40]!r} is a single text and must be a list of items; use [text].")
    if hasattr(new, "shape") and len(new.shape) == 2:
        return new
    if collection is None:
        raise ValueError(
            f"new is a {type(new).__name__} of texts or images, which need the extractors of the fitted collection; "
            "pass collection, or counts."
        )
    counts = collection.bag(new)
    items = Items({"title": [""] * counts.shape[0]})
    return (
        Collection(counts, collection.vocabulary, items, collection.sections, collection.steps).for_model(model).counts
    )
