"""Full-text search over the items of a map: BM25 on all words of titles, labels, paths and texts."""

import re
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from countinggrids.data.collection import Collection
from countinggrids.explore.queries import Part, parse, tokens

FIELDS = ("title", "label", "path", "text")
"""Columns of the table of items that are searched."""
K1, B = 1.2, 0.75
"""Saturation of counts and normalization by length of BM25, at their usual values."""
FORM = 0.5
"""Weight of a longer form of a word, such as its plural, beside the word itself."""
SNIPPET = 180
"""Characters of a text that a list of results shows."""
MOST_OCCURRENCES = 500

Array = NDArray[Any]


class Hits(NamedTuple):
    """The items that a query finds, best first.

    Attributes
    ----------
    items : ndarray of shape (n_found,)
        Indices of items. Those with more parts of the query come first, then those with a larger score.
    scores : ndarray of shape (n_found,)
        Their BM25 scores.
    n_all : int
        How many of them have all parts of the query.
    """

    items: NDArray[np.int64]
    scores: NDArray[np.float64]
    n_all: int


class TextSearch:
    """A full-text index of a collection.

    Parameters
    ----------
    collection : Collection
        The items. Without texts, the counts of words stand for them.

    Attributes
    ----------
    terms : list of str
        All words, sorted.
    counts : csc_array of shape (n_items, n_terms)
        How often each item has each word.
    has_texts : bool
        Whether phrases can be checked.

    Examples
    --------
    >>> import countinggrids as cg
    >>> from countinggrids.features.text import Document
    >>> texts = [Document("a cup of tea"), Document("tea in the garden"), Document("a garden")]
    >>> search = TextSearch(cg.Collection.from_texts(texts))
    >>> search.find("garden tea").items.tolist(), search.find("garden -tea").items.tolist()
    ([1, 2, 0], [2])
    """

    def __init__(self, collection: Collection):
        self.collection = collection
        self.has_texts = "text" in collection.items or collection.vocabulary.kind != "words"
        self.terms, self.counts = _index(self._documents())
        if not self.has_texts:
            self._add(collection.vocabulary.names, collection.counts)
        self.lengths = np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()

    def find(self, query: str) -> Hits:
        """Return the items with at least one word of a query, all its phrases, and none of its exclusions.

        Parameters
        ----------
        query : str
            Words, "phrases", -exclusions, prefixes*.

        Returns
        -------
        hits : Hits
            Items, best first.
        """
        parts = parse(query)
        wanted = [part for part in parts if not part.is_excluded]
        scores, n_matched = np.zeros(len(self.collection)), np.zeros(len(self.collection), int)
        is_kept = np.full(len(self.collection), bool(parts))
        for part in parts:
            has, gains = self._scored(part)
            if part.is_excluded:
                is_kept &= ~has
                continue
            scores += gains
            n_matched += has
            is_kept &= has if part.is_phrase else True
        found = np.flatnonzero(is_kept & (n_matched > 0 if wanted else True))
        # Rounded, so that the sums of the page, in another order, rank the same.
        order = np.lexsort((found, -np.round(scores[found], 6), -n_matched[found]))
        return Hits(found[order], scores[found[order]], int((n_matched[found] == len(wanted)).sum()))

    def snippet(self, item: int, query: str) -> str:
        """Return the part of a text where most words of a query are, or its beginning.

        Parameters
        ----------
        item : int
            Index of the item.
        query : str
            The query.

        Returns
        -------
        snippet : str
            At most about 180 characters, on one line.
        """
        items = self.collection.items
        text = str(items.columns["text"][item]) if "text" in items else ""
        start = _densest(text, [word for part in parse(query) if not part.is_excluded for word in part.words])
        cut = " ".join(text[start : start + SNIPPET].split())
        return ("… " if start else "") + cut + (" …" if start + SNIPPET < len(text) else "")

    def _scored(self, part: Part) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which items have a part of a query, and their scores."""
        frequencies = [self._frequencies(word, part) for word in part.words]
        has = np.all([frequency > 0 for frequency in frequencies], axis=0)
        if part.is_phrase and len(part.words) > 1 and self.has_texts:
            has[has] = [_has_sequence(tokens(self._document(i)), part.words) for i in np.flatnonzero(has).tolist()]
        return has, np.where(has, sum(map(self._bm25, frequencies)), 0)

    def _frequencies(self, word: str, part: Part) -> Array:
        """Return how often each item has a word, and to a lesser degree its forms: "airlines" for "airline"."""
        first, last = (bisect_left(self.terms, end) for end in (word, word + "\U0010ffff"))
        lengths = np.array([len(term) for term in self.terms[first:last]], dtype=int)
        longest = part.longest(word)
        weights = np.where(part.is_prefix | (lengths == len(word)), 1.0, FORM) * (lengths <= longest)
        return np.asarray(self.counts[:, first:last] @ weights).ravel()

    def _bm25(self, frequency: Array) -> Array:
        n, n_with = len(frequency), int((frequency > 0).sum())
        weight = np.log1p((n - n_with + 0.5) / (n_with + 0.5))
        norm = K1 * (1 - B + B * self.lengths / max(self.lengths.mean(), 1e-12))
        return weight * frequency * (K1 + 1) / (frequency + norm)

    def _add(self, names: Any, counts: Any) -> None:
        """Add columns of counts; equal words are one column."""
        terms = sorted({*self.terms, *names})
        numbers = {term: number for number, term in enumerate(terms)}
        columns = [numbers[term] for term in (*self.terms, *names)]
        merge = sp.csr_array((np.ones(len(columns), np.float32), (np.arange(len(columns)), columns)))
        self.terms, self.counts = terms, sp.csc_array(sp.hstack([self.counts, counts], format="csr") @ merge)

    def _documents(self) -> list[str]:
        return [self._document(i) for i in range(len(self.collection))]

    def _document(self, item: int) -> str:
        columns = self.collection.items.columns
        return "\n".join(str(columns[name][item]) for name in FIELDS if name in columns)


def _index(documents: list[str]) -> tuple[list[str], sp.csc_array]:
    if not any(map(tokens, documents)):
        return [], sp.csc_array((len(documents), 0), dtype=np.float32)
    counter = CountVectorizer(analyzer=tokens, dtype=np.float32)
    counts = counter.fit_transform(documents)
    return counter.get_feature_names_out().tolist(), sp.csc_array(counts)


def _has_sequence(words: list[str], wanted: tuple[str, ...]) -> bool:
    return any(tuple(words[i : i + len(wanted)]) == wanted for i, word in enumerate(words) if word == wanted[0])


def _densest(text: str, words: list[str]) -> int:
    """Return where to start so that as many different words as possible are close together."""
    if not text or not words:
        return 0
    pattern = re.compile("|".join((r"(?<!\w)" if word.isascii() else "") + re.escape(word) for word in words))
    found = [match for match, _ in zip(pattern.finditer(text.lower()), range(MOST_OCCURRENCES), strict=False)]
    places = [(match.start(), match.group()) for match in found]
    if not places:
        return 0
    best = max(places, key=lambda place: (len({w for at, w in places if 0 <= at - place[0] < SNIPPET}), -place[0]))
    start = max(0, best[0] - SNIPPET // 4)
    return text.find(" ", start, best[0]) + 1 if start else 0
