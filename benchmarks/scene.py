"""Put fifty windows of a drawing back in place from their histograms, with pictures.

    COUNTINGGRIDS_DATA=... python benchmarks/scene.py [--seeds 5] [--scene trees ...] [--output results/scene]

Scenes: trees (trees/trees.npz), scikit-learn's photos china.jpg and flower.jpg, and names of files in panoramas/. A
window counts as back in place within one cell, up to one common shift. Without sections, reflections and swapped axes
count as right too: nothing in such bags tells them apart. From the truth: plain EM from a grid on which every histogram
is painted over its own window, with about the pseudocounts that default fits have for scenes.
"""

import argparse
import itertools
import os
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

import countinggrids as cg
from common import table
from countinggrids.core.alignment import align
from countinggrids.reproduce import demo

WINDOW, N_COLORS = 16, demo.N_COLORS
ONE_BAG = {"location_prior": "uniform", "eta": 0.01, "anneal": (0.01, 1.03, 1.0), "max_iter": 1000}
PLAIN = {"anneal": None, "max_iter": 2000}
MODELS = {
    "2x2": (2, cg.CountingGrid, {"sections": 2}),
    "4x4": (4, cg.CountingGrid, {"sections": 4}),
    "2x2, plain EM": (2, cg.CountingGrid, {"sections": 2, **PLAIN}),
    "1x1": (1, cg.CountingGrid, {}),
    "1x1, from the truth": (1, cg.CountingGrid, {"anneal": None, "max_iter": 500, "eta": 0.01}),
    "1x1, plain EM": (1, cg.CountingGrid, PLAIN),
    "1x1, uniform prior, eta 0.01": (1, cg.CountingGrid, ONE_BAG),
    "1x1, the same, best of 10": (1, cg.CountingGrid, {"n_init": 10, **ONE_BAG}),
    "hybrid, matched 1x1": (16, cg.HybridEpitome, {}),
    "hybrid, matched 2x2": (16, cg.HybridEpitome, {"sections": 2}),
}


def scene_named(name):
    """Return a scene by its name."""
    data = Path(os.environ.get("COUNTINGGRIDS_DATA", "."))
    if name == "trees":
        return demo.tree_scene(data)
    if name in ("china.jpg", "flower.jpg"):
        return demo.photo_scene(name=name)
    return demo.scene_of(imread(data / "panoramas" / name)[..., :3] / 255.0)


def painted_truth(X, corners, grid):
    """Paint every histogram over its own window, on a little of the mean histogram."""
    pi = np.zeros((*grid, X.shape[1])) + 0.01 * X.mean(axis=0)
    for histogram, (row, column) in zip(X, corners, strict=True):
        pi[row : row + WINDOW, column : column + WINDOW] += histogram
    return pi / pi.sum(axis=-1, keepdims=True)


def windows(labels, seed):
    """Cut fifty windows at random; give their corners and themselves."""
    rng = np.random.default_rng(seed)
    corners = np.stack([rng.integers(0, n - WINDOW + 1, 50) for n in labels.shape], axis=1)
    return corners, [labels[r : r + WINDOW, c : c + WINDOW] for r, c in corners]


def tried(scene, name, seed):
    """Fit one model to fifty windows; return the fraction put back, and the grid as a picture."""
    sections, kind, settings = MODELS[name]
    corners, maps = windows(scene.labels, seed)
    X = cg.bag(maps, sections, N_COLORS).toarray()
    if "truth" in name:
        settings = settings | {"init": painted_truth(X, corners, scene.grid)}
    model = kind(scene.grid, WINDOW, random_state=seed, **settings).fit(X)
    alignment = align(model.locate(X), corners, scene.grid, has_symmetries="1x1" in name)
    return alignment.is_correct.mean(), np.roll(model.pi_ @ scene.palette, -alignment.shift, axis=(0, 1)).clip(0, 1)


def draw(scene, picture, title, path):
    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(scene.palette[scene.labels].clip(0, 1))
    right.imshow(picture)
    right.set_title(title)
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--scene", nargs="+", default=["trees"])
    parser.add_argument("--output", type=Path, default=Path("results/scene"))
    parser.add_argument("--only", choices=list(MODELS), action="append")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for scene_name, name in itertools.product(arguments.scene, arguments.only or MODELS):
        scene, began = scene_named(scene_name), time.perf_counter()
        found = [tried(scene, name, seed) for seed in range(arguments.seeds)]
        seconds = (time.perf_counter() - began) / arguments.seeds
        shares = [share for share, _ in found]
        path = arguments.output / f"{scene_name} {name}.png".replace(", ", "_").replace(" ", "_")
        draw(scene, found[0][1], f"{name}: {shares[0]:.0%}", path)
        listed = " ".join(f"{value:.0%}" for value in shares)
        row = [scene_name, name, f"{np.median(shares):.0%}", f"{np.mean(shares):.0%}", listed, f"{seconds:.1f} s"]
        rows.append(row)
        print("  ".join(row), flush=True)
    table("Windows back in place", ["scene", "bags", "median", "mean", "seeds", "a fit"], rows)


if __name__ == "__main__":
    main()
