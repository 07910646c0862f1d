"""Figure 2 of the paper: grids of textons, from frames of a wearable camera, and of label maps."""

from typing import Any

import numpy as np

from countinggrids import datasets, plot
from countinggrids.data import container
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features import Textons, Vocabulary
from countinggrids.features.bagger import bag
from countinggrids.models import CountingGrid
from countinggrids.reproduce import station
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import QUICK
from countinggrids.reproduce.report import Report, Table, figure

GRID, WINDOW, SECTIONS = (36, 36), (12, 12), (2, 2)
PLACE, N_TEXTONS, N_SHOWN = "open_workspace", 200, 4


def run(experiment: Experiment) -> Report:
    """Fit a grid of textons to frames, and one of labels to drawn stations; plot both."""
    root = experiment.unpacked("ietower")
    panels = [("labels", *_stations(40 if experiment.is_quick else 150))]
    if root is not None:
        frames = experiment.collection("figure 2, textons", {"place": PLACE}, lambda: _frames(experiment, root))
        shown = np.linspace(0, len(frames) - 1, N_SHOWN).astype(int)
        panels.insert(0, ("textons", frames, [frames.thumbnail(int(i), 200) for i in shown]))
    made = figure(11, 4.5 * len(panels))
    rows = []
    for part, (name, collection, images) in zip(
        made.subfigures(len(panels), 1, squeeze=False)[:, 0], panels, strict=True
    ):
        model = _grid(collection, experiment.is_quick)
        rows.append([name, str(len(collection)), str(len(collection.vocabulary)), f"{model.history_[-1]:.3f}"])
        _panel(part, images, collection, model)
    container.write_figure(experiment.folder / "figure2.png", made)
    frames_are = "frames are unavailable" if root is None else "an open workspace of the tower stands in for the office"
    data = f"Data: {frames_are}; stations of our own drawing, no two the same, stand in for LabelMe."
    table = Table(
        "Grids of textons and of labels", ["features", "images", "number of features", "log p per token"], rows
    )
    notes = [
        f"Bags of {SECTIONS[0]}x{SECTIONS[1]} sections, grid {GRID[0]}x{GRID[1]}, window {WINDOW[0]}x{WINDOW[1]}, "
        "default settings. Overlapping textons are averaged; of labels the most likely one of each cell is shown."
    ]
    return Report("figure2", "Grids of textons and of labels", data, [table], notes, "figure2.png", shows_data=True)


def _panel(part: Any, images: list[Any], collection: Collection, model: CountingGrid) -> None:
    """Plot some images beside their grid."""
    above, below = part.subfigures(1, 2, width_ratios=[1, 1.4])
    for axes, image in zip(above.subplots(2, 2).ravel(), images, strict=True):
        axes.imshow(image)
        axes.axis("off")
    plot.grid(model, collection, below.subplots(), roll=True)


def _grid(collection: Collection, is_quick: bool) -> CountingGrid:
    if is_quick:
        return CountingGrid((18, 18), (6, 6), SECTIONS, anneal=QUICK, random_state=0).fit(collection.counts)
    return CountingGrid(GRID, WINDOW, SECTIONS, random_state=0).fit(collection.counts)


def _frames(experiment: Experiment, root: Any) -> Collection:
    """Return bags of textons of the frames of an office, with textons of these frames."""
    assert experiment.data is not None
    items = datasets.ietower(root, experiment.data / "ietower.csv")
    items = items.take([PLACE in label for label in items["label"]])
    if experiment.is_quick:
        items = items.take(np.arange(0, len(items), max(1, len(items) // 20)))
    paths = [items.path(i) for i in range(len(items))]
    textons = Textons(
        40 if experiment.is_quick else N_TEXTONS, step=8 if experiment.is_quick else 4, random_state=0
    ).fit(paths)
    return Collection.from_images(items, [textons], SECTIONS)


def _stations(n: int) -> tuple[Collection, list[Any]]:
    """Draw random stations and a view of each; return the bags and some views."""
    rng = np.random.default_rng(0)
    maps = []
    for _ in range(n):
        drawn = station.scene(rng)
        corner = [rng.integers(0, size - length + 1) for size, length in zip(station.SIZE, station.WINDOW, strict=True)]
        maps.append(drawn[corner[0] : corner[0] + station.WINDOW[0], corner[1] : corner[1] + station.WINDOW[1]])
    colors = np.array(station.COLORS, np.uint8)
    items = Items({"title": [f"view {i}" for i in range(n)]})
    collection = Collection(
        bag(maps, SECTIONS, len(colors)), Vocabulary("labels", station.NAMES, colors), items, SECTIONS
    )
    return collection, [colors[each] for each in maps[:N_SHOWN]]
