"""Place recognition: two walks, a tower and a panning camera, by every system, with and without the same filter.

COUNTINGGRIDS_DATA is the folder of the data sets. Everything that is chosen is chosen on the reference walk. Usage:
python benchmarks/recognition.py [gardens] [tower] [panning] [rules] [size] [--only bags,Gist] [--json FILE]
[--minutes 5]

With --json every measurement is written as soon as it is made, and those in the file are not repeated; --minutes ends a
run after that time, to be continued by the same command.
"""

import json
import os
import sys
import time
import warnings
from functools import cache, partial
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
from countinggrids.meta.candidates import divides
from countinggrids.meta.recognizer import coarser

WORDS, FINE, SIDE, N_PANORAMAS = 200, (4, 4), 320, 12
ONLY = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else [""]
"""Systems whose names begin so."""
JSON = Path(sys.argv[sys.argv.index("--json") + 1]) if "--json" in sys.argv else None
MINUTES = float(sys.argv[sys.argv.index("--minutes") + 1]) if "--minutes" in sys.argv else np.inf
N_DRAWS, N_FOR_RULES = 3, 15
SYSTEMS = (
    "bags 1x1",
    "bags 2x1",
    "bags 4x4",
    "TF-IDF 4x4",
    "FAB-MAP 4x4",
    "sequences of bags 2x1",
    "grid 2x1 cells",
    "grid 2x1 overlap",
    "grid 2x1 likelihood",
    "recognize 2x1",
    "recognize 4x4",
)
HEADER = ("system", "recall@1, %", "filtered, %", "recall@5, %", "area", "area filtered", "gamma", "ms a frame")


def bags_of(walks, words=WORDS):
    """Return counts at FINE sections of each walk, with a codebook of the first."""
    sift, book = DenseSIFT(max_side=SIDE), Codebook(words, random_state=0)
    book.fit(sift.transform(walks[0]))
    return [bag(book.transform(sift.transform(walk)), FINE, words).toarray() for walk in walks]


class OutOfTimeError(Exception):
    """The minutes of a run are over."""


class Results:
    """Measurements by part, unit and system, kept in a file.

    Parameters
    ----------
    path : Path or None
        JSON file; measurements in it are not repeated.
    minutes : float
        Time after which no other measurement is begun.
    """

    def __init__(self, path, minutes):
        self.path, self.end = path, time.monotonic() + 60 * minutes
        self.found = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def measure(self, part, unit, systems):
        """Measure the wanted systems of a unit.

        Parameters
        ----------
        part, unit : str
            Names.
        systems : mapping of str to callable
            Measurements by the name of the system.
        """
        kept = self.found.setdefault(part, {}).setdefault(unit, {})
        for name, compute in systems.items():
            if not name.startswith(tuple(ONLY)) or name in kept:
                continue
            if time.monotonic() > self.end:
                raise OutOfTimeError
            began = time.monotonic()
            kept[name] = compute()
            print(f"  {part}, {unit}, {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            self.write()

    def write(self):
        if self.path is not None:
            self.path.write_text(json.dumps(self.found, indent=1))

    def columns(self, part, read):
        """Return an array (units, values) of each system, of the units that have it."""
        names = dict.fromkeys(name for unit in self.found.get(part, {}).values() for name in unit)
        return {
            name: np.array([read(unit[name]) for unit in self.found[part].values() if name in unit]) for name in names
        }


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
    found = (
        (RootBags(), pairs[1, 1]),
        (RootBags(), pairs[2, 1]),
        (RootBags(), pairs[4, 4]),
        (TfidfBags(), pairs[4, 4]),
        (FabMap(), pairs[4, 4]),
        (SequenceMatcher(), pairs[2, 1]),
        (cells, scaled),
        (overlap, scaled),
        (grid, pairs[2, 1]),
        (cg.PlaceRecognizer(sections=(2, 1), random_state=0), pairs[2, 1]),
        (cg.PlaceRecognizer(sections=FINE, random_state=0), pairs[4, 4]),
    )
    return dict(zip(SYSTEMS, found, strict=True))


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


def gardens(results):
    """Gardens Point by day, left side of the path to right side, tolerance 2 frames."""
    with common.unpacked("gardens_point.tar") as folder:
        walks = [sorted((folder / "gardens_point" / name).glob("*.jpg")) for name in ("day_left", "day_right")]
        n = len(walks[0])
        bags = cache(lambda: bags_of(walks))
        results.measure("gardens", "day", measurements(walks, bags, true_matches(np.arange(n), n, 2)))
        results.measure("gardens", "new places", {"bags": lambda: new_places(*(at(each, (2, 1)) for each in bags()))})
    found = results.found["gardens"]
    common.table(
        "Gardens Point, day left to day right: CPU time a frame, features excluded", HEADER, rows_of(found["day"])
    )
    print(f"\n  new places, half of the reference left out: {found['new places']}")


def measurements(walks, bags, matches):
    """Return functions that measure each system on two walks; `bags` returns their counts at FINE sections."""
    n = len(walks[0])
    named = cache(lambda: systems(*bags(), n))

    def of_bags(name):
        matcher, pair = named()[name]
        return measured(matcher, *pair, matches)

    def of_vlad():
        sift = DenseSIFT(max_side=SIDE)
        vlad = VLAD(64, random_state=0).fit(sift.transform(walks[0]))
        return measured(Vectors(), vlad.reference_, vlad.transform(sift.transform(walks[1])), matches)

    def of_gist():
        return measured(StandardizedVectors(), *(Gist().transform(walk) for walk in walks), matches)

    return {name: partial(of_bags, name) for name in SYSTEMS} | {"VLAD": of_vlad, "Gist": of_gist}


class Vectors(StandardizedVectors):
    """Vectors of length one, compared as they are."""

    def _learn(self, X):
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])


def new_places(reference, query):
    """Track with half of the reference; return the area under the ROC curve of the probability of a new place."""
    from sklearn.metrics import roc_auc_score

    n, areas = len(reference), {}
    for name, part in (("first half", slice(0, n // 2)), ("second half", slice(n // 2, n))):
        tracker = cg.PlaceTracker(RootBags(), new_place=True).fit(reference[part])
        is_new = np.ones(n, bool)
        is_new[part] = False
        areas[name] = round(float(roc_auc_score(is_new, tracker.predict_proba(query)[:, -1])), 3)
    return areas


def tower(results):
    """Areas of a tower: a run of every clip is held out, three draws; a place has many frames."""
    from countinggrids.reproduce import sequences as runs
    from countinggrids.reproduce import tower as frames

    with common.unpacked("ietower.tar") as folder:
        items = datasets.ietower(folder, Path(os.environ["COUNTINGGRIDS_DATA"]) / "ietower.csv")
        items = items.with_columns(label=[label.partition(" ")[2] for label in items["label"]])
        items = frames.most_frequent(frames.few_clips(items), frames.N_PLACES)
        for seed in range(N_DRAWS):
            results.measure("tower", f"draw {seed}", areas(items, runs.held_in(items, seed)))
    rows = [(name, *spread(100 * values)) for name, values in results.columns("tower", lambda found: found).items()]
    common.table(f"Areas of the tower, accuracy in %, {N_DRAWS} draws", ("system", "alone", "filtered"), rows)


def areas(items, is_train):
    """Return functions that measure each system on the areas of the tower."""
    labels, paths = items["label"].astype(str), [items.path(i) for i in range(len(items))]
    lengths = [items.take(which).run_lengths() for which in (is_train, ~is_train)]
    sift = DenseSIFT(max_side=SIDE)

    @cache
    def counts():
        book = Codebook(WORDS, random_state=0).fit(sift.transform([paths[i] for i in np.flatnonzero(is_train)]))
        return at(bag(book.transform(sift.transform(paths)), FINE, WORDS).toarray(), (4, 1))

    def vlad_vectors():
        vlad = VLAD(64, random_state=0).fit(sift.transform([paths[i] for i in np.flatnonzero(is_train)]))
        return vlad.transform(sift.transform(paths))

    def scores(matcher, X):
        X = X()
        tracker = cg.PlaceTracker(matcher).fit(X[is_train], labels[is_train], lengths[0])
        X, y = X[~is_train], labels[~is_train]
        return tracker.score(X, y, [1] * len(y)), tracker.score(X, y, lengths[1])

    def scaled(power):
        return cg.BagScaler(100, power).fit_transform(counts())

    side = suggest(int(is_train.sum()), WORDS, (4, 1), None)
    on_one_grid = cg.GridNeighbors(cg.CountingGrid(*side, (4, 1), random_state=0), gamma=0.3)
    of_each = cg.GridClassifier(cg.CountingGrid((8, 8), 4, (4, 1)), random_state=0)
    return {
        "bags 4x1": partial(scores, RootBags(), counts),
        "TF-IDF 4x1": partial(scores, TfidfBags(), counts),
        "FAB-MAP 4x1": partial(scores, FabMap(), counts),
        "VLAD": partial(scores, Vectors(), vlad_vectors),
        "Gist": partial(scores, StandardizedVectors(), lambda: Gist().transform(paths)),
        "grid of all frames, overlap": partial(scores, on_one_grid, partial(scaled, 0.7)),
        "grid of each place": partial(scores, of_each, partial(scaled, 1.0)),
        "recognize 4x1": partial(scores, cg.PlaceRecognizer(sections=(4, 1), random_state=0), counts),
    }


def panning(results):
    """Windows of panoramas: the reference turns once, the query turns again half a step aside, with noise."""
    paths = sorted((Path(os.environ["COUNTINGGRIDS_DATA"]) / "panoramas").glob("*.*g"))[:N_PANORAMAS]
    n = 64
    matches = true_matches(np.arange(n), n, 2) | (np.abs(np.arange(n)[:, None] - np.arange(n)) >= n - 2)
    for seed, path in enumerate(paths):
        walks = turns(image_files.read(path)[128:384], n, 256, seed)
        results.measure("panning", path.stem, measurements(walks, cache(partial(bags_of, walks)), matches))

    def read(found):
        return [found[how]["recall_at_1"] for how in ("alone", "filtered")]

    rows = [(name, *spread(100 * values)) for name, values in results.columns("panning", read).items()]
    common.table(f"Panning in {len(paths)} panoramas, recall@1 in %", ("system", "alone", "filtered"), rows)


def rules(results):
    """Ways to choose the sections of bags, on panoramas that no other part looks at."""
    paths = sorted((Path(os.environ["COUNTINGGRIDS_DATA"]) / "panoramas").glob("*.*g"))[-N_FOR_RULES:]
    n = 64
    matches = true_matches(np.arange(n), n, 2) | (np.abs(np.arange(n)[:, None] - np.arange(n)) >= n - 2)
    shapes = coarser(FINE)

    def by(rule, pair):
        reference, query = pair()
        if rule == "given":
            used = [FINE]
        elif rule == "all":
            used = shapes
        else:
            losses = cg.PlaceRecognizer("bags", sections=FINE).fit(reference).losses_
            best = min(shapes, key=lambda s: losses[f"bags {s[0]}x{s[1]}"])
            used = [best] if rule == "best" else [s for s in shapes if divides(best, s)]
        stacked = (np.hstack([at(each, s) for s in used]) for each in (reference, query))
        return measured(RootBags(), *stacked, matches) | {"compared": str(used)}

    for seed, path in enumerate(paths):
        walks = turns(image_files.read(path)[128:384], n, 256, seed)
        pair = cache(partial(bags_of, walks))
        names = ("given", "all", "best", "best and finer")
        results.measure("rules", path.stem, {name: partial(by, name, pair) for name in names})

    def read(found):
        return [found[how]["recall_at_1"] for how in ("alone", "filtered")]

    rows = [(name, *spread(100 * values)) for name, values in results.columns("rules", read).items()]
    common.table(f"Sections of bags in {len(paths)} panoramas, recall@1 in %", ("rule", "alone", "filtered"), rows)


def turns(pixels, n, width, seed):
    """Return two walks of windows: n steps round a panorama, and the same half a step aside, darker, with noise."""
    ring, step = np.hstack([pixels, pixels[:, :width]]), pixels.shape[1] // n
    rng = np.random.default_rng(seed)
    noisy = [ring[:, i * step + step // 2 :][:, :width].astype(float) for i in range(n)]
    noisy = [(0.7 * each + rng.normal(0, 25, each.shape)).clip(0, 255).astype(np.uint8) for each in noisy]
    return [ring[:, i * step : i * step + width] for i in range(n)], noisy


def spread(values):
    """Return the mean and the standard deviation of each column as text."""
    return [f"{m:.1f} +- {s:.1f}" for m, s in zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)]


def size(results, n=100_000):
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
    results.found["size"] = found
    results.write()


def main():
    parts = {"gardens": gardens, "tower": tower, "panning": panning, "rules": rules, "size": size}
    chosen = [name for name in sys.argv[1:] if name in parts] or list(parts)
    warnings.simplefilter("ignore")
    results = Results(JSON, MINUTES)
    try:
        for name in chosen:
            parts[name](results)
    except OutOfTimeError:
        print("time is over; run the same command again to continue", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
