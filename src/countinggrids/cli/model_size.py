"""How large the file of a model becomes, and what makes it smaller: `fit --max-words` and `--compact`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import countinggrids
from countinggrids.cli import common

if TYPE_CHECKING:
    from countinggrids.data.collection import Collection

LARGE = 50 * 2**20
"""Bytes of a model from which its size is logged before it is fitted."""


def check_words(max_words: int | None, collection_file: Path | None, scheduler: str | None, force: bool) -> None:
    """Raise, before any work, about options for fewer words that do not belong together."""
    if max_words is None:
        if collection_file is not None:
            raise ValueError(f"--collection={collection_file} keeps fewer words; use it with --max-words.")
        return
    if collection_file is None:
        raise ValueError(
            f"--max-words={max_words} needs --collection FILE, for the bags of these words: commands that take a model "
            "and a collection need it."
        )
    if scheduler is not None:
        raise ValueError(
            f"--max-words={max_words} must not be used with --scheduler; bag the texts with `bag text --max-words`."
        )
    common.check_output(collection_file, force)


def frequent(X: Any, max_words: int) -> "Collection":
    """Return the bags of the most frequent words, and log how much they are."""
    collection = countinggrids.Collection.of(X)
    if collection.vocabulary.kind != "words":
        raise ValueError(f"--max-words={max_words} needs words, and these features are {collection.vocabulary.kind}.")
    kept = collection.take_frequent(max_words)
    fraction = float(kept.counts.sum()) / max(1.0, float(collection.counts.sum()))
    n_empty = int((kept.counts.sum(axis=1) == 0).sum())
    common.log(
        f"{len(kept.vocabulary)} of {len(collection.vocabulary)} words kept, {fraction:.1%} of the tokens; "
        f"{n_empty} of {len(kept)} items have none of them"
    )
    return kept


def log_size(X: Any, model: Any, is_compact: bool) -> None:
    """Log the size of the file of a model that is to be fitted, if it is large, and what makes it smaller."""
    geometry = model._geometry()
    is_collection = isinstance(X, countinggrids.Collection)
    n_features = len(X.vocabulary) if is_collection else X.shape[1] // geometry.n_column_sections
    n_bytes = geometry.n_cells * geometry.groups * n_features * (1 if is_compact else 4)
    if n_bytes < LARGE:
        return
    advice = "--max-words" if is_compact else "--max-words or --compact"
    common.log(f"the file of the model will have about {n_bytes / 2**20:.0f} MB; use {advice} for a smaller one")
