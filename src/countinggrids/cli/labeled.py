"""Labeled collections: training items, test items and their labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import countinggrids
from countinggrids.cli import common

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection


def train_and_test(path: Path, test: Path | None, sections: str | None) -> "tuple[Collection, Collection]":
    """Read training and test items: two files, or the splits of one."""
    both = countinggrids.Collection.load(path)
    if test is not None:
        held_out = countinggrids.Collection.load(test)
        train = both.take(both.items["split"] != "test") if "split" in both.items else both
        if train.fingerprint != held_out.fingerprint or train.sections != held_out.sections:
            raise ValueError(f"--test={test} must have the features and sections of {path}; bag it with --codebook.")
    elif "split" in both.items and {"train", "test"} <= set(both.items["split"].tolist()):
        train, held_out = (both.take(both.items["split"] == name) for name in ("train", "test"))
    else:
        raise ValueError(f"{path} must have items with split train and test; use --test for a second collection.")
    if sections is not None:
        coarse = common.shape(sections, "sections")
        train, held_out = train.coarsen(coarse), held_out.coarsen(coarse)
    return train, held_out


def labels_of(collection: "Collection") -> Any:
    """Return the label of each item, or raise."""
    labels = labels_if_any(collection)
    if labels is None:
        raise ValueError("the items must have a column label; bag folders named by class, or use --label.")
    return labels


def labels_if_any(collection: "Collection") -> Any:
    """Return the label of each item, or None if no item has one; raise if only some have."""
    if "label" not in collection.items or not any(collection.items["label"]):
        return None
    labels = collection.items["label"].astype(str)
    if not all(labels):
        n = sum(not label for label in labels)
        raise ValueError(f"{n} of {len(labels)} items have no label; label them or leave them out.")
    return labels


def truth_of(held_out: "Collection", known: Any) -> Any:
    """Return the labels of the test items, or None; raise if training items lack one of them."""
    labels = labels_if_any(held_out)
    unseen = [] if labels is None else sorted(set(labels.tolist()) - set(known.tolist()))
    if unseen:
        raise ValueError(f"test items have labels that no training item has: {', '.join(unseen)}; leave them out.")
    return labels
