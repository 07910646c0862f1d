"""Comparison of two groups of items: words and regions of the map that distinguish them."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils import check_random_state

from countinggrids.core.log_odds import log_odds
from countinggrids.data.collection import Collection
from countinggrids.meta.map_tables import data_frame
from countinggrids.meta.region import Regions
from countinggrids.meta.regions import find_regions
from countinggrids.meta.selections import Mask, numbers_of, select

Array = NDArray[Any]
PRIOR = 0.01
"""Weight of the prior: pseudocounts for each count of the whole collection."""
LEAST_PRIOR = 0.5
"""Smallest number of pseudocounts of a region."""
LEAST_DEVIATION = 0.5
"""Smallest standard deviation that a z-score is divided by: rare words hardly vary."""
BLOCK = 100
"""Permutations that are counted at a time."""


@dataclass(frozen=True)
class Comparison:
    """Words and regions that distinguish two groups of items.

    Attributes
    ----------
    n_a, n_b : int
        Number of items of each group.
    words : list of dict
        Each with word, log_odds, z, p_value, is_significant, count_a and count_b; those that a uses more come first.
    regions : list of dict
        Each with id, level, name, n_a, n_b, log_odds, z, p_value and is_significant, in the order of the ids.
    """

    n_a: int
    n_b: int
    words: list[dict[str, Any]]
    regions: list[dict[str, Any]]

    def to_frame(self, what: str = "words") -> Any:
        """Return the words or the regions as a pandas DataFrame.

        Parameters
        ----------
        what : {"words", "regions"}, default="words"
            Which of the two.

        Returns
        -------
        table : DataFrame
            A row for each.
        """
        if what not in ("words", "regions"):
            raise ValueError(f"what={what!r} must be 'words' or 'regions'.")
        rows = getattr(self, what)
        return data_frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def compare(
    model: Any,
    collection: Collection,
    a: Any,
    b: Any = None,
    *,
    regions: Regions | None = None,
    level: float = 0.05,
    n_permutations: int = 1000,
    random_state: int | np.random.RandomState | None = 0,
) -> Comparison:
    """Compare two groups of items: which words and which regions of the map each has more of.

    Log-odds have an informative Dirichlet prior along the whole collection. Their z-scores take words for independent,
    though a text repeats its own. So p-values come from random assignments of the items to the two groups: each z-score
    is divided by its standard deviation under these, and compared with the largest of all words, or of all regions of
    all levels. The probability of any false alarm is at most `level`.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    collection : Collection
        The items.
    a, b : str, mapping, or array-like of int or bool
        Two groups that do not overlap: a label; a dict of columns and values, such as {"split": "test"} or
        {"time": ("2024-01-01", "2024-07-01")}; row numbers; or a mask. b=None is all other items.
    regions : Regions, default=None
        Regions of the map, if they are known already.
    level : float, default=0.05
        Largest probability of a false alarm among all words, and among all regions.
    n_permutations : int, default=1000
        Number of random assignments; 0 leaves out the p-values.
    random_state : int, RandomState or None, default=0
        Random numbers.

    Returns
    -------
    comparison : Comparison
        Words and regions.

    Examples
    --------
    >>> import countinggrids as cg
    >>> rows = {"text": ["tea with milk", "trains on tracks"] * 20, "kind": ["drink", "rail"] * 20}
    >>> collection = cg.Collection.from_frame(rows, label="kind")
    >>> model = cg.CountingGrid((8, 8), (2, 2), random_state=0).fit(collection)
    >>> found = cg.compare(model, collection, "drink", "rail")
    >>> [row["word"] for row in found.words if row["z"] > 2]
    ['milk', 'tea']
    """
    in_a, in_b = groups(collection, a, b)
    if not 0 < level < 1 or n_permutations < 0:
        raise ValueError(
            f"level={level} must be between 0 and 1 and n_permutations={n_permutations} at least 0; use for instance "
            "level=0.05, n_permutations=1000."
        )
    regions = find_regions(model, collection) if regions is None else regions
    rng = check_random_state(random_state)
    both = np.flatnonzero(in_a | in_b)
    is_a = in_a[both]
    words = _Test(_by_word(collection), both, is_a)
    places = _Test(_by_region(regions, len(collection)), both, is_a, _level_sizes(regions), LEAST_PRIOR)
    drawn = [rng.permutation(is_a) for _ in range(n_permutations)]
    return Comparison(
        int(is_a.sum()),
        int((~is_a).sum()),
        _word_rows(words, drawn, collection, level),
        _region_rows(places, drawn, regions, level),
    )


def groups(collection: Collection, a: Any, b: Any = None) -> tuple[Mask, Mask]:
    """Return masks of two groups that do not overlap; b=None is all items that are not in a."""
    in_a = select(collection, a, "a")
    if b is None:
        if in_a.all():
            raise ValueError(f"a={a!r} selects all {len(collection)} items, so that none are left for b; pass b.")
        return in_a, ~in_a
    in_b = select(collection, b, "b")
    n_both = int((in_a & in_b).sum())
    if n_both:
        raise ValueError(f"a={a!r} and b={b!r} share {n_both} items and must not overlap; leave these out of one.")
    return in_a, in_b


class _Test:
    """Log-odds of the columns of a table of counts in two groups of its rows.

    Parameters
    ----------
    counts : csr_array of shape (n_items, n_columns)
        Counts.
    rows : ndarray of int
        Items of both groups.
    is_a : ndarray of bool
        Which of these are in group a.
    sizes : list of int, default=None
        Numbers of consecutive columns that are compared with each other; None compares all.
    least_prior : float, default=0
        Smallest number of pseudocounts.
    """

    def __init__(
        self, counts: sp.csr_array, rows: Array, is_a: Array, sizes: list[int] | None = None, least_prior: float = 0.0
    ):
        self.counts = sp.csr_array(counts[rows], dtype=np.float64)
        self.total = np.asarray(self.counts.sum(axis=0)).ravel()
        everywhere = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
        self.prior = np.maximum(PRIOR * everywhere, least_prior)
        self.edges = np.cumsum([0, *(sizes or [counts.shape[1]])])
        self.in_a = self._in_group(is_a[None])[0]
        self.in_b = self.total - self.in_a
        self.log_odds, self.z = (part[0] for part in self._scores(self.in_a[None]))

    def p_values(self, drawn: list[Array]) -> Array:
        """Return p-values by the largest scaled z-score under random assignments; NaN without these."""
        if not drawn:
            return np.full(len(self.z), np.nan)
        blocks = [np.array(drawn[first : first + BLOCK]) for first in range(0, len(drawn), BLOCK)]
        random = np.vstack([np.abs(self._scores(self._in_group(block))[1].astype(np.float32)) for block in blocks])
        # The observed assignment is one of them: so all are exchangeable if there is no difference.
        every = np.vstack([np.abs(self.z, dtype=np.float32), random])
        every /= np.maximum(np.sqrt((every**2).mean(axis=0)), LEAST_DEVIATION)
        # Equal statistics in another order of sums may differ in the last digits: these count as reached.
        above = len(drawn) - np.searchsorted(np.sort(every[1:].max(axis=1)), every[0] * (1 - 1e-5))
        return (1 + above) / (1 + len(drawn))

    def _in_group(self, masks: Array) -> Array:
        return np.asarray((self.counts.T @ masks.T.astype(np.float64)).T)

    def _scores(self, in_a: Array) -> tuple[Array, Array]:
        parts = [slice(*ends) for ends in zip(self.edges[:-1], self.edges[1:], strict=True)]
        found = [log_odds(in_a[:, part], (self.total - in_a)[:, part], self.prior[part]) for part in parts]
        return np.hstack([each[0] for each in found]), np.hstack([each[1] for each in found])


def _by_word(collection: Collection) -> sp.csr_array:
    return collection.coarsen((1,) * len(collection.sections)).counts


def _by_region(regions: Regions, n_items: int) -> sp.csr_array:
    """Return the matrix of shape (n_items, n_regions) of the regions of items, at all levels."""
    columns = np.concatenate(regions.items)
    rows = np.tile(np.arange(n_items), len(regions.items))
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_items, len(regions.regions)))


def _level_sizes(regions: Regions) -> list[int]:
    return [len(regions.level(level)) for level in range(len(regions.labels))]


def _rows(test: _Test, drawn: list[Array], level: float) -> list[dict[str, Any]]:
    p_values = test.p_values(drawn)
    return [
        {
            "log_odds": float(test.log_odds[i]),
            "z": float(test.z[i]),
            "p_value": float(p_values[i]),
            "is_significant": bool(p_values[i] <= level),
        }
        for i in range(len(test.z))
    ]


def _word_rows(test: _Test, drawn: list[Array], collection: Collection, level: float) -> list[dict[str, Any]]:
    names = collection.vocabulary.names
    rows = [
        {"word": names[i]} | row | {"count_a": float(test.in_a[i]), "count_b": float(test.in_b[i])}
        for i, row in enumerate(_rows(test, drawn, level))
    ]
    return [rows[i] for i in np.argsort(-test.z, kind="stable")]


def _region_rows(test: _Test, drawn: list[Array], regions: Regions, level: float) -> list[dict[str, Any]]:
    return [
        {"id": region.id, "level": region.level, "name": region.name}
        | {"n_a": int(test.in_a[i]), "n_b": int(test.in_b[i])}
        | row
        for i, (region, row) in enumerate(zip(regions.regions, _rows(test, drawn, level), strict=True))
    ]


def region_means(
    model: Any, collection: Collection, column: str, *, regions: Regions | None = None, confidence: float = 0.95
) -> list[dict[str, Any]]:
    """Average a column of numbers, such as a rating or a price, over the items of each region.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    collection : Collection
        The items.
    column : str
        A column of numbers; empty entries are left out.
    regions : Regions, default=None
        Regions of the map, if they are known already.
    confidence : float, default=0.95
        Confidence of the interval of each mean (Student's t).

    Returns
    -------
    means : list of dict
        Each with id, level, name, n, mean, low and high; mean is NaN without items, low and high with fewer than two.
    """
    numbers = numbers_of(collection.items, column)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} must be between 0 and 1; use for instance 0.95.")
    regions = find_regions(model, collection) if regions is None else regions
    rows = []
    for region in regions.regions:
        inside = numbers[(regions.items[region.level] == region.id) & ~np.isnan(numbers)]
        n, mean = len(inside), float(inside.mean()) if len(inside) else np.nan
        half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * stats.sem(inside)) if n > 1 else np.nan
        place = {"id": region.id, "level": region.level, "name": region.name}
        rows.append(place | {"n": n, "mean": mean, "low": mean - half, "high": mean + half})
    return rows
