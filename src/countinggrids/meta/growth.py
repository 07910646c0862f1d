"""New items on a map, and maps that grow."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.data.collection import Collection
from countinggrids.data.items import Items

Array = NDArray[Any]


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
