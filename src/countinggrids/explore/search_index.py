"""The full-text index in an exported page: postings as gaps and counts, each a variable-length integer, compressed."""

import gzip
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def encode(terms: Sequence[str], counts: sp.csc_array, most_bytes: int) -> tuple[bytes, NDArray[np.int64]]:
    """Return the index, and the words in it: the most frequent ones may be left out.

    Parameters
    ----------
    terms : sequence of str
        The words.
    counts : csc_array of shape (n_items, n_terms)
        How often each item has each word.
    most_bytes : int
        Largest size. Where it is exceeded the most frequent words, which distinguish least, are left out.

    Returns
    -------
    content : bytes
        The numbers of items and of words, how many items have each word, gaps between their indices, counts, and the
        words, one a line; all numbers are variable-length integers, and all of it is compressed with gzip.
    kept : ndarray of int
        Columns that are in it.
    """
    n_with = np.diff(counts.indptr)
    most = int(n_with.max(initial=0))
    while True:
        kept = np.flatnonzero(n_with <= most)
        content = gzip.compress(_plain(terms, counts, kept), mtime=0)
        if len(content) <= most_bytes or most == 0:
            return content, kept
        most = most * 2 // 3


def _plain(terms: Sequence[str], counts: sp.csc_array, kept: NDArray[np.int64]) -> bytes:
    counts = counts[:, kept]
    counts.sort_indices()
    n_with = np.diff(counts.indptr)
    gaps = np.diff(counts.indices, prepend=0)
    firsts = counts.indptr[:-1][n_with > 0]
    gaps[firsts] = counts.indices[firsts]
    numbers = np.concatenate([[counts.shape[0], len(kept)], n_with, gaps, counts.data]).astype(np.int64)
    return variable_length(numbers) + "\n".join(terms[i] for i in kept.tolist()).encode("utf-8", "replace")


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
