"""The full-text index in an exported page: postings as gaps and counts, each a variable-length integer, compressed."""

import gzip

import numpy as np
from numpy.typing import NDArray

from countinggrids.explore.text_search import TextSearch


def encode(search: TextSearch, most_bytes: int) -> tuple[bytes, int]:
    """Return the index, and the number of words that are left out of it because they are too frequent.

    Parameters
    ----------
    search : TextSearch
        The index.
    most_bytes : int
        Largest size. Where it is exceeded the most frequent words, which distinguish least, are left out.

    Returns
    -------
    content : bytes
        The numbers of items and of words, how many items have each word, gaps between their indices, counts, and the
        words, one a line; all numbers are variable-length integers, and all of it is compressed with gzip.
    n_left_out : int
        Words that are left out.
    """
    n_with = np.diff(search.counts.indptr)
    most = int(n_with.max(initial=0))
    while True:
        kept = np.flatnonzero(n_with <= most)
        content = gzip.compress(_plain(search, kept), mtime=0)
        if len(content) <= most_bytes or most == 0:
            return content, len(n_with) - len(kept)
        most = most * 2 // 3


def _plain(search: TextSearch, kept: NDArray[np.int64]) -> bytes:
    counts = search.counts[:, kept]
    counts.sort_indices()
    n_with = np.diff(counts.indptr)
    gaps = np.diff(counts.indices, prepend=0)
    firsts = counts.indptr[:-1][n_with > 0]
    gaps[firsts] = counts.indices[firsts]
    numbers = np.concatenate([[counts.shape[0], len(kept)], n_with, gaps, counts.data]).astype(np.int64)
    return variable_length(numbers) + "\n".join(search.terms[i] for i in kept.tolist()).encode("utf-8", "replace")


def variable_length(numbers: NDArray[np.int64]) -> bytes:
    """Encode numbers in groups of seven bits, lowest first; the highest bit says that another group follows.

    Parameters
    ----------
    numbers : ndarray of shape (n_numbers,)
        Numbers from 0 to 2**35 - 1.

    Returns
    -------
    content : bytes
        One to five bytes for each number.
    """
    groups = numbers[:, None] >> np.arange(0, 35, 7)
    is_needed = groups > 0
    is_needed[:, 0] = True
    is_continued = np.c_[is_needed[:, 1:], np.zeros(len(numbers), bool)]
    return ((groups & 127) | (is_continued << 7)).astype(np.uint8)[is_needed].tobytes()
