"""Scenes again, with set grids: scores compared by what they have in common, and features of three scales."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from countinggrids.collection import Collection
from countinggrids.features import Codebook, DenseSIFT, mirrored
from countinggrids.items import Items
from countinggrids.reproduce.contenders import CONTENDERS, FINEST, POWER, C, Problem
from countinggrids.reproduce.report import Table, spread
from countinggrids.reproduce.workshop import Workshop
from countinggrids.rivals import PyramidKernel
from countinggrids.uses import ScoreSpace

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
    "twice the words": ((16,), 400, ()),
    "three scales": ((8, 16, 32), 400, MODELS),
}
"""Pixels along each side of a patch, words for each size, and which models try beside the kernels."""
Divide = Callable[[int], tuple[Array, Array]]


def tables(shop: Workshop, items: Items, divide: Divide, looked_at: Array) -> list[Table]:
    """Let models and kernels try every split.

    Parameters
    ----------
    shop : where to work
    items : the images
    divide : gives the items to learn from and those to try, of a seed
    looked_at : items that had a part in the choice of settings; what is right is also counted without them
    """
    made = []
    for name, (patches, words, models) in FEATURES.items():
        found = []
        for seed in shop.seeds:
            settings = {"patches": patches, "words": words, "seed": seed}
            train, test = divide(seed)
            split = partial(_problem, items, train, test, patches, words, seed, shop.is_quick)
            make = partial(_tried, split, models, ~np.isin(test, looked_at))
            found.append(shop.step(f"scenes15, {name}, split {seed}", settings, make))
        sizes = ", ".join(map(str, patches))
        caption = f"Right, %, {name} (patches of {sizes} pixels, {words} words each), {len(found)} splits"
        rows = [[row, *map(spread, zip(*(each[row] for each in found), strict=True))] for row in found[0]]
        made.append(Table(caption, ["model", "ours", "images without a part in any choice"], rows))
    return made


def _tried(split: Callable[[], Problem], models: Sequence[str], is_new: Array) -> dict[str, list[float]]:
    """Give the share that is right of all, and of those that are new."""
    problem = split()
    predicted = {name: CONTENDERS[name](problem)[0] for name in models}
    pyramid = PyramidKernel(FINEST)
    kernels = {PYRAMID: (pyramid.fit_transform(problem.X), pyramid.transform(problem.tried))}
    kernels[SCORES] = _mean([_in_common(problem, grids.single) for grids in problem.grids.values()])
    kernels[BOTH] = _mean([kernels[PYRAMID], kernels[SCORES]])
    for name, (learnt, tried) in kernels.items():
        predicted[name] = SVC(C=C, kernel="precomputed").fit(learnt, problem.y).predict(tried)
    right = {name: labels == problem.truth for name, labels in predicted.items()}
    return {name: [float(each.mean()), float(each[is_new].mean())] for name, each in right.items()}


def _problem(
    items: Items, train: Array, test: Array, patches: Sequence[int], words: int, seed: int, is_quick: bool
) -> Problem:
    """Bag images by the words of each size of patches, side by side in every section; nothing is chosen."""
    labels, words = items["label"].astype(str), 20 if is_quick else words
    pairs = [bagged(items, train, test, DenseSIFT(patch), Codebook(words, random_state=seed)) for patch in patches]
    X, tried = (_side_by_side([each.counts.toarray() for each in kind]) for kind in zip(*pairs, strict=True))
    y = np.r_[labels[train], labels[train]]
    return Problem(X, y, tried, labels[test], is_quick=is_quick, powers=POWER, is_set=True)


def bagged(
    items: Items, train: Array, test: Array, sift: DenseSIFT, book: Codebook, sections: Any = FINEST
) -> tuple[Collection, Collection]:
    """Learn words, and bag the images to learn from, which come left for right too, and those to try."""
    paths = [items.path(i) for i in train]
    book.fit(sift.transform(paths))
    bag = partial(Collection.from_images, steps=[sift, book], sections=sections)
    learnt = Collection.join([bag(items.take(train)), bag(items.take(train), images=mirrored(paths))])
    return learnt, bag(items.take(test))


def _side_by_side(bags: Sequence[Array]) -> Array:
    """Put features of several kinds side by side in each section."""
    n_sections = int(np.prod(FINEST))
    return np.concatenate([each.reshape(len(each), n_sections, -1) for each in bags], axis=2).reshape(len(bags[0]), -1)


def _in_common(problem: Problem, grids: Any) -> tuple[Array, Array]:
    """Compare bags by what their scores under the grids of all classes have in common."""
    space = ScoreSpace(grids, sum_over="nothing", center=False, power=1, compare="intersection")
    return space.fit_transform(problem.X), space.transform(problem.tried)


def _mean(kernels: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    learnt, tried = (np.mean(each, axis=0) for each in zip(*kernels, strict=True))
    return learnt, tried
