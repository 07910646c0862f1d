"""Plots of grids: as colors, as patches, and as words.

    python examples/plots.py [--output docs/plots.png]

Three grids are fitted, in a few minutes, to data that come with scikit-learn: two hundred windows of a photo as visual
words, the documentation of scikit-learn itself, and fifty windows of the photo in a few colors.
"""

import argparse
import inspect
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Codebook, DenseSIFT, Vocabulary, Words
from countinggrids.features.text import Document
from countinggrids.reproduce import demo


def colors(ax):
    """Plot the grid of windows of a photo, tiled two by two, with three of the windows."""
    scene = demo.photo_scene()
    _, X = demo.cut(scene, seed=0)
    model = cg.CountingGrid(scene.grid, demo.WINDOW, demo.SECTIONS, random_state=0).fit(X)
    palette = Vocabulary.of_colors((255 * scene.palette).clip(0, 255).astype(np.uint8))
    view = {"roll": True, "tiles": (2, 2)}
    plot.grid(model, palette, ax, **view)
    plot.windows(model, model.locate(X[[0, 5, 6]]), ax, colors=["red", "gold", "lime"], **view)


def patches(ax):
    """Plot the grid of windows of a photo in visual words, as overlapping patches."""
    rng = np.random.default_rng(0)
    photo = load_sample_image("china.jpg")
    corners = [(rng.integers(0, 427 - 128), rng.integers(0, 640 - 128)) for _ in range(200)]
    crops = [photo[r : r + 128, c : c + 128] for r, c in corners]
    sift, codebook = DenseSIFT(patch=16, step=8), Codebook(200, random_state=0)
    codebook.fit(sift.transform([photo]))
    X = cg.bag(codebook.transform(sift.transform(crops)), (4, 4), 200)
    model = cg.CountingGrid((60, 88), (16, 16), (4, 4), random_state=0).fit(X)
    plot.grid(model, codebook.vocabulary_, ax, roll=True)


def words(ax):
    """Plot the distinctive words of the documentation of scikit-learn."""
    texts = [inspect.getdoc(item) or "" for _, item in [*all_estimators(), *all_functions()]]
    summaries = [text.split("Examples\n---")[0] for text in texts]
    counter = Words(max_df=0.3, min_df=5, stop_words="english", min_length=4)
    documents = cg.Collection.from_texts([Document(text) for text in summaries], counter)
    model = cg.CountingGrid((24, 32), (6, 6), random_state=0).fit(documents)
    plot.words(model, documents, ax, roll=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/plots.png"))
    arguments = parser.parse_args()
    figure = Figure(figsize=(15, 3.7), layout="constrained", dpi=100)
    FigureCanvasAgg(figure)
    for ax, draw in zip(figure.subplots(1, 3), (patches, words, colors), strict=True):
        draw(ax)
    figure.savefig(arguments.output)


if __name__ == "__main__":
    main()
