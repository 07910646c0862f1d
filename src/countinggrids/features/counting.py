"""The analysis of a text into words, with a tally of those that are dropped."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any

from countinggrids.features import cleaning, tokenizers

KEEPABLE = ("numbers", "urls", "emails", "html")
LONGEST_WORD = 64
"""Largest number of characters of a word; longer tokens are encoded data, keys or drawn lines."""
N_EXAMPLES = 5


class Tally:
    """Statistics of texts, and of the words that were dropped from them.

    Attributes
    ----------
    n_texts : int
        Texts.
    n_tokens : int
        Tokens before any was dropped.
    n_markup : int
        Texts with HTML.
    n_characters : int
        Characters other than white space.
    n_dense : int
        Characters of scripts without spaces.
    dropped : dict of str to Counter
        Dropped words with their counts, by reason.
    """

    def __init__(self) -> None:
        self.n_texts = self.n_tokens = self.n_markup = self.n_characters = self.n_dense = 0
        self.dropped: dict[str, Counter[str]] = {}

    def drop(self, reason: str, counts: dict[str, int]) -> None:
        """Add words that are dropped, with their counts."""
        if counts:
            self.dropped.setdefault(reason, Counter()).update(counts)

    def facts(self) -> dict[str, Any]:
        """Return the tally as plain data, the reasons that dropped most first."""
        totals = {reason: sum(counts.values()) for reason, counts in self.dropped.items()}
        return {
            "tokens": self.n_tokens,
            "texts_with_html": self.n_markup,
            "fraction_without_spaces": round(self.n_dense / max(self.n_characters, 1), 4),
            "dropped": {
                reason: {
                    "words": len(self.dropped[reason]),
                    "tokens": totals[reason],
                    "examples": [word for word, _ in self.dropped[reason].most_common(N_EXAMPLES)],
                }
                for reason in sorted(totals, key=lambda reason: (-totals[reason], reason))
            },
        }


class Analyzer:
    """An analyzer: a text in, its words out.

    Parameters
    ----------
    tokenize : callable
        Tokenizer: a text in, a list of tokens out.
    stop_words : collection of str
        Words to drop.
    keep : collection of {"numbers", "urls", "emails", "html"}
        What is not dropped.
    lowercase : bool
        Whether case is ignored.
    min_length : int
        Smallest number of characters of a word, except in scripts without spaces.
    ngram_range : tuple of int
        Smallest and largest n of n-grams.
    tally : Tally
        Counts what is dropped.
    """

    def __init__(
        self,
        tokenize: Callable[[str], Iterable[str]],
        stop_words: Collection[str],
        keep: Collection[str],
        lowercase: bool,
        min_length: int,
        ngram_range: tuple[int, int],
        tally: Tally,
    ):
        self.tokenize, self.stop_words, self.keep = tokenize, frozenset(stop_words), frozenset(keep)
        self.lowercase, self.min_length, self.ngram_range, self.tally = lowercase, min_length, ngram_range, tally
        self._reasons: dict[str, str] = {}

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, and their n-grams."""
        return _ngrams(self._kept(self.tokens(text)), self.ngram_range)

    def tokens(self, text: str) -> list[str]:
        """Return all tokens of a text, before any is dropped."""
        text = self._cleaned(unicodedata.normalize("NFKC", text))
        return list(self.tokenize(text.lower() if self.lowercase else text))

    def _cleaned(self, text: str) -> str:
        self.tally.n_texts += 1
        if "html" not in self.keep:
            plain = cleaning.without_markup(text)
            self.tally.n_markup += plain != text
            text = plain
        removed = {"urls": ("URLs", cleaning.without_urls), "emails": ("e-mail addresses", cleaning.without_emails)}
        for name, (reason, remove) in removed.items():
            if name not in self.keep:
                text, hosts = remove(text)
                self.tally.drop(reason, Counter(hosts))
        self.tally.n_characters += len(text) - sum(map(str.isspace, text))
        self.tally.n_dense += tokenizers.n_dense(text)
        return text

    def _kept(self, tokens: list[str]) -> list[str]:
        self.tally.n_tokens += len(tokens)
        reasons = [self._reason(token) for token in tokens]
        for reason in set(reasons) - {""}:
            self.tally.drop(reason, Counter(t for t, why in zip(tokens, reasons, strict=True) if why == reason))
        return [token for token, reason in zip(tokens, reasons, strict=True) if not reason]

    def _reason(self, token: str) -> str:
        """Return why a word is dropped, or an empty string; cached, because words recur."""
        found = self._reasons.get(token)
        if found is None:
            found = self._reasons[token] = self._find_reason(token)
        return found

    def _find_reason(self, token: str) -> str:
        if token.isdigit() and "numbers" not in self.keep:
            return "numbers"
        if token in self.stop_words:
            return "stop words"
        if len(token) < self.min_length and not tokenizers.n_dense(token):
            return "too short"
        return "too long" if len(token) > LONGEST_WORD else ""


def _ngrams(tokens: list[str], ngram_range: tuple[int, int]) -> list[str]:
    shortest, longest = ngram_range
    if longest == 1:
        return tokens
    lengths = range(shortest, longest + 1)
    return [" ".join(tokens[i : i + n]) for n in lengths for i in range(len(tokens) - n + 1)]
