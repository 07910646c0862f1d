"""The train station: eight labels, windows that never show all features of D, and the likelihood of D."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.baselines import LDA
from countinggrids.core.alignment import align
from countinggrids.core.torus import displacement
from countinggrids.data import container
from countinggrids.features.bagger import bag
from countinggrids.models import CountingGrid, MixtureOfUnigrams
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.report import Report, Table, comparison_table, figure, mean_and_spread

Array = NDArray[Any]
NAMES = ("sky", "mountain", "trees", "grass", "roof", "train", "tracks", "platform")
COLORS = (
    (186, 220, 246),
    (139, 122, 110),
    (46, 94, 54),
    (126, 178, 78),
    (176, 66, 50),
    (38, 76, 140),
    (96, 90, 84),
    (206, 196, 178),
)
SIZE, WINDOW, GRID = (48, 84), (24, 24), (56, 92)
"""Cells of the scene, of a window, and of a torus that holds the scene with room to spare."""
D = (20, 20)
"""Corner of the window D."""
SECTIONS, N_WINDOWS = (2, 2), 50
N_COMPONENTS = 10


def scene(rng: np.random.Generator | None = None) -> NDArray[np.int64]:
    """Return the station as a map of labels; with a random generator, another one with a similar layout."""
    rows, columns = np.indices(SIZE).astype(float)
    x = columns / SIZE[1]
    if rng is not None:
        x = x + rng.uniform(-0.06, 0.06) + 0.02 * np.sin(rng.uniform(0, 6) + 9 * x)
        rows = rows + rng.uniform(-2, 2) + 1.5 * np.sin(rng.uniform(0, 6) + 8 * x)
    drawn = np.full(SIZE, NAMES.index("sky"))
    drawn[rows > 5 + 60 * np.abs(x - 0.3)] = NAMES.index("mountain")
    drawn[(rows > 21 + 5 * np.sin(5 * x)) & (x < 0.85)] = NAMES.index("grass")
    drawn[(rows > 16 + 45 * np.abs(x - 0.06)) & (rows < 34) & (x < 0.2)] = NAMES.index("trees")
    drawn[(rows > 27 - 16 * (x - 0.33)) & (x > 0.33)] = NAMES.index("roof")
    drawn[(rows > 33 - 6 * (x - 0.4)) & (x > 0.26) & (x < 0.72)] = NAMES.index("train")
    drawn[(rows > 30) & (x >= 0.72)] = NAMES.index("platform")
    drawn[rows > 47 - 14 * (1 - x) ** 2 - 6 * x] = NAMES.index("tracks")
    drawn[(rows > 8 + 40 * np.abs(x - 0.95)) & (rows < 24) & (x > 0.86)] = NAMES.index("trees")
    return drawn


def run(experiment: Experiment) -> Report:
    """Fit models to windows that avoid the combination of features of D, and evaluate the likelihood of D."""
    settings = {"components": N_COMPONENTS, "window": WINDOW}
    draws = [experiment.step(f"station, draw {seed}", settings, partial(_draw, seed)) for seed in experiment.seeds]
    names = list(draws[0]["likelihood"])
    scores = {
        measure: {name: [each[kind][name] for each in draws] for name in names}
        for measure, kind in (("log p of D, per feature", "likelihood"), ("log p of other windows like D", "others"))
    }
    matched = comparison_table("Likelihood of D", scores, "counting grid", factor=1, digits=2)
    located = Table(
        "Locations on the counting grid",
        ["training windows within four cells, %", "error of D, cells"],
        [[mean_and_spread([each["within"] for each in draws]), mean_and_spread([each["error"] for each in draws], 1)]],
        {name: {"counting grid": [each[name] for each in draws]} for name in ("within", "error")},
    )
    notes = [
        f"Fifty windows of {WINDOW[0]}x{WINDOW[1]} cells, none of which shows all five features of D "
        f"({', '.join(five())}), as {SECTIONS[0]}x{SECTIONS[1]} bags; grid {GRID[0]}x{GRID[1]}. Locations are up to "
        "one common shift; D is not a training window. The mixture and LDA have ten components and see the same "
        "sections as features of their own; the nearest neighbor is the training window under whose histogram, with a "
        "pseudocount for each feature, D is most likely. Means and standard deviations are over random draws of "
        "the windows."
    ]
    _draw_picture(experiment, np.array(draws[0]["fitted"]))
    data = "Data: a station of our own drawing, in eight labels; the photo of the paper is unavailable."
    return Report("station", "A train station from fifty windows", data, [matched, located], notes, "station.png")


def five() -> list[str]:
    """Return the names of the features of D."""
    return [NAMES[k] for k in np.unique(_cut(scene(), D))]


def windows(seed: int) -> tuple[Array, Array]:
    """Draw windows that do not show all features of D; return their corners, and those of all windows that do."""
    drawn = scene()
    wanted = np.unique(_cut(drawn, D))
    corners = np.stack(
        np.meshgrid(*(np.arange(n - w + 1) for n, w in zip(SIZE, WINDOW, strict=True)), indexing="ij"), -1
    )
    corners = corners.reshape(-1, 2)
    is_like_d = np.array([np.isin(wanted, _cut(drawn, corner)).all() for corner in corners])
    chosen = np.random.default_rng(seed).choice(np.flatnonzero(~is_like_d), N_WINDOWS, replace=False)
    return corners[chosen], corners[is_like_d]


def _cut(drawn: Array, corner: Any) -> Array:
    return drawn[corner[0] : corner[0] + WINDOW[0], corner[1] : corner[1] + WINDOW[1]]


def _bags(corners: Array) -> Array:
    drawn = scene()
    return bag([_cut(drawn, corner) for corner in corners], SECTIONS, len(NAMES)).toarray()


def _draw(seed: int) -> dict[str, Any]:
    """Fit every model to one draw of windows; return log p per feature of D and of the windows like it."""
    corners, like_d = windows(seed)
    X, bag_d, others = _bags(corners), _bags(np.array([D])), _bags(like_d[::7])
    models: dict[str, Any] = {
        "counting grid": CountingGrid(GRID, WINDOW, SECTIONS, random_state=seed).fit(X),
        "mixture": MixtureOfUnigrams(N_COMPONENTS, random_state=seed).fit(X),
        "LDA": LDA(N_COMPONENTS, random_state=seed).fit(X),
        "one histogram": MixtureOfUnigrams(1, random_state=seed).fit(X),
    }
    n_sections, tokens = SECTIONS[0] * SECTIONS[1], WINDOW[0] * WINDOW[1]
    # A grid has a distribution for each section; the other models have one over all sections and features.
    apart = {name: 0.0 if name == "counting grid" else np.log(n_sections) for name in models}
    scores = {
        kind: {name: model.score_samples(Y) / tokens + apart[name] for name, model in models.items()}
        | {"nearest neighbor": _nearest(X, Y) / tokens + np.log(n_sections)}
        for kind, Y in (("likelihood", bag_d), ("others", others))
    }
    grid = models["counting grid"]
    alignment = align(grid.locate(X), corners, GRID)
    fitted = np.roll(grid.pi_.argmax(axis=-1), -alignment.shift, axis=(0, 1))[: SIZE[0], : SIZE[1]]
    return {kind: {name: float(values.mean()) for name, values in each.items()} for kind, each in scores.items()} | {
        "fitted": fitted.tolist(),
        "within": float((_away(grid.locate(X), corners, alignment.shift) <= 4).mean()),
        "error": float(_away(grid.locate(bag_d), np.array([D]), alignment.shift)[0]),
    }


def _away(found: Array, truth: Array, shift: Array) -> Array:
    """Return the distance of windows from their locations in cells, the larger of the two axes."""
    return np.abs(displacement(truth, found - shift, GRID)).max(axis=1)


def _nearest(X: Array, Y: Array) -> Array:
    """Return log p of bags under the best training bag for each, with a pseudocount for each feature."""
    histograms = (X + 1) / (X + 1).sum(axis=1, keepdims=True)
    return (Y @ np.log(histograms).T).max(axis=1)


def _draw_picture(experiment: Experiment, fitted: Array) -> None:
    """Plot the scene with some windows and D, and the grid beside it."""
    from matplotlib.patches import Patch, Rectangle

    corners, _ = windows(0)
    colors = np.array(COLORS, np.uint8)
    made = figure(11, 4.2)
    left, right = made.subplots(1, 2)
    left.imshow(colors[scene()])
    for corner in corners[:12]:
        left.add_patch(Rectangle(corner[::-1] - 0.5, *WINDOW[::-1], fill=False, ec="white", lw=0.8))
    left.add_patch(Rectangle((D[1] - 0.5, D[0] - 0.5), *WINDOW[::-1], fill=False, ec="black", lw=2.5))
    left.text(D[1] + 1, D[0] + 3.5, "D", fontsize=14, weight="bold")
    left.set_title("a station, twelve of the fifty windows, and D")
    right.imshow(colors[fitted])
    right.set_title("the grid, from four histograms of each window")
    for axes in (left, right):
        axes.axis("off")
    handles = [Patch(color=color / 255, label=name) for name, color in zip(NAMES, colors, strict=True)]
    made.legend(handles=handles, loc="outside lower center", ncols=8, frameon=False)
    container.write_figure(experiment.folder / "station.png", made)
