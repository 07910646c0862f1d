"""Make the pictures of the user guide before the pages are read: what a map shows, and what it does not."""

import inspect
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Words
from countinggrids.reproduce import demo

GRID, WINDOW = (20, 20), (4, 4)


def documents() -> sp.csr_array:
    """Return the counts of words in scikit-learn's docstrings."""
    texts = [inspect.getdoc(thing) or "" for _, thing in [*all_estimators(), *all_functions()]]
    texts = [text.split("Examples\n---")[0] for text in texts]
    words = Words(min_df=5, max_df=0.2, stop_words="english", min_length=4)
    return sp.csr_array(cg.Collection.from_texts(texts, words).counts)


def torus(path: Path) -> None:
    """Plot one grid three times: as it is, rolled, and four times side by side."""
    scene = demo.photo_scene()
    _, X = demo.cut(scene, seed=0)
    model = cg.CountingGrid((38, 53), (16, 16), (2, 2), random_state=0).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained")
    for ax, name, options in zip(axes, ("as it was learned", "roll=True", "tiles=(2, 2)"), VIEWS, strict=True):
        plot.grid(model, scene.vocabulary, ax, **options)
        ax.set_title(name)
    save(figure, path)


VIEWS: tuple[dict[str, Any], ...] = ({}, {"roll": True}, {"tiles": (2, 2)})


def empty_land(path: Path) -> None:
    """Plot the usage of a grid that fits its bags, and of one that is too large."""
    X = documents()[:120]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for ax, side in zip(axes, (12, 36), strict=True):
        plot.usage(cg.CountingGrid((side, side), WINDOW, random_state=0).fit(X), X, ax, roll=True)
        ax.set_title(f"120 documents on {side}x{side} cells")
    save(figure, path)


def between(places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance on the torus of each pair of places, in cells."""
    apart = np.abs(places[:, None] - places[None])
    apart = np.minimum(apart, np.array(GRID) - apart)
    return np.sqrt((apart**2).sum(axis=2))[np.triu_indices(len(places), 1)]


def distance(path: Path) -> None:
    """Plot the distance of pairs of documents on the map of one seed against that on the map of another."""
    X = documents()
    one, other = (between(cg.CountingGrid(GRID, WINDOW, random_state=seed).fit(X).locate(X)) for seed in (0, 1))
    bins = np.minimum(one.round().astype(int), 13)
    low, middle, high = (
        [float(np.quantile(other[bins == cells], part)) for cells in range(14)] for part in (0.1, 0.5, 0.9)
    )
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    ax.fill_between(range(14), low, high, alpha=0.2, label="80% of the pairs")
    ax.plot(range(14), middle, marker="o", label="median")
    ax.axvline(WINDOW[0], color="gray", ls="--", label="width of a window")
    ax.set(xlabel="cells between two documents on the map of seed 0", ylabel="cells between them, seed 1", ylim=0)
    ax.legend(loc="lower right")
    save(figure, path)


def gain(model: cg.CountingGrid, X: sp.csr_array, p: NDArray[np.float64]) -> float:
    """Return the log-likelihood per token beyond that of one histogram for all bags."""
    return float((model.score_samples(X).sum() - (X @ np.log(p)).sum()) / X.sum())


def noise(path: Path) -> None:
    """Plot how much better than one histogram a map explains real counts, and counts with permuted columns."""
    real = documents()
    rng = np.random.default_rng(0)
    shuffled = sp.csr_array(np.column_stack([rng.permutation(column) for column in real.toarray().T]))
    figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    for number, X in enumerate((real, shuffled)):
        order = rng.permutation(X.shape[0])
        train, held_out = X[order[:-100]], X[order[-100:]]
        p = (train.sum(axis=0) + 0.1) / (train.sum() + 0.1 * X.shape[1])
        model = cg.CountingGrid(GRID, WINDOW, random_state=0).fit(train)
        ax.barh([number - 0.2, number + 0.2], [gain(model, part, p) for part in (train, held_out)], 0.36, color=COLORS)
    ax.axvline(0, color="black", lw=0.8)
    ax.set(yticks=(0, 1), yticklabels=("documents", "columns permuted"))
    ax.set_xlabel("log-likelihood per token beyond one histogram")
    ax.invert_yaxis()
    ax.legend(handles=[plt.Rectangle((0, 0), 1, 1, color=color) for color in COLORS], labels=["training", "held out"])
    save(figure, path)


COLORS = ("tab:gray", "tab:blue")


def save(figure: Any, path: Path) -> None:
    """Write a figure and close it."""
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(app: Any) -> None:
    """Make the pictures that do not exist yet."""
    folder = Path(app.srcdir) / "_generated" / "guide"
    folder.mkdir(parents=True, exist_ok=True)
    for make in (torus, empty_land, distance, noise):
        path = folder / f"{make.__name__}.png"
        if not path.exists():
            make(path)


def setup(app: Any) -> dict[str, bool]:
    """Make the pictures before sources are read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
