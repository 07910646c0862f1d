"""Scene classification on 15-Scenes: the table, and accuracy against capacity."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from countinggrids import datasets
from countinggrids.features import Codebook, DenseSIFT
from countinggrids.items import Items
from countinggrids.reproduce import scales
from countinggrids.reproduce.contenders import ANNEAL, CONTENDERS, FINE, FINEST, ON_WALKS, POWER, TOKENS, Problem
from countinggrids.reproduce.contest import contest
from countinggrids.reproduce.report import Report, Table, figure
from countinggrids.reproduce.workshop import Workshop
from countinggrids.rows import CountingGrid
from countinggrids.uses import BagCoarsener, BagScaler, GridClassifier

PAPER = {
    "mixture": 59.9,
    "LDA": 65.1,
    "reconfigurable 4x4": 75.0,
    "spatial bag of words 4x4": 73.3,
    "counting grid 1x1": 72.2,
    "counting grid 4x4": 74.5,
    "hybrid, matched 1x1": 82.8,
    "spatial pyramid kernel 4x4": 79.9,
}
ELSEWHERE = ("LDA 4x4", "counting grid 2x2", *ON_WALKS)
"""Who takes part in other contests only."""
WORDS, N_TRAIN = 200, 100
CURVE = ((4, 4), (6, 4), (8, 4), (12, 4), (16, 4), (24, 4))
"""Grids and windows of the curve of accuracy against capacity."""
STOPS = (5, 10, 20, 40, 60, 100, 200)
"""Iterations after which the course of learning is looked at."""
TRIED = Path(__file__).with_name("scenes15.md")
"""What was tried by hand, and what came of it."""


def run(shop: Workshop) -> Report:
    """Make the table and the curve."""
    root = shop.unpacked("15scenes")
    if root is None:
        raise ValueError("the 15-Scenes set is not here; wanted 15scenes.tar among the data sets; give --data")
    items = datasets.scenes15(root / "15scenes")
    items = few(items) if shop.is_quick else items
    entered = [name for name in CONTENDERS if name not in ELSEWHERE]
    table, notes = contest(
        shop, "scenes15", lambda seed: problem(items, seed, shop.is_quick), PAPER, {"words": WORDS}, entered
    )
    split = cache(partial(problem, items, is_quick=shop.is_quick))
    divide = partial(divided, items["label"].astype(str), 8 if shop.is_quick else N_TRAIN)
    looked_at = np.union1d(divide(0)[0], np.flatnonzero(items["split"] == "train"))
    more = scales.tables(shop, items, divide, looked_at)
    _draw(shop, split)
    course = _course(shop, split)
    notes.insert(
        0,
        f"{N_TRAIN} images a class to learn from, the rest to try on; dense SIFT, {WORDS} words learnt from the "
        "training images. Training images are also shown left for right, to all models alike; a fold that tries on "
        "an image has seen neither it nor its mirror image. Grids, windows, components and the power of the counts "
        f"are chosen by three folds of each split's training images; bags are scaled to {TOKENS} tokens. The single "
        "counting grids and the hybrids are one restart a class, and the hybrids' grid is set. The course of learning "
        "is that of one grid a class in the first split, grid 8x8 and window 4x4 without sections, 12x12 and 8x8 with "
        "4x4: log p is a token's, of bags of the class itself.",
    )
    notes.insert(
        1,
        "In the second to fourth table nothing is chosen: grids of 8x8 with windows of 4x4 (1x1 and 2x2), 12x12 with "
        "8x8 (4x4), power 0.7, one restart a class. Their score spaces compare images by what their terms have in "
        'common (`compare="intersection"`), where the first table\'s is linear. The third has twice the words, the '
        "fourth patches of three sizes, with a codebook each and their words side by side. Settings were found on "
        "training images of the standard split and of the first random one; the last column counts only the other "
        "images, which had no part in any choice.",
    )
    notes.append(TRIED.read_text(encoding="utf-8").strip())
    data = "Data: the full set, 4485 images." if not shop.is_quick else "Data: a few images of three classes."
    return Report("scenes15", "Scenes: 15 classes", data, [table, *more, course], notes, "scenes15.png")


def problem(items: Items, seed: int, is_quick: bool) -> Problem:
    """Put a split together: bags of all its images, and of the training images left for right."""
    labels = items["label"].astype(str)
    train, test = divided(labels, 8 if is_quick else N_TRAIN, seed)
    book = Codebook(20 if is_quick else WORDS, random_state=seed)
    learnt, tried = scales.bagged(items, train, test, DenseSIFT(), book, FINE)
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(train, labels[train])
    return Problem(
        learnt.coarsen(FINEST).counts.toarray(),
        np.r_[labels[train], labels[train]],
        tried.coarsen(FINEST).counts.toarray(),
        labels[test],
        [(np.r_[a, a + len(train)], b) for a, b in folds],
        learnt.counts,
        tried.counts,
        is_quick,
    )


def divided(labels: NDArray[Any], n_train: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw so many images of each class to learn from; the rest are to be tried."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(labels == name))[:n_train] for name in sorted(set(labels))])
    return train, np.setdiff1d(np.arange(len(labels)), train)


def few(items: Items) -> Items:
    """Keep a few images of three classes, for the quick version."""
    labels = items["label"].astype(str)
    names = sorted(set(labels))[:3]
    return items.take(np.sort(np.concatenate([np.flatnonzero(labels == name)[:16] for name in names])))


def _draw(shop: Workshop, split: Callable[[int], Problem]) -> None:
    """Draw accuracy against capacity, for 1x1 and 4x4 bags, from two splits."""
    axes = figure(6.4, 4).subplots()
    for n, colour in ((1, "C0"), (4, "C1")):
        sizes = CURVE[:: 3 if shop.is_quick else 1]
        found = []
        for seed in list(shop.seeds)[:2]:
            made = partial(_curve, split, seed, n, sizes)
            found.append(shop.step(f"scenes15, curve {n}x{n}, split {seed}", {"sizes": sizes, "words": WORDS}, made))
        capacities = [(grid / window) ** 2 for grid, window in sizes]
        order = np.argsort(capacities)
        mean, std = 100 * np.mean(found, axis=0)[order], 100 * np.std(found, axis=0)[order]
        axes.errorbar(np.array(capacities)[order], mean, std, color=colour, marker="o", label=f"counting grid {n}x{n}")
    axes.set(xscale="log", xlabel="capacity", ylabel="right, %")
    axes.legend(frameon=False)
    axes.figure.savefig(shop.folder / "scenes15.png")


def _curve(split: Callable[[int], Problem], seed: int, n: int, sizes: Any) -> list[float]:
    """Give the accuracy of each grid and window on the test images of a split; nothing is chosen by it."""
    here = split(seed)
    shares = []
    for grid, window in sizes:
        model = CountingGrid((grid, grid), window, None if n == 1 else n, anneal=ANNEAL)
        pipe = make_pipeline(BagCoarsener(n, FINEST), BagScaler(TOKENS, POWER[0]), model)
        shares.append(here.right(GridClassifier(pipe, random_state=0).fit(here.X, here.y).predict(here.tried)))
    return shares


def _course(shop: Workshop, split: Callable[[int], Problem]) -> Table:
    """Tell how accuracy and likelihood go on with the iterations, for 1x1 and 4x4 bags, in the first split."""
    stops = STOPS[::3] if shop.is_quick else STOPS
    rows = []
    for n, grid, window in ((1, 8, 4), (4, 12, 8)):
        made = partial(_stopped, split, n, grid, window, stops)
        for stop, (right, learnt, tried) in zip(
            stops, shop.step(f"scenes15, course of learning {n}x{n}", {"stops": stops}, made), strict=True
        ):
            rows.append([f"{n}x{n}", str(stop), f"{100 * right:.1f}", f"{learnt:.3f}", f"{tried:.3f}"])
    header = ["sections", "iterations", "right, %", "training images, log p", "other images, log p"]
    return Table("The course of learning", header, rows)


def _stopped(split: Callable[[int], Problem], n: int, grid: int, window: int, stops: Any) -> list[list[float]]:
    here = split(0)
    found = []
    for stop in stops:
        model = CountingGrid((grid, grid), window, None if n == 1 else n, anneal=ANNEAL, max_iter=stop)
        pipe = make_pipeline(BagCoarsener(n, FINEST), BagScaler(TOKENS, POWER[0]), model)
        fitted = GridClassifier(pipe, random_state=0).fit(here.X, here.y)
        per_token = []
        for X, y in ((here.X, here.y), (here.tried, here.truth)):
            each = fitted.log_likelihoods(X)[np.arange(len(y)), np.searchsorted(fitted.classes_, y)]
            per_token.append(float(each.mean()) / TOKENS)
        found.append([here.right(fitted.predict(here.tried)), *per_token])
    return found
