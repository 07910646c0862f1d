"""Places along the walks through a tower: each frame alone, filtered, and smoothed.

COUNTINGGRIDS_DATA=... python benchmarks/walk.py --splits 5

A contiguous run of every clip is held out, at a random place in it. The codebooks, the grid and gamma are
chosen on the other frames.
"""

import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from common import split_seeds, table, unpacked
from countinggrids import datasets
from countinggrids.features import Codebook, Colours, DenseSIFT

QUICK = cg.CountingGrid(anneal=(0.2, 1.15, 1.0), max_iter=30)  # a hundred places and as many small grids
CASES = [("words", 1), ("words", 2), ("words", 4), ("words and colours", 1)]
HOW = ("alone", "filtered", "smoothed")


def bags_of(items, seed):
    """Give the frames as bags of words, and of words and colours, (frames, sections, features), by 4x4 sections."""
    paths = [items.path(i) for i in range(len(items))]
    training = [path for path, split in zip(paths, items["split"], strict=True) if split == "train"]
    sift, book = DenseSIFT(), Codebook(200, random_state=seed)
    book.fit(sift.transform(training))
    colours = Colours(64, step=8, random_state=seed).fit(training)
    words, tints = (
        cg.Collection.from_images(items, steps, (4, 4), paths).counts.toarray().reshape(len(items), 16, -1)
        for steps in ([sift, book], [colours])
    )
    tints *= words.sum(axis=(1, 2), keepdims=True) / tints.sum(axis=(1, 2), keepdims=True)  # as many of either
    return {"words": words, "words and colours": np.concatenate([words, tints], axis=2)}


def halves(labels):
    """Cut the frames of each place into an earlier and a later half; each is tried on by what the other taught."""
    order = np.argsort(labels, kind="stable")
    _, where, times = np.unique(labels[order], return_index=True, return_counts=True)
    later = np.zeros(len(labels), bool)
    few = np.zeros(len(labels), bool)
    for start, n in zip(where, times, strict=True):
        later[order[start + n // 2 : start + n]] = True
        few[order[start : start + n]] = n < 4  # nothing can be learnt from one frame
    return [(np.flatnonzero(few | (later != side)), np.flatnonzero(~few & (later == side))) for side in (True, False)]


def chosen_grid(X, y):
    """Choose the grid on the training frames, without sections."""
    search = cg.CapacitySearch(
        QUICK, grids=(6, 10), windows=(4,), tokens=(100,), capacities=(2, 10), cv=halves(y), random_state=0, refit=False
    )
    return search.fit(X, y).best_candidate_


def shares_right(X, n, best, y, is_train, items):
    """Learn places and gamma from the training frames; give the shares of test frames that are right."""
    grid = clone(QUICK).set_params(grid=best.grid, window=best.window, sections=None if n == 1 else (n, n))
    model = make_pipeline(cg.BagScaler(best.tokens), cg.GridClassifier(grid, random_state=0))
    tracker = cg.PlaceTracker(model).fit(X[is_train], y[is_train], items.take(is_train).run_lengths())
    lengths = items.take(~is_train).run_lengths()
    found = (
        tracker.filter(X[~is_train], [1] * sum(lengths)),
        tracker.filter(X[~is_train], lengths),
        tracker.smooth(X[~is_train], lengths),
    )
    print(f"    grid {best.grid}, gamma {tracker.gamma_}", flush=True)
    return [np.mean(tracker.classes_[shares.argmax(axis=1)] == y[~is_train]) for shares in found]


def one_split(root, csv, seed):
    """Give the shares of frames that are right, by features, sections and how frames are put together."""
    items = datasets.ietower(root, csv, random_state=seed)
    bags, labels, is_train = bags_of(items, seed), items["label"].astype(str), items["split"] == "train"
    # Places with a single frame cannot be learnt; they have no test frames either.
    names, times = np.unique(labels[is_train], return_counts=True)
    is_kept = np.isin(labels, names[times > 1])
    items, y, is_train = items.take(is_kept), labels[is_kept], is_train[is_kept]
    best = chosen_grid(bags["words"][is_kept].sum(axis=1)[is_train], y[is_train])
    right = {}
    for features, n in CASES:
        began = time.perf_counter()
        X = cg.BagCoarsener(n, (4, 4)).fit_transform(bags[features][is_kept].reshape(len(y), -1))
        shares = shares_right(X, n, best, y, is_train, items)
        right |= {(features, n, how): share for how, share in zip(HOW, shares, strict=True)}
        told = ", ".join(f"{how} {100 * share:.1f}%" for how, share in zip(HOW, shares, strict=True))
        print(f"  {features} {n}x{n}: {told} ({time.perf_counter() - began:.0f} s)", flush=True)
    return right


def main():
    seeds = split_seeds()
    warnings.filterwarnings("ignore")
    results = []
    with unpacked("ietower.tar") as folder:
        if folder is None:
            return
        for seed in seeds:
            print(f"split {seed}", flush=True)
            results.append(one_split(folder, Path(os.environ["COUNTINGGRIDS_DATA"]) / "ietower.csv", seed))
    rows = []
    for features, n in CASES:
        shares = [100 * np.array([right[features, n, how] for right in results]) for how in HOW]
        rows.append([features, f"{n}x{n}", *(f"{each.mean():.1f} +- {each.std():.1f}" for each in shares)])
    header = ["features", "sections", "each frame alone", "filtered", "smoothed"]
    table(f"Places right, %, {len(results)} splits", header, rows)


if __name__ == "__main__":
    main()
