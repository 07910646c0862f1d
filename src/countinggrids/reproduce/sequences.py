"""Place recognition along sequences: filtering with a Markov chain, the scaling study, and "where was I"."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from countinggrids.baselines import (
    LDA,
    Epitome,
    EpitomicPlaces,
    HistogramSVM,
    PolyaMixture,
    ReconfigurableBags,
    RootBags,
    TfidfBags,
    gist_places,
)
from countinggrids.data import container
from countinggrids.data.items import Items
from countinggrids.features import Gist
from countinggrids.meta import BagCoarsener, BagScaler, GridClassifier, PlaceTracker, chain
from countinggrids.meta.tracking import sequences
from countinggrids.models import CountingGrid, ElasticGrid, MixtureOfUnigrams
from countinggrids.reproduce import tower
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import ANNEAL, FINEST, QUICK, TOKENS, Array
from countinggrids.reproduce.report import Report, Table, comparison_table, figure

HELD_OUT, N_MOST = 0.3, 30
SIZES, WINDOW, SCALES = (8, 11, 15, 20), 6, (1, 2, 3)
"""Grids and window of the scaling study, and the factors of both."""
WHERE: dict[str, float | None] = {
    "LDA": 76.80,
    "reconfigurable 4x4": 74.63,
    "mixture": 70.37,
    "counting grid 1x1": 76.21,
    "counting grid 4x4": 81.45,
    "counting grid 4x1": None,
}
POWERS = {"bagscaler__power": (0.7, 1.0)}
CHOICES: dict[str, dict[str, Sequence[Any]]] = {
    "mixture": {"n_components": (2, 5, 10), **POWERS},
    "LDA": {"n_components": (2, 5, 10), **POWERS},
    "reconfigurable 4x4": {"n_components": (8, 16), **POWERS},
    "Polya mixture": {"n_components": (2, 5)},
    "counting grid 4x4": {"grid": ((12, 12), (16, 16))},
    **{f"counting grid {sections}": {"grid": ((8, 8), (12, 12))} for sections in ("1x1", "2x2", "2x1", "4x1")},
}
"""Settings to select from for each model, on training frames."""
TORRALBA, IN_COLOR = "Torralba: Gaussians on Gist", "words and colors"
REFERENCE = "counting grid 1x1"
LEAST_PROBABILITY = 0.01
"""Smallest probability of a place under the standing baselines."""
IN_COLORS = ("counting grid 1x1", "counting grid 4x1", "mixture")
"""Models that also see colors."""


def run(experiment: Experiment) -> Report:
    """Evaluate filtering, grids of several scales, and few images of each place."""
    items = tower.frames(experiment)
    tables = [_filtered(experiment, items), _scales(experiment, items), _where(experiment, items)]
    notes = [
        f"A run of {HELD_OUT:.0%} of every clip, at a random position, is held out, the rest are training frames, on "
        "which gamma, the weight of the likelihoods, is selected. So are, by three runs of every clip, grids (8x8 or "
        "12x12 with windows of 4x4; 12x12 or 16x16 with 8x8 for 4x4), and the components and the power of the counts "
        "of mixtures, LDA and reconfigurable bags. Alone is without a chain; filtered uses the frames so far, smoothed "
        f"all of them. Where was I: at most {N_MOST} images a place, filtered. The scaling study filters counting "
        f"grids of 1x1 bags with grids {', '.join(map(str, SIZES))} and window {WINDOW}, all times sigma, in one draw. "
        "The epitome of local histograms is small (8x8 cells), with a short annealing schedule. Places are areas, on "
        "any floor, because the floors look alike.",
    ]
    data = tower.DATA.format("Torralba's sequences and a day of SenseCam")
    return Report("sequences", "Along a walk", data, tables, notes, "sequences.png")


def bag_models(anneal: tuple[float, float, float]) -> dict[str, Any]:
    """Return the classifiers of frames by name."""

    def of(model: Any, sections: Any, tokens: float | None = TOKENS) -> Any:
        scaled = [] if tokens is None else [BagScaler(tokens)]
        return make_pipeline(BagCoarsener(sections, FINEST), *scaled, GridClassifier(model, random_state=0))

    def grid(sections: Any) -> Any:
        size, window = (12, 8) if sections == 4 else (8, 4)  # as for places
        return of(CountingGrid((size, size), window, None if sections == 1 else sections, anneal=anneal), sections)

    return {
        "counting grid 1x1": grid(1),
        "counting grid 2x2": grid(2),
        "counting grid 4x4": grid(4),
        "counting grid 2x1": grid((2, 1)),
        "counting grid 4x1": grid((4, 1)),
        "elastic grid 4x4": of(ElasticGrid((12, 12), 8, FINEST, slack=1, anneal=anneal), 4),
        **{name: make_pipeline(BagCoarsener(n, FINEST), *parts) for name, (n, *parts) in _standing().items()},
        "mixture": of(MixtureOfUnigrams(2, anneal=None), 1),
        "LDA": of(LDA(2), 1),
        "reconfigurable 4x4": of(ReconfigurableBags(8, FINEST), 4),
        "Polya mixture": of(PolyaMixture(2), 1, None),
        "epitome of local histograms": EpitomicPlaces(
            Epitome((8, 8), FINEST, anneal=(0.1, 1.3, 1.0), max_iter=20), FINEST, random_state=0
        ),
    }


class WithLogs(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Give a classifier with probabilities their logarithms, which `PlaceTracker` multiplies by a weight.

    Parameters
    ----------
    estimator : estimator
        A classifier with `predict_proba`.
    """

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> "WithLogs":
        """Fit the classifier."""
        self.fitted_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_log_proba(self, X: Any) -> Array:
        """Return log-probabilities; those of neighbors, which may be 0, have a lower bound."""
        return np.log(np.maximum(self.fitted_.predict_proba(X), LEAST_PROBABILITY))

    def predict(self, X: Any) -> Array:
        """Return the most probable place."""
        return np.asarray(self.fitted_.predict(X))


def _standing() -> dict[str, Any]:
    """Return the baselines without a generative model, with their sections; all of them have probabilities."""
    few = {"n_neighbors": 3, "weights": "distance"}
    return {
        "nearest neighbors, roots 1x1": (1, RootBags(), WithLogs(KNeighborsClassifier(**few))),
        "nearest neighbors, TF-IDF 1x1": (1, TfidfBags(), WithLogs(KNeighborsClassifier(**few))),
        "chi-squared SVM 1x1": (1, WithLogs(_calibrated("chi2"))),
        "intersection SVM 4x4": (4, WithLogs(_calibrated("intersection"))),
        "logistic regression, roots 1x1": (1, RootBags(), LogisticRegression(C=10, max_iter=1000)),
        "logistic regression, roots 4x4": (4, RootBags(), LogisticRegression(C=10, max_iter=1000)),
    }


def _calibrated(kernel: str) -> Any:
    """Return an SVM with probabilities."""
    return CalibratedClassifierCV(HistogramSVM(kernel), ensemble=False, cv=2)


STANDING = tuple(_standing())


def select(experiment: Experiment, name: str, X: Array, items: Items) -> Any:
    """Return a model of `bag_models`, with settings selected by runs of every clip."""
    model = bag_models(_anneal(experiment))[name]
    if name not in CHOICES or experiment.is_quick:
        return model
    options = {
        option if "__" in option else f"gridclassifier__estimator__{option}": values
        for option, values in CHOICES[name].items()
    }
    search = GridSearchCV(model, options, cv=tower.folds(items), refit=False).fit(X, items["label"].astype(str))
    return model.set_params(**search.best_params_)


def _anneal(experiment: Experiment) -> tuple[float, float, float]:
    return QUICK if experiment.is_quick else ANNEAL


def _filtered(experiment: Experiment, items: Items) -> Table:
    """Evaluate filtering with every model, and with Gaussians on Gist."""
    grids = [f"counting grid {sections}" for sections in ("1x1", "2x2", "4x4", "2x1", "4x1")]
    alone = (
        *grids,
        "elastic grid 4x4",
        *STANDING,
        "mixture",
        "LDA",
        "Polya mixture",
        "epitome of local histograms",
        TORRALBA,
    )
    scores: dict[str, dict[str, list[float]]] = {how: {} for how in ("alone", "filtered", "smoothed")}
    for name in (*alone, *(f"{each}, {IN_COLOR}" for each in IN_COLORS)):
        results = [
            experiment.step(f"sequences, {name}, draw {seed}", {}, partial(_tracked, experiment, items, name, seed))
            for seed in experiment.seeds
        ]
        for how, models in scores.items():
            models[name] = [each[how] for each in results]
    return comparison_table("Places along the walk, accuracy in %", scores, REFERENCE)


def _tracked(experiment: Experiment, items: Items, name: str, seed: int) -> dict[str, float]:
    """Fit one model and a chain to the frames that are not held out; return the accuracy on the others."""
    is_train = held_in(items, seed)
    model = name.removesuffix(f", {IN_COLOR}")
    if name == TORRALBA:
        X = np.asarray(list(Gist().transform([items.path(i) for i in range(len(items))])))
        tracker = gist_places(n_directions=16 if experiment.is_quick else 80, random_state=0)
    else:
        bags = tower.with_colors if model != name else tower.in_sections
        X = bags(experiment, items, is_train, f"draw {seed}")
        tracker = PlaceTracker(select(experiment, model, X[is_train], items.take(is_train)))
    return _accuracy(tracker, X, items, is_train)


def _accuracy(tracker: Any, X: Array, items: Items, is_train: Array) -> dict[str, float]:
    y, train, test = items["label"].astype(str), items.take(is_train), items.take(~is_train)
    tracker.fit(X[is_train], y[is_train], train.run_lengths())
    lengths = test.run_lengths()
    posteriors = {
        "alone": tracker.filter(X[~is_train], [1] * len(test)),
        "filtered": tracker.filter(X[~is_train], lengths),
        "smoothed": tracker.smooth(X[~is_train], lengths),
    }
    return {how: float(np.mean(tracker.classes_[q.argmax(axis=1)] == y[~is_train])) for how, q in posteriors.items()}


def held_in(items: Items, seed: int) -> Array:
    """Hold out a run of every clip, at a random position; return a mask of the rest."""
    rng = np.random.default_rng(seed)
    sequence, where = items["sequence"].astype(str), tower.position(items)
    begins = {name: rng.uniform(0, 1 - HELD_OUT) for name in np.unique(sequence)}
    begin = np.array([begins[name] for name in sequence])
    return (where < begin) | (where >= begin + HELD_OUT)


def _scales(experiment: Experiment, items: Items) -> Table:
    """Scale grid and window together; plot accuracy against capacity, a line for each scale."""
    sizes = SIZES[::3] if experiment.is_quick else SIZES
    axes = figure(6.4, 4).subplots()
    rows = []
    for scale in SCALES[: 2 if experiment.is_quick else 3]:
        compute = partial(_scaled, experiment, items, scale, sizes, 0)
        accuracy = 100 * np.array(experiment.step(f"sequences, scale {scale}", {"sizes": sizes}, compute))
        rows.append([str(scale), *(f"{each:.1f}" for each in accuracy)])
        axes.plot([(size / WINDOW) ** 2 for size in sizes], accuracy, marker="o", label=f"sigma {scale}")
    axes.set(xscale="log", xlabel="capacity", ylabel="accuracy of filtering, %")
    axes.legend(frameon=False)
    container.write_figure(experiment.folder / "sequences.png", axes.figure)
    header = ["sigma", *(f"capacity {(size / WINDOW) ** 2:.1f}" for size in sizes)]
    return Table("Grid and window scaled together, accuracy of filtering in %", header, rows)


def _scaled(experiment: Experiment, items: Items, scale: int, sizes: Any, seed: int) -> list[float]:
    is_train = held_in(items, seed)
    X = tower.bags(experiment, items, is_train, f"draw {seed}").coarsen(1).counts.toarray()
    accuracy = []
    for size in sizes:
        grid = CountingGrid((scale * size, scale * size), scale * WINDOW, anneal=_anneal(experiment))
        model = make_pipeline(BagScaler(TOKENS), GridClassifier(grid, random_state=0))
        accuracy.append(_accuracy(PlaceTracker(model), X, items, is_train)["filtered"])
    return accuracy


def _where(experiment: Experiment, items: Items) -> Table:
    """Evaluate filtering with few images of each place."""
    accuracy = {
        name: [
            experiment.step(
                f"where was I, {name}, draw {seed}", {}, partial(_few_tracked, experiment, items, name, seed)
            )
            for seed in experiment.seeds
        ]
        for name in (*WHERE, *STANDING)
    }
    caption = f"Where was I: at most {N_MOST} images a place, accuracy of filtering"
    return comparison_table(caption, {"accuracy, %": accuracy}, REFERENCE, WHERE)


def _few_tracked(experiment: Experiment, items: Items, name: str, seed: int) -> float:
    """Fit each place to few consecutive frames; transitions are counted in all frames that are not held out."""
    is_train, labels = held_in(items, seed), items["label"].astype(str)
    X = tower.in_sections(experiment, items, is_train, f"draw {seed}")
    places = np.unique(labels[is_train])
    few = np.sort(np.concatenate([np.flatnonzero(is_train & (labels == place))[:N_MOST] for place in places]))
    known = items.take(is_train)
    path = np.searchsorted(places, labels[is_train])
    paths = [path[part] for part in sequences(len(path), known.run_lengths())]
    move = np.exp(chain.re_estimate(*chain.count_moves(paths, len(places)), pseudocount=0.1).log_move)
    tracker = PlaceTracker(select(experiment, name, X[few], items.take(few)), transitions=move)
    tracker.fit(X[few], labels[few], items.take(few).run_lengths())
    test = items.take(~is_train)
    q = tracker.filter(X[~is_train], test.run_lengths())
    return float(np.mean(tracker.classes_[q.argmax(axis=1)] == labels[~is_train]))
