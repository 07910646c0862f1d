"""Scenes with fixed grids: score spaces with the intersection kernel, and features of three scales."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from countinggrids.baselines import PyramidKernel
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features import Codebook, DenseSIFT, mirrored
from countinggrids.meta import ScoreSpace
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import FINEST, POWER, Problem, mean_kernel
from countinggrids.reproduce.report import Table, comparison_table
from countinggrids.reproduce.systems import SYSTEMS, C

Array = NDArray[Any]
MODELS = (
    "mixture",
    "LDA",
    "spatial bag of words 4x4",
    "counting grid 1x1",
    "counting grid 2x2",
    "counting grid 4x4",
)
PYRAMID, SCORES, BOTH = "spatial pyramid kernel 4x4", "score space 1x1, 2x2 and 4x4", "score space and pyramid kernel"
FEATURES: dict[str, tuple[tuple[int, ...], int, tuple[str, ...]]] = {
    "the same words": ((16,), 200, ()),
    "three scales": ((8, 16, 32), 400, MODELS),
}
"""Pixels along each side of a patch, words for each size, and the models that are evaluated besides the kernels."""
REFERENCE = "counting grid 1x1"
N_SPLITS = 2
"""Splits of these tables, whose kernels take most of the time of the experiment."""
Divide = Callable[[int], tuple[Array, Array]]


def tables(experiment: Experiment, items: Items, divide: Divide, selection: Array) -> list[Table]:
    """Evaluate models and kernels on every split.

    Parameters
    ----------
    experiment : Experiment
        The experiment, which caches the steps.
    items : Items
        The images.
    divide : callable
        Returns the indices of the training and of the test images of a seed.
    selection : ndarray of int
        Images that were used for model selection; accuracy is also computed without them.

    Returns
    -------
    tables : list of Table
        One for each kind of features.
    """
    made = []
    for name, (patches, words, models) in FEATURES.items():
        results = []
        for seed in list(experiment.seeds)[:N_SPLITS]:
            settings = {"patches": patches, "words": words, "seed": seed}
            train, test = divide(seed)
            problem = partial(_problem, items, train, test, patches, words, seed, experiment.is_quick)
            compute = partial(_accuracy, problem, models, ~np.isin(test, selection))
            results.append(experiment.step(f"scenes15, {name}, split {seed}", settings, compute))
        sizes = ", ".join(map(str, patches))
        caption = f"Accuracy, {name} (patches of {sizes} pixels, {words} words each), {len(results)} splits"
        scores = {
            measure: {system: [each[system][i] for each in results] for system in results[0]}
            for i, measure in enumerate(("accuracy, %", "images not used for model selection, %"))
        }
        made.append(comparison_table(caption, scores, REFERENCE if REFERENCE in results[0] else PYRAMID))
    return made


def _accuracy(split: Callable[[], Problem], models: Sequence[str], is_new: Array) -> dict[str, list[float]]:
    """Return the accuracy on all test images, and on those not used for model selection."""
    problem = split()
    predicted = {name: SYSTEMS[name](problem)[0] for name in models}
    pyramid = PyramidKernel(FINEST)
    kernels = {PYRAMID: (pyramid.fit_transform(problem.X), pyramid.transform(problem.X_test))}
    kernels[SCORES] = mean_kernel([_intersection(problem, grids.single) for grids in problem.grids.values()])
    kernels[BOTH] = mean_kernel([kernels[PYRAMID], kernels[SCORES]])
    for name, (train, test) in kernels.items():
        predicted[name] = SVC(C=C, kernel="precomputed").fit(train, problem.y).predict(test)
    is_correct = {name: labels == problem.y_test for name, labels in predicted.items()}
    return {name: [float(each.mean()), float(each[is_new].mean())] for name, each in is_correct.items()}


def _problem(
    items: Items, train: Array, test: Array, patches: Sequence[int], words: int, seed: int, is_quick: bool
) -> Problem:
    """Return bags of the words of each size of patches, concatenated in every section; settings are fixed."""
    labels, words = items["label"].astype(str), 20 if is_quick else words
    pairs = [bagged(items, train, test, DenseSIFT(patch), Codebook(words, random_state=seed)) for patch in patches]
    X, X_test = (_side_by_side([each.counts.toarray() for each in kind]) for kind in zip(*pairs, strict=True))
    y = np.r_[labels[train], labels[train]]
    return Problem(X, y, X_test, labels[test], is_quick=is_quick, powers=POWER, is_fixed=True)


def bagged(
    items: Items,
    train: Array,
    test: Array,
    sift: DenseSIFT,
    book: Codebook,
    sections: Any = FINEST,
    is_mirrored: bool = True,
) -> tuple[Collection, Collection]:
    """Fit a codebook; return the bags of the training images, mirrored ones too by default, and of the test images."""
    paths = [items.path(i) for i in train]
    book.fit(sift.transform(paths))
    bag = partial(Collection.from_images, steps=[sift, book], sections=sections)
    training = bag(items.take(train))
    if is_mirrored:
        training = Collection.join([training, bag(items.take(train), images=mirrored(paths))])
    return training, bag(items.take(test))


def _side_by_side(bags: Sequence[Array]) -> Array:
    """Concatenate features of several kinds in each section."""
    n_sections = int(np.prod(FINEST))
    return np.concatenate([each.reshape(len(each), n_sections, -1) for each in bags], axis=2).reshape(len(bags[0]), -1)


def _intersection(problem: Problem, grids: Any) -> tuple[Array, Array]:
    """Compute the intersection kernel of the scores under the grids of all classes."""
    space = ScoreSpace(grids, sum_over="nothing", center=False, power=1, compare="intersection")
    return space.fit_transform(problem.X), space.transform(problem.X_test)
