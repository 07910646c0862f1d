"""A panning camera, which the paper does not have: windows of a full circle, put back on a grid that wraps too."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids import alignment, torus
from countinggrids.bags import bag
from countinggrids.features import Codebook, DenseSIFT, pictures
from countinggrids.reproduce.report import Report, Table, figure
from countinggrids.reproduce.workshop import Workshop
from countinggrids.rows import CountingGrid

Array = NDArray[Any]
CELLS, WINDOW, COLUMNS, WORDS = 64, 22, 44, 200
"""Cells of the grid and of its window, columns of words that a window of the panorama has, and visual words."""
LEARNT, TRIED = 80, 40
"""Windows to learn from, and windows to locate."""


def run(shop: Workshop) -> Report:
    """Learn a grid from windows of each panorama; tell how far other windows lie from their place."""
    paths = [] if shop.data is None else sorted((shop.data / "panoramas").glob("*.*g"))
    if not paths:
        raise ValueError("the panoramas are not here; wanted images in a folder panoramas among the data; give --data")
    paths = paths[:2] if shop.is_quick else paths
    rows, found = [], {}
    for sections in (1, 2):
        each = np.array(shop.step(f"panning 1x{sections}", {"of": len(paths)}, partial(_errors, paths, sections)))
        found[sections] = each
        n_near = int((np.median(each, axis=1) <= 1).sum())
        rows.append(
            [f"1x{sections}", f"{np.median(each):.0f}", f"{each.mean():.1f}", f"{100 * (each <= 1).mean():.0f}",
             f"{n_near} of {len(paths)}"]
        )  # fmt: skip
    _draw(shop, found)
    header = ["sections", "median error", "mean error", "within one cell, %", "panoramas with a median of at most 1"]
    notes = [
        f"Visual words in 128 columns round the circle. A grid of one axis with {CELLS} cells learns from {LEARNT} "
        f"windows of {COLUMNS} columns, about a third of the circle; {TRIED} other windows are located. The shift, and "
        "for bags without sections the direction, are settled on the windows learnt from. Default settings, nothing "
        f"chosen. Chance would be a mean error of {CELLS // 4} cells.",
    ]
    data = f"Data: {len(paths)} panoramas of a full circle; the paper has no such experiment."
    return Report("panning", "A panning camera", data, [Table("Error in cells", header, rows)], notes, "panning.png")


def _errors(paths: list[Path], sections: int) -> list[list[float]]:
    maps = _words_of(paths)
    return [_error(words, sections, seed).tolist() for seed, words in enumerate(maps)]


def _words_of(paths: list[Path]) -> list[Array]:
    """Give the map of words of each panorama, closed round the circle."""
    wrapped = []
    for path in paths:
        pixels = pictures.read(path)[128:384]
        wrapped.append(np.hstack([pixels, pixels[:, :8]]))
    sift, book = DenseSIFT(), Codebook(WORDS, random_state=0)
    book.fit(sift.transform(wrapped))
    return [np.asarray(each) for each in book.transform(sift.transform(wrapped))]


def _error(words: Array, sections: int, seed: int) -> Array:
    """Learn from windows of one panorama; give how far the others lie from their place, in cells."""
    rng = np.random.default_rng(seed)
    n_columns = words.shape[1]
    starts = rng.integers(n_columns, size=LEARNT + TRIED)
    ring = np.hstack([words, words])
    X = bag([ring[:, at : at + COLUMNS] for at in starts], (1, sections), WORDS)
    known = np.round(starts * CELLS / n_columns).astype(int)[:, None]
    model = CountingGrid((CELLS,), (WINDOW,), None if sections == 1 else (sections,), random_state=seed)
    found = model.fit(X[:LEARNT]).locate(X)
    signs = (1, -1) if sections == 1 else (1,)
    laid = {sign: alignment.align(found[:LEARNT], sign * known[:LEARNT], (CELLS,)) for sign in signs}
    sign = max(signs, key=lambda each: int(laid[each].is_right.sum()))
    wanted = sign * known + laid[sign].shift
    away: Array = np.abs(torus.displacement(wanted[LEARNT:], found[LEARNT:], (CELLS,))).ravel()
    return away


def _draw(shop: Workshop, found: dict[int, Array]) -> None:
    """Draw what share of the windows lies within so many cells of its place."""
    axes = figure(6.4, 3.4).subplots()
    for sections, each in found.items():
        axes.plot(np.sort(each.ravel()), np.linspace(0, 100, each.size), label=f"1x{sections}")
    axes.set(xlabel="error in cells", ylabel="windows, %", xlim=(0, 8))
    axes.legend(frameon=False, loc="lower right")
    axes.figure.savefig(shop.folder / "panning.png")
