"""Topics, weights and maps of models of texts: coherence, classification by weights, and labels of neighbors.

pip install tomotopy umap-learn minisom
COUNTINGGRIDS_DATA=... python benchmarks/topics.py [--results topics.json]

NPMI: the ten most probable words of a topic or window, co-occurrence in held-out documents, mean over topics;
diversity: the fraction of different words among the 25 most probable ones of all topics. Windows of a grid overlap, so
as many of them as have the most tokens are taken, none overlapping another. Classification: square roots of the weights
of topics, of windows or (componential grid) of cells, trained on training documents and tested on others. Purity: of
the ten nearest neighbors of a test document on the map, how many share its label. Runs are kept in the file of results
as they end.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import countinggrids as cg
from common import table, windows
from corpora import CORPORA
from countinggrids.core import torus
from peers import N_WORKERS, tokens

N_WORDS, N_DIVERSE, N_NEIGHBORS = 10, 25, 10
TOMOTOPY_TOPICS, TOMOTOPY_ITERATIONS = (64, 200), 500


def npmi(topics, counts):
    """Compute the mean normalized pointwise mutual information of the top words of topics."""
    is_there = (counts > 0).astype(np.float64)
    n, scores = counts.shape[0], []
    for topic in topics:
        top = np.argsort(-topic)[:N_WORDS]
        both = np.asarray((is_there[:, top].T @ is_there[:, top]).todense())
        single = np.diag(both)
        pairs = [(i, j) for i in range(N_WORDS) for j in range(i) if single[i] and single[j]]
        found = [
            -1.0 if both[i, j] == 0 else np.log(both[i, j] * n / (single[i] * single[j])) / -np.log(both[i, j] / n)
            for i, j in pairs
        ]
        scores.append(np.mean(found) if found else 0.0)
    return float(np.mean(scores))


def diversity(topics):
    """Compute the fraction of different words among the top words of all topics."""
    tops = np.argsort(-topics, axis=1)[:, :N_DIVERSE]
    return len(np.unique(tops)) / tops.size


def apart(usage, window, n_topics):
    """Return the cells of the most used windows, none overlapping another."""
    chosen = []
    for cell in np.argsort(-usage.ravel()):
        place = np.array(np.unravel_index(cell, usage.shape))
        way = [np.abs(torus.displacement(place, other, usage.shape)) for other, _ in chosen]
        if all((each >= window).any() for each in way):
            chosen.append((place, cell))
    return [cell for _, cell in chosen[:n_topics]]


def accuracies(train, test, corpus):
    """Classify by weights: ten nearest neighbors and logistic regression, on their roots."""
    found = []
    for model in (KNeighborsClassifier(N_NEIGHBORS), LogisticRegression(C=10, max_iter=300)):
        model.fit(train, corpus.train_labels)
        found.append(100 * model.score(test, corpus.test_labels))
    return found


def purity(places, labels, grid=None):
    """Compute the fraction of the nearest neighbors, on a torus or in the plane, that have the same label."""
    places = places + 1e-6 * np.random.default_rng(0).random(places.shape)  # neighbors in one cell come in any order
    found = []
    for at, label in zip(places, labels, strict=True):
        way = places - at if grid is None else torus.displacement(at, places, grid)
        nearest = np.argpartition((way**2).sum(axis=1), N_NEIGHBORS)[: N_NEIGHBORS + 1]
        found.append(((labels[nearest] == label).sum() - 1) / N_NEIGHBORS)
    return 100 * float(np.mean(found))


def grid_row(model, corpus):
    """Measure a fitted grid."""
    h = windows(model.pi_, model.geometry_.window[0])
    weights = getattr(model, "cell_weights", model.transform)
    train, test = (np.sqrt(weights(X)) for X in (corpus.train, corpus.test))
    usage = model.usage(corpus.train).reshape(model.geometry_.grid)
    topics = h[apart(usage, model.geometry_.window, 64)]
    row = {"NPMI": npmi(topics, corpus.test), "diversity": diversity(topics)}
    row["neighbors"], row["linear"] = accuracies(train, test, corpus)
    return row | {"purity": purity(model.locate(corpus.test), corpus.test_labels, model.geometry_.grid)}


def componential(corpus):
    return grid_row(cg.ComponentialGrid(random_state=0).fit(corpus.train), corpus)


def componential_smooth(corpus):
    return grid_row(cg.ComponentialGrid((32, 32), (4, 4), random_state=0).fit(corpus.train), corpus)


def counting_grid(corpus):
    return grid_row(cg.CountingGrid((64, 64), 8, batch_size=500, random_state=0).fit(corpus.train), corpus)


def tomotopy(n_topics):
    def run(corpus):
        import tomotopy

        model = tomotopy.LDAModel(k=n_topics, seed=0)
        for words in tokens(corpus.train):
            model.add_doc(words)
        model.train(TOMOTOPY_ITERATIONS, workers=N_WORKERS)
        topics = np.zeros((n_topics, corpus.train.shape[1]))
        columns = [int(name) for name in model.used_vocabs]
        for topic in range(n_topics):
            topics[topic, columns] = model.get_topic_word_dist(topic)
        weights = [
            np.sqrt(model.infer([model.make_doc(words) for words in tokens(X)], workers=N_WORKERS)[0])
            for X in (corpus.train, corpus.test)
        ]
        row = {"NPMI": npmi(topics, corpus.test), "diversity": diversity(topics)}
        row["neighbors"], row["linear"] = accuracies(*weights, corpus)
        return row

    return run


def projected(corpus, n_dimensions):
    """Return training and test documents as unit vectors of tf-idf and SVD."""
    steps = make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(n_dimensions, random_state=0), Normalizer())
    return steps.fit_transform(corpus.train), steps.transform(corpus.test)


def umap_map(corpus):
    from umap import UMAP

    train, test = projected(corpus, 50)
    return {"purity": purity(UMAP(metric="cosine", random_state=0).fit(train).transform(test), corpus.test_labels)}


def minisom_map(corpus):
    from minisom import MiniSom

    train, test = projected(corpus, 50)
    model = MiniSom(64, 64, train.shape[1], sigma=8, learning_rate=0.5, random_seed=0)
    model.random_weights_init(train)
    model.train(train, 10 * len(train), random_order=True)
    return {"purity": purity(np.array([model.winner(each) for each in test], float), corpus.test_labels)}


def lsa(corpus):
    train, test = projected(corpus, 100)
    neighbors, linear = accuracies(train, test, corpus)
    return {"neighbors": neighbors, "linear": linear}


MODELS = {
    "componential grid": componential,
    "componential grid 32x32/4x4": componential_smooth,
    "counting grid 64x64/8x8, batches": counting_grid,
    **{f"tomotopy LDA, {k} topics": tomotopy(k) for k in TOMOTOPY_TOPICS},
    "tf-idf and SVD, 100 dimensions": lsa,
    "UMAP of tf-idf and SVD, 50 dimensions": umap_map,
    "MiniSom 64x64 of the same": minisom_map,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="names of models, or parts of them")
    parser.add_argument("--results", type=Path, default=Path("topics.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    corpus = CORPORA["news"]()
    for name, run in MODELS.items():
        if name in results or not (options.only is None or any(part in name for part in options.only)):
            continue
        try:
            results[name] = run(corpus)
        except ImportError as error:
            print(f"{name} is left out: {error}")
            continue
        print(name, results[name], flush=True)
        options.results.write_text(json.dumps(results, indent=1))
    heads = {"NPMI": ".3f", "diversity": ".2f", "neighbors": ".1f", "linear": ".1f", "purity": ".1f"}
    rows = [
        [name, *(format(row[head], style) if head in row else "-" for head, style in heads.items())]
        for name, row in results.items()
    ]
    table("Topics, weights and maps of 20 Newsgroups; last three columns in %", ["model", *heads], rows)


if __name__ == "__main__":
    main()
