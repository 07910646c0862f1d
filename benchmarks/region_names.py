"""Stability and coverage of the names of regions: maps of AP stories and of 20 Newsgroups from several seeds.

COUNTINGGRIDS_DATA=... python benchmarks/region_names.py [--seeds 3] [--data ap newsgroups] [--json region_names.json]

Maps are fitted as `countinggrids map --one-place` does, or with `--several-places` where that is given. Regions of two
seeds are matched by the items they share (Hungarian method on the Jaccard index). For matched regions the overlap of
names is the fraction of words of one name that are in the other, up to common endings; chance is the same for regions
that are matched at random. Coverage is the fraction of a region's items that have a word of its name, and lift how much
more frequent such items are inside than outside.
"""

import argparse
import json
import os
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import countinggrids as cg
from common import table
from countinggrids import datasets
from countinggrids.cli.map import model_for
from countinggrids.features.text_bags import words_for
from countinggrids.meta.region_names import is_telling, stem


def ap(folder):
    """Return the AP stories."""
    texts = list(datasets.ap(folder / "ap.txt"))
    return cg.Collection.from_texts(texts, words_for(len(texts)))


def newsgroups(folder):
    """Return the training documents of 20 Newsgroups."""
    news = datasets.newsgroups(folder).split("split")["train"]
    n_documents = np.asarray((news.counts > 0).sum(axis=0)).ravel()
    words = np.flatnonzero((n_documents >= 2) & (n_documents <= len(news) / 2))
    news = news.take_features(np.sort(words[np.argsort(-n_documents[words], kind="stable")[:10_000]]))
    return news.take(np.asarray(news.counts.sum(axis=1)).ravel() > 0)


READERS = {"ap": ap, "newsgroups": newsgroups}


def stems_of(name):
    """Return the words of a name without common endings."""
    return {stem(word) for word in name.replace(",", "").split()}


def matched(one, other, level):
    """Return pairs of regions of two maps that share items, and their Jaccard indices."""
    a, b = (np.unique(regions.items[level], return_inverse=True) for regions in (one, other))
    shared = np.zeros((len(a[0]), len(b[0])))
    np.add.at(shared, (a[1], b[1]), 1)
    jaccard = shared / (shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared)
    rows, columns = linear_sum_assignment(-jaccard)
    pairs = [(one.regions[a[0][i]], other.regions[b[0][j]]) for i, j in zip(rows, columns, strict=True)]
    return pairs, jaccard[rows, columns]


def overlap(pairs):
    """Return the mean overlap of the names of pairs of regions, weighted by their items."""
    found = [len(stems_of(a.name) & stems_of(b.name)) / max(1, len(stems_of(a.name))) for a, b in pairs]
    return float(np.average(found, weights=[a.n_items + b.n_items for a, b in pairs]))


def telling(regions, collection, level):
    """Return coverage, lift and the fraction of names with junk, of the regions of a level."""
    number = {name: i for i, name in enumerate(collection.vocabulary.names)}
    has = collection.counts.tocsc()
    rows, n = [], len(collection)
    for region in (region for region in regions.level(level) if region.n_items):
        words = [word for word in region.name.split(", ") if word in number]
        with_word = np.zeros(n, bool)
        for word in words:
            with_word[has.indices[slice(*has.indptr[number[word] : number[word] + 2])]] = True
        inside = regions.items[level] == region.id
        outside = max(with_word[~inside].mean(), 1 / n) if (~inside).any() else 1.0
        is_junk = not words or not all(is_telling(word) for word in words)
        rows.append((region.n_items, with_word[inside].mean(), with_word[inside].mean() / outside, is_junk))
    sizes, coverage, lift, junk = np.array(rows, float).T
    return np.average(coverage, weights=sizes), float(np.median(lift)), junk.mean()


def measure(name, seeds, several):
    """Fit maps from several seeds, and compare the names of their regions."""
    collection = READERS[name](Path(os.environ["COUNTINGGRIDS_DATA"]) / "text")
    maps = []
    for seed in range(seeds):
        model, _ = model_for(collection, seed, several)
        maps.append(cg.find_regions(model.fit(collection), collection))
    rng, rows = np.random.default_rng(0), []
    for level in range(3):
        found = {"names": [], "chance": [], "jaccard": []}
        for one, other in combinations(maps, 2):
            pairs, jaccard = matched(one, other, level)
            shuffled = rng.permutation(len(pairs))
            found["names"].append(overlap(pairs))
            found["chance"].append(overlap([(pairs[i][0], pairs[j][1]) for i, j in enumerate(shuffled)]))
            found["jaccard"].append(float(np.mean(jaccard)))
        facts = [telling(regions, collection, level) for regions in maps]
        rows.append(
            {"data": name, "level": level, "regions": len(maps[0].level(level))}
            | {key: float(np.mean(values)) for key, values in found.items()}
            | {"spread of names": float(np.std(found["names"]))}
            | dict(zip(("coverage", "lift", "junk"), map(float, np.mean(facts, axis=0)), strict=True))
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds, at least 2")
    parser.add_argument("--data", nargs="+", default=list(READERS), choices=list(READERS))
    parser.add_argument("--several-places", action="store_true", help="fit componential counting grids")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name in options.data:
        rows = measure(name, options.seeds, options.several_places)
        cells = [[f"{value:.3g}" if isinstance(value, float) else value for value in row.values()] for row in rows]
        table(f"{name}, {options.seeds} seeds", list(rows[0]), cells)
        found += rows
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
