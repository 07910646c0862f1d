"""Maps that grow: a fitted grid learns from new items, and what was born, grew, drifted and died is listed."""

from copy import copy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import torus
from countinggrids.core.log_odds import log_odds
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features.text import Words
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.meta.growth import joined
from countinggrids.meta.map_tables import data_frame
from countinggrids.meta.region import Region, Regions
from countinggrids.meta.regions import extend_regions, find_regions
from countinggrids.models.counting_grid import CountingGrid
from countinggrids.models.growing import grow as grow_model
from countinggrids.training.callbacks import Callback

Array = NDArray[Any]
PRIOR = 0.01
"""Pseudocounts of log-odds for each count of the whole collection."""
N_WORDS = 5
BORN = 0.5
"""Fraction of a region's items that are new and on land that was free, from which it is born."""
GREW, DIED = 0.25, 0.5
"""Fraction of its items that a region gains or loses if it grew or died."""
DRIFTED = 1.0
"""Cells by which the median item of a region that drifted has moved."""


@dataclass(frozen=True)
class Change:
    """What became of a region.

    Attributes
    ----------
    change : {"born", "grew", "drifted", "died", "kept"}
        What happened.
    name : str
        Name of the region: on the new map if it was born, otherwise on the old map.
    n_before, n_after : int
        Number of items on its cells before and after.
    n_new : int
        Number of new items among those after.
    moved : float
        Cells by which its old items have moved, the median; NaN if there are none.
    words : tuple of str
        Words that are more frequent on its cells than before, or, if it was born, than elsewhere.
    center : tuple of float
        Row and column of its middle on the map.
    """

    change: str
    name: str
    n_before: int
    n_after: int
    n_new: int
    moved: float
    words: tuple[str, ...]
    center: tuple[float, float]


@dataclass(frozen=True)
class Growth:
    """A map that has learned from new items.

    Attributes
    ----------
    model : estimator
        The new model. Cells of the old grid have the same coordinates.
    collection : Collection
        The old items, then the new ones; the column `split`, or `arrived` if items have a split of their own, is
        "before" or "new".
    regions : Regions
        Regions of the new map; those of the old one stay, with their names.
    changes : list of Change
        Births, growth, drift and deaths of regions, those with most new items first.
    moved : ndarray of shape (n_old,)
        Cells by which each old item has moved.
    was_free : ndarray of bool of shape (*grid,)
        Windows of the new grid that were free before.
    """

    model: Any
    collection: Collection
    regions: Regions
    changes: list[Change]
    moved: NDArray[np.float64]
    was_free: NDArray[np.bool_]

    def to_frame(self) -> Any:
        """Return the changes as a pandas DataFrame.

        Returns
        -------
        table : DataFrame
            A row for each region.
        """
        return data_frame({name: [getattr(row, name) for row in self.changes] for name in Change.__annotations__})

    def to_json(self) -> list[dict[str, Any]]:
        """Return the changes as plain data; a number that is not defined is None."""
        rows = [asdict(change) for change in self.changes]
        return [row | {"moved": None if np.isnan(row["moved"]) else row["moved"]} for row in rows]


def grow(
    model: Any,
    new: Collection,
    previous: Collection,
    strength: float = 1.0,
    callback: Callback | None = None,
    regions: Regions | None = None,
) -> Growth:
    """Learn from new items, so that the old ones keep their places; see `CountingGrid.grow`."""
    check_is_fitted(model)
    _check(model, new, previous, strength)
    together = combined(previous.for_model(model), new)
    n_old = len(previous)
    counts = together.for_sections(model.geometry_.painted, None)[0]
    before = model.locate(previous)
    grown, was_free = grow_model(model, counts[:n_old], counts[n_old:], strength, callback)
    grown.fingerprint_ = together.fingerprint
    after = grown.locate(together)
    away = torus.displacement(before, after[:n_old], grown.geometry_.grid)
    moved = np.sqrt((away.astype(np.float64) ** 2).sum(axis=-1))
    changes = _Changes(model, grown, previous, together, after, moved, was_free, regions)
    return Growth(grown, together, changes.new, changes.rows(), moved, was_free)


def combined(previous: Collection, new: Collection) -> Collection:
    """Concatenate two collections whose words may differ.

    Parameters
    ----------
    previous : Collection
        Old items; their words come first.
    new : Collection
        New items.

    Returns
    -------
    collection : Collection
        Both, with a column that tells old items from new ones.
    """
    if previous.fingerprint != new.fingerprint:
        previous, new = _with_same_words(previous, new)
    return joined(previous, new)


def _check(model: Any, new: Any, previous: Any, strength: float) -> None:
    if not isinstance(model, CountingGrid):
        raise ValueError(f"a {type(model).__name__} cannot grow; use a CountingGrid.")
    for name, given in (("new", new), ("previous", previous)):
        if not isinstance(given, Collection):
            raise TypeError(
                f"{name} is a {type(given).__name__} and must be a Collection; use Collection.from_frame or from_texts."
            )
        if not len(given):
            raise ValueError(f"{name} has no items; expected at least one.")
    if not 0 < strength <= 1:
        raise ValueError(f"strength={strength} must be above 0 and at most 1; use 1 to keep all that was learned.")
    if len(model.geometry_.grid) > 2:
        raise ValueError(f"grid={model.geometry_.grid} must have one or two axes to list what changed.")


def _with_same_words(previous: Collection, new: Collection) -> tuple[Collection, Collection]:
    """Return both collections with the words of the first, followed by those of the second that it lacks."""
    if {previous.vocabulary.kind, new.vocabulary.kind} != {"words"} or max(*previous.sections, *new.sections) > 1:
        raise ValueError(
            f"{new!r} and {previous!r} must have the same features; bag the new items with the extractors of the old."
        )
    names = list(previous.vocabulary.names)
    known = set(names)
    names += [name for name in new.vocabulary.names if name not in known]
    steps = [_extended(step, names) for step in previous.steps if isinstance(step, Words)]
    return _renumbered(previous, names, steps), _renumbered(new, names, steps)


def _extended(words: Words, names: list[str]) -> Words:
    wider = copy(words)
    wider.names_ = names
    return wider


def _renumbered(collection: Collection, names: list[str], steps: list[Words]) -> Collection:
    numbers = {name: i for i, name in enumerate(names)}
    columns = np.array([numbers[name] for name in collection.vocabulary.names])
    given = collection.counts
    counts = sp.csr_array((given.data, columns[given.indices], given.indptr), (len(collection), len(names)))
    counts.sort_indices()
    items = Items(collection.items.columns, collection.items.root, collection.items.is_root_trusted)
    return Collection(counts, Vocabulary("words", tuple(names)), items, collection.sections, steps)


class _Changes:
    """Finds what became of the regions of a map."""

    def __init__(
        self,
        old_model: Any,
        model: Any,
        previous: Collection,
        together: Collection,
        places: Array,
        moved: Array,
        was_free: Array,
        regions: Regions | None,
    ):
        self.together, self.moved, self.was_free = together, moved, was_free
        self.n_old, self.grid = len(previous), model.geometry_.grid
        self.old = find_regions(old_model, previous) if regions is None else regions
        self.new = extend_regions(self.old, model, together)
        self.places = tuple(places.T)
        self.is_new = np.arange(len(together)) >= self.n_old
        self.counts = together.coarsen((1,) * len(together.sections)).counts
        self.is_words = together.vocabulary.kind == "words"

    def rows(self) -> list[Change]:
        """Return what became of the regions of the finest level, those with most new items first."""
        level = len(self.old.labels) - 1
        found = [self._became(region) for region in self.old.level(level)]
        found += [row for region in self.new.level(len(self.new.labels) - 1) if (row := self._born(region))]
        return sorted(found, key=lambda row: -row.n_new)

    def _born(self, region: Region) -> Change | None:
        inside = self.new.items[-1] == region.id
        is_settler = inside & self.is_new & self.was_free[self.places]
        if not inside.any() or is_settler.sum() < BORN * inside.sum():
            return None
        words = tuple(word for word, _ in region.words[:N_WORDS])
        n_new = int((inside & self.is_new).sum())
        n_before = int(inside.sum()) - n_new
        moved = float(np.median(self.moved[inside[: self.n_old]])) if n_before else float("nan")
        return Change("born", region.name, 0, int(inside.sum()), n_new, moved, words, region.center)

    def _became(self, region: Region) -> Change:
        before = np.flatnonzero(self.old.items[-1] == region.id)
        after = self._on_cells(self.old, region)
        n_new, moved = int(self.is_new[after].sum()), self.moved[before]
        median = float(np.median(moved)) if len(moved) else float("nan")
        kind = _kind(len(before), len(after), n_new, median)
        words = self._gained(before, after)
        return Change(kind, region.name, len(before), len(after), n_new, median, words, region.center)

    def _on_cells(self, regions: Regions, region: Region) -> Array:
        """Return the items that now lie on the cells of an old region."""
        is_inside = np.zeros(self.grid if len(self.grid) == 2 else (1, *self.grid), dtype=bool)
        labels = regions.labels[-1] == region.id
        is_inside[: labels.shape[0], : labels.shape[1]] = labels
        return np.flatnonzero(is_inside.reshape(self.grid)[self.places])

    def _gained(self, before: Array, after: Array) -> tuple[str, ...]:
        if not self.is_words:
            return ()
        was, now = (np.asarray(self.counts[rows].sum(axis=0), dtype=np.float64).ravel() for rows in (before, after))
        z = log_odds(now, was, PRIOR * np.asarray(self.counts.sum(axis=0), dtype=np.float64).ravel())[1]
        best = [i for i in np.argsort(-z, kind="stable")[:N_WORDS].tolist() if z[i] > 1]
        return tuple(self.together.vocabulary.names[i] for i in best)


def _kind(n_before: int, n_after: int, n_new: int, moved: float) -> str:
    if n_after < DIED * n_before:
        return "died"
    if moved > DRIFTED:
        return "drifted"
    return "grew" if n_new >= GREW * max(n_before, 1) else "kept"
