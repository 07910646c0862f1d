"""Accuracy of elastic grids by slack: jittered drawings, 15-Scenes and walks, with slack chosen on training data.

    COUNTINGGRIDS_DATA=... python benchmarks/elastic.py [--splits 1] [--parts cost trees scenes walks] [--json FILE]

cost    CPU time of an E step, over that of the tessellated grid.
trees   Fifty windows of the drawing, each section cut a few cells away from its place: windows within one cell.
scenes  15-Scenes, 100 training images a class and a third of the others for testing, without mirrored images: accuracy
        of a single grid a class. Grid and slack are chosen by three folds of the training images.
walks   Places along the tower's walks, a run of every clip held out; slack chosen by runs of the training clips.
"""

import argparse
import json
import os
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from common import table
from countinggrids import datasets
from countinggrids.core import elastic, em
from countinggrids.core.alignment import align
from countinggrids.core.geometry import Geometry
from countinggrids.data.chunks import bags_of
from countinggrids.features import Codebook, DenseSIFT
from countinggrids.kernels.threads import Threads, one_blas_thread
from countinggrids.reproduce import demo, tower
from countinggrids.reproduce.sequences import held_in

SLACKS = (0, 1, 2)
ANNEAL = (0.1, 1.05, 1.0)
WORDS, TOKENS, POWER = 200, 100, 0.7


def cost(_):
    """Time E steps of 200 bags in 4x4 sections, window 8x8."""
    rng, pool, rows = np.random.default_rng(0), Threads(1), []
    for size in (12, 16):
        rigid = Geometry.of((size, size), 8, 4)
        X = rng.poisson(0.03, (200, 16 * WORDS)).astype(np.float32)
        pi = np.moveaxis(rng.dirichlet(np.full(WORDS, 0.3), rigid.grid), -1, 0).astype(np.float32).copy()
        log_prior = np.full(rigid.grid, -np.log(size**2), np.float32)
        seconds = {}
        with one_blas_thread():
            for slack in SLACKS:
                geometry = elastic.ElasticGeometry.with_slack(rigid, (slack, slack))
                slip = elastic.first_extra(geometry) + rng.normal(0, 0.1, elastic.first_extra(geometry).shape)
                windows = elastic.windows_of(em.Grid(pi, log_prior, slip), geometry, 1.0, pool)
                bags = bags_of(X, np.ones(200, np.float32), WORDS, geometry)
                elastic.e_step(bags, windows, geometry, pool)
                began = time.process_time()
                for _ in range(5):
                    elastic.e_step(bags, windows, geometry, pool)
                seconds[slack] = time.process_time() - began
        rows += [
            {"grid": f"{size}x{size}", "slack": n, "offsets": (2 * n + 1) ** 2, "times": seconds[n] / seconds[0]}
            for n in SLACKS
        ]
    return rows


def trees(options):
    """Locate windows of the drawing whose sections were cut away from their places."""
    scene = demo.tree_scene(options.data)
    n_rows, n_columns = scene.labels.shape
    rows = []
    for n_sections, jitter in ((2, 0), (2, 2), (4, 0), (4, 1)):
        block = 16 // n_sections
        found = {slack: [] for slack in SLACKS}
        for seed in range(options.splits):
            rng = np.random.default_rng(seed)
            corners = np.stack([rng.integers(jitter, n - 16 - jitter + 1, 50) for n in (n_rows, n_columns)], axis=1)
            maps = []
            for r, c in corners:
                view = np.zeros((16, 16), int)
                for i in range(0, 16, block):
                    for j in range(0, 16, block):
                        a, b = rng.integers(-jitter, jitter + 1, 2)
                        cut = scene.labels[r + i + a : r + i + a + block, c + j + b : c + j + b + block]
                        view[i : i + block, j : j + block] = cut
                maps.append(view)
            X = cg.bag(maps, n_sections, demo.N_COLORS)
            for slack in SLACKS:
                model = cg.ElasticGrid(scene.grid, 16, n_sections, slack=slack, random_state=seed).fit(X)
                found[slack].append(align(model.locate(X), corners, scene.grid, tolerance=1).is_correct.mean())
        for slack, each in found.items():
            sections = f"{n_sections}x{n_sections}"
            rows.append({"sections": sections, "jitter": jitter, "slack": slack, "within a cell, %": percent(each)})
    return rows


def percent(values):
    """Return mean and standard deviation in percent."""
    return f"{100 * np.mean(values):.1f}" + (f" +- {100 * np.std(values):.1f}" if len(values) > 1 else "")


def classifier(sections, grid, slack, seed):
    """Return one elastic grid for each class."""
    window = 8 if sections == 4 else 4
    model = cg.ElasticGrid((grid, grid), window, sections, slack=slack, anneal=ANNEAL)
    parts = (cg.BagCoarsener(sections, 4), cg.BagScaler(TOKENS, POWER))
    return make_pipeline(*parts, cg.GridClassifier(model, random_state=seed))


def evaluated(sections, grids, X, y, folds, X_test, y_test):
    """Return the accuracy of every slack, with the grid chosen for it by the folds, and the slack that they choose."""
    chosen, accuracy = {}, {}
    for slack in SLACKS:
        scores = {
            grid: np.mean([classifier(sections, grid, slack, 0).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds])
            for grid in grids
        }
        grid = max(scores, key=scores.get)
        chosen[slack] = scores[grid]
        accuracy[slack] = classifier(sections, grid, slack, 0).fit(X, y).score(X_test, y_test)
    return accuracy, max(chosen, key=chosen.get)


def compared(splits, sections, grids):
    """Return a row for every slack, and one for the slack that the folds choose."""
    results = [evaluated(sections, grids, *split) for split in splits]
    rows = []
    for slack in (*SLACKS, "chosen"):
        each = [accuracy[best if slack == "chosen" else slack] for accuracy, best in results]
        rigid = [accuracy[0] for accuracy, _ in results]
        difference = percent(np.subtract(each, rigid))
        name = f"{slack}" + (f" ({', '.join(str(best) for _, best in results)})" if slack == "chosen" else "")
        rows.append(
            {"sections": f"{sections}x{sections}", "slack": name, "accuracy, %": percent(each), "over 0": difference}
        )
    return rows


def scenes(options):
    """Compare slacks on 15-Scenes."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.data / "15scenes.tar") as archive:
            archive.extractall(folder, filter="data")
        items = datasets.scenes15(Path(folder, "15scenes"))
        labels = items["label"].astype(str)
        splits = []
        for seed in range(options.splits):
            rng = np.random.default_rng(seed)
            parts = [rng.permutation(np.flatnonzero(labels == name)) for name in sorted(set(labels))]
            train = np.concatenate([part[:100] for part in parts])
            test = np.concatenate([part[100::3] for part in parts])
            sift, book = DenseSIFT(), Codebook(WORDS, random_state=seed)
            book.fit(sift.transform([items.path(i) for i in train]))
            X, X_test = (
                cg.Collection.from_images(items.take(some), [sift, book], (4, 4)).counts.toarray()
                for some in (train, test)
            )
            folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, labels[train]))
            splits.append((X, labels[train], folds, X_test, labels[test]))
    return compared(splits, 2, (8,)) + compared(splits, 4, (12, 16))


def walks(options):
    """Compare slacks on places along the walks."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.data / "ietower.tar") as archive:
            archive.extractall(folder, filter="data")
        items = datasets.ietower(Path(folder), options.data / "ietower.csv")
        items = items.with_columns(label=[label.partition(" ")[2] for label in items["label"]])
        items = tower.most_frequent(tower.few_clips(items, 80), 12)
        labels, splits = items["label"].astype(str), []
        for seed in range(options.splits):
            is_train = held_in(items, seed)
            sift, book = DenseSIFT(), Codebook(WORDS, random_state=seed)
            book.fit(sift.transform([items.path(i) for i in np.flatnonzero(is_train)]))
            X = cg.Collection.from_images(items, [sift, book], (4, 4)).counts.toarray()
            folds = tower.folds(items.take(is_train))
            splits.append((X[is_train], labels[is_train], folds, X[~is_train], labels[~is_train]))
    return compared(splits, 2, (8,)) + compared(splits, 4, (12,))


PARTS = {"cost": cost, "trees": trees, "scenes": scenes, "walks": walks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("COUNTINGGRIDS_DATA", "data")))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for part in options.parts:
        began = time.process_time()
        results[part] = PARTS[part](options)
        rows = [[f"{cell:.2f}" if isinstance(cell, float) else cell for cell in row.values()] for row in results[part]]
        table(f"{part}, {time.process_time() - began:.0f} s of CPU time", list(results[part][0]), rows)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
