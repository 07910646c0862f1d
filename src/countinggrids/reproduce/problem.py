"""A classification problem of the paper, and the counting grids that are selected on its training bags."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from countinggrids.baselines import PyramidKernel
from countinggrids.data.collection import Collection
from countinggrids.meta import BagCoarsener, BagScaler, CapacitySearch, GridClassifier, ScoreSpace
from countinggrids.meta.candidates import Candidate
from countinggrids.models import CountingGrid

Array = NDArray[Any]
FINEST = (4, 4)
FINE = 12
"""Sections along each axis that the hybrid paints."""
ANNEAL, QUICK = (0.1, 1.05, 1.0), (0.3, 1.4, 1.0)
"""Annealing schedules of the full and of the quick version, shorter than the default, for grids this small."""
POWER = (0.7,)
"""Power of the counts where none is selected."""
TOKENS = 100
"""Tokens that bags are scaled to."""


@dataclass
class Problem:
    """Training and test bags of a classification problem.

    Parameters
    ----------
    X : ndarray of shape (n_bags, n_columns)
        Training bags in 4x4 sections.
    y : ndarray of shape (n_bags,)
        Their labels.
    X_test : ndarray of shape (n_test_bags, n_columns)
        Test bags in 4x4 sections.
    y_test : ndarray of shape (n_test_bags,)
        Their labels.
    folds : list of tuple, default=None
        Cross-validation within X; None makes three folds.
    X_fine : csr_array, default=None
        Training bags in 12x12 sections, for hybrids.
    X_fine_test : csr_array, default=None
        Test bags in 12x12 sections, for hybrids.
    is_quick : bool, default=False
        Whether to evaluate few settings.
    powers : tuple of float, default=(0.7, 1.0)
        Powers of the counts to select from; models without selection use the first.
    is_fixed : bool, default=False
        Whether settings are fixed instead of selected, and one model is fitted to each class.
    is_thorough : bool, default=False
        Whether settings are selected with as many averaged models as are used in the end, and no candidate is dropped
        early; for problems with few bags.
    whole : callable, default=None
        Returns the training and the test bags of whole feature maps, with as many sections as a window has cells.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    folds: Any = None
    X_fine: Any = None
    X_fine_test: Any = None
    is_quick: bool = False
    powers: tuple[float, ...] = (0.7, 1.0)
    is_fixed: bool = False
    is_thorough: bool = False
    whole: Callable[[], tuple[Any, Any]] | None = None

    def __post_init__(self) -> None:
        if self.is_quick or self.is_fixed:
            self.powers = self.powers[:1]
        if self.folds is None:
            smallest = min(np.unique(self.y, return_counts=True)[1])
            splitter = StratifiedKFold(int(np.clip(smallest // 2, 2, 3)), shuffle=True, random_state=0)
            self.folds = list(splitter.split(self.X, self.y))

    def accuracy(self, predicted: Any) -> float:
        """Return the fraction of test bags whose label is predicted."""
        return float(np.mean(np.asarray(predicted) == self.y_test))

    @property
    def is_short(self) -> bool:
        """Whether settings are not selected."""
        return self.is_quick or self.is_fixed

    @property
    def anneal(self) -> tuple[float, float, float]:
        """Annealing schedule."""
        return QUICK if self.is_quick else ANNEAL

    @property
    def n_estimators(self) -> int:
        """Number of models of each class that are averaged."""
        return 1 if self.is_quick or self.is_fixed else 3

    @property
    def n_selecting(self) -> int:
        """Number of models of each class that are averaged during model selection."""
        return self.n_estimators if self.is_thorough else 1

    @cached_property
    def grids(self) -> dict[int, "SelectedGrids"]:
        """Counting grids of 1x1, 2x2 and 4x4 sections."""
        if self.is_fixed:
            plain = Candidate((8, 8), (4, 4), (1, 1), None, TOKENS, self.powers[0], None)
            fine = plain._replace(grid=(12, 12), window=(8, 8), sections=FINEST)
        else:
            plain = select(self, 1, (6, 8, 12), (4,), self.powers)
            fine = select(self, 4, (8, 12), (8,), (plain.power,))
        coarse = plain._replace(sections=(2, 2))
        return {n: SelectedGrids(self, each) for n, each in ((1, plain), (2, coarse), (4, fine))}

    @cached_property
    def two_rows(self) -> "SelectedGrids":
        """Counting grids of two sections, one above the other, with the settings selected for 1x1."""
        return SelectedGrids(self, self.grids[1].best._replace(sections=(2, 1)))

    @cached_property
    def kernels(self) -> dict[str, tuple[Array, Array]]:
        """Kernels of the training bags, and of the test bags with them."""
        pyramid = PyramidKernel(FINEST).fit(self.X)
        return {
            "pyramid": (pyramid.transform(self.X), pyramid.transform(self.X_test)),
            "scores": self._score_kernel(sum_over="nothing", center=False, power=0.3),
        }

    def _score_kernel(self, **options: Any) -> tuple[Array, Array]:
        """Average the linear kernels of the score spaces of all three tessellations."""
        parts = []
        for each in self.grids.values():
            space = ScoreSpace(each.single, **options).fit(self.X)
            scores = space.transform(self.X)
            parts.append((scores @ scores.T, space.transform(self.X_test) @ scores.T))
        return mean_kernel(parts)


def mean_kernel(kernels: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Average kernels of training bags, and of test bags with them."""
    train, test = (np.mean(each, axis=0) for each in zip(*kernels, strict=True))
    return train, test


def split_by(
    bags: Collection, is_train: Array, is_quick: bool, folds: Any = None, *, is_thorough: bool = False
) -> Problem:
    """Return the problem of bags in 12x12 sections and a mask of the training bags."""
    labels, X, fine = bags.items["label"].astype(str), bags.coarsen(FINEST).counts.toarray(), bags.counts
    train, test = ((X[rows], labels[rows]) for rows in (is_train, ~is_train))
    return Problem(*train, *test, folds, fine[is_train], fine[~is_train], is_quick, is_thorough=is_thorough)


def select(
    problem: Problem, sections: int, grids: Sequence[int], windows: Sequence[int], powers: Sequence[float]
) -> Candidate:
    """Select grid, window and power of the counts by cross-validation."""
    if problem.is_quick:
        grids, windows = (8,), (4,)
    search = CapacitySearch(
        CountingGrid(anneal=problem.anneal),
        grids=grids,
        windows=windows,
        sections=(sections,),
        tokens=(TOKENS,),
        powers=powers,
        capacities=(1, 10),
        x_sections=FINEST,
        cv=problem.folds,
        random_state=0,
        refit=False,
        keep=1.0 if problem.is_thorough else 0.5,
        n_estimators=problem.n_selecting,
    )
    return Candidate(**search.fit(problem.X, problem.y).best_params_)


def fit_grids(problem: Problem, candidates: Sequence[Candidate]) -> GridClassifier:
    """Fit grids of several settings to each class, whose likelihoods are averaged."""
    members = []
    for each in candidates:
        matched = None if each.sections == (1, 1) else each.sections
        grid = CountingGrid(each.grid, each.window, matched, anneal=problem.anneal)
        members.append(make_pipeline(BagCoarsener(each.sections, FINEST), BagScaler(TOKENS, each.power), grid))
    model = GridClassifier(members, n_estimators=problem.n_estimators, average="likelihoods", random_state=0)
    return model.fit(problem.X, problem.y)


class SelectedGrids:
    """Counting grids of each class with the selected settings.

    Parameters
    ----------
    problem : Problem
        The training bags.
    best : Candidate
        The settings.
    """

    def __init__(self, problem: Problem, best: Candidate):
        self.problem, self.best = problem, best
        self.averaged = fit_grids(problem, [best])
        self.single = copy.copy(self.averaged).set_params(estimator=self.averaged.estimator[0])
        self.single.models_ = [models[:1] for models in self.averaged.models_]

    @cached_property
    def capacities(self) -> GridClassifier:
        """Grids of several capacities, whose likelihoods are averaged."""
        sizes: tuple[int, ...] = (6, 8, 12) if self.best.sections != FINEST else (8, 12, 16)
        sizes = sizes[:1] if self.problem.is_quick else sizes
        return fit_grids(self.problem, [self.best._replace(grid=(n, n)) for n in sizes])

    @property
    def settings(self) -> str:
        """The settings as text."""
        grid, window = ("x".join(map(str, shape)) for shape in (self.best.grid, self.best.window))
        return f"grid {grid}, window {window}, power {self.best.power:g}"
