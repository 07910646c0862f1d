"""A grid can be looked at: painted with colours, with patches, or written in words.

    python examples/plots.py [--output docs/plots.png]

Three grids are learnt, in a few minutes, from what comes with scikit-learn: two hundred windows of a photo in visual
words, the documentation of scikit-learn itself, and fifty windows of the photo in few colours.
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
from countinggrids import demo, plot
from countinggrids.features import Codebook, DenseSIFT, Vocabulary, Words
from countinggrids.features.text import Document


def colours(ax):
    """Put windows of a photo back; the torus is shown two times two, with three of its windows."""
    scene = demo.photo_scene()
    _, X = demo.cut(scene, seed=0)
    model = cg.CountingGrid(scene.grid, demo.WINDOW, demo.SECTIONS, random_state=0).fit(X)
    palette = Vocabulary.of_colours((255 * scene.palette).clip(0, 255).astype(np.uint8))
    view = {"roll": True, "tiles": (2, 2)}
    plot.grid(model, palette, ax, **view)
    plot.windows(model, model.locate(X[[0, 5, 6]]), ax, colours=["red", "gold", "lime"], **view)


def patches(ax):
    """Put windows of a photo back from their visual words, and lay the words' patches over each other."""
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
    """Map what scikit-learn says about its own functions and classes."""
    texts = [inspect.getdoc(item) or "" for _, item in [*all_estimators(), *all_functions()]]
    summaries = [text.split("Examples\n---")[0] for text in texts]
    counter = Words(max_df=0.3, min_df=5, stop_words="english", token_pattern=r"[a-z]{4,}")
    documents = cg.Collection.from_texts([Document(text) for text in summaries], counter)
    model = cg.CountingGrid((24, 32), (6, 6), random_state=0).fit(documents.counts)
    plot.words(model, documents, ax, roll=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/plots.png"))
    arguments = parser.parse_args()
    figure = Figure(figsize=(15, 3.7), layout="constrained", dpi=100)
    FigureCanvasAgg(figure)
    for ax, draw in zip(figure.subplots(1, 3), (patches, words, colours), strict=True):
        draw(ax)
    figure.savefig(arguments.output)


if __name__ == "__main__":
    main()
