"""Places without labels: one grid of capacity 14; a new image has the label of its nearest neighbor on the torus."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from countinggrids.baselines import LDA, Epitome, RootBags, StelEpitome, TfidfBags
from countinggrids.data import container
from countinggrids.data.items import Items
from countinggrids.features import image_files
from countinggrids.meta import BagScaler, GridNeighbors
from countinggrids.models import CountingGrid, DiscreteEpitome, ElasticGrid, HybridEpitome
from countinggrids.reproduce import tower
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import ANNEAL, FINE, FINEST, QUICK, TOKENS, Array
from countinggrids.reproduce.report import Report, comparison_table, figure
from countinggrids.reproduce.sequences import held_in

PAPER: dict[str, float | None] = {
    "epitome": 69.42,
    "stel epitome": 73.06,
    "LDA": 74.32,
    "counting grid 1x1": 82.34,
    "counting grid 4x4": 83.94,
    "counting grid 4x1": None,
    "hybrid, matched 1x1": 86.6,
    "feature epitome": 69.93,
    "elastic grid 4x4": None,
    "counting grid 1x1, embedding start": None,
    "nearest neighbor, roots 1x1": None,
    "nearest neighbor, roots 2x1": None,
    "nearest neighbor, roots 4x4": None,
    "nearest neighbor, TF-IDF 1x1": None,
}
N_PLACES, WINDOW = 10, 12
GRID = 45
"""Cells along an axis: with windows of twelve that is a capacity of 14."""
TOPICS = (5, 10, 20, 40)
ROWS = (4, 1)
"""Sections one above the other."""
REFERENCE = "counting grid 1x1"
PIXELS = 16
"""Pixels along an image's side for the epitomes of pixels."""


def run(experiment: Experiment) -> Report:
    """Fit each model to the frames that are not held out, and label the others by their nearest neighbor."""
    items = tower.most_frequent(tower.frames(experiment), N_PLACES)
    accuracy = {
        name: [
            experiment.step(
                f"clustering, {name}, draw {seed}", {"grid": GRID}, partial(_accuracy, experiment, items, name, seed)
            )
            for seed in experiment.seeds
        ]
        for name in PAPER
    }
    axes = figure(6.4, 3.4).subplots()
    names = list(PAPER)[::-1]
    axes.barh(names, [100 * np.mean(accuracy[name]) for name in names], color="C0", label="ours")
    published = [np.nan if PAPER[name] is None else PAPER[name] for name in names]
    axes.plot(published, range(len(PAPER)), "k|", ms=14, label="paper, on its data")
    axes.set_xlabel("accuracy, %")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    container.write_figure(experiment.folder / "clustering.png", axes.figure)
    places = sorted(set(items["label"].astype(str)))
    notes = [
        f"The {len(places)} places with most frames: {', '.join(places)}. Models are fitted without labels; windows of "
        f"{WINDOW}x{WINDOW} on a grid of {GRID}x{GRID}, capacity {(GRID / WINDOW) ** 2:.0f}. A run of every clip is "
        "held out and labeled by the nearest training frame on the torus; for LDA, by the nearest topic proportions, "
        f"with {', '.join(map(str, TOPICS))} topics, selected by runs of the training clips. The epitomes of pixels "
        f"have the same capacity and see images of {PIXELS}x{PIXELS} pixels.",
    ]
    table = comparison_table("Places without labels", {"accuracy, %": accuracy}, REFERENCE, PAPER)
    data = tower.DATA.format("SenseCam")
    return Report("clustering", "Places without labels", data, [table], notes, "clustering.png")


def _accuracy(experiment: Experiment, items: Items, name: str, seed: int) -> float:
    is_train, labels = held_in(items, seed), items["label"].astype(str)
    if name in ("epitome", "stel epitome"):
        pixels = PIXELS // 2 if experiment.is_quick else PIXELS
        X, model = _pixels(items, pixels), _of_pixels(name, seed, pixels)
    else:
        bags = tower.bags(experiment, items, is_train, f"clustering, draw {seed}")
        X, model = _of_bags(name, bags, seed, experiment.is_quick, tower.folds(items.take(is_train)))
    model.fit(X[is_train], labels[is_train])
    return float(np.mean(model.predict(X[~is_train]) == labels[~is_train]))


def _of_bags(name: str, bags: Any, seed: int, is_quick: bool, folds: Any) -> tuple[Any, Any]:
    """Return the bags of a model, and the model; the number of topics is selected by folds of the training frames."""
    anneal = QUICK if is_quick else ANNEAL
    options: dict[str, Any] = {"anneal": anneal, "location_prior": "uniform", "random_state": seed}
    topics = make_pipeline(LDA(random_state=seed), KNeighborsClassifier(1))
    makers: dict[str, tuple[Any, Callable[[], Any]]] = {
        "LDA": (1, lambda: GridSearchCV(topics, {"lda__n_components": (10,) if is_quick else TOPICS}, cv=folds)),
        "counting grid 1x1": (1, lambda: CountingGrid((GRID, GRID), WINDOW, **options)),
        "counting grid 4x4": (FINEST, lambda: CountingGrid((GRID, GRID), WINDOW, FINEST, **options)),
        "counting grid 4x1": (ROWS, lambda: CountingGrid((GRID, GRID), WINDOW, ROWS, **options)),
        "hybrid, matched 1x1": (FINE, lambda: HybridEpitome((GRID, GRID), WINDOW, **options)),
        "elastic grid 4x4": (FINEST, lambda: ElasticGrid((GRID, GRID), WINDOW, FINEST, slack=1, **options)),
        "counting grid 1x1, embedding start": (
            1,
            lambda: CountingGrid((GRID, GRID), WINDOW, **options | {"init": "embedding", "anneal": "auto"}),
        ),
        "nearest neighbor, roots 1x1": (1, lambda: nearest(RootBags())),
        "nearest neighbor, roots 2x1": ((2, 1), lambda: nearest(RootBags())),
        "nearest neighbor, roots 4x4": (FINEST, lambda: nearest(RootBags())),
        "nearest neighbor, TF-IDF 1x1": (1, lambda: nearest(TfidfBags())),
        "feature epitome": (FINE, lambda: DiscreteEpitome((GRID, GRID), WINDOW, **options)),
    }
    sections, make = makers[name]
    X = BagScaler(TOKENS).fit_transform(bags.coarsen(sections).counts)
    model = make()
    return X, model if name == "LDA" or name.startswith("nearest") else GridNeighbors(model)


def nearest(vectors: Any) -> Any:
    """Return a nearest neighbor classifier on vectors of bags."""
    return make_pipeline(vectors, KNeighborsClassifier(1))


def _of_pixels(name: str, seed: int, pixels: int) -> Any:
    """Return an epitome of pixels, whose windows are whole images, with the capacity of the grids."""
    size = round(pixels * GRID / WINDOW)
    model = (Epitome if name == "epitome" else StelEpitome)((size, size), (pixels, pixels), random_state=seed)
    return _NearestLocation(model, size)


class _NearestLocation:
    """Classifies images by the nearest training image on the torus of an epitome."""

    def __init__(self, model: Any, size: int):
        self.model, self.size = model, size

    def fit(self, X: Any, y: Array) -> None:
        self.locations, self.labels = self.model.fit(X).locate(X), y

    def predict(self, X: Any) -> Array:
        away = np.abs(self.model.locate(X)[:, None] - self.locations)
        return self.labels[(np.minimum(away, self.size - away) ** 2).sum(axis=2).argmin(axis=1)]


def _pixels(items: Items, pixels: int) -> Array:
    """Return all images downsampled to squares, (images, rows * columns * 3), from 0 to 1."""
    import cv2

    small = []
    for i in range(len(items)):
        image = image_files.read(items.path(i), is_color=True)
        small.append(cv2.resize(image, (pixels, pixels), interpolation=cv2.INTER_AREA))
    return np.stack(small).reshape(len(items), -1) / 255
