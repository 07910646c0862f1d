"""Who competes in the paper's tables of classifiers: a model a class, chosen on training bags only."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from countinggrids.collection import Collection
from countinggrids.rivals import LDA, PyramidKernel, ReconfigurableBags, Tessellated
from countinggrids.rows import CountingGrid, HybridEpitome, MixtureOfUnigrams, SpatialBagOfWords
from countinggrids.uses import BagCoarsener, BagScaler, CapacitySearch, GridClassifier, ScoreSpace
from countinggrids.uses.candidates import Candidate

Array = NDArray[Any]
FINEST = (4, 4)
FINE, HYBRID = 12, 16
"""Sections along each axis that the hybrid paints, and cells of its grid."""
ANNEAL, QUICK = (0.1, 1.05, 1.0), (0.3, 1.4, 1.0)
POWER = (0.7,)
"""The power of the counts where none is chosen: what was chosen on most folds of the scenes."""
TOKENS, C = 100, 10
"""Tokens that bags are scaled to, and the cost of an SVM's errors."""
SIZES = ((12, 4), (16, 8), (24, 8))
"""Cells of a grid and of its window along each axis, where grids of several sizes are averaged."""


@dataclass
class Problem:
    """Bags to learn from and bags to try on.

    Parameters
    ----------
    X, y : bags by 4x4 sections and their labels
    tried, truth : the same, of what is tried
    folds : cross-validation within X; None makes three
    layouts, tried_layouts : the same bags by 12x12 sections, for the hybrid, where there are any
    is_quick : whether to try few settings
    powers : of the counts, to choose from; the first is the one of models that nothing is chosen for
    is_set : whether settings are set in advance instead of chosen, and grids are learnt once
    is_thorough : whether settings are chosen by as many restarts as are averaged and none is dropped early, for bags so
        few that one restart tells little
    """

    X: Array
    y: Array
    tried: Array
    truth: Array
    folds: Any = None
    layouts: Any = None
    tried_layouts: Any = None
    is_quick: bool = False
    powers: tuple[float, ...] = (0.7, 1.0)
    is_set: bool = False
    is_thorough: bool = False

    def __post_init__(self) -> None:
        if self.is_quick or self.is_set:
            self.powers = self.powers[:1]
        if self.folds is None:
            few = min(np.unique(self.y, return_counts=True)[1])
            cut = StratifiedKFold(int(np.clip(few // 2, 2, 3)), shuffle=True, random_state=0)
            self.folds = list(cut.split(self.X, self.y))

    def right(self, predicted: Any) -> float:
        """Give the share of labels that are right."""
        return float(np.mean(np.asarray(predicted) == self.truth))

    @property
    def anneal(self) -> tuple[float, float, float]:
        """The way of beta: as good as the default on grids as small as these, and quicker."""
        return QUICK if self.is_quick else ANNEAL

    @property
    def n_init(self) -> int:
        """How many restarts are averaged."""
        return 1 if self.is_quick or self.is_set else 3

    @property
    def n_choosing(self) -> int:
        """How many restarts are averaged where settings are chosen."""
        return self.n_init if self.is_thorough else 1

    @cached_property
    def grids(self) -> dict[int, "Chosen"]:
        """The counting grids of 1x1, 2x2 and 4x4 sections, each learnt three times."""
        if self.is_set:
            plain = Candidate((8, 8), (4, 4), (1, 1), None, TOKENS, self.powers[0], None)
            fine = plain._replace(grid=(12, 12), window=(8, 8), sections=FINEST)
        else:
            plain = chosen(self, 1, (6, 8, 12), (4,), self.powers)
            fine = chosen(self, 4, (8, 12), (8,), (plain.power,))
        return {1: Chosen(self, plain), 2: Chosen(self, plain._replace(sections=(2, 2))), 4: Chosen(self, fine)}

    @cached_property
    def two_rows(self) -> "Chosen":
        """Counting grids of two sections, one above the other, with the settings chosen for one."""
        return Chosen(self, self.grids[1].best._replace(sections=(2, 1)))

    @cached_property
    def kernels(self) -> dict[str, tuple[Array, Array]]:
        """Kernels of the bags to learn from, and of those to try with them."""
        pyramid = PyramidKernel(FINEST).fit(self.X)
        return {
            "pyramid": (pyramid.transform(self.X), pyramid.transform(self.tried)),
            "terms": self._compared(sum_over="nothing", center=False, power=0.3),
        }

    def _compared(self, **options: Any) -> tuple[Array, Array]:
        """Compare bags by their scores under the grids of all three tessellations."""
        parts = []
        for each in self.grids.values():
            space = ScoreSpace(each.single, **options).fit(self.X)
            learnt = space.transform(self.X)
            parts.append((learnt @ learnt.T, space.transform(self.tried) @ learnt.T))
        learnt, tried = (np.mean(each, axis=0) for each in zip(*parts, strict=True))
        return learnt, tried


def split_by(
    bags: Collection, is_train: Array, is_quick: bool, folds: Any = None, *, is_thorough: bool = False
) -> Problem:
    """Put a problem together from bags by 12x12 sections and a mask of those to learn from."""
    labels, X, fine = bags.items["label"].astype(str), bags.coarsen(FINEST).counts.toarray(), bags.counts
    learnt, tried = ((X[rows], labels[rows]) for rows in (is_train, ~is_train))
    return Problem(*learnt, *tried, folds, fine[is_train], fine[~is_train], is_quick, is_thorough=is_thorough)


def chosen(
    problem: Problem, sections: int, grids: Sequence[int], windows: Sequence[int], powers: Sequence[float]
) -> Candidate:
    """Choose grid, window and power of the counts by cross-validation."""
    if problem.is_quick:
        grids, windows = (8,), (4,)
    search = CapacitySearch(
        CountingGrid(anneal=problem.anneal), grids=grids, windows=windows, sections=(sections,), tokens=(TOKENS,),
        powers=powers, capacities=(1, 10), x_sections=FINEST, cv=problem.folds, random_state=0, refit=False,
        keep=1.0 if problem.is_thorough else 0.5, n_init=problem.n_choosing,
    )  # fmt: skip
    return search.fit(problem.X, problem.y).best_candidate_


def learnt(problem: Problem, candidates: Sequence[Candidate]) -> GridClassifier:
    """Learn grids of several settings for each class, whose likelihoods are averaged."""
    members = []
    for each in candidates:
        matched = None if each.sections == (1, 1) else each.sections
        grid = CountingGrid(each.grid, each.window, matched, anneal=problem.anneal)
        members.append(make_pipeline(BagCoarsener(each.sections, FINEST), BagScaler(TOKENS, each.power), grid))
    model = GridClassifier(members, n_init=problem.n_init, committee="likelihoods", random_state=0)
    return model.fit(problem.X, problem.y)


class Chosen:
    """Counting grids a class, with the settings that were chosen."""

    def __init__(self, problem: Problem, best: Candidate):
        self.problem, self.best = problem, best
        self.averaged = learnt(problem, [best])
        self.single = copy.copy(self.averaged).set_params(estimator=self.averaged.estimator[0])
        self.single.models_ = [models[:1] for models in self.averaged.models_]

    @cached_property
    def wide(self) -> GridClassifier:
        """Grids of several capacities, whose likelihoods are averaged."""
        sizes = (6, 8, 12) if self.best.sections != FINEST else (8, 12, 16)
        few = sizes[: 1 if self.problem.is_quick else None]
        return learnt(self.problem, [self.best._replace(grid=(n, n)) for n in few])

    @property
    def settings(self) -> str:
        grid, window = ("x".join(map(str, shape)) for shape in (self.best.grid, self.best.window))
        return f"grid {grid}, window {window}, power {self.best.power:g}"


Outcome = tuple[Any, str]


def searched(model: Any, sections: int, options: Mapping[str, Sequence[Any]]) -> Callable[[Problem], Outcome]:
    """Make a contender whose options are chosen by cross-validation; three restarts are averaged."""

    def contend(problem: Problem) -> Outcome:
        steps = BagCoarsener(sections, FINEST), BagScaler(TOKENS), GridClassifier(model, random_state=0)
        few = {name: values[:1] if problem.is_quick or problem.is_set else values for name, values in options.items()}
        wanted = {f"gridclassifier__estimator__{name}": values for name, values in few.items()}
        wanted |= {"bagscaler__power": problem.powers}
        settings = {name: values[0] for name, values in wanted.items()}
        if any(len(values) > 1 for values in wanted.values()):
            tried = make_pipeline(*steps).set_params(gridclassifier__n_init=problem.n_choosing)
            search = GridSearchCV(tried, wanted, cv=problem.folds, refit=False)
            settings = search.fit(problem.X, problem.y).best_params_
        best = make_pipeline(*steps).set_params(**settings, gridclassifier__n_init=problem.n_init)
        told = ", ".join(f"{name.rpartition('__')[2]} {value:g}" for name, value in sorted(settings.items()))
        return best.fit(problem.X, problem.y).predict(problem.tried), told

    return contend


def grid(sections: int, which: str) -> Callable[[Problem], Outcome]:
    """Make a contender of counting grids: `single`, `averaged` or `wide`."""

    def contend(problem: Problem) -> Outcome:
        chosen = problem.grids[sections]
        return getattr(chosen, which).predict(problem.tried), chosen.settings

    return contend


def two_rows(problem: Problem) -> Outcome:
    """Average counting grids of two sections, one above the other."""
    return problem.two_rows.averaged.predict(problem.tried), problem.two_rows.settings


def of_sizes(sections: Callable[[int], tuple[int, int]]) -> Callable[[Problem], Outcome]:
    """Make a contender that averages counting grids of several sizes; nothing is chosen.

    `sections` tells into how many a window of so many cells is divided.
    """

    def contend(problem: Problem) -> Outcome:
        sizes, power = SIZES[: 1 if problem.is_quick else None], problem.powers[0]
        members = [Candidate((n, n), (w, w), sections(w), None, TOKENS, power, None) for n, w in sizes]
        told = ", ".join(f"{n}x{n}/{w}x{w} in {'x'.join(map(str, sections(w)))}" for n, w in sizes)
        return learnt(problem, members).predict(problem.tried), f"grids {told}, power {power:g}"

    return contend


def hybrid(sections: int) -> Callable[[Problem], Outcome]:
    """Make a contender that is matched by coarse sections and painted by fine ones."""

    def contend(problem: Problem) -> Outcome:
        size = 14 if problem.is_quick else HYBRID
        model = HybridEpitome((size, size), FINE, sections, anneal=problem.anneal)
        fitted = GridClassifier(make_pipeline(BagScaler(TOKENS, problem.powers[0]), model), random_state=0)
        found = fitted.fit(problem.layouts, problem.y).predict(problem.tried_layouts)
        return found, f"grid {size}x{size}, power {problem.powers[0]:g}"

    return contend


def committee(problem: Problem) -> Outcome:
    """Average the log-likelihoods of all grids and of spatial bags of words: members see different sections."""
    grids = problem.grids
    spatial = make_pipeline(BagScaler(TOKENS, problem.powers[0]), SpatialBagOfWords(2, sections=FINEST, anneal=None))
    apart = GridClassifier(spatial, n_init=problem.n_init, random_state=0).fit(problem.X, problem.y)
    models = grids[1].wide, grids[2].averaged, grids[4].wide, apart
    joint = np.mean([model.log_likelihoods(problem.tried) for model in models], axis=0)
    return apart.classes_[joint.argmax(axis=1)], "several capacities of 1x1 and 4x4, three restarts each"


def by_kernels(*kinds: str) -> Callable[[Problem], Outcome]:
    """Make a contender that is an SVM with the mean of kernels: "scores", "places" or "pyramid"."""

    def contend(problem: Problem) -> Outcome:
        train, test = (np.mean(parts, axis=0) for parts in zip(*(problem.kernels[kind] for kind in kinds), strict=True))
        return SVC(C=C, kernel="precomputed").fit(train, problem.y).predict(test), f"C {C}"

    return contend


CONTENDERS: dict[str, Callable[[Problem], Outcome]] = {
    "mixture": searched(MixtureOfUnigrams(anneal=None), 1, {"n_components": [2, 5, 10]}),
    "LDA": searched(LDA(), 1, {"n_components": [2, 5, 10]}),
    "LDA 4x4": searched(Tessellated(LDA(2), FINEST), 4, {}),
    "reconfigurable 4x4": searched(ReconfigurableBags(8, FINEST), 4, {"n_components": [8, 16]}),
    "spatial bag of words 4x4": searched(SpatialBagOfWords(sections=FINEST, anneal=None), 4, {"n_components": [1, 2]}),
    "counting grid 1x1": grid(1, "single"),
    "counting grid 2x2": grid(2, "single"),
    "counting grid 4x4": grid(4, "single"),
    "hybrid, matched 1x1": hybrid(1),
    "hybrid, matched 4x4": hybrid(4),
    "spatial pyramid kernel 4x4": by_kernels("pyramid"),
    "counting grid 1x1, three averaged": grid(1, "averaged"),
    "counting grid 2x2, three averaged": grid(2, "averaged"),
    "counting grid 4x4, three averaged": grid(4, "averaged"),
    "counting grid 2x1, three averaged": two_rows,
    "counting grid 1x1, three sizes averaged": of_sizes(lambda _: (1, 1)),
    "counting grid 2x2, three sizes averaged": of_sizes(lambda _: (2, 2)),
    "counting grid in rows, three sizes averaged": of_sizes(lambda window: (window // 2, 1)),
    "counting grid 1x1, three capacities averaged": grid(1, "wide"),
    "counting grid 4x4, three capacities averaged": grid(4, "wide"),
    "committee of 1x1, 2x2, 4x4 and spatial bags": committee,
    "score space 1x1, 2x2 and 4x4": by_kernels("terms"),
    "score space and pyramid kernel": by_kernels("terms", "pyramid"),
}

ON_WALKS = (
    "counting grid 2x1, three averaged",
    "counting grid 1x1, three sizes averaged",
    "counting grid 2x2, three sizes averaged",
    "counting grid in rows, three sizes averaged",
)
"""Who takes part only where a camera was carried about."""


class Later:
    """A problem that is put together when the first contender asks for it."""

    def __init__(self, make: Callable[[], Problem]):
        self.make = make

    @cached_property
    def now(self) -> Problem:
        return self.make()


def tried(later: Later, contender: str) -> dict[str, Any]:
    """Let one contender try a problem; give the share that is right, and the settings."""
    predicted, settings = CONTENDERS[contender](later.now)
    return {"right": later.now.right(predicted), "settings": settings}
