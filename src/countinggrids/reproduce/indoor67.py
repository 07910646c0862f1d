"""Indoor scenes: the table of scene classification on the official split of 67-Indoor, or on a stand-in."""

from functools import partial

import numpy as np

from countinggrids import datasets
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features import Codebook, DenseSIFT
from countinggrids.reproduce import scenes15
from countinggrids.reproduce.comparison import compare
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import FINE, Problem, split_by
from countinggrids.reproduce.report import Report
from countinggrids.reproduce.systems import ON_MAPS, ON_SEQUENCES, STANDING, SYSTEMS

PAPER: dict[str, float | None] = {
    "mixture": 14.31,
    "LDA": 24.53,
    "reconfigurable 4x4": 25.32,
    "spatial bag of words 4x4": 20.94,
    "counting grid 1x1": 25.42,
    "counting grid 4x4": 28.32,
    "hybrid, matched 1x1": 16.21,
    "spatial pyramid kernel 4x4": 32.12,
}
SYSTEMS_SHOWN = (*PAPER, "elastic grid 4x4", *STANDING)
"""Systems that are compared where other scenes stand in."""
INDOOR = ("Bedroom", "Industrial", "Kitchen", "LivingRoom", "Office", "Store")
"""Classes of 15-Scenes that are indoors, by the ends of their names."""


def run(experiment: Experiment) -> Report:
    """Compare systems on the set itself, or on the indoor classes of 15-Scenes."""
    root = None if experiment.data is None else experiment.data / "indoor67"
    if root is not None and root.is_dir():
        items = datasets.indoor67(root)
        names = sorted(set(items["label"].astype(str)))
        systems = [each for each in SYSTEMS if each not in (*ON_SEQUENCES, *ON_MAPS)]
        table, notes = compare(
            experiment, "indoor67", lambda seed: official(items, seed, experiment.is_quick), PAPER, {}, systems
        )
        data = f"Data: the official split, {len(names)} classes: {', '.join(names)}."
        return Report("indoor67", "Indoor scenes", data, [table], notes)
    stand_in = experiment.unpacked("15scenes")
    if stand_in is None:
        raise experiment.missing("indoor67 or 15scenes.tar")
    experiment.log("67-Indoor is unavailable; the indoor classes of 15-Scenes stand in for it")
    items = datasets.scenes15(stand_in / "15scenes")
    names = [name for name in sorted(set(items["label"].astype(str))) if name.endswith(INDOOR)]
    items = items.take(np.isin(items["label"].astype(str), names))
    items = scenes15.few(items) if experiment.is_quick else items
    split = partial(scenes15.problem, items, is_quick=experiment.is_quick)
    seeds = list(experiment.seeds)[:1]  # the same images as in the table of 15 classes
    table, notes = compare(experiment, "indoor67", split, PAPER, {"of": names}, SYSTEMS_SHOWN, seeds)
    data = (
        f"Data: 67-Indoor is unavailable; the {len(names)} indoor classes of 15-Scenes stand in for it "
        f"({', '.join(names)}). The values of the paper are for 67 classes."
    )
    return Report("indoor67", "Indoor scenes", data, [table], notes)


def official(items: Items, seed: int, is_quick: bool) -> Problem:
    """Return the problem of the official split; the seed is that of the codebook."""
    is_train = items["split"] == "train"
    sift, book = DenseSIFT(max_side=512), Codebook(40 if is_quick else scenes15.WORDS, random_state=seed)
    book.fit(sift.transform([items.path(i) for i in np.flatnonzero(is_train).tolist()]))
    bags = Collection.from_images(items, [sift, book], FINE)
    return split_by(bags, is_train, is_quick)
