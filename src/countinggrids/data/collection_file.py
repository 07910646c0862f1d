"""The file of a collection: what is in it, how it is written, and how it is read."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countinggrids.core.geometry import Shape
from countinggrids.data import container, estimator_state, sparse_files
from countinggrids.data.items import Items
from countinggrids.features.vocabulary import Vocabulary

FORMAT, VERSION = "collection", 3
LARGE_COUNTS = ("counts.data", "counts.indices")
"""Arrays that are verified when the counts are first used."""
STEP = "step."


@dataclass(frozen=True)
class Contents:
    """What the file of a collection holds.

    Attributes
    ----------
    counts : csr_array of shape (n_items, n_sections * n_features)
        The bags; mapped into memory if they were read.
    vocabulary : Vocabulary
        What the features are.
    items : Items
        One row for each bag.
    sections : tuple of int
        Sections of the bags along each axis.
    steps : sequence of transformer
        The fitted extractors.
    report : dict
        How texts were read.
    verify : callable or None
        Raises if counts that were read are damaged; to be called before they are used.
    """

    counts: sp.csr_array
    vocabulary: Vocabulary
    items: Items
    sections: Shape
    steps: Sequence[Any]
    report: dict[str, Any] = field(default_factory=dict)
    verify: Callable[[], None] | None = None


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a collection into one file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to write.
    contents : Contents
        The collection.
    """
    steps, learned = estimator_state.to_state(contents.steps)
    arrays = {f"{STEP}{name}": array for name, array in learned.items()}
    arrays |= {f"counts.{part}": getattr(contents.counts, part) for part in ("data", "indices", "indptr")}
    arrays |= dict(_vocabulary_arrays(contents.vocabulary)) | dict(_item_arrays(contents.items))
    root = contents.items.root
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "shape": contents.counts.shape,
        "sections": contents.sections,
        "kind": contents.vocabulary.kind,
        "columns": list(contents.items.columns),
        "root": str(root.absolute()) if root != Path("") else "",
        "steps": steps,
        "report": contents.report,
    }
    container.write(path, facts, arrays)


def read(path: str | os.PathLike[str], root: str | Path | None = None) -> Contents:
    """Read a collection; its counts and texts stay in the file, and are verified when they are first used.

    Parameters
    ----------
    path : path-like
        A file that `write` made.
    root : path-like, default=None
        Folder of the items' files; None takes the one that the file names.

    Returns
    -------
    contents : Contents
        The collection.

    Raises
    ------
    ValueError
        If the file is damaged, not one of ours, of another version, or inconsistent.
    """
    facts, arrays = container.read(path, FORMAT, VERSION)
    arrays.verify(*(name for name in arrays if not _is_large(name)))
    with container.fitting_together(path):
        counts = mapped_counts(facts, arrays)
        return Contents(
            counts,
            _vocabulary(facts, arrays),
            _items(facts, arrays, root),
            facts["sections"],
            estimator_state.from_state(facts["steps"], _learned(arrays)),
            dict(facts.get("report", {})),
            partial(_check_counts, counts, arrays),
        )


def mapped_counts(facts: dict[str, Any], arrays: container.StoredArrays) -> sp.csr_array:
    """Return the counts of a file, mapped into memory; their columns are checked where they are read.

    Parameters
    ----------
    facts : dict
        What the file says about itself.
    arrays : StoredArrays
        The arrays of the file.

    Returns
    -------
    counts : csr_array
        The counts, not verified.
    """
    data, indices = (arrays.mapped[name] for name in LARGE_COUNTS)
    indptr = arrays["counts.indptr"]
    sparse_files.check_parts(facts["shape"], data, indices, indptr)
    # SciPy would convert the indices, and so copy all of them into memory, to the type of indptr.
    if indptr[-1] <= np.iinfo(indices.dtype).max:
        indptr = indptr.astype(indices.dtype, copy=False)
    return sp.csr_array((data, indices, indptr), shape=tuple(facts["shape"]), copy=False)


def _is_large(name: str) -> bool:
    """Return whether an array may be so large that it is verified only when it is used."""
    return name in LARGE_COUNTS or (name.startswith("item.") and name.endswith(".bytes"))


def _check_counts(counts: sp.csr_array, arrays: container.StoredArrays) -> None:
    """Raise if counts are not those that were saved, or not a matrix."""
    arrays.verify(*LARGE_COUNTS)
    try:
        counts.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"the counts in {arrays.path} are damaged ({error}); make the collection again.") from error


def _vocabulary_arrays(vocabulary: Vocabulary) -> Iterator[tuple[str, Any]]:
    yield from _text_arrays("vocabulary.names", container.Texts.pack(vocabulary.names))
    for part in ("colors", "patches"):
        if getattr(vocabulary, part) is not None:
            yield f"vocabulary.{part}", getattr(vocabulary, part)


def _vocabulary(facts: dict[str, Any], arrays: container.StoredArrays) -> Vocabulary:
    names = tuple(_texts("vocabulary.names", arrays))
    parts = (arrays.get(f"vocabulary.{part}") for part in ("colors", "patches"))
    return Vocabulary(str(facts["kind"]), names, *parts)


def _item_arrays(items: Items) -> Iterator[tuple[str, Any]]:
    for name, column in items.columns.items():
        if isinstance(column, container.Texts):
            yield from _text_arrays(f"item.{name}", column)
        else:
            yield f"item.{name}", column


def _items(facts: dict[str, Any], arrays: container.StoredArrays, root: str | Path | None) -> Items:
    def column(name: str) -> Any:
        numbers = arrays.get(f"item.{name}")
        return _texts(f"item.{name}", arrays) if numbers is None else numbers

    columns = {name: column(name) for name in facts["columns"]}
    return Items(columns, facts["root"] if root is None else root, is_root_trusted=root is not None)


def _text_arrays(name: str, texts: container.Texts) -> Iterator[tuple[str, Any]]:
    yield f"{name}.bytes", texts.packed
    yield f"{name}.ends", texts.ends


def _texts(name: str, arrays: container.StoredArrays) -> container.Texts:
    packed = f"{name}.bytes"
    return container.Texts(arrays.mapped[packed], arrays[f"{name}.ends"], partial(arrays.verify, packed))


def _learned(arrays: container.StoredArrays) -> dict[str, Any]:
    """Return what the extractors had learned, by the names that `estimator_state` gives."""
    return {name.removeprefix(STEP): arrays[name] for name in arrays if name.startswith(STEP)}
