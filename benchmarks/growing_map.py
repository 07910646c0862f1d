"""Displacement of old items when a map is extended by new ones: 20 Newsgroups, group by group, and UMAP refits.

pip install umap-learn
COUNTINGGRIDS_DATA=... python benchmarks/growing_map.py [--groups 10] [--json growing_map.json]

The map is fitted to the first ten groups. Then one group at a time is added with `model.grow`. The baselines are fitted
again to all documents each time: UMAP on TF-IDF and a truncated SVD of 50 dimensions, with a fixed seed, and HDBSCAN on
its five-dimensional embedding, as BERTopic does with other embeddings. Displacements are in cells of the grid, and as a
fraction of the width of the map: the side of the grid, or twice the RMS distance of the embedded documents from their
center, before and after the best rotation, reflection, scale and shift of the new embedding (Procrustes). Documents
that change their region or cluster are counted after the best matching of regions or clusters (Hungarian method). The
fraction on empty cells is that of new documents whose window was on cells with hardly any tokens.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

import countinggrids as cg
from common import table
from countinggrids import datasets
from countinggrids.features.stop_words import ENGLISH

N_FIRST, N_WORDS, N_DIMENSIONS, SEED = 10, 4000, 50, 0


def newsgroups():
    """Return the training documents of each group, with frequent words that are not function words."""
    news = datasets.newsgroups(Path(os.environ["COUNTINGGRIDS_DATA"]) / "text").split("split")["train"]
    n_documents = np.asarray((news.counts > 0).sum(axis=0)).ravel()
    is_used = np.array([len(word) > 2 and word not in ENGLISH for word in news.vocabulary.names])
    is_used &= (n_documents >= 5) & (n_documents <= len(news) / 10)
    words = np.flatnonzero(is_used)
    news = news.take_features(np.sort(words[np.argsort(-n_documents[words], kind="stable")[:N_WORDS]]))
    news = news.take(np.asarray(news.counts.sum(axis=1)).ravel() > 5)
    return [group for _, group in sorted(news.split("label").items())]


def changed(before, after):
    """Return the fraction of items that change their cluster, after the best matching; -1 is no cluster."""
    both = (before >= 0) & (after >= 0)
    names_before, i = np.unique(before[both], return_inverse=True)
    names_after, j = np.unique(after[both], return_inverse=True)
    counts = np.zeros((len(names_before), len(names_after)))
    np.add.at(counts, (i, j), 1)
    rows, columns = linear_sum_assignment(-counts)
    stayed = counts[rows, columns].sum() + ((before < 0) & (after < 0)).sum()
    return 1 - stayed / len(before)


def procrustes(before, after):
    """Return the points after, moved, turned and scaled to be nearest to those before."""
    center, other = before.mean(axis=0), after.mean(axis=0)
    u, singular, vt = np.linalg.svd((after - other).T @ (before - center))
    scale = singular.sum() / ((after - other) ** 2).sum()
    return (after - other) @ (u @ vt) * scale + center


class Grid:
    """The growing map."""

    def __init__(self, first):
        self.collection = first
        self.model = cg.CountingGrid((24, 24), (4, 4), max_iter=40, random_state=SEED).fit(first)
        self.regions = cg.find_regions(self.model, first)

    def add(self, new):
        """Grow the map, and return what moved."""
        growth = self.model.grow(new, self.collection, regions=self.regions)
        n_old = len(self.collection)
        regions = growth.regions
        places = growth.model.locate(growth.collection)[n_old:]
        side = np.sqrt(np.prod(growth.model.geometry_.grid))
        facts = {
            "grid": "x".join(map(str, growth.model.geometry_.grid)),
            "cells moved, median": float(np.median(growth.moved)),
            "cells moved, 90%": float(np.quantile(growth.moved, 0.9)),
            "width moved, median": float(np.median(growth.moved) / side),
            "width moved, mean": float(growth.moved.mean() / side),
            "more than a cell": float((growth.moved > 1.5).mean()),
            "region changed": changed(self.regions.items[-1], regions.items[-1][:n_old]),
            "new on free land": float(growth.was_free[tuple(places.T)].mean()),
            "born": sum(change.change == "born" for change in growth.changes),
        }
        self.model, self.collection, self.regions = growth.model, growth.collection, regions
        return facts


class Refit:
    """UMAP and HDBSCAN, fitted again to all documents."""

    def __init__(self, first):
        self.counts = [first.counts]
        self.places, self.clusters = self._fit()

    def _fit(self):
        import umap
        from scipy.sparse import vstack

        counts = vstack(self.counts, format="csr")
        points = TruncatedSVD(N_DIMENSIONS, random_state=SEED).fit_transform(TfidfTransformer().fit_transform(counts))
        flat = umap.UMAP(metric="cosine", random_state=SEED).fit_transform(points)
        five = umap.UMAP(n_components=5, min_dist=0.0, metric="cosine", random_state=SEED).fit_transform(points)
        return flat.astype(float), HDBSCAN(min_cluster_size=30).fit_predict(five)

    def add(self, new):
        """Fit again, and return what moved."""
        before, clusters = self.places, self.clusters
        self.counts.append(new.counts)
        self.places, self.clusters = self._fit()
        after = self.places[: len(before)]
        width = 2 * np.sqrt(((after - after.mean(axis=0)) ** 2).sum(axis=1).mean())
        plain = np.linalg.norm(after - before, axis=1) / width
        width = 2 * np.sqrt(((before - before.mean(axis=0)) ** 2).sum(axis=1).mean())
        aligned = np.linalg.norm(procrustes(before, after) - before, axis=1) / width
        return {
            "width moved, median": float(np.median(plain)),
            "width moved, median, aligned": float(np.median(aligned)),
            "clusters": int(self.clusters.max()) + 1,
            "cluster changed": changed(clusters, self.clusters[: len(before)]),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", type=int, default=10, help="number of groups to add, at most 10")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--no-umap", action="store_true", help="leave out the refits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    groups = newsgroups()
    first = cg.Collection.join(groups[:N_FIRST])
    maps = {"grow": Grid(first)} | ({} if options.no_umap else {"UMAP, HDBSCAN refit": Refit(first)})
    found = []
    for group in groups[N_FIRST : N_FIRST + options.groups]:
        for name, each in maps.items():
            began = time.process_time()
            facts = {"map": name, "group": str(group.items["label"][0])} | each.add(group)
            found.append(facts | {"CPU s": time.process_time() - began})
            print(json.dumps(found[-1]), flush=True)
    print()
    for name in maps:
        rows = [row for row in found if row["map"] == name]
        numbers = [key for key in rows[0] if isinstance(rows[0][key], float | int)]
        means = {key: [row[key] for row in rows] for key in numbers}
        lines = [[k, f"{np.mean(v):.3g}", f"{min(v):.3g}", f"{max(v):.3g}"] for k, v in means.items()]
        table(name, ["", "mean", "least", "most"], lines)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
