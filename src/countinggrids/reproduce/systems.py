"""The classifiers of the tables of the paper, with model selection on training bags only."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from countinggrids.baselines import LDA, HistogramSVM, ReconfigurableBags, RootBags, Tessellated, TfidfBags
from countinggrids.meta import BagCoarsener, BagScaler, GridClassifier
from countinggrids.meta.candidates import Candidate
from countinggrids.models import (
    ComponentialGrid,
    CountingGrid,
    ElasticGrid,
    HybridEpitome,
    MixtureOfUnigrams,
    SpatialBagOfWords,
)
from countinggrids.reproduce import whole_maps
from countinggrids.reproduce.problem import FINE, FINEST, TOKENS, Problem, fit_grids, mean_kernel

HYBRID = 16
"""Cells along each axis of the grid of the hybrid."""
C = 10
"""Regularization parameter of SVMs."""
PENALTIES = (1.0, 10.0)
"""Regularization parameters that the standing baselines select from."""
SLACKS = (0, 1, 2)
"""Slacks that elastic grids select from."""
SIZES = ((12, 4), (16, 8), (24, 8))
"""Cells of a grid and of its window along each axis, where grids of several sizes are averaged."""

WHOLE_MAPS = "hybrid, whole maps matched 1x1"
Predictions = tuple[Any, str]
"""Predicted labels of the test bags, and the selected settings as text."""
System = Callable[[Problem], Predictions]


def with_search(model: Any, sections: int, options: Mapping[str, Sequence[Any]]) -> System:
    """Return a system whose options are selected by cross-validation."""

    def predict(problem: Problem) -> Predictions:
        is_short = problem.is_short
        candidates = {
            f"gridclassifier__estimator__{name}": values[:1] if is_short else values for name, values in options.items()
        } | {"bagscaler__power": problem.powers}
        pipeline = make_pipeline(
            BagCoarsener(sections, FINEST), BagScaler(TOKENS), GridClassifier(model, random_state=0)
        )
        settings = {name: values[0] for name, values in candidates.items()}
        if any(len(values) > 1 for values in candidates.values()):
            pipeline.set_params(gridclassifier__n_estimators=problem.n_selecting)
            search = GridSearchCV(pipeline, candidates, cv=problem.folds, refit=False)
            settings = search.fit(problem.X, problem.y).best_params_
        pipeline.set_params(**settings, gridclassifier__n_estimators=problem.n_estimators)
        text = ", ".join(f"{name.rpartition('__')[2]} {value:g}" for name, value in sorted(settings.items()))
        return pipeline.fit(problem.X, problem.y).predict(problem.X_test), text

    return predict


def grids(sections: int, which: str) -> System:
    """Return a system of counting grids: `single`, `averaged` or of several `capacities`."""

    def predict(problem: Problem) -> Predictions:
        selected = problem.grids[sections]
        return getattr(selected, which).predict(problem.X_test), selected.settings

    return predict


def two_rows(problem: Problem) -> Predictions:
    """Average counting grids of two sections, one above the other."""
    return problem.two_rows.averaged.predict(problem.X_test), problem.two_rows.settings


def several_sizes(sections: Callable[[int], tuple[int, int]]) -> System:
    """Return a system that averages counting grids of several sizes, without model selection.

    Parameters
    ----------
    sections : callable
        Returns the sections of a window of some number of cells along each axis.

    Returns
    -------
    system : callable
        Predicts the test bags of a problem.
    """

    def predict(problem: Problem) -> Predictions:
        sizes, power = SIZES[: 1 if problem.is_quick else None], problem.powers[0]
        candidates = [Candidate((n, n), (w, w), sections(w), None, TOKENS, power, None) for n, w in sizes]
        text = ", ".join(f"{n}x{n}/{w}x{w} in {'x'.join(map(str, sections(w)))}" for n, w in sizes)
        return fit_grids(problem, candidates).predict(problem.X_test), f"grids {text}, power {power:g}"

    return predict


def hybrid(sections: int) -> System:
    """Return a system that is matched by coarse sections and painted by fine ones."""

    def predict(problem: Problem) -> Predictions:
        size = 14 if problem.is_quick else HYBRID
        model = HybridEpitome((size, size), FINE, sections, anneal=problem.anneal)
        classifier = GridClassifier(make_pipeline(BagScaler(TOKENS, problem.powers[0]), model), random_state=0)
        predicted = classifier.fit(problem.X_fine, problem.y).predict(problem.X_fine_test)
        return predicted, f"grid {size}x{size}, power {problem.powers[0]:g}"

    return predict


def hybrid_of_maps(init: str) -> System:
    """Return a system whose window is the whole feature map, with a capacity selected by cross-validation.

    Parameters
    ----------
    init : {"uniform", "embedding"}
        How the grids with the selected capacity start; during selection the start is uniform.

    Returns
    -------
    system : callable
        Predicts the test bags of a problem.
    """

    def predict(problem: Problem) -> Predictions:
        if problem.whole is None:
            raise ValueError("whole=None must be a function that returns bags of whole feature maps.")
        X, X_test = problem.whole()
        side = round(float(np.sqrt(X.shape[1] // (problem.X.shape[1] // (FINEST[0] * FINEST[1])))))
        candidates = whole_maps.CAPACITIES[: 1 if problem.is_short else None]
        options = side, TOKENS, problem.anneal
        capacity = whole_maps.select_capacity(X, problem.y, problem.folds, *options, candidates)
        model = whole_maps.classifier(capacity, *options, "uniform" if problem.is_quick else init)
        return model.fit(X, problem.y).predict(X_test), f"capacity {capacity:g}"

    return predict


def standing(sections: int, make: Callable[[], Any], penalty: str | None = None) -> System:
    """Return a baseline without a generative model, whose penalty, if any, is selected by cross-validation.

    Parameters
    ----------
    sections : int
        Sections of the bags along each axis.
    make : callable
        Returns the classifier.
    penalty : str, default=None
        Name of its regularization parameter in a pipeline.

    Returns
    -------
    system : callable
        Predicts the test bags of a problem.
    """

    def predict(problem: Problem) -> Predictions:
        coarse = BagCoarsener(sections, FINEST).fit(problem.X)
        X, X_test = coarse.transform(problem.X), coarse.transform(problem.X_test)
        model, text = make(), ""
        if penalty is not None:
            values = PENALTIES[1:] if problem.is_short else PENALTIES
            search = GridSearchCV(model, {penalty: values}, cv=problem.folds, refit=False).fit(X, problem.y)
            model, text = model.set_params(**search.best_params_), f"C {search.best_params_[penalty]:g}"
        return model.fit(X, problem.y).predict(X_test), text

    return predict


def nearest(vectors: Any) -> Callable[[], Any]:
    """Return a maker of nearest neighbor classifiers on vectors of bags."""
    return lambda: make_pipeline(vectors, KNeighborsClassifier(1))


def on_roots() -> Any:
    """Return logistic regression on square-rooted bags."""
    return make_pipeline(RootBags(), LogisticRegression(max_iter=1000))


def elastic(sections: int) -> System:
    """Return elastic grids with the settings selected for rigid ones, and a slack selected by the first fold."""

    def predict(problem: Problem) -> Predictions:
        best = problem.grids[sections].best
        grid = ElasticGrid(best.grid, best.window, best.sections, anneal=problem.anneal)
        scaled = (BagCoarsener(best.sections, FINEST), BagScaler(TOKENS, best.power))
        model = make_pipeline(*scaled, GridClassifier(grid, random_state=0))
        name, slacks = "gridclassifier__estimator__slack", SLACKS[1:2] if problem.is_short else SLACKS
        if len(slacks) > 1:
            first = problem.folds[:1]  # slack 2 takes twelve times the work of slack 0
            search = GridSearchCV(model, {name: slacks}, cv=first, refit=False).fit(problem.X, problem.y)
            slacks = (search.best_params_[name],)
        model.set_params(**{name: slacks[0]})
        return model.fit(problem.X, problem.y).predict(problem.X_test), f"slack {slacks[0]}"

    return predict


def embedded(problem: Problem) -> Predictions:
    """Return plain grids with the selected settings that start from the distances between the bags of a class."""
    best = problem.grids[1].best
    grid = CountingGrid(best.grid, best.window, init="embedding", anneal=problem.anneal if problem.is_quick else "auto")
    scaled = (BagCoarsener(1, FINEST), BagScaler(TOKENS, best.power))
    model = make_pipeline(*scaled, GridClassifier(grid, random_state=0))
    return model.fit(problem.X, problem.y).predict(problem.X_test), problem.grids[1].settings


def ensemble(problem: Problem) -> Predictions:
    """Average the log-likelihoods of all grids and of spatial bags of words."""
    spatial = make_pipeline(BagScaler(TOKENS, problem.powers[0]), SpatialBagOfWords(2, sections=FINEST, anneal=None))
    spatial_bags = GridClassifier(spatial, n_estimators=problem.n_estimators, random_state=0)
    spatial_bags.fit(problem.X, problem.y)
    models = problem.grids[1].capacities, problem.grids[2].averaged, problem.grids[4].capacities, spatial_bags
    joint = np.mean([model.log_likelihoods(problem.X_test) for model in models], axis=0)
    return spatial_bags.classes_[joint.argmax(axis=1)], "several capacities of 1x1 and 4x4"


def kernel_svm(*names: str) -> System:
    """Return an SVM with the mean of kernels: "scores" or "pyramid"."""

    def predict(problem: Problem) -> Predictions:
        train, test = mean_kernel([problem.kernels[name] for name in names])
        return SVC(C=C, kernel="precomputed").fit(train, problem.y).predict(test), f"C {C}"

    return predict


STANDING: dict[str, System] = {
    "nearest neighbor, roots 1x1": standing(1, nearest(RootBags())),
    "nearest neighbor, roots 4x4": standing(4, nearest(RootBags())),
    "nearest neighbor, TF-IDF 1x1": standing(1, nearest(TfidfBags())),
    "chi-squared SVM 1x1": standing(1, HistogramSVM, "C"),
    "intersection SVM 4x4": standing(4, lambda: HistogramSVM("intersection"), "C"),
    "logistic regression, roots 1x1": standing(1, on_roots, "logisticregression__C"),
    "logistic regression, roots 4x4": standing(4, on_roots, "logisticregression__C"),
}
"""Baselines without a generative model, which stand in every table."""

SYSTEMS: dict[str, System] = {
    **STANDING,
    "mixture": with_search(MixtureOfUnigrams(anneal=None), 1, {"n_components": [2, 5, 10]}),
    "LDA": with_search(LDA(), 1, {"n_components": [2, 5, 10]}),
    "LDA 4x4": with_search(Tessellated(LDA(2), FINEST), 4, {}),
    "reconfigurable 4x4": with_search(ReconfigurableBags(8, FINEST), 4, {"n_components": [8, 16]}),
    "spatial bag of words 4x4": with_search(
        SpatialBagOfWords(sections=FINEST, anneal=None), 4, {"n_components": [1, 2]}
    ),
    "counting grid 1x1": grids(1, "single"),
    "counting grid 2x2": grids(2, "single"),
    "counting grid 4x4": grids(4, "single"),
    "counting grid 1x1, embedding start": embedded,
    "componential grid 1x1": with_search(
        ComponentialGrid((8, 8), (3, 3), max_iter=60), 1, {"alpha": [50.0, 20.0, 200.0]}
    ),
    "elastic grid 2x2": elastic(2),
    "elastic grid 4x4": elastic(4),
    "hybrid, matched 1x1": hybrid(1),
    "hybrid, matched 4x4": hybrid(4),
    WHOLE_MAPS: hybrid_of_maps("uniform"),
    f"{WHOLE_MAPS}, embedding start": hybrid_of_maps("embedding"),
    "spatial pyramid kernel 4x4": kernel_svm("pyramid"),
    "counting grid 1x1, three averaged": grids(1, "averaged"),
    "counting grid 2x2, three averaged": grids(2, "averaged"),
    "counting grid 4x4, three averaged": grids(4, "averaged"),
    "counting grid 2x1, three averaged": two_rows,
    "counting grid 1x1, three sizes averaged": several_sizes(lambda _: (1, 1)),
    "counting grid 2x2, three sizes averaged": several_sizes(lambda _: (2, 2)),
    "counting grid in rows, three sizes averaged": several_sizes(lambda window: (window // 2, 1)),
    "counting grid 1x1, three capacities averaged": grids(1, "capacities"),
    "counting grid 4x4, three capacities averaged": grids(4, "capacities"),
    "ensemble of 1x1, 2x2, 4x4 and spatial bags": ensemble,
    "score space 1x1, 2x2 and 4x4": kernel_svm("scores"),
    "score space and pyramid kernel": kernel_svm("scores", "pyramid"),
}

ON_SEQUENCES = (
    "counting grid 2x1, three averaged",
    "counting grid 1x1, three sizes averaged",
    "counting grid 2x2, three sizes averaged",
    "counting grid in rows, three sizes averaged",
)
"""Systems that are compared on image sequences only."""

ON_MAPS = (WHOLE_MAPS, f"{WHOLE_MAPS}, embedding start")
"""Systems that need whole feature maps."""


def evaluate(problem: Callable[[], Problem], system: str) -> dict[str, Any]:
    """Return the accuracy of a system on a problem, and the settings that were selected."""
    predicted, settings = SYSTEMS[system](problem())
    return {"accuracy": problem().accuracy(predicted), "settings": settings}
