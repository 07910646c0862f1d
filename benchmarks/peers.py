"""Against what people would pick instead, on 20 Newsgroups: topic models by time and held-out words, maps by their
neighbourhoods.

pip install gensim tomotopy minisom umap-learn
COUNTINGGRIDS_DATA=... python benchmarks/peers.py [--plot peers.png]

Topic models: half of the words of each test document are shown, the others are to be foretold (document completion).
The clock stops while that is worked out; peers go on until they gain nothing more, or for five minutes. Maps: of the
ten nearest neighbours of a test document on the map, which share has its label. All see the same words: those in at
least 20 and at most a tenth of the training documents.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

import countinggrids as cg
from common import Clock, as_fitted, table, windows
from countinggrids import datasets
from countinggrids.core import torus

N_TOPICS, N_TRIED, N_NEIGHBOURS = 64, 2000, 10
PATIENCE, LONGEST = 3, 300
"""Rounds without a gain, and seconds, after which a peer stops."""
GRID, WINDOW = 64, 8


class News:
    """The training documents, halves of test documents, and labels."""

    def __init__(self, n_train=None):
        parts = datasets.newsgroups(Path(os.environ["COUNTINGGRIDS_DATA"]) / "text").split("split")
        train, test = parts["train"], parts["test"]
        rng = np.random.default_rng(0)
        times = np.asarray((train.counts > 0).sum(axis=0)).ravel()
        words = np.flatnonzero((times >= 20) & (times <= train.counts.shape[0] / 10))
        # The documents come sorted by newsgroup, which misleads whoever learns from a few of them at a time.
        some = rng.permutation(train.counts.shape[0])[:n_train]
        self.train = train.counts[:, words][some].astype(np.float32)
        tried = np.sort(rng.permutation(test.counts.shape[0])[:N_TRIED])
        self.test, self.labels = test.counts[tried][:, words].astype(np.float32), test.items["label"][tried].astype(str)
        self.shown = self.test.copy()
        self.shown.data = rng.binomial(self.test.data.astype(int), 0.5).astype(np.float32)
        self.hidden = self.test - self.shown
        self.hidden.eliminate_zeros()
        self.shown.eliminate_zeros()

    def perplexity(self, shares, words):
        """Foretell the hidden words by shares of topics, (documents, topics), and the topics' words."""
        total = 0.0
        for start in range(0, len(shares), 250):
            p = shares[start : start + 250] @ words
            hidden = self.hidden[start : start + 250].tocoo()
            total += hidden.data @ np.log(np.maximum(p[hidden.row, hidden.col], 1e-12))
        return float(np.exp(-total / self.hidden.data.sum()))


def counting_grid(news, batch_size):
    clock = Clock("counting grid" + (f", batches of {batch_size}" if batch_size else ""))
    model = cg.CountingGrid((GRID, GRID), WINDOW, random_state=0)

    def foretold(iteration):
        seen = as_fitted(iteration, WINDOW)
        return news.perplexity(seen.transform(news.shown), windows(seen.pi_, WINDOW))

    def look(iteration):
        if iteration.stage == "learning" and iteration.beta >= 1 and iteration.number % 5 == 0:
            clock.note(lambda: foretold(iteration))

    model.set_params(batch_size=batch_size).fit(news.train, callback=look)
    clock.note(lambda: news.perplexity(model.transform(news.shown), windows(model.pi_, WINDOW)))
    return clock, model


def rounds(clock):
    """Count rounds of learning until the last few have gained less than a thousandth, or time is up."""
    while clock.spent < LONGEST:
        seen = [perplexity for _, perplexity in clock.points]
        if len(seen) > PATIENCE and min(seen[-PATIENCE:]) > 0.999 * min(seen[:-PATIENCE]):
            return
        yield len(seen)


def scikit_learn(news):
    from sklearn.decomposition import LatentDirichletAllocation

    clock = Clock("scikit-learn LDA, online")
    model = LatentDirichletAllocation(
        N_TOPICS, batch_size=512, total_samples=news.train.shape[0], n_jobs=2, random_state=0
    )
    order = np.random.default_rng(0).permutation(news.train.shape[0])
    for _ in rounds(clock):
        for start in range(0, len(order), 512):
            model.partial_fit(news.train[order[start : start + 512]])
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        clock.note(lambda topics=topics: news.perplexity(model.transform(news.shown), topics))
    return clock


def gensim(news):
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    clock = Clock("gensim LDA")
    names = {number: str(number) for number in range(news.train.shape[1])}
    corpus = Sparse2Corpus(news.train.astype(int), documents_columns=False)
    shown = list(Sparse2Corpus(news.shown.astype(int), documents_columns=False))
    model = LdaModel(id2word=names, num_topics=N_TOPICS, alpha="auto", random_state=0)

    def foretold():
        shares = model.inference(shown)[0]
        return news.perplexity(shares / shares.sum(axis=1, keepdims=True), model.get_topics())

    for _ in rounds(clock):
        model.update(corpus)
        clock.note(foretold)
    return clock


def tomotopy(news):
    import tomotopy

    clock = Clock("tomotopy LDA")
    model = tomotopy.LDAModel(k=N_TOPICS, seed=0)
    for words in tokens(news.train):
        model.add_doc(words)

    def foretold():
        topics = np.zeros((N_TOPICS, news.train.shape[1]))
        columns = [int(name) for name in model.used_vocabs]
        for topic in range(N_TOPICS):
            topics[topic, columns] = model.get_topic_word_dist(topic)
        documents = [model.make_doc(words) for words in tokens(news.shown)]
        shares, _ = model.infer(documents, workers=2)
        return news.perplexity(np.array(shares), topics)

    for _ in rounds(clock):
        model.train(50, workers=2)
        clock.note(foretold)
    return clock


def tokens(counts):
    """Give every document as a list of its words' numbers; one without words has the first."""
    for row in range(counts.shape[0]):
        part = slice(counts.indptr[row], counts.indptr[row + 1])
        words = np.repeat(counts.indices[part], counts.data[part].astype(int))
        yield [str(word) for word in words] or ["0"]


def purity(places, labels, grid=None):
    """Give the share of the nearest neighbours that have the same label; on a torus where a grid is given."""
    places = places + 1e-6 * np.random.default_rng(0).random(places.shape)  # neighbours in one cell come in any order
    right = []
    for at, label in zip(places, labels, strict=True):
        way = places - at if grid is None else torus.displacement(at, places, grid)
        nearest = np.argpartition((way**2).sum(axis=1), N_NEIGHBOURS)[: N_NEIGHBOURS + 1]
        right.append(((labels[nearest] == label).sum() - 1) / N_NEIGHBOURS)
    return float(np.mean(right))


def flat(news):
    """Give training and test documents as 50 numbers each: tf-idf, then the strongest directions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    steps = make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(50, random_state=0), Normalizer())
    return steps.fit_transform(news.train), steps.transform(news.test)


def minisom(news):
    from minisom import MiniSom

    began = time.perf_counter()
    train, test = flat(news)
    model = MiniSom(GRID, GRID, train.shape[1], sigma=8, learning_rate=0.5, random_seed=0)
    model.random_weights_init(train)
    model.train(train, 10 * len(train), random_order=True)
    seconds = time.perf_counter() - began
    return seconds, purity(np.array([model.winner(each) for each in test], dtype=float), news.labels)


def umap(news):
    from umap import UMAP

    began = time.perf_counter()
    train, test = flat(news)
    model = UMAP(metric="cosine", random_state=0).fit(train)
    seconds = time.perf_counter() - began
    return seconds, purity(model.transform(test), news.labels)


def those_here(peers, news):
    """Run the peers that are installed, and say which are not."""
    found = {}
    for peer in peers:
        try:
            found[peer.__name__] = peer(news)
        except ImportError as error:
            print(f"{peer.__name__} is left out: {error}")
    return found


def draw(clocks, path):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(7, 4), layout="constrained", dpi=120)
    FigureCanvasAgg(made)
    axes = made.subplots()
    for clock in clocks:
        axes.plot(*zip(*clock.points, strict=True), marker=".", label=clock.name)
    axes.set(xscale="log", xlabel="seconds of learning", ylabel="perplexity of hidden words")
    axes.legend(frameon=False)
    made.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--documents", type=int, help="of the training documents; all of them if not given")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    news = News(options.documents)
    whole, model = counting_grid(news, None)
    clocks = [whole, counting_grid(news, 500)[0], *those_here([scikit_learn, gensim, tomotopy], news).values()]
    wanted = 1.01 * whole.best
    rows = [
        [clock.name, f"{clock.best:.0f}", f"{clock.points[-1][0]:.0f} s",
         f"{seconds:.0f} s" if (seconds := clock.until(wanted)) is not None else "never"]
        for clock in clocks
    ]  # fmt: skip
    sizes = f"grid {GRID}x{GRID}/{WINDOW}x{WINDOW}, {N_TOPICS} topics"
    table(
        f"{news.train.shape[0]} documents, {news.train.shape[1]} words; {sizes}",
        ["model", "best perplexity of hidden words", "all of the learning", f"to a perplexity of {wanted:.0f}"],
        rows,
    )
    maps = [
        ["counting grid", whole.points[-1][0], purity(model.locate(news.test), news.labels, model.log_prior_.shape)]
    ]
    maps += [[name, *found] for name, found in those_here([minisom, umap], news).items()]
    table(
        f"Maps: labels of the {N_NEIGHBOURS} nearest of {len(news.labels)} test documents",
        ["map", "learning", "same label, %"],
        [[name, f"{seconds:.0f} s", f"{100 * share:.1f}"] for name, seconds, share in maps],
    )
    if options.plot:
        draw(clocks, options.plot)


if __name__ == "__main__":
    main()
