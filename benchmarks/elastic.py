"""Does it help that sections may slip: jittered drawings and panoramas, 15-Scenes and walks.

    COUNTINGGRIDS_DATA=... python benchmarks/elastic.py [--splits 1] [--parts cost trees ...] [--work FOLDER]

cost       CPU time of an E step, over that of the tessellated grid.
trees      Fifty windows of the drawing, each section cut a few cells away from its place: windows within one cell,
           sections at their very cell, and sections whose slip is exact.
panoramas  Windows of full circles whose sections were cut away from their places, as parallax does: test windows
           within one cell.
scenes     15-Scenes, 100 training images a class and the others for testing, without mirrored images: accuracy of one
           model a class. Grid and slack, and the components of the baselines, are chosen by three folds of the
           training images.
walks      Places along the tower's walks, a run of every clip held out; settings chosen by runs of the training clips.

Bags and scores are kept in the work folder as they are computed. With --minutes a run ends after about so long; the
same command goes on from there.
"""

import argparse
import json
import os
import tarfile
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from common import table
from countinggrids import datasets
from countinggrids.baselines import ReconfigurableBags
from countinggrids.core import elastic, em, torus
from countinggrids.core.alignment import align
from countinggrids.core.geometry import Geometry
from countinggrids.data.chunks import bags_of
from countinggrids.features import Codebook, DenseSIFT
from countinggrids.kernels.threads import Threads, one_blas_thread
from countinggrids.reproduce import demo, panning, tower
from countinggrids.reproduce.sequences import held_in

SLACKS = (0, 1, 2)
ANNEAL = (0.1, 1.05, 1.0)
WORDS, TOKENS, POWER = 200, 100, 0.7
SIZES = {2: ((8, 4), (12, 4)), 4: ((12, 8), (16, 8))}
"""Cells of the grid and of its window along each axis, by sections along each axis."""
SLOWEST = (4, 2)
"""Sections along each axis and slack for which the smaller grid only is a candidate."""
PARALLAX = 4
"""Columns of a panorama, half a cell each, by which a section is cut away from its place at most."""


class OutOfTimeError(Exception):
    """The time of this run is over."""


class Steps:
    """Results that are kept in a folder as they are computed."""

    def __init__(self, folder, minutes):
        self.folder, self.end = folder, time.monotonic() + 60 * minutes
        self.path = folder / "steps.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.results = json.loads(self.path.read_text()) if self.path.exists() else {}

    def of(self, name, compute):
        """Return the result of a step, which is computed if it is not kept yet."""
        if name not in self.results:
            if time.monotonic() > self.end:
                raise OutOfTimeError
            self.results[name] = compute()
            self.path.write_text(json.dumps(self.results, indent=1))
        return self.results[name]

    def bags(self, name, compute):
        """Return the bags of a step, which are kept in a file of their own."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            if time.monotonic() > self.end:
                raise OutOfTimeError
            sp.save_npz(path, sp.csr_array(compute()))
        return sp.load_npz(path).toarray()


def cost(options):
    """Time E steps of 200 bags in 4x4 sections, window 8x8."""
    return options.steps.of("cost", measured_costs)


def measured_costs():
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
    """Locate windows of the drawing whose sections were cut away from their places, and the sections themselves."""
    scene, rows = demo.tree_scene(options.data), []
    for n_sections, jitter in ((2, 0), (2, 2), (4, 0), (4, 1)):
        for slack in SLACKS:
            each = [
                options.steps.of(
                    f"trees {n_sections} jitter {jitter} slack {slack} seed {seed}",
                    lambda a=(n_sections, jitter, slack, seed): located(scene, *a),
                )
                for seed in range(options.splits)
            ]
            names = ("windows within a cell, %", "sections exact, %", "slips exact, %")
            figures = {name: percent(values) for name, values in zip(names, zip(*each, strict=True), strict=True)}
            rows.append({"sections": f"{n_sections}x{n_sections}", "jitter": jitter, "slack": slack} | figures)
    return rows


def located(scene, n_sections, jitter, slack, seed):
    """Return the fractions of windows within a cell, of sections at their cell and of exact slips."""
    X, corners, slips = jittered(scene.labels, n_sections, jitter, seed)
    model = cg.ElasticGrid(scene.grid, 16, n_sections, slack=slack, random_state=seed).fit(X)
    found = model.locate(X)
    fit = align(found, corners, scene.grid, tolerance=1)
    places = np.stack(np.unravel_index(model.section_posteriors(X).argmax(axis=2), scene.grid), axis=-1)
    offsets = np.array(model.geometry_.matched_offsets)
    known = corners[:, None] + offsets + slips + fit.shift
    is_exact = (torus.displacement(known, places, scene.grid) == 0).all(axis=-1)
    moved = torus.displacement(found[:, None] + offsets, places, scene.grid)
    return [float(each.mean()) for each in (fit.is_correct, is_exact, (moved == slips).all(axis=-1))]


def jittered(labels, n_sections, jitter, seed):
    """Cut fifty windows; give their bags, corners and the slip of every section."""
    rng, block = np.random.default_rng(seed), 16 // n_sections
    corners = np.stack([rng.integers(jitter, n - 16 - jitter + 1, 50) for n in labels.shape], axis=1)
    slips = rng.integers(-jitter, jitter + 1, (50, n_sections**2, 2))
    views = np.zeros((50, 16, 16), int)
    for view, corner, slip in zip(views, corners, slips, strict=True):
        for s, (i, j) in enumerate(np.ndindex(n_sections, n_sections)):
            r, c = corner + slip[s] + (i * block, j * block)
            view[i * block : (i + 1) * block, j * block : (j + 1) * block] = labels[r : r + block, c : c + block]
    return cg.bag(list(views), n_sections, demo.N_COLORS), corners, slips


def panoramas(options):
    """Locate windows of panoramas whose four sections were cut away from their places."""
    paths = sorted((options.data / "panoramas").glob("*.*g"))
    if not all(f"panoramas slack {slack}" in options.steps.results for slack in SLACKS):
        maps = panning._words_of(paths)
    rows, rigid = [], None
    for slack in SLACKS:
        each = options.steps.of(
            f"panoramas slack {slack}",
            lambda slack=slack: [parallax(words, slack, seed) for seed, words in enumerate(maps)],
        )
        rigid = each if slack == 0 else rigid
        difference = percent(np.subtract(each, rigid))
        rows.append({"slack": slack, "test windows within a cell, %": percent(each), "over 0": difference})
    return rows


def parallax(words, slack, seed):
    """Fit an elastic grid to 80 windows of one panorama; give the fraction of 40 others within a cell."""
    rng, n_columns, n_cells = np.random.default_rng(seed), words.shape[1], 64
    ring, starts = np.hstack([words] * 3), rng.integers(n_columns, size=120)
    slips = rng.integers(-PARALLAX, PARALLAX + 1, (120, 4))
    views = [
        np.hstack([ring[:, n_columns + a + 12 * i + d :][:, :12] for i, d in enumerate(slip)])
        for a, slip in zip(starts, slips, strict=True)
    ]
    X = cg.bag(views, (1, 4), WORDS)
    known = np.round(starts * n_cells / n_columns).astype(int)[:, None]
    model = cg.ElasticGrid((n_cells,), (24,), (4,), slack=slack, random_state=seed)
    found = model.fit(X[:80]).locate(X)
    shift = align(found[:80], known[:80], (n_cells,)).shift
    away = np.abs(torus.displacement(known[80:] + shift, found[80:], (n_cells,)))
    return float((away <= 1).mean())


def percent(values):
    """Return mean and standard deviation in percent."""
    return f"{100 * np.mean(values):.1f}" + (f" +- {100 * np.std(values):.1f}" if len(values) > 1 else "")


def candidates(n_sections):
    """Return the models of a table and the candidates of each, by name; a row is chosen among them by the folds."""
    parts = (n_sections, n_sections)
    rows = {
        "spatial bags": {f"spatial {n}": cg.SpatialBagOfWords(n, sections=parts, anneal=None) for n in (1, 2)},
        "reconfigurable bags": {f"reconfigurable {n}": ReconfigurableBags(n, parts) for n in (8, 16)},
    }
    grids = {
        f"elastic grid, slack {slack}": {
            f"grid {n}, slack {slack}": cg.ElasticGrid((n, n), w, n_sections, slack=slack, anneal=ANNEAL)
            for n, w in SIZES[n_sections][: 1 if (n_sections, slack) == SLOWEST else None]
        }
        for slack in SLACKS
    }
    rows |= grids
    rows["elastic grid, slack chosen"] = {name: model for row in grids.values() for name, model in row.items()}
    return rows


def compared(options, name, splits):
    """Return a row for every model: accuracy with the candidate that the folds choose, and the gain over slack 0."""
    rows = []
    for n_sections in SIZES:
        accuracy = {}
        for row, models in candidates(n_sections).items():
            accuracy[row] = [
                evaluated(options, f"{name} {seed} {n_sections}", n_sections, models, *split)
                for seed, split in enumerate(splits)
            ]
        rigid = [each for each, _ in accuracy["elastic grid, slack 0"]]
        for row, results in accuracy.items():
            each, chosen = zip(*results, strict=True)
            figures = {"accuracy, %": percent(each), "over slack 0": percent(np.subtract(each, rigid))}
            sections = f"{n_sections}x{n_sections}"
            rows.append({"sections": sections, "model": row} | figures | {"chosen": "; ".join(chosen)})
    return rows


def evaluated(options, key, n_sections, models, X, y, folds, X_test, y_test):
    """Return the test accuracy of the candidate that the folds choose, and its name."""

    def score(model, X, y, X_test, y_test):
        parts = (cg.BagCoarsener(n_sections, 4), cg.BagScaler(TOKENS, POWER))
        return make_pipeline(*parts, cg.GridClassifier(model, random_state=0)).fit(X, y).score(X_test, y_test)

    scores = {
        name: np.mean(
            [
                options.steps.of(f"{key}, {name}, fold {i}", lambda m=model, a=a, b=b: score(m, X[a], y[a], X[b], y[b]))
                for i, (a, b) in enumerate(folds)
            ]
        )
        for name, model in models.items()
    }
    best = max(scores, key=scores.get)
    return options.steps.of(f"{key}, {best}", lambda: score(models[best], X, y, X_test, y_test)), best


@contextmanager
def unpacked(options, name):
    """Unpack an archive into a folder for a while."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(options.data / name) as archive:
        archive.extractall(folder, filter="data")
        yield Path(folder)


def bags_of_images(options, name, items, is_train, seed):
    """Return the bags of images in 4x4 sections, of words from the training images."""

    def compute():
        sift, book = DenseSIFT(), Codebook(WORDS, random_state=seed)
        book.fit(sift.transform([items.path(i) for i in np.flatnonzero(is_train)]))
        return cg.Collection.from_images(items, [sift, book], (4, 4)).counts

    return options.steps.bags(f"{name} {seed}", compute)


def scenes(options):
    """Compare slacks on 15-Scenes."""
    return compared(options, "scenes", scene_splits(options))


def scene_splits(options):
    """Return training bags, labels, folds, test bags and labels of random splits of 15-Scenes."""
    splits = []
    with unpacked(options, "15scenes.tar") as folder:
        items = datasets.scenes15(folder / "15scenes")
        labels = items["label"].astype(str)
        for seed in range(options.splits):
            rng, is_train = np.random.default_rng(seed), np.zeros(len(labels), bool)
            for name in sorted(set(labels)):
                is_train[rng.permutation(np.flatnonzero(labels == name))[:100]] = True
            X = bags_of_images(options, "scenes", items, is_train, seed)
            folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X[is_train], labels[is_train]))
            splits.append((X[is_train], labels[is_train], folds, X[~is_train], labels[~is_train]))
    return splits


def walks(options):
    """Compare slacks on places along the walks."""
    return compared(options, "walks", walk_splits(options))


def walk_splits(options):
    """Return training bags, labels, folds, test bags and labels of places; a run of every clip is held out."""
    splits = []
    with unpacked(options, "ietower.tar") as folder:
        items = datasets.ietower(folder, options.data / "ietower.csv")
        items = items.with_columns(label=[label.partition(" ")[2] for label in items["label"]])
        items = tower.most_frequent(tower.few_clips(items, 80), 12)
        labels = items["label"].astype(str)
        for seed in range(options.splits):
            is_train = held_in(items, seed)
            X = bags_of_images(options, "walks", items, is_train, seed)
            folds = tower.folds(items.take(is_train))
            splits.append((X[is_train], labels[is_train], folds, X[~is_train], labels[~is_train]))
    return splits


PARTS = {"cost": cost, "trees": trees, "panoramas": panoramas, "scenes": scenes, "walks": walks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("COUNTINGGRIDS_DATA", "data")))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--work", type=Path, default=Path("elastic"))
    parser.add_argument("--minutes", type=float, default=np.inf)
    options = parser.parse_args()
    options.steps = Steps(options.work, options.minutes)
    for part in options.parts:
        try:
            results = PARTS[part](options)
        except OutOfTimeError:
            print(f"{part} is not finished; {len(options.steps.results)} steps are kept in {options.work}.")
            continue
        rows = [[f"{cell:.2f}" if isinstance(cell, float) else cell for cell in row.values()] for row in results]
        table(part, list(results[0]), rows)


if __name__ == "__main__":
    main()
