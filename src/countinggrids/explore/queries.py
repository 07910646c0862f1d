"""Queries of the full-text search: words, "phrases", -exclusions and prefixes*."""

import re
import unicodedata
from typing import NamedTuple

from countinggrids.features.tokenizers import tokenizer_of

PARTS = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')

SHORTEST_WITH_FORMS, LONGEST_ENDING = 4, 3
"""A word of at least so many letters finds words with up to so many more at their end."""
LONGEST_WORD = 1_000_000


class Part(NamedTuple):
    """A part of a query.

    Attributes
    ----------
    words : tuple of str
        A word, or the words of a phrase.
    is_phrase : bool
        Whether it was in quotes: only documents with these words in sequence are found.
    is_excluded : bool
        Whether documents with it are left out.
    is_prefix : bool
        Whether the word may go on.
    """

    words: tuple[str, ...]
    is_phrase: bool = False
    is_excluded: bool = False
    is_prefix: bool = False

    def longest(self, word: str) -> int:
        """Return the largest length of words that a word of this part stands for: its forms are a little longer."""
        if self.is_prefix:
            return LONGEST_WORD
        return len(word) + (0 if self.is_phrase or len(word) < SHORTEST_WITH_FORMS else LONGEST_ENDING)


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case; characters of scripts without spaces come in pairs."""
    return tokenizer_of("auto")(unicodedata.normalize("NFKC", text).lower())


def parse(query: str) -> list[Part]:
    """Return the parts of a query, each once.

    Parameters
    ----------
    query : str
        What a person typed.

    Returns
    -------
    parts : list of Part
        Words, phrases, exclusions and prefixes.

    Examples
    --------
    >>> [part.words for part in parse('airline "plane crash" -navy')]
    [('airline',), ('plane', 'crash'), ('navy',)]
    """
    found: list[Part] = []
    for sign, quoted, bare in PARTS.findall(query):
        words, is_excluded = tuple(tokens(quoted or bare)), bool(sign)
        if quoted and words:
            found.append(Part(words, True, is_excluded))
        elif is_excluded and len(words) > 1:
            found.append(Part(words, True, True))
        else:
            found += [Part((word,), False, is_excluded) for word in words]
            if words and bare.endswith("*"):
                found[-1] = found[-1]._replace(is_prefix=True)
    return list(dict.fromkeys(found))


def positive_text(query: str) -> str:
    """Return a query without its exclusions and marks, as a text."""
    return " ".join(quoted or bare.rstrip("*") for sign, quoted, bare in PARTS.findall(query) if not sign)
