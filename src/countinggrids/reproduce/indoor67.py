"""Indoor scenes: the same table for the official lists of the 67-Indoor set, on whichever classes are present."""

import numpy as np

from countinggrids import datasets
from countinggrids.collection import Collection
from countinggrids.features import Codebook, DenseSIFT
from countinggrids.items import Items
from countinggrids.reproduce import scenes15
from countinggrids.reproduce.contenders import FINE, Problem, split_by
from countinggrids.reproduce.contest import contest
from countinggrids.reproduce.report import Report
from countinggrids.reproduce.workshop import Workshop

PAPER = {
    "mixture": 14.31,
    "LDA": 24.53,
    "reconfigurable 4x4": 25.32,
    "spatial bag of words 4x4": 20.94,
    "counting grid 1x1": 25.42,
    "counting grid 4x4": 28.32,
    "hybrid, matched 1x1": 16.21,
    "spatial pyramid kernel 4x4": 32.12,
}
INDOOR = ("Bedroom", "Industrial", "Kitchen", "LivingRoom", "Office", "Store")
"""Classes of 15-Scenes that are indoors, by the ends of their names."""


def run(shop: Workshop) -> Report:
    """Make the table on the set itself, or on the indoor classes of 15-Scenes."""
    root = None if shop.data is None else shop.data / "indoor67"
    if root is not None and root.is_dir():
        items = datasets.indoor67(root)
        names = sorted(set(items["label"].astype(str)))
        table, notes = contest(shop, "indoor67", lambda seed: official(items, seed, shop.is_quick), PAPER, {})
        data = f"Data: the official lists, {len(names)} classes: {', '.join(names)}."
        return Report("indoor67", "Indoor scenes", data, [table], notes)
    stand_in = shop.unpacked("15scenes")
    if stand_in is None:
        raise ValueError("neither 67-Indoor nor 15-Scenes is here; wanted one of them among the data sets; give --data")
    shop.say("the 67-Indoor set is not here; the indoor classes of 15-Scenes stand in for it")
    items = datasets.scenes15(stand_in / "15scenes")
    names = [name for name in sorted(set(items["label"].astype(str))) if name.endswith(INDOOR)]
    items = items.take(np.isin(items["label"].astype(str), names))
    items = scenes15.few(items) if shop.is_quick else items
    table, notes = contest(
        shop, "indoor67", lambda seed: scenes15.problem(items, seed, shop.is_quick), PAPER, {"of": names}
    )
    data = (
        f"Data: the 67-Indoor set is not to be had here; the {len(names)} indoor classes of 15-Scenes stand in for it "
        f"({', '.join(names)}), so the figures cannot be set against the paper's, which are for 67 classes."
    )
    return Report("indoor67", "Indoor scenes", data, [table], notes)


def official(items: Items, seed: int, is_quick: bool) -> Problem:
    """Put the official split together; the seed moves only the codebook."""
    is_train = items["split"] == "train"
    sift, book = DenseSIFT(max_side=512), Codebook(40 if is_quick else scenes15.WORDS, random_state=seed)
    book.fit(sift.transform([items.path(i) for i in np.flatnonzero(is_train).tolist()]))
    bags = Collection.from_images(items, [sift, book], FINE)
    return split_by(bags, is_train, is_quick)
