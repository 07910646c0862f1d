"""Places along the walks through a tower: each frame alone, filtered, and smoothed.

COUNTINGGRIDS_DATA=... python benchmarks/walk.py --splits 5

A contiguous run of every clip is held out, at a random place in it. The codebook, the grid and gamma are chosen on
the other frames.
"""

import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from common import n_splits, table, unpacked
from countinggrids import datasets
from countinggrids.features import Codebook, DenseSIFT

ANNEAL = (0.2, 1.15, 1.0)  # a hundred places and as many small grids: a quick schedule


def one_split(root, csv, seed):
    """Give the shares of frames that are right, by sections and by how frames are put together."""
    items = datasets.ietower(root, csv, random_state=seed)
    paths = [items.path(i) for i in range(len(items))]
    is_train = items["split"] == "train"
    sift, book = DenseSIFT(), Codebook(200, random_state=seed)
    book.fit(sift.transform([path for path, is_in in zip(paths, is_train, strict=True) if is_in]))
    collection = cg.Collection.from_images(items, [sift, book], (4, 4), paths)
    # Places with a single frame cannot be learnt; they have no test frames either.
    labels = collection.items["label"].astype(str)
    names, times = np.unique(labels[is_train], return_counts=True)
    is_kept = np.isin(labels, names[times > 1])
    train, test = collection.take(is_train & is_kept), collection.take(~is_train & is_kept)
    y, truth = (part.items["label"].astype(str) for part in (train, test))
    right = {}
    for n in (1, 2, 4):
        grids = cg.CapacitySearch(
            cg.CountingGrid(anneal=ANNEAL), grids=(6, 10), windows=(4,), sections=(n,), tokens=(100,),
            capacities=(2, 10), x_sections=4, random_state=0, refit=False,
        ).fit(train.counts, y)  # fmt: skip
        best = grids.best_candidate_
        grid = cg.CountingGrid(best.grid, best.window, None if n == 1 else best.sections, anneal=ANNEAL)
        model = make_pipeline(cg.BagScaler(100), cg.GridClassifier(grid, random_state=0))
        tracker = cg.PlaceTracker(model).fit(train.coarsen((n, n)).counts, y, train.items.run_lengths())
        X, lengths = test.coarsen((n, n)).counts, test.items.run_lengths()
        for name, shares in (
            ("alone", tracker.filter(X, [1] * len(test))),
            ("filtered", tracker.filter(X, lengths)),
            ("smoothed", tracker.smooth(X, lengths)),
        ):
            right[f"{n}x{n}", name] = np.mean(tracker.classes_[shares.argmax(axis=1)] == truth)
        print(
            f"  {n}x{n}: grid {best.grid}, gamma {tracker.gamma_}",
            {k: round(v, 3) for k, v in right.items()},
            flush=True,
        )
    return right


def main():
    splits = n_splits()
    warnings.filterwarnings("ignore")
    results = []
    with unpacked("ietower.tar") as folder:
        if folder is None:
            return
        for seed in range(splits):
            began = time.perf_counter()
            results.append(one_split(folder, Path(os.environ["COUNTINGGRIDS_DATA"]) / "ietower.csv", seed))
            print(f"split {seed}, {time.perf_counter() - began:.0f} s", flush=True)
    shares = {key: 100 * np.array([right[key] for right in results]) for key in results[0]}
    rows = [
        [f"{n}x{n}"]
        + [
            f"{shares[f'{n}x{n}', how].mean():.1f} +- {shares[f'{n}x{n}', how].std():.1f}"
            for how in ("alone", "filtered", "smoothed")
        ]
        for n in (1, 2, 4)
    ]
    table(f"Places right, %, {len(results)} splits", ["sections", "each frame alone", "filtered", "smoothed"], rows)


if __name__ == "__main__":
    main()
