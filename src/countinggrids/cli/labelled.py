"""Collections with labels: what to learn from, what to try on, and what is true of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import countinggrids
from countinggrids.cli import common

if TYPE_CHECKING:
    from countinggrids.collection import Collection


def train_and_test(path: Path, test: Path | None, sections: str | None) -> "tuple[Collection, Collection]":
    """Read what to learn from and what to try on: two files, or the splits of one."""
    both = countinggrids.Collection.load(path)
    if test is not None:
        tried = countinggrids.Collection.load(test)
        train = both.take(both.items["split"] != "test") if "split" in both.items else both
        if train.fingerprint != tried.fingerprint or train.sections != tried.sections:
            raise ValueError(f"{test} has other features or sections than {path}; wanted the same; bag with --codebook")
    elif "split" in both.items and {"train", "test"} <= set(both.items["split"].tolist()):
        train, tried = (both.take(both.items["split"] == name) for name in ("train", "test"))
    else:
        raise ValueError(f"{path} has no items marked train and test; wanted both; give a second collection as --test")
    if sections is not None:
        coarse = common.shape(sections, "sections")
        train, tried = train.coarsen(coarse), tried.coarsen(coarse)
    return train, tried


def labels_of(collection: "Collection") -> Any:
    """Give the label of every item, or raise."""
    labels = labels_if_any(collection)
    if labels is None:
        raise ValueError("the items have no labels; wanted a column label; bag folders named by class, or give --label")
    return labels


def labels_if_any(collection: "Collection") -> Any:
    """Give the label of every item, or None where no item has one; raise where only some have."""
    if "label" not in collection.items or not any(collection.items["label"]):
        return None
    labels = collection.items["label"].astype(str)
    if not all(labels):
        n = sum(not label for label in labels)
        raise ValueError(f"{n} of {len(labels)} items have no label; wanted one for each; label them or leave them out")
    return labels


def truth_of(tried: "Collection", known: Any) -> Any:
    """Give the labels of the test items, if they have any; all must be among those that were learnt."""
    labels = labels_if_any(tried)
    unseen = [] if labels is None else sorted(set(labels.tolist()) - set(known.tolist()))
    if unseen:
        raise ValueError(f"test items have labels that no training item has: {', '.join(unseen)}; leave them out")
    return labels
