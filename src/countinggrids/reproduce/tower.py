"""Frames of the walks through a tower, which stand in for the wearable cameras of the paper."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids import datasets
from countinggrids.collection import Collection
from countinggrids.features import Codebook, Colours, DenseSIFT
from countinggrids.items import Items
from countinggrids.reproduce.contenders import FINE, FINEST
from countinggrids.reproduce.workshop import Workshop

Array = NDArray[Any]
WORDS, COLOURS, N_PLACES = 200, 64, 32
"""Visual words, colours, and places: as many as the paper has."""
MOST_FRAMES = 120
"""Frames of a place: there are more than a thousand of hallways, and twenty of a post office."""
DATA = (
    "Data: walks through 25 floors of a tower with a hand-held camera, one frame a second, stand in for {}, which "
    "cannot be had; a place is an area, such as the hallways or the post office, on whichever floor."
)


def frames(shop: Workshop) -> Items:
    """List the frames of the places that have most of them; of three for the quick version."""
    root = shop.unpacked("ietower")
    if root is None or shop.data is None:
        raise ValueError("the walks through the tower are not here; wanted ietower.tar and ietower.csv; give --data")
    items = datasets.ietower(root, shop.data / "ietower.csv")
    items = items.with_columns(label=[label.partition(" ")[2] for label in items["label"]])
    return most_frequent(few_clips(items), 3 if shop.is_quick else N_PLACES)


def few_clips(items: Items, most: int = MOST_FRAMES) -> Items:
    """Keep whole clips of every place, drawn at random, while they have no more than so many frames."""
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


def bags(shop: Workshop, items: Items, is_train: Array, name: str) -> Collection:
    """Bag frames by 12x12 sections, with words learnt from those to learn from."""

    def make() -> Collection:
        sift, book = DenseSIFT(), Codebook(40 if shop.is_quick else WORDS, random_state=0)
        book.fit(sift.transform([items.path(i) for i in np.flatnonzero(is_train).tolist()]))
        return Collection.from_images(items, [sift, book], FINE)

    chosen = np.packbits(is_train).tobytes().hex()
    return shop.collection(f"tower, {name}", {"train": chosen, "words": WORDS}, make)


def in_sections(shop: Workshop, items: Items, is_train: Array, name: str) -> Array:
    """Bag frames by 4x4 sections."""
    return bags(shop, items, is_train, name).coarsen(FINEST).counts.toarray()


def with_colours(shop: Workshop, items: Items, is_train: Array, name: str) -> Array:
    """Bag frames by 4x4 sections with words and colours side by side, as many of either."""

    def make() -> Collection:
        training = [items.path(i) for i in np.flatnonzero(is_train).tolist()]
        colours = Colours(16 if shop.is_quick else COLOURS, step=8, random_state=0).fit(training)
        return Collection.from_images(items, [colours], FINEST)

    chosen = np.packbits(is_train).tobytes().hex()
    tints = shop.collection(f"tower, colours, {name}", {"train": chosen, "colours": COLOURS}, make)
    words = in_sections(shop, items, is_train, name)
    both = [each.reshape(len(items), FINEST[0] * FINEST[1], -1) for each in (words, tints.counts.toarray())]
    both[1] *= both[0].sum(axis=(1, 2), keepdims=True) / both[1].sum(axis=(1, 2), keepdims=True)
    return np.concatenate(both, axis=2).reshape(len(items), -1)


def position(items: Items) -> Array:
    """Tell how far along its clip each frame is, from 0 to below 1."""
    sequence = items["sequence"].astype(str)
    where = np.zeros(len(sequence))
    for name in np.unique(sequence):
        rows = np.flatnonzero(sequence == name)
        where[rows[np.argsort(items["time"][rows], kind="stable")]] = np.arange(len(rows)) / len(rows)
    return where


def folds(items: Items, n: int = 3) -> list[tuple[Array, Array]]:
    """Cut every clip into runs, one to be tried in each fold: frames are not tried beside their neighbours in time."""
    run = (position(items) * n).astype(int)
    return [(np.flatnonzero(run != fold), np.flatnonzero(run == fold)) for fold in range(n)]
