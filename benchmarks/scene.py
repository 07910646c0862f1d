"""Recover the layout of fifty windows of a drawing from their histograms, with pictures.

    COUNTINGGRIDS_DATA=... python benchmarks/scene.py [--seeds 5] [--output results/scene]

Reads trees/trees.npz; a window is recovered if it is within one cell of its position, up to one common shift.
Without sections also up to reflections and swapped axes, which such bags do not determine.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import countinggrids as cg
from common import table
from countinggrids.core.alignment import align
from countinggrids.reproduce import demo

GRID, WINDOW, N_COLORS = demo.TREES_GRID, 16, demo.N_COLORS
ONE_BAG = {"location_prior": "uniform", "eta": 0.01, "anneal": (0.01, 1.03, 1.0), "max_iter": 1000}
MODELS = {
    "2x2": (2, lambda seed: cg.CountingGrid(GRID, WINDOW, 2, random_state=seed)),
    "4x4": (4, lambda seed: cg.CountingGrid(GRID, WINDOW, 4, random_state=seed)),
    "2x2, plain EM": (2, lambda seed: cg.CountingGrid(GRID, WINDOW, 2, anneal=None, max_iter=2000, random_state=seed)),
    "1x1": (1, lambda seed: cg.CountingGrid(GRID, WINDOW, random_state=seed)),
    "1x1, plain EM": (1, lambda seed: cg.CountingGrid(GRID, WINDOW, anneal=None, max_iter=2000, random_state=seed)),
    "1x1, uniform prior, eta 0.01": (1, lambda seed: cg.CountingGrid(GRID, WINDOW, random_state=seed, **ONE_BAG)),
    "1x1, the same, best of 10": (
        1,
        lambda seed: cg.CountingGrid(GRID, WINDOW, n_init=10, random_state=seed, **ONE_BAG),
    ),
    "hybrid, matched 1x1": (16, lambda seed: cg.HybridEpitome(GRID, WINDOW, random_state=seed)),
    "hybrid, matched 2x2": (16, lambda seed: cg.HybridEpitome(GRID, WINDOW, 2, random_state=seed)),
}


def windows(labels, seed):
    """Cut fifty windows at random; return their corners and the windows."""
    rng = np.random.default_rng(seed)
    corners = np.stack([rng.integers(0, n - WINDOW + 1, 50) for n in labels.shape], axis=1)
    return corners, [labels[r : r + WINDOW, c : c + WINDOW] for r, c in corners]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("results/scene"))
    parser.add_argument("--only", choices=list(MODELS), action="append")
    arguments = parser.parse_args()
    scene = demo.tree_scene(Path(os.environ["COUNTINGGRIDS_DATA"]))
    labels, palette = scene.labels, scene.palette
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.only or MODELS:
        sections, make = MODELS[name]
        shares, began = [], time.perf_counter()
        for seed in range(arguments.seeds):
            corners, maps = windows(labels, seed)
            X = cg.bag(maps, sections, N_COLORS)
            model = make(seed).fit(X)
            alignment = align(model.locate(X), corners, GRID, has_symmetries="1x1" in name)
            shares.append(alignment.is_correct.mean())
            if seed == 0:
                figure = Figure(figsize=(8, 4), layout="constrained")
                left, right = figure.subplots(1, 2)
                left.imshow(palette[labels].clip(0, 1))
                right.imshow(np.roll(model.pi_ @ palette, -alignment.shift, axis=(0, 1)).clip(0, 1))
                right.set_title(f"{name}: {shares[0]:.0%}")
                figure.savefig(arguments.output / f"{name.replace(', ', '_').replace(' ', '_')}.png", dpi=80)
        seconds = (time.perf_counter() - began) / arguments.seeds
        listed = " ".join(f"{value:.0%}" for value in shares)
        rows.append([name, f"{np.median(shares):.0%}", f"{np.mean(shares):.0%}", listed, f"{seconds:.1f} s"])
        print("  ".join(rows[-1]), flush=True)
    table("Windows recovered", ["bags", "median", "mean", "seeds", "time of a fit"], rows)


if __name__ == "__main__":
    main()
