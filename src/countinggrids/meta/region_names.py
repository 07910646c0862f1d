"""Names of regions: words that distinguish a region from the rest of the map, and that many of its items have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.log_odds import log_odds
from countinggrids.features.stop_words import ENGLISH

Array = NDArray[Any]
N_WORDS, N_NAMING = 12, 3
"""Distinctive words that are listed for a region, and those of its name."""
PRIOR = 0.01
"""Weight of the prior: pseudocounts for each count of the whole collection."""
LEAST_LIFT = 1.5
"""How many times as frequent a word of a name must be inside as outside."""
LEAST_SHARE = 0.08
"""Fraction of a region's items that must have a word for it to be in the name."""
COVERAGE = 0.5
"""Power of the fraction of a region's items with a word, by which its z-score is multiplied."""
SHORTEST = 3
_UNTELLING = """
two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million billion
first second third dozen half iii
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december
mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec
percent number numbers year years month months week weeks day days time times people based announced called found
said says say told mrs inc corp ltd etc sen rep gov gen col sgt rev
www http https com org net edu gov uucp article writes thanks
get gets got getting give gave given going goes went gone come came coming make makes made making take took taken taking
know knew known think thought want wanted like likes look looks looking let put say saying see seen seem seems use used
never ever always often really quite thing things something anything everything someone everyone lot lots way ways
many much
please anyone anybody hello advance appreciate appreciated sorry regards cheers mail email
"""
UNTELLING = ENGLISH | frozenset(_UNTELLING.split())
"""Function words, verbs and adverbs of all subjects, numbers, dates and abbreviations, which name nothing."""
SUFFIXES = ("'s", "ies", "es", "s", "ing", "ed", "al", "ly", "y", "e")


def distinctive(counts: Array) -> Array:
    """Compute z-scores of the log-odds of every feature in each region against the other regions.

    Parameters
    ----------
    counts : ndarray of shape (n_regions, n_features)
        Counts of regions that together are the whole.

    Returns
    -------
    z : ndarray of shape (n_regions, n_features)
        z-scores.
    """
    everywhere = counts.sum(axis=0)
    return log_odds(counts, everywhere - counts, PRIOR * everywhere)[1]


def is_telling(word: str) -> bool:
    """Return whether a word may be part of a name: letters only, not short, not a function word."""
    parts = word.split()
    return bool(parts) and all(_is_plain(part) for part in parts)


def _is_plain(word: str) -> bool:
    is_spelled = all(letter.isalpha() or letter in "'-\u2019" for letter in word)
    is_long = len(word) >= SHORTEST or not word.isascii()
    return is_spelled and is_long and word.lower() not in UNTELLING


def stem(word: str) -> str:
    """Return a word without a common English ending, to find words that say the same twice."""
    plain = word.lower()
    for suffix in SUFFIXES:
        if plain.endswith(suffix) and len(plain) - len(suffix) >= 3:
            return plain.removesuffix(suffix)
    return plain


def name_of(order: Sequence[int], names: Sequence[str], taken: set[str]) -> str:
    """Join the first words of a ranking that do not repeat each other or the words of larger regions.

    Parameters
    ----------
    order : sequence of int
        Features, the most distinctive first.
    names : sequence of str
        Names of all features.
    taken : set of str
        Stems that may not be used; those of the name are added.

    Returns
    -------
    name : str
        Words joined by commas; empty if no word is left.
    """
    chosen: list[str] = []
    for feature in order:
        stems = {stem(part) for part in names[feature].split()}
        if not any(_repeats(one, other) for one in stems for other in taken):
            chosen.append(names[feature])
            taken |= stems
        if len(chosen) == N_NAMING:
            break
    return ", ".join(chosen)


def with_own_leads(names: Sequence[Sequence[str]], others: Sequence[Sequence[str]] = ()) -> list[str]:
    """Join the words of names, reordered so that, where possible, no two names begin with the same word.

    Parameters
    ----------
    names : sequence of sequence of str
        Words, or labels, of each name, those of the largest regions first.
    others : sequence of sequence of str, default=()
        Words of names that stay as they are.

    Returns
    -------
    names : list of str
        The same words, joined by commas.

    Examples
    --------
    >>> with_own_leads([["car", "engine"], ["cars", "dealer"], ["moon"]])
    ['car, engine', 'dealer, cars', 'moon']
    """
    leads = {stem(words[0]) for words in others}
    found = []
    for words in names:
        ordered = sorted(words, key=lambda word: stem(word) in leads)
        leads |= {stem(word) for word in ordered[:1]}
        found.append(", ".join(ordered))
    return found


def _repeats(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) >= 5 and long.startswith(short))


def ranking(z: Array, inside: Array, outside: Array, n_items: float, may_name: Array) -> list[int]:
    """Rank the features that may name a region.

    Parameters
    ----------
    z : ndarray of shape (n_features,)
        z-scores against the rest of the map.
    inside, outside : ndarray of shape (n_features,)
        Number of items with the feature, in the region and elsewhere.
    n_items : float
        Number of items of the region.
    may_name : ndarray of bool of shape (n_features,)
        Features that can be part of a name.

    Returns
    -------
    features : list of int
        The best first; features that are rare in the region, or hardly more frequent than elsewhere, come last.
    """
    total_inside, total_outside = max(inside.sum(), 1e-9), max(outside.sum(), 1e-9)
    is_frequent = inside >= max(LEAST_SHARE * n_items, 1.5)
    has_lift = inside / total_inside >= LEAST_LIFT * outside / total_outside
    score = z * np.minimum(inside / max(n_items, 1e-9), 1) ** COVERAGE
    is_first = is_frequent & has_lift & (z > 0)
    candidates = np.flatnonzero(may_name & (inside > 0))
    return candidates[np.lexsort((-score[candidates], ~is_first[candidates]))].tolist()
