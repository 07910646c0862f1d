"""Frames of walks through a tower, which stand in for those of the wearable cameras of the paper."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids import datasets
from countinggrids.data.collection import Collection
from countinggrids.data.items import Items
from countinggrids.features import Codebook, Colors, DenseSIFT
from countinggrids.reproduce.experiment import Experiment
from countinggrids.reproduce.problem import FINE, FINEST

Array = NDArray[Any]
WORDS, COLORS, N_PLACES = 200, 64, 32
"""Visual words, colors, and places; the numbers of words and places are those of the paper."""
MOST_FRAMES = 120
"""Largest number of frames of a place: hallways have more than a thousand, the post office twenty."""
DATA = (
    "Data: walks through 25 floors of a tower with a hand-held camera, one frame a second, stand in for {}, which "
    "is unavailable; a place is an area, such as the hallways or the post office, on whichever floor."
)


def frames(experiment: Experiment) -> Items:
    """Return the frames of the places that have most of them; of three for the quick version."""
    root = experiment.unpacked("ietower")
    if root is None or experiment.data is None:
        raise experiment.missing("ietower.tar", "ietower.csv")
    items = datasets.ietower(root, experiment.data / "ietower.csv")
    items = items.with_columns(label=[label.partition(" ")[2] for label in items["label"]])
    return most_frequent(few_clips(items), 3 if experiment.is_quick else N_PLACES)


def few_clips(items: Items, most: int = MOST_FRAMES) -> Items:
    """Draw whole clips of every place with at most a number of frames in total, and at least one clip."""
    labels, clips = items["label"].astype(str), items["sequence"].astype(str)
    kept: list[str] = []
    for place in np.unique(labels):
        names, lengths = np.unique(clips[labels == place], return_counts=True)
        order = np.random.default_rng(0).permutation(len(names))
        kept.extend(names[order[np.cumsum(lengths[order]) <= max(most, lengths[order[0]])]])
    return items.take(np.isin(clips, kept))


def most_frequent(items: Items, n: int) -> Items:
    """Keep the places with most frames."""
    labels = items["label"].astype(str)
    names, times = np.unique(labels, return_counts=True)
    return items.take(np.isin(labels, names[np.argsort(-times, kind="stable")[:n]]))


def bags(experiment: Experiment, items: Items, is_train: Array, name: str) -> Collection:
    """Return bags of frames in 12x12 sections, with a codebook of the training frames."""

    def compute() -> Collection:
        sift, book = DenseSIFT(), Codebook(40 if experiment.is_quick else WORDS, random_state=0)
        book.fit(sift.transform([items.path(i) for i in np.flatnonzero(is_train).tolist()]))
        return Collection.from_images(items, [sift, book], FINE)

    training_mask = np.packbits(is_train).tobytes().hex()
    return experiment.collection(f"tower, {name}", {"train": training_mask, "words": WORDS}, compute)


def in_sections(experiment: Experiment, items: Items, is_train: Array, name: str) -> Array:
    """Return bags of frames in 4x4 sections."""
    return bags(experiment, items, is_train, name).coarsen(FINEST).counts.toarray()


def with_colors(experiment: Experiment, items: Items, is_train: Array, name: str) -> Array:
    """Return bags of frames in 4x4 sections with words and colors, the same number of tokens of each."""

    def compute() -> Collection:
        training = [items.path(i) for i in np.flatnonzero(is_train).tolist()]
        colors = Colors(16 if experiment.is_quick else COLORS, step=8, random_state=0).fit(training)
        return Collection.from_images(items, [colors], FINEST)

    training_mask = np.packbits(is_train).tobytes().hex()
    colored = experiment.collection(f"tower, colors, {name}", {"train": training_mask, "colors": COLORS}, compute)
    words = in_sections(experiment, items, is_train, name)
    both = [each.reshape(len(items), FINEST[0] * FINEST[1], -1) for each in (words, colored.counts.toarray())]
    both[1] *= both[0].sum(axis=(1, 2), keepdims=True) / both[1].sum(axis=(1, 2), keepdims=True)
    return np.concatenate(both, axis=2).reshape(len(items), -1)


def position(items: Items) -> Array:
    """Return the relative position of each frame in its clip, from 0 to below 1."""
    sequence = items["sequence"].astype(str)
    where = np.zeros(len(sequence))
    for name in np.unique(sequence):
        rows = np.flatnonzero(sequence == name)
        where[rows[np.argsort(items["time"][rows], kind="stable")]] = np.arange(len(rows)) / len(rows)
    return where


def folds(items: Items, n: int = 3) -> list[tuple[Array, Array]]:
    """Cut every clip into runs, one for each fold, so that few test frames are neighbors in time of training frames."""
    run = (position(items) * n).astype(int)
    return [(np.flatnonzero(run != fold), np.flatnonzero(run == fold)) for fold in range(n)]
