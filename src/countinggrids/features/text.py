"""Counts of words as features."""

from array import array
from collections import Counter
from collections.abc import Iterable
from copy import copy
from itertools import chain, islice
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of
from countinggrids.features.counting import KEEPABLE, Analyzer, Tally
from countinggrids.features.documents import Columns, Document, Documents, read_documents
from countinggrids.features.saving import Saveable, check_texts
from countinggrids.features.stop_words import ENGLISH, looks_english
from countinggrids.features.tokenizers import Tokenizer, tokenizer_of
from countinggrids.features.vocabulary import Vocabulary

__all__ = ["Columns", "Document", "Documents", "NoWordError", "Tally", "Words", "read_documents"]

N_SAMPLED, LONGEST_SAMPLE = 1000, 10_000
"""Texts, and characters of each, from which the language is inferred."""
LONGEST_NGRAM = 10


class NoWordError(ValueError):
    """No word of some texts is left by the options of `Words`."""


class Words(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse counts of the words of texts.

    HTML, URLs, e-mail addresses and numbers are removed. Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer,
    Myanmar) are counted by pairs of characters.

    Parameters
    ----------
    min_df : int or float, default=1
        Smallest number of documents with a word, or fraction of them if a float.
    max_df : int or float, default=1.0
        Largest number of documents with a word, or fraction of them if a float.
    stop_words : {"auto", "english"}, list of str or None, default=None
        Words to drop. "english" is a short list of function words; "auto" is that list if the texts look English (8%
        of the words of the first 1000 texts are the, of, and, to and the like), and none otherwise.
    ngram_range : tuple of int, default=(1, 1)
        Smallest and largest n of n-grams; at most 10.
    max_features : int, default=None
        Number of words to keep, the most frequent. None keeps all.
    lowercase : bool, default=True
        Whether case is ignored.
    tokenizer : {"auto", "words", "characters", "whitespace", "jieba", "janome"} or callable, default="auto"
        How a text is split into words. "words" takes runs of letters and digits; "auto" does so too, except for
        pairs of characters in scripts without spaces; "characters" takes pairs everywhere; "whitespace" splits at
        white space only; "jieba" and "janome" split Chinese and Japanese with those packages. A callable takes a text
        and returns a list of words; a collection that was made with one cannot be saved.
    min_length : int, default=2
        Smallest number of characters of a word, except in scripts without spaces.
    keep : sequence of {"numbers", "urls", "emails", "html"}, default=()
        What is counted rather than removed.

    Attributes
    ----------
    names_ : list of str
        The words, in the order of the columns.
    stop_words_ : list of str
        The words that are dropped.
    settings_ : namespace
        How texts were split into words when it was fitted, which `transform` uses.

    Examples
    --------
    >>> from countinggrids.features import Words
    >>> words = Words().fit(["a cup of tea", "tea and tea"])
    >>> words.names_, words.transform(["tea, a cup, tea"]).toarray().tolist()
    (['and', 'cup', 'of', 'tea'], [[0.0, 1.0, 0.0, 2.0]])
    """

    _kept = ("tokenizer", "keep", "lowercase", "min_length", "ngram_range")

    def __init__(
        self,
        min_df: float = 1,
        max_df: float = 1.0,
        stop_words: Any = None,
        ngram_range: tuple[int, int] = (1, 1),
        max_features: int | None = None,
        lowercase: bool = True,
        tokenizer: str | Tokenizer = "auto",
        min_length: int = 2,
        keep: Any = (),
    ):
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.max_features = max_features
        self.lowercase = lowercase
        self.tokenizer = tokenizer
        self.min_length = min_length
        self.keep = keep

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the vocabulary.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted counter.
        """
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None, *, tally: Tally | None = None) -> sp.csr_array:
        """Learn the vocabulary and count, in one pass.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        y : None
            Ignored.
        tally : Tally, default=None
            Counts the words that are dropped, by reason.

        Returns
        -------
        counts : csr_array of shape (n_texts, n_words)
            Counts.
        """
        self._check_options()
        self.settings_ = settings_of(self, *self._kept)
        tally = Tally() if tally is None else tally
        texts = iter(texts)
        first = list(islice(texts, N_SAMPLED))
        self.stop_words_ = self._chosen_stop_words(first)
        names, counts = _counted(chain(first, texts), self._analyzer(tally))
        kept = self._frequent_enough(names, counts, tally)
        if not kept.size:
            raise NoWordError(
                f"min_df={self.min_df}, max_df={self.max_df} and {len(self.stop_words_)} stop words leave no word; "
                "expected at least one; use more texts, a smaller min_df or a larger max_df."
            )
        self.names_ = [names[i] for i in kept.tolist()]
        return counts[:, kept]

    def transform(self, texts: Iterable[str], *, tally: Tally | None = None) -> sp.csr_array:
        """Count the known words of each text.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        tally : Tally, default=None
            Counts the words that are dropped, by reason.

        Returns
        -------
        counts : csr_array of shape (n_texts, n_words)
            Counts.
        """
        check_is_fitted(self)
        tally = Tally() if tally is None else tally
        names, counts = _counted(texts, self._analyzer(tally))
        known = {name: i for i, name in enumerate(self.names_)}
        are_known = np.array([name in known for name in names], dtype=bool)
        _note(tally, "not in the vocabulary", ~are_known, names, counts)
        counts = counts[:, np.flatnonzero(are_known)]
        columns = np.array([known[name] for name in names if name in known], dtype=counts.indices.dtype)
        found = sp.csr_array((counts.data, columns[counts.indices], counts.indptr), (counts.shape[0], len(known)))
        found.sort_indices()
        return found

    def _check_options(self) -> None:
        """Raise if an option is invalid."""
        tokenizer_of(self.tokenizer)
        unknown = [name for name in self.keep if name not in KEEPABLE] if _is_list(self.keep) else [self.keep]
        if unknown:
            raise ValueError(f"keep={self.keep!r} must be some of {', '.join(KEEPABLE)}; use for instance ['numbers'].")
        is_list = _is_list(self.stop_words) and all(isinstance(word, str) for word in self.stop_words)
        if not is_list and self.stop_words not in ("auto", "english", None):
            raise ValueError(f"stop_words={self.stop_words!r} must be 'auto', 'english', a list of words or None.")
        if not isinstance(self.min_length, int | np.integer) or self.min_length < 0:
            raise ValueError(f"min_length={self.min_length!r} must be a number of characters; use for instance 2.")
        sequence = tuple(self.ngram_range)
        is_range = len(sequence) == 2 and all(isinstance(n, int | np.integer) for n in sequence)
        if not is_range or not 1 <= sequence[0] <= sequence[1] <= LONGEST_NGRAM:
            raise ValueError(
                f"ngram_range={self.ngram_range!r} must be two integers from 1 to {LONGEST_NGRAM}, the smaller first; "
                "use for instance (1, 2)."
            )

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Self:
        """Return a fitted counter of known words that drops nothing else.

        Parameters
        ----------
        names : iterable of str
            The words.

        Returns
        -------
        words : Words
            A fitted counter.
        """
        words = cls(min_length=1, keep=KEEPABLE)
        words.names_, words.stop_words_ = list(names), []
        words.settings_ = settings_of(words, *cls._kept)
        return words

    def restricted(self, names: Iterable[str]) -> Self:
        """Return a fitted counter of some of the words, which counts them in the same way.

        Parameters
        ----------
        names : iterable of str
            Words of the vocabulary.

        Returns
        -------
        words : Words
            A fitted counter.
        """
        check_is_fitted(self)
        words = copy(self)
        words.names_ = list(names)
        return words

    def _restored(self) -> None:
        self._check_options()
        type(self)(**vars(self.settings_))._check_options()
        check_texts(self, "names_", "stop_words_")

    @property
    def vocabulary_(self) -> Vocabulary:
        """The words as features."""
        return Vocabulary("words", tuple(self.names_))

    def _analyzer(self, tally: Tally, stop_words: Iterable[str] | None = None) -> Analyzer:
        how = self.settings_
        return Analyzer(
            tokenizer_of(how.tokenizer),
            self.stop_words_ if stop_words is None else list(stop_words),
            how.keep,
            how.lowercase,
            how.min_length,
            (how.ngram_range[0], how.ngram_range[1]),
            tally,
        )

    def _chosen_stop_words(self, sample: list[str]) -> list[str]:
        if self.stop_words == "auto":
            analyzer = self._analyzer(Tally(), ())
            words = (word for text in sample for word in analyzer.tokens(text[:LONGEST_SAMPLE]))
            return sorted(ENGLISH) if looks_english(words) else []
        return sorted(ENGLISH if self.stop_words == "english" else self.stop_words or ())

    def _frequent_enough(self, names: list[str], counts: sp.csr_array, tally: Tally) -> NDArray[np.int64]:
        """Return the indices of words to keep, and add the others to the tally."""
        n_texts = counts.shape[0]
        frequency = np.bincount(counts.indices, minlength=len(names))
        least, most = (limit * n_texts if isinstance(limit, float) else limit for limit in (self.min_df, self.max_df))
        is_rare, is_frequent = frequency < least, frequency > most
        _note(tally, "too rare", is_rare, names, counts)
        _note(tally, "too frequent", is_frequent & ~is_rare, names, counts)
        kept = np.flatnonzero(~is_rare & ~is_frequent)
        if self.max_features is None or len(kept) <= self.max_features:
            return kept
        order = np.argsort(-_totals(counts)[kept], kind="stable")
        chosen = np.sort(kept[order[: self.max_features]])
        _note(tally, "beyond max_features", np.isin(np.arange(len(names)), np.setdiff1d(kept, chosen)), names, counts)
        return chosen


def _is_list(value: Any) -> bool:
    return not isinstance(value, str) and isinstance(value, Iterable)


def _counted(texts: Iterable[str], analyzer: Analyzer) -> tuple[list[str], sp.csr_array]:
    """Return all words in alphabetical order, and their counts."""
    numbers: dict[str, int] = {}
    indices, data, ends = array("q"), array("f"), array("q", [0])
    for text in texts:
        found = Counter(analyzer(text))
        indices.extend(numbers.setdefault(word, len(numbers)) for word in found)
        data.extend(found.values())
        ends.append(len(indices))
    names = sorted(numbers)
    ranks = np.empty(len(names), np.int64)
    ranks[[numbers[name] for name in names]] = np.arange(len(names))
    columns = ranks[np.frombuffer(indices, np.int64)] if indices else np.empty(0, np.int64)
    shape = (len(ends) - 1, len(names))
    counts = sp.csr_array((np.array(data, np.float32), columns, np.array(ends, np.int64)), shape)
    counts.sort_indices()
    return names, _with_small_indices(counts)


def _with_small_indices(counts: sp.csr_array) -> sp.csr_array:
    """Return the counts with 32-bit indices if these suffice."""
    kind = sp.get_index_dtype((counts.indices, counts.indptr), max(*counts.shape, counts.nnz), check_contents=True)
    parts = (counts.data, counts.indices.astype(kind, copy=False), counts.indptr.astype(kind, copy=False))
    return sp.csr_array(parts, counts.shape)


def _totals(counts: sp.csr_array) -> NDArray[Any]:
    return np.bincount(counts.indices, counts.data, minlength=counts.shape[1])


def _note(tally: Tally, reason: str, which: NDArray[np.bool_], names: list[str], counts: sp.csr_array) -> None:
    totals = _totals(counts)
    tally.drop(reason, {names[i]: int(totals[i]) for i in np.flatnonzero(which).tolist()})
