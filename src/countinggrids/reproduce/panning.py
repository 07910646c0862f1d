"""A panning camera, which is not in the paper: windows of a full circle, located on a grid that wraps around."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core import alignment, torus
from countinggrids.data import container
from countinggrids.features import Codebook, DenseSIFT, image_files
from countinggrids.features.bagger import bag
from countinggrids.models import CountingGrid
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.report import Report, comparison_table, figure

Array = NDArray[Any]
CELLS, WINDOW, COLUMNS, WORDS = 64, 22, 44, 200
"""Cells of the grid and of its window, columns of words that a window of the panorama has, and visual words."""
N_TRAIN, N_TEST = 80, 40
"""Training and test windows."""


def run(experiment: Experiment) -> Report:
    """Fit a grid to windows of each panorama, and measure the location error of other windows."""
    paths = [] if experiment.data is None else sorted((experiment.data / "panoramas").glob("*.*g"))
    if not paths:
        raise experiment.missing("panoramas")
    paths = paths[:2] if experiment.is_quick else paths
    errors = {}
    for sections in (1, 2):
        step = f"panning 1x{sections}"
        errors[f"1x{sections}"] = np.array(experiment.step(step, {"of": len(paths)}, partial(_errors, paths, sections)))
    _draw(experiment, errors)
    scores = {
        "mean error": {name: each.mean(axis=1) for name, each in errors.items()},
        "median error": {name: np.median(each, axis=1) for name, each in errors.items()},
        "fraction within one cell": {name: (each <= 1).mean(axis=1) for name, each in errors.items()},
    }
    table = comparison_table("Location error in cells, by panorama", scores, "1x1", factor=1, digits=2)
    notes = [
        f"Visual words in 128 columns around the circle. A grid of one axis with {CELLS} cells is fitted to {N_TRAIN} "
        f"windows of {COLUMNS} columns, about a third of the circle; {N_TEST} other windows are located. The shift, "
        "and for bags without sections the direction, are fixed on the training windows. Default settings, without "
        f"model selection. Random locations have a mean error of {CELLS // 4} cells. Means and standard deviations are "
        "over panoramas, by which differences are paired.",
    ]
    data = f"Data: {len(paths)} panoramas of a full circle; not an experiment of the paper."
    return Report("panning", "A panning camera", data, [table], notes, "panning.png")


def _errors(paths: list[Path], sections: int) -> list[list[float]]:
    maps = _words_of(paths)
    return [_error(words, sections, seed).tolist() for seed, words in enumerate(maps)]


def _words_of(paths: list[Path]) -> list[Array]:
    """Return the map of visual words of each panorama, which wraps around."""
    wrapped = []
    for path in paths:
        pixels = image_files.read(path)[128:384]
        wrapped.append(np.hstack([pixels, pixels[:, :8]]))
    sift, book = DenseSIFT(), Codebook(WORDS, random_state=0)
    book.fit(sift.transform(wrapped))
    return [np.asarray(each) for each in book.transform(sift.transform(wrapped))]


def _error(words: Array, sections: int, seed: int) -> Array:
    """Fit a grid to windows of one panorama; return the location errors of the others in cells."""
    rng = np.random.default_rng(seed)
    n_columns = words.shape[1]
    starts = rng.integers(n_columns, size=N_TRAIN + N_TEST)
    ring = np.hstack([words, words])
    X = bag([ring[:, at : at + COLUMNS] for at in starts], (1, sections), WORDS)
    known = np.round(starts * CELLS / n_columns).astype(int)[:, None]
    model = CountingGrid((CELLS,), (WINDOW,), None if sections == 1 else (sections,), random_state=seed)
    found = model.fit(X[:N_TRAIN]).locate(X)
    signs = (1, -1) if sections == 1 else (1,)
    laid = {sign: alignment.align(found[:N_TRAIN], sign * known[:N_TRAIN], (CELLS,)) for sign in signs}
    sign = max(signs, key=lambda each: int(laid[each].is_correct.sum()))
    wanted = sign * known + laid[sign].shift
    away: Array = np.abs(torus.displacement(wanted[N_TRAIN:], found[N_TRAIN:], (CELLS,))).ravel()
    return away


def _draw(experiment: Experiment, errors: dict[str, Array]) -> None:
    """Plot the cumulative distribution of the errors."""
    axes = figure(6.4, 3.4).subplots()
    for name, each in errors.items():
        axes.plot(np.sort(each.ravel()), np.linspace(0, 100, each.size), label=name)
    axes.set(xlabel="error in cells", ylabel="windows, %", xlim=(0, 8))
    axes.legend(frameon=False, loc="lower right")
    container.write_figure(experiment.folder / "panning.png", axes.figure)
