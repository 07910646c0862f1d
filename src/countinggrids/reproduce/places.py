"""Place classification: ten folds, few images of each place, and a panel for each tessellation of the bags."""

from collections.abc import Mapping, Sequence

import numpy as np

from countinggrids.data import container
from countinggrids.reproduce import tower
from countinggrids.reproduce.comparison import compare
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import Array, Problem, split_by
from countinggrids.reproduce.report import Report, figure
from countinggrids.reproduce.systems import STANDING

PAPER: dict[str, float | None] = {
    "mixture": 41.19,
    "LDA": 57.05,
    "reconfigurable 4x4": 58.17,
    "spatial bag of words 4x4": 49.10,
    "counting grid 1x1, three averaged": 55.32,
    "counting grid 4x4, three averaged": 59.83,
    "hybrid, matched 1x1": 39.40,
    "spatial pyramid kernel 4x4": 52.76,
}
PANELS = {
    "1x1": (
        "mixture",
        "LDA",
        "componential grid 1x1",
        "counting grid 1x1, three averaged",
        "counting grid 1x1, three sizes averaged",
    ),
    "rows": ("counting grid 2x1, three averaged", "counting grid in rows, three sizes averaged"),
    "2x2": ("counting grid 2x2, three averaged", "counting grid 2x2, three sizes averaged"),
    "4x4": (
        "LDA 4x4",
        "reconfigurable 4x4",
        "spatial bag of words 4x4",
        "counting grid 4x4, three averaged",
        "elastic grid 4x4",
    ),
    "standing": tuple(STANDING),
}
FEW = (
    *PAPER,
    "elastic grid 4x4",
    "componential grid 1x1",
    "counting grid 1x1, three sizes averaged",
    *PANELS["rows"],
    *STANDING,
)
N_FOLDS, N_FEW = 10, 13
REFERENCE = "counting grid 1x1, three averaged"


def run(experiment: Experiment) -> Report:
    """Compare systems in ten folds, with a panel for each tessellation, and with few images of each place."""
    items = tower.frames(experiment)
    where = tower.position(items)

    def fold(number: int) -> Problem:
        is_train = (where * N_FOLDS).astype(int) != number
        bags = tower.bags(experiment, items, is_train, f"fold {number}")
        return split_by(bags, is_train, experiment.is_quick, tower.folds(items.take(is_train)))

    def few(seed: int) -> Problem:
        is_train = _few(items["label"].astype(str), where, seed)
        is_used = is_train | (where >= 0.7)
        bags = tower.bags(experiment, items.take(is_used), is_train[is_used], f"few, draw {seed}")
        return split_by(bags, is_train[is_used], experiment.is_quick, is_thorough=True)

    folds = range(1 if experiment.is_quick else min(N_FOLDS, experiment.n_splits))
    panels = [name for panel in PANELS.values() for name in panel]
    what = {"places": "areas", "most frames": tower.MOST_FRAMES}
    ten, selected = compare(experiment, "places, ten folds", fold, {}, what, panels, folds, REFERENCE)
    thirteen, _ = compare(experiment, f"places, {N_FEW} a place", few, PAPER, what, FEW, reference=REFERENCE)
    ten.caption, thirteen.caption = (
        f"{len(folds)} of {N_FOLDS} folds: {ten.caption}",
        f"{N_FEW} images a place: {thirteen.caption}",
    )
    _draw(experiment, ten.values["accuracy, %"])
    n_places = len(set(items["label"].astype(str)))
    notes = [
        f"The {n_places} places with most frames, with whole clips of at most {tower.MOST_FRAMES} frames in total. A "
        "fold is a tenth of every clip in a row, so that test frames are not neighbors in time of training frames; the "
        f"{N_FEW} images a place come from the first 70% of each clip, and the last 30% are test frames. Settings are "
        "selected by three folds of the training frames, runs of every clip in the first table, with as many averaged "
        "models as in the end; those of the hybrid are fixed. Of all models but the hybrid and the pyramid kernel "
        "three restarts are averaged. Three sizes without model selection: grids of 12x12 cells with windows of 4x4, "
        "16x16 with 8x8 and 24x24 with 8x8, three restarts each, power 0.7; rows are two cells high. The values of the "
        "paper are for 32 places of a SenseCam.",
        *selected,
    ]
    data = tower.DATA.format("SenseCam")
    return Report("places", "Places", data, [ten, thirteen], notes, "places.png")


def _few(labels: Array, where: Array, seed: int) -> Array:
    """Draw a few frames of every place from the first part of its clips."""
    rng = np.random.default_rng(seed)
    is_chosen = np.zeros(len(labels), bool)
    for name in np.unique(labels):
        rows = rng.permutation(np.flatnonzero((labels == name) & (where < 0.7)))
        is_chosen[rows[:N_FEW]] = True
    return is_chosen


def _draw(experiment: Experiment, accuracy: Mapping[str, Sequence[float]]) -> None:
    """Plot a panel for each tessellation."""
    made = figure(15, 3.6)
    panels = made.subplots(1, len(PANELS), sharey=True, width_ratios=[len(names) + 0.5 for names in PANELS.values()])
    for axes, (title, names) in zip(panels, PANELS.items(), strict=True):
        short = [_short(name, title) for name in names]
        means, spreads = ([100 * f(accuracy[name]) for name in names] for f in (np.mean, np.std))
        axes.bar(short, means, yerr=spreads, color="C0", width=0.6)
        axes.set(title=title, xlim=(-0.75, len(names) - 0.25))
        axes.set_xticks(range(len(short)), short, rotation=20, ha="right")
    made.axes[0].set_ylabel("accuracy, %")
    container.write_figure(experiment.folder / "places.png", made)


def _short(name: str, title: str) -> str:
    """Shorten the name of a system under the title of its panel."""
    for long, few in (
        (f" in {title}", ""),
        (f" {title}", ""),
        (", three averaged", ""),
        ("three sizes averaged", "3 sizes"),
    ):
        name = name.replace(long, few)
    return name.removeprefix("counting ")
