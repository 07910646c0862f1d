"""Bags of words of documents, with a report on what was read and left out."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from countinggrids.features.counting import Tally
from countinggrids.features.documents import Document, Documents
from countinggrids.features.stream import Progress
from countinggrids.features.text import Words
from countinggrids.features.text_report import DocumentLog, Report, name_of, report_of

ITEM_COLUMNS = ("text", "title", "link", "label", "path", "time")
"""Fields of documents that a collection keeps."""

MAX_WORDS = 10_000
"""Words of a vocabulary that suits a map."""
SMALL = 50
"""Number of texts up to which every word counts."""


def words_for(n_texts: int, max_words: int = MAX_WORDS) -> Words:
    """Return a counter of words that suits a map of some number of texts.

    Words of a single text, words of more than half of the texts and English function words are dropped, unless there
    are few texts.

    Parameters
    ----------
    n_texts : int
        Number of texts.
    max_words : int, default=10000
        Largest number of words; the most frequent are kept.

    Returns
    -------
    words : Words
        A counter that is not fitted.
    """
    if n_texts <= SMALL:
        return every_word(max_words)
    return Words(min_df=2, max_df=0.5, stop_words="auto", max_features=max_words)


def every_word(max_words: int = MAX_WORDS) -> Words:
    """Return a counter that drops no word but English function words, for texts that `words_for` leaves without any."""
    return Words(stop_words="auto", max_features=max_words)


class TextBags(NamedTuple):
    """Bags of words.

    Attributes
    ----------
    counts : csr_array of shape (n_documents, n_words)
        The counts.
    documents : list of Document
        Documents with at least one word of the vocabulary.
    report : dict
        What was read and what was left out.
    """

    counts: sp.csr_array
    documents: list[Document]
    report: Report


def bag_texts(
    documents: Iterable[Document], words: Words, keep_texts: bool = True, callback: Progress | None = None
) -> TextBags:
    """Count the words of documents in one pass; leave out those without a word of the vocabulary.

    Parameters
    ----------
    documents : iterable of Document
        The documents.
    words : Words
        Counts the words; a fitted one keeps its vocabulary.
    keep_texts : bool, default=True
        Whether the returned documents include their texts.
    callback : callable, default=None
        Called after each document with the number of documents done, and None, as their total is unknown.

    Returns
    -------
    bags : TextBags
        Counts, documents and report.
    """
    log, tally = DocumentLog(), Tally()
    used: list[Document] = []

    def texts() -> Iterator[str]:
        for given in documents:
            document = log.add(given)
            if callback is not None:
                callback(log.n_texts, None)
            if document.text.strip():
                used.append(document if keep_texts else document._replace(text=""))
                yield document.text
        if not used:
            raise ValueError(f"documents has no texts ({log.n_texts} read); expected at least one; check the files.")

    count = words.transform if hasattr(words, "names_") else words.fit_transform
    counts = count(texts(), tally=tally)
    has_words = np.diff(counts.indptr) > 0
    for row in np.flatnonzero(~has_words).tolist():
        log.wordless.add(used[row].source, name_of(used[row]))
    kept = [used[row] for row in np.flatnonzero(has_words).tolist()]
    if not kept:
        raise ValueError(
            f"none of {log.n_texts} texts has a word of the vocabulary; use other texts, or another vocabulary."
        )
    counts = counts[np.flatnonzero(has_words)]
    sources = documents.report if isinstance(documents, Documents) else []
    return TextBags(counts, kept, report_of(log, tally, kept, counts, words, sources))
