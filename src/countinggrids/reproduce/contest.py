"""The contest of classifiers that the paper's tables report: a model a class, chosen on training bags only."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from countinggrids.collection import Collection
from countinggrids.reproduce.report import Table, spread
from countinggrids.reproduce.workshop import Workshop
from countinggrids.rivals import LDA, PyramidClassifier, ReconfigurableBags, Tessellated
from countinggrids.rows import CountingGrid, HybridEpitome, MixtureOfUnigrams, SpatialBagOfWords
from countinggrids.uses import BagCoarsener, BagScaler, CapacitySearch, GridClassifier, ScoreSpace

Array = NDArray[Any]
FINEST = (4, 4)
FINE = 12
"""Sections along each axis that the hybrid paints."""
ANNEAL, QUICK = (0.1, 1.05, 1.0), (0.3, 1.4, 1.0)
TOKENS = 100


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
    """

    X: Array
    y: Array
    tried: Array
    truth: Array
    folds: Any = None
    layouts: Any = None
    tried_layouts: Any = None
    is_quick: bool = False

    def __post_init__(self) -> None:
        if self.folds is None:
            few = min(np.unique(self.y, return_counts=True)[1])
            cut = StratifiedKFold(int(np.clip(few // 2, 2, 3)), shuffle=True, random_state=0)
            self.folds = list(cut.split(self.X, self.y))

    def right(self, predicted: Any) -> float:
        """Give the share of labels that are right."""
        return float(np.mean(np.asarray(predicted) == self.truth))

    @cached_property
    def powers(self) -> tuple[float, ...]:
        return (0.75,) if self.is_quick else (0.5, 0.75, 1.0)

    @property
    def anneal(self) -> tuple[float, float, float]:
        """The way of beta: as good as the default on grids as small as these, and quicker."""
        return QUICK if self.is_quick else ANNEAL

    @property
    def n_init(self) -> int:
        """How many restarts are averaged."""
        return 1 if self.is_quick else 3

    @cached_property
    def grids(self) -> dict[int, "Chosen"]:
        """The counting grids of 1x1, 2x2 and 4x4 sections that won the cross-validation, each learnt three times."""
        return {n: Chosen(self, n) for n in (1, 2, 4)}


def split_by(bags: Collection, is_train: Array, is_quick: bool, folds: Any = None) -> Problem:
    """Put a problem together from bags by 12x12 sections and a mask of those to learn from."""
    labels, X, fine = bags.items["label"].astype(str), bags.coarsen(FINEST).counts.toarray(), bags.counts
    return Problem(
        X[is_train], labels[is_train], X[~is_train], labels[~is_train], folds, fine[is_train], fine[~is_train], is_quick
    )


class Chosen:
    """Counting grids a class, whose grid, window and power of the counts were chosen by cross-validation."""

    def __init__(self, problem: Problem, sections: int):
        grids: tuple[int, ...] = (8, 12) if sections == 4 else (6, 8, 12)
        windows: tuple[int, ...] = (4, 8) if sections == 4 else (4,)
        if problem.is_quick:
            grids, windows = (8,), (4,)
        search = CapacitySearch(
            CountingGrid(anneal=problem.anneal), grids=grids, windows=windows, sections=(sections,),
            tokens=(TOKENS,), powers=problem.powers, capacities=(1, 5 if sections == 4 else 10), x_sections=FINEST,
            cv=problem.folds, random_state=0, refit=False,
        )  # fmt: skip
        self.problem, self.best = problem, search.fit(problem.X, problem.y).best_candidate_
        matched = None if sections == 1 else self.best.sections
        grid = CountingGrid(self.best.grid, self.best.window, matched, anneal=problem.anneal)
        scaled = BagScaler(TOKENS, self.best.power)
        pipe = make_pipeline(BagCoarsener(self.best.sections, FINEST), scaled, grid)
        self.averaged = GridClassifier(pipe, n_init=problem.n_init, random_state=0).fit(problem.X, problem.y)
        self.single = copy.copy(self.averaged)
        self.single.models_ = [models[:1] for models in self.averaged.models_]

    @property
    def settings(self) -> str:
        grid, window = ("x".join(map(str, shape)) for shape in (self.best.grid, self.best.window))
        return f"grid {grid}, window {window}, power {self.best.power:g}"


Outcome = tuple[Any, str]


def searched(model: Any, sections: int, options: Mapping[str, Sequence[Any]]) -> Callable[[Problem], Outcome]:
    """Make a contender whose options are chosen by cross-validation; three restarts are averaged."""

    def contend(problem: Problem) -> Outcome:
        steps = BagCoarsener(sections, FINEST), BagScaler(TOKENS), GridClassifier(model, random_state=0)
        few = {name: values[:1] if problem.is_quick else values for name, values in options.items()}
        wanted = {f"gridclassifier__estimator__{name}": values for name, values in few.items()}
        wanted |= {"bagscaler__power": problem.powers}
        search = GridSearchCV(make_pipeline(*steps), wanted, cv=problem.folds, refit=False).fit(problem.X, problem.y)
        best = make_pipeline(*steps).set_params(**search.best_params_, gridclassifier__n_init=problem.n_init)
        told = ", ".join(f"{name.rpartition('__')[2]} {value:g}" for name, value in sorted(search.best_params_.items()))
        return best.fit(problem.X, problem.y).predict(problem.tried), told

    return contend


def grid(sections: int, is_averaged: bool) -> Callable[[Problem], Outcome]:
    """Make a contender of counting grids."""

    def contend(problem: Problem) -> Outcome:
        chosen = problem.grids[sections]
        model = chosen.averaged if is_averaged else chosen.single
        return model.predict(problem.tried), chosen.settings

    return contend


def hybrid(sections: int) -> Callable[[Problem], Outcome]:
    """Make a contender that is matched by coarse sections and painted by fine ones."""

    def contend(problem: Problem) -> Outcome:
        models = {
            size: GridClassifier(
                make_pipeline(BagScaler(TOKENS), HybridEpitome((size, size), FINE, sections, anneal=problem.anneal)),
                random_state=0,
            )
            for size in ((14,) if problem.is_quick else (16, 24))
        }
        scores = {
            size: cross_val_score(model, problem.layouts, problem.y, cv=problem.folds).mean()
            for size, model in (models.items() if len(models) > 1 else ())
        }
        best = max(models, key=lambda size: scores.get(size, 0.0))
        fitted = models[best].set_params(n_init=problem.n_init).fit(problem.layouts, problem.y)
        return fitted.predict(problem.tried_layouts), f"grid {best}x{best}"

    return contend


def committee(problem: Problem) -> Outcome:
    """Average the free energies of all grids."""
    joint = np.mean([each.averaged.log_likelihoods(problem.tried) for each in problem.grids.values()], axis=0)
    return problem.grids[1].averaged.classes_[joint.argmax(axis=1)], "1x1, 2x2 and 4x4, three restarts each"


def pyramid(problem: Problem) -> Outcome:
    return PyramidClassifier(FINEST).fit(problem.X, problem.y).predict(problem.tried), "C 10"


def score_space(problem: Problem) -> Outcome:
    """Add up linear kernels of the scores under the grids of all three tessellations."""
    train: Any = 0.0
    test: Any = 0.0
    for each in problem.grids.values():
        space = ScoreSpace(each.single, sum_over="nothing", center=False).fit(problem.X)
        learnt, tried = space.transform(problem.X), space.transform(problem.tried)
        train, test = train + learnt @ learnt.T, test + tried @ learnt.T
    return SVC(C=10, kernel="precomputed").fit(train, problem.y).predict(test), "C 10"


CONTENDERS: dict[str, Callable[[Problem], Outcome]] = {
    "mixture": searched(MixtureOfUnigrams(anneal=None), 1, {"n_components": [2, 5, 10]}),
    "LDA": searched(LDA(), 1, {"n_components": [2, 5, 10]}),
    "LDA 4x4": searched(Tessellated(LDA(2), FINEST), 4, {}),
    "reconfigurable 4x4": searched(ReconfigurableBags(8, FINEST), 4, {"n_components": [8, 16]}),
    "spatial bag of words 4x4": searched(SpatialBagOfWords(sections=FINEST, anneal=None), 4, {"n_components": [1, 2]}),
    "counting grid 1x1": grid(1, False),
    "counting grid 4x4": grid(4, False),
    "hybrid, matched 1x1": hybrid(1),
    "hybrid, matched 4x4": hybrid(4),
    "spatial pyramid kernel 4x4": pyramid,
    "counting grid 1x1, three averaged": grid(1, True),
    "counting grid 2x2, three averaged": grid(2, True),
    "counting grid 4x4, three averaged": grid(4, True),
    "committee of 1x1, 2x2 and 4x4": committee,
    "score space 1x1, 2x2 and 4x4": score_space,
}


def contest(
    shop: Workshop, name: str, split: Callable[[int], Problem], paper: Mapping[str, float], settings: Mapping[str, Any],
    contenders: Sequence[str] = tuple(CONTENDERS), seeds: Sequence[int] | None = None,
) -> tuple[Table, list[str]]:  # fmt: skip
    """Let the contenders try every split; give the table, and what was chosen in the first split.

    Parameters
    ----------
    shop : where to work
    name : of the experiment
    split : gives the problem of a split
    paper : the paper's figures
    settings : what tells this contest from another of the same name
    contenders : who takes part
    seeds : the splits; None takes the workshop's
    """
    seeds = shop.seeds if seeds is None else seeds
    shares: dict[str, list[float]] = {contender: [] for contender in contenders}
    chosen: dict[str, str] = {}
    for seed in seeds:
        problem = _Later(partial(split, seed))
        for contender in contenders:
            told = dict(settings) | {"seed": seed}
            made = partial(_tried, problem, contender)
            found = shop.step(f"{name}, split {seed}: {contender}", told, made)
            shares[contender].append(found["right"])
            chosen.setdefault(contender, found["settings"])
    rows = [[each, spread(shares[each]), f"{paper[each]:.1f}" if each in paper else ""] for each in contenders]
    caption = f"Right, %, {len(seeds)} splits" if len(seeds) > 1 else "Right, %"
    notes = ["Chosen in the first split: " + "; ".join(f"{each}: {chosen[each]}" for each in contenders) + "."]
    return Table(caption, ["model", "ours", "the paper's"], rows), notes


def _tried(later: "_Later", contender: str) -> dict[str, Any]:
    predicted, settings = CONTENDERS[contender](later.now)
    return {"right": later.now.right(predicted), "settings": settings}


class _Later:
    """A problem that is put together when the first contender asks for it."""

    def __init__(self, make: Callable[[], Problem]):
        self.make = make

    @cached_property
    def now(self) -> Problem:
        return self.make()
