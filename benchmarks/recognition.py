"""Place recognition: two walks, a tower and a panning camera, by every system, with and without the same filter.

COUNTINGGRIDS_DATA is the folder of the data sets. All settings are chosen on the reference walk. Usage:
python benchmarks/recognition.py [gardens] [tower] [panning] [size] [--only bags,Gist] [--json FILE]
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import common
import countinggrids as cg
from countinggrids import datasets
from countinggrids.baselines import VLAD, FabMap, RootBags, SequenceMatcher, StandardizedVectors, TfidfBags
from countinggrids.core.geometry import suggest
from countinggrids.data.counts import coarsen
from countinggrids.features import Codebook, DenseSIFT, Gist, image_files
from countinggrids.features.bagger import bag
from countinggrids.meta import precision_recall, recall_at, true_matches

WORDS, FINE, SIDE, N_PANORAMAS = 200, (4, 4), 320, 12
ONLY = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else [""]
"""Prefixes of the names of the systems to run."""
HEADER = ("system", "recall@1, %", "filtered, %", "recall@5, %", "area", "area filtered", "gamma", "ms a frame")


def bags_of(walks, words=WORDS):
    """Return counts at FINE sections of each walk, with a codebook of the first."""
    sift, book = DenseSIFT(max_side=SIDE), Codebook(words, random_state=0)
    book.fit(sift.transform(walks[0]))
    return [bag(book.transform(sift.transform(walk)), FINE, words).toarray() for walk in walks]


def is_wanted(name):
    return name.startswith(tuple(ONLY))


def at(counts, sections, words=WORDS):
    return np.asarray(coarsen(counts, words, FINE, sections))


def systems(reference, query, n_frames):
    """Return the systems by name, each with what it compares; the grid has the default size for so many frames."""
    pairs = {s: (at(reference, s), at(query, s)) for s in ((1, 1), (2, 1), (4, 4))}
    grid = cg.PlaceRecognizer("grid", sections=(2, 1), random_state=0)
    side = suggest(n_frames, WORDS, (2, 1), None)
    cells = cg.GridNeighbors(cg.CountingGrid(*side, (2, 1), random_state=0), metric="cells")
    overlap = cg.GridNeighbors(cg.CountingGrid(*side, (2, 1), random_state=0), gamma=0.3)
    scaled = tuple(cg.BagScaler(100, 0.7).fit_transform(each) for each in pairs[2, 1])
    return {
        "bags 1x1": (RootBags(), pairs[1, 1]),
        "bags 2x1": (RootBags(), pairs[2, 1]),
        "bags 4x4": (RootBags(), pairs[4, 4]),
        "TF-IDF 4x4": (TfidfBags(), pairs[4, 4]),
        "FAB-MAP 4x4": (FabMap(), pairs[4, 4]),
        "sequences of bags 2x1": (SequenceMatcher(), pairs[2, 1]),
        "grid 2x1 cells": (cells, scaled),
        "grid 2x1 overlap": (overlap, scaled),
        "grid 2x1 likelihood": (grid, pairs[2, 1]),
        "recognize 2x1": (cg.PlaceRecognizer(sections=(2, 1), random_state=0), pairs[2, 1]),
        "recognize 4x4": (cg.PlaceRecognizer(sections=FINE, random_state=0), pairs[4, 4]),
    }


def measured(matcher, reference, query, matches):
    """Fit one system; return its measures, alone and filtered."""
    tracker = cg.PlaceTracker(matcher).fit(reference)
    began = time.process_time()
    alone = tracker.similarity(query)
    filtered = tracker.filter(query)
    spent = (time.process_time() - began) / len(alone)
    return {
        "alone": {f"recall_at_{k}": v for k, v in recall_at(alone, matches).items()},
        "filtered": {f"recall_at_{k}": v for k, v in recall_at(filtered, matches).items()},
        "area": precision_recall(alone, matches).area,
        "area_filtered": precision_recall(filtered, matches).area,
        "gamma": tracker.gamma_,
        "seconds_a_frame": spent,
        "compared": str(getattr(tracker.classifier_, "choice_", "")),
    }


def rows_of(found):
    return [
        (
            name,
            f"{100 * each['alone']['recall_at_1']:.1f}",
            f"{100 * each['filtered']['recall_at_1']:.1f}",
            f"{100 * each['alone']['recall_at_5']:.1f}",
            f"{each['area']:.3f}",
            f"{each['area_filtered']:.3f}",
            f"{each['gamma']:g}",
            f"{1000 * each['seconds_a_frame']:.1f}",
        )
        for name, each in found.items()
    ]


def gardens():
    """Gardens Point by day, left side of the path to right side, tolerance 2 frames."""
    with common.unpacked("gardens_point.tar") as folder:
        walks = [sorted((folder / "gardens_point" / name).glob("*.jpg")) for name in ("day_left", "day_right")]
        reference, query = bags_of(walks)
        n = len(walks[0])
        matches = true_matches(np.arange(n), n, 2)
        found = {
            name: measured(m, *pair, matches)
            for name, (m, pair) in systems(reference, query, n).items()
            if is_wanted(name)
        }
        if is_wanted("Gist"):
            found["Gist"] = measured(StandardizedVectors(), *(Gist().transform(walk) for walk in walks), matches)
        if is_wanted("VLAD"):
            sift = DenseSIFT(max_side=SIDE)
            vlad = VLAD(64, random_state=0).fit(sift.transform(walks[0]))
            vectors = [vlad.reference_, vlad.transform(sift.transform(walks[1]))]
            found["VLAD"] = measured(Vectors(), *vectors, matches)
    common.table("Gardens Point, day left to day right: CPU time a frame, features excluded", HEADER, rows_of(found))
    new = new_places(at(reference, (2, 1)), at(query, (2, 1)))
    print(f"\n  new places, half of the reference left out: {new}")
    return {"systems": found, "new_places": new}


class Vectors(StandardizedVectors):
    """Vectors of length one, compared as they are."""

    def _learn(self, X):
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])


def new_places(reference, query):
    """Track with half of the reference walk; return the area under the ROC curve of the probability of a new place."""
    from sklearn.metrics import roc_auc_score

    n, areas = len(reference), {}
    for name, part in (("first half", slice(0, n // 2)), ("second half", slice(n // 2, n))):
        tracker = cg.PlaceTracker(RootBags(), new_place=True).fit(reference[part])
        is_new = np.ones(n, bool)
        is_new[part] = False
        areas[name] = round(float(roc_auc_score(is_new, tracker.predict_proba(query)[:, -1])), 3)
    return areas


def tower():
    """Areas of a tower: runs of every clip are held out, three draws; a place has many frames."""
    from countinggrids.reproduce import sequences as walks
    from countinggrids.reproduce import tower as frames

    found = {}
    with common.unpacked("ietower.tar") as folder:
        items = datasets.ietower(folder / "ietower", Path(os.environ["COUNTINGGRIDS_DATA"]) / "ietower.csv")
        items = items.with_columns(label=[label.partition(" ")[2] for label in items["label"]])
        items = frames.most_frequent(frames.few_clips(items), frames.N_PLACES)
        labels = items["label"].astype(str)
        for seed in range(3):
            is_train = walks.held_in(items, seed)
            paths = [items.path(i) for i in range(len(items))]
            sift, book = DenseSIFT(), Codebook(WORDS, random_state=0)
            book.fit(sift.transform([paths[i] for i in np.flatnonzero(is_train)]))
            counts = at(bag(book.transform(sift.transform(paths)), FINE, WORDS).toarray(), (4, 1))
            scaled = cg.BagScaler(100, 0.7).fit_transform(counts)
            side = suggest(int(is_train.sum()), WORDS, (4, 1), None)
            candidates = {
                "bags 4x1": (RootBags(), counts),
                "TF-IDF 4x1": (TfidfBags(), counts),
                "FAB-MAP 4x1": (FabMap(), counts),
                "grid of all frames, overlap": (
                    cg.GridNeighbors(cg.CountingGrid(*side, (4, 1), random_state=0), gamma=0.3),
                    scaled,
                ),
                "grid of each place": (
                    cg.GridClassifier(cg.CountingGrid((8, 8), 4, (4, 1)), random_state=0),
                    cg.BagScaler(100).fit_transform(counts),
                ),
            }
            lengths = [items.take(which).run_lengths() for which in (is_train, ~is_train)]
            for name, (matcher, X) in candidates.items():
                if not is_wanted(name):
                    continue
                tracker = cg.PlaceTracker(matcher).fit(X[is_train], labels[is_train], lengths[0])
                y, X = labels[~is_train], X[~is_train]
                found.setdefault(name, []).append((tracker.score(X, y, [1] * len(y)), tracker.score(X, y, lengths[1])))
    rows = []
    for name, scores in found.items():
        mean, spread = 100 * np.mean(scores, axis=0), 100 * np.std(scores, axis=0)
        rows.append((name, *(f"{m:.1f} +- {s:.1f}" for m, s in zip(mean, spread, strict=True))))
    common.table("Areas of the tower, accuracy in %, three draws", ("system", "alone", "filtered"), rows)
    return found


def panning():
    """Windows of panoramas: the reference turns once, the query turns again half a step aside, with noise."""
    paths = sorted((Path(os.environ["COUNTINGGRIDS_DATA"]) / "panoramas").glob("*.*g"))[:N_PANORAMAS]
    found, n, width = {}, 64, 256
    matches = true_matches(np.arange(n), n, 2) | (np.abs(np.arange(n)[:, None] - np.arange(n)) >= n - 2)
    for seed, path in enumerate(paths):
        pixels = image_files.read(path)[128:384]
        ring = np.hstack([pixels, pixels[:, :width]])
        step = pixels.shape[1] // n
        rng = np.random.default_rng(seed)
        walks = [[ring[:, i * step : i * step + width] for i in range(n)]]
        noisy = [ring[:, i * step + step // 2 :][:, :width].astype(float) for i in range(n)]
        walks.append([(0.7 * each + rng.normal(0, 25, each.shape)).clip(0, 255).astype(np.uint8) for each in noisy])
        reference, query = bags_of(walks)
        for name, (matcher, pair) in systems(reference, query, n).items():
            if not is_wanted(name):
                continue
            found.setdefault(name, []).append(measured(matcher, *pair, matches))
    rows = []
    for name, each in found.items():
        scores = 100 * np.array([[one[how]["recall_at_1"] for how in ("alone", "filtered")] for one in each])
        rows.append((name, *(f"{m:.1f} +- {s:.1f}" for m, s in zip(scores.mean(0), scores.std(0), strict=True))))
    common.table(f"Panning in {len(paths)} panoramas, recall@1 in %", ("system", "alone", "filtered"), rows)
    return found


def size(n=100_000):
    """Time a frame and memory for many reference frames: a synthetic walk, 2x1 bags of 200 words."""
    rng = np.random.default_rng(0)
    anchors = rng.dirichlet(np.full(2 * WORDS, 0.1), n // 20 + 2)
    along = np.arange(n) / 20
    part = (along % 1)[:, None].astype(np.float32)
    places = (1 - part) * anchors[along.astype(int)].astype(np.float32)
    places += part * anchors[along.astype(int) + 1].astype(np.float32)
    walk = rng.poisson(1000 * places).astype(np.float32)
    tracker = cg.PlaceTracker(RootBags(), gamma=0.5).fit(walk)
    online, times = tracker.begin(), []
    for t in range(40):
        began = time.process_time()
        probabilities = online.step(walk[t + 500 : t + 501])
        times.append(time.process_time() - began)
    found = {
        "reference_frames": n,
        "kept_megabytes": tracker.classifier_.reference_.nbytes / 2**20,
        "cpu_seconds_a_frame": float(np.median(times)),
        "found": int(probabilities.argmax()),
    }
    print("\n", json.dumps(found))
    return found


def main():
    parts = {"gardens": gardens, "tower": tower, "panning": panning, "size": size}
    given = sys.argv[1:]
    output = given[given.index("--json") + 1] if "--json" in given else None
    chosen = [name for name in given if name in parts] or list(parts)
    warnings.simplefilter("ignore")
    found = {name: parts[name]() for name in chosen}
    if output is not None:
        Path(output).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
