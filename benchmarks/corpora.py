"""Texts of the benchmarks: training documents, and test documents of which half of the words are held out."""

import gzip
import os
import re
from pathlib import Path

import numpy as np

import countinggrids as cg
from countinggrids import datasets

MANUAL = Path("/usr/share/man")
ROFF = r"^[.'][\\ ]*\S+|\\f[A-Z]|\\f?\[?\(?\S{0,2}"
"""Requests and escapes of the language that manual pages are written in."""
N_TESTED = 2000
"""Test documents, at most."""


class Completion:
    """Test documents: half of the tokens are observed, and the others are predicted."""

    def __init__(self, test, rng):
        self.test, self.shown = test, test.copy()
        self.shown.data = rng.binomial(test.data.astype(int), 0.5).astype(np.float32)
        self.hidden = (test - self.shown).tocsr()
        self.hidden.eliminate_zeros()
        self.shown.eliminate_zeros()

    def perplexity(self, weights, topics):
        """Compute the perplexity of the held-out words from weights of topics, (documents, topics), and topics."""
        total = 0.0
        for start in range(0, len(weights), 250):
            p = weights[start : start + 250] @ topics
            hidden = self.hidden[start : start + 250].tocoo()
            total += hidden.data @ np.log(np.maximum(p[hidden.row, hidden.col], 1e-12))
        return float(np.exp(-total / self.hidden.data.sum()))


class Corpus(Completion):
    """Training documents, and halves of test documents.

    All models see the same words: those in at least `least` and at most a tenth of the training documents.
    """

    def __init__(self, name, train, test, least, labels=None, words=None, seed=0):
        self.name = name
        rng = np.random.default_rng(seed)
        times = np.asarray((train > 0).sum(axis=0)).ravel()
        kept = np.flatnonzero((times >= least) & (times <= train.shape[0] / 10))
        # Documents come sorted by label, which misleads models that learn from a few of them at a time.
        order = rng.permutation(train.shape[0])
        self.train = train[:, kept][order].astype(np.float32)
        tested = np.sort(rng.permutation(test.shape[0])[:N_TESTED])
        super().__init__(test[tested][:, kept].astype(np.float32), rng)
        self.words = None if words is None else [words[i] for i in kept]
        if labels is not None:
            self.train_labels, self.test_labels = labels[0][order], labels[1][tested]


def newsgroups():
    """20 Newsgroups by date: 11,269 training documents."""
    whole = datasets.newsgroups(_folder())
    parts = whole.split("split")
    labels = [parts[part].items["label"].astype(str) for part in ("train", "test")]
    return Corpus("20 Newsgroups", parts["train"].counts, parts["test"].counts, 20, labels, whole.vocabulary.names)


def ap():
    """AP news stories: four fifths of them are training documents."""
    return _random_fifth("AP stories", cg.Collection.from_texts(datasets.ap(_folder() / "ap.txt"), keep_texts=False))


def manual_pages():
    """Linux manual pages, sections 2, 3 and 7 (Debian's manpages and manpages-dev): four fifths for training."""
    pages = [
        gzip.decompress(path.read_bytes()).decode(errors="replace") for path in sorted(MANUAL.glob("man[237]/*.gz"))
    ]
    texts = [
        " ".join(re.sub(ROFF, " ", page, flags=re.MULTILINE).split()) for page in pages if ".so " not in page[:200]
    ]
    return _random_fifth("manual pages", cg.Collection.from_texts(sorted({text for text in texts if len(text) > 500})))


def _random_fifth(name, whole):
    """Hold out a fifth of a collection as test documents."""
    is_test = np.zeros(len(whole), bool)
    is_test[np.random.default_rng(0).permutation(len(whole))[: len(whole) // 5]] = True
    return Corpus(name, whole.counts[~is_test], whole.counts[is_test], 5, None, whole.vocabulary.names)


def _folder():
    return Path(os.environ["COUNTINGGRIDS_DATA"]) / "text"


CORPORA = {"news": newsgroups, "ap": ap, "manual": manual_pages}
