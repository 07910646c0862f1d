"""A panning camera: windows cut from a full circle, put back on a grid that wraps round like it.

COUNTINGGRIDS_DATA=... python benchmarks/panorama.py

For each panorama: visual words, 128 columns of them; 80 windows of 45 columns to learn from, 40 others held out. The
grid has one axis of 64 cells, two columns a cell. The shift (and, for bags without sections, the direction) is
settled on the training windows; what is told is how far the held-out windows lie from their place.
"""

import os
import warnings
from pathlib import Path

import numpy as np

import countinggrids as cg
from common import table
from countinggrids import alignment, torus
from countinggrids.features import Codebook, DenseSIFT, pictures

CELLS, WINDOW, COLUMNS = 64, 22, 44


def words_of(paths):
    """Give the map of words of each panorama, closed round the circle."""
    wrapped = []
    for path in paths:
        pixels = pictures.read(path)[128:384]
        wrapped.append(np.hstack([pixels, pixels[:, :8]]))
    sift, book = DenseSIFT(), Codebook(200, random_state=0)
    book.fit(sift.transform(wrapped))
    return [np.asarray(each) for each in book.transform(sift.transform(wrapped))]


def errors(words, sections, seed):
    """Learn from windows of one panorama; give how far held-out windows lie from their place, in cells."""
    rng = np.random.default_rng(seed)
    n_columns = words.shape[1]
    starts = rng.integers(n_columns, size=120)
    ring = np.hstack([words, words])
    X = cg.bag([ring[:, at : at + COLUMNS] for at in starts], (1, sections), 200)
    known = np.round(starts * CELLS / n_columns).astype(int)[:, None]
    model = cg.CountingGrid((CELLS,), (WINDOW,), None if sections == 1 else (sections,), random_state=seed).fit(X[:80])
    found = model.locate(X)
    best = (-1, None)
    for sign in (1, -1) if sections == 1 else (1,):
        aligned = alignment.align(found[:80], sign * known[:80], (CELLS,))
        if aligned.is_right.sum() > best[0]:
            best = (aligned.is_right.sum(), sign * known + aligned.shift)
    return np.abs(torus.displacement(best[1][80:], found[80:], (CELLS,))).ravel()


def main():
    data = os.environ.get("COUNTINGGRIDS_DATA")
    if not data:
        print("needs the data sets: set COUNTINGGRIDS_DATA to their folder")
        return
    warnings.filterwarnings("ignore")
    maps = words_of(
        sorted((Path(data) / "panoramas").glob("*.jpg")) or sorted((Path(data) / "panoramas").glob("*.png"))
    )
    rows = []
    for sections in (1, 2):
        each = np.array([errors(words, sections, seed) for seed, words in enumerate(maps)])
        medians = np.median(each, axis=1)
        rows.append(
            [f"1x{sections}", f"{np.median(each):.0f}", f"{each.mean():.1f}", f"{100 * (each <= 1).mean():.0f}%",
             f"{(medians <= 1).sum()} of {len(maps)}"]
        )  # fmt: skip
    header = ["sections", "median error", "mean", "within one cell", "panoramas with median at most 1"]
    table(f"Held-out windows of {len(maps)} panoramas, error in cells of {CELLS} (chance: mean 16)", header, rows)


if __name__ == "__main__":
    main()
