"""Bags with what their features are and the items they were made from: select, sum sections, concatenate."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from countinggrids.core.geometry import Shape, as_shape
from countinggrids.data import estimator_state
from countinggrids.data.counts import coarsen
from countinggrids.data.items import Items, row_numbers
from countinggrids.features.stream import Skipped
from countinggrids.features.text import Words
from countinggrids.features.vocabulary import Vocabulary


class LabeledBags:
    """Bags of features with their vocabulary and their items; the base of `Collection`."""

    def __init__(
        self,
        counts: Any,
        vocabulary: Vocabulary,
        items: Items,
        sections: int | Sequence[int] = (1, 1),
        steps: Sequence[Any] = (),
    ):
        self._counts = counts if isinstance(counts, sp.csr_array) else sp.csr_array(counts)
        self._verify: Callable[[], None] | None = None
        self.vocabulary, self.items, self.steps = vocabulary, items, list(steps)
        self.sections: Shape = as_shape(sections, "sections")
        self.skipped: list[Skipped] = []
        self.report: dict[str, Any] = {}
        n_columns = int(np.prod(self.sections)) * len(vocabulary)
        if self._counts.shape != (len(items), n_columns):
            raise ValueError(
                f"counts of shape {self._counts.shape} must have shape ({len(items)}, {n_columns}) for {len(items)} "
                f"items, sections={self.sections} and {len(vocabulary)} features; pass parts of one collection."
            )

    @property
    def counts(self) -> sp.csr_array:
        """Counts, (n_items, n_sections * n_features); those of a file are verified when they are first used."""
        if self._verify is not None:
            self._verify()
            self._verify = None
        return self._counts

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_counts": self.counts, "_verify": None}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the features; equal for two collections only if their features mean the same."""
        names = repr((self.vocabulary.kind, self.vocabulary.names)).encode("utf-8", "surrogatepass")
        if self.steps:
            return sha256(names + "".join(map(estimator_state.digest_of, self.steps)).encode()).hexdigest()[:16]
        digest = sha256(names)
        for part in (self.vocabulary.colors, self.vocabulary.patches):
            digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        parts = "x".join(map(str, self.sections))
        contents = f"{len(self)} bags, {len(self.vocabulary)} {self.vocabulary.kind}"
        return f"<{type(self).__name__} of {contents}, sections {parts}>"

    def take(self, which: Any) -> Self:
        """Return some of the items.

        Parameters
        ----------
        which : array-like of int or bool
            Their numbers, or a mask.
        """
        rows = row_numbers(which, len(self))
        counts = self.counts[rows] if rows.size else sp.csr_array((0, self.counts.shape[1]), dtype=np.float32)
        return type(self)(counts, self.vocabulary, self.items.take(rows), self.sections, self.steps)

    def split(self, column: str = "label") -> Mapping[str, Self]:
        """Return a collection for each value of a column.

        Parameters
        ----------
        column : str, default="label"
            The column, such as label, split or sequence.
        """
        values = self.items[column]
        return {str(value): self.take(values == value) for value in sorted(set(values.tolist()))}

    def split_time(self, at: float) -> tuple[Self, Self]:
        """Return the items before a time, and those at or after it; items without a time are in neither.

        Parameters
        ----------
        at : float
            The time in seconds.
        """
        times = self.items["time"]
        return self.take(times < at), self.take(times >= at)

    def coarsen(self, sections: int | Sequence[int]) -> Self:
        """Sum neighboring sections.

        Parameters
        ----------
        sections : int or tuple of int
            Sections along each axis; they must divide those of the collection.
        """
        coarse = as_shape(sections, "sections", len(self.sections))
        if any(f % c for f, c in zip(self.sections, coarse, strict=True)):
            raise ValueError(f"sections={coarse} must divide the collection's {self.sections}; bag the items again.")
        counts = coarsen(self.counts, len(self.vocabulary), self.sections, coarse)
        return type(self)(counts, self.vocabulary, self.items, coarse, self.steps)

    def take_features(self, features: Any) -> Self:
        """Return some of the features; new images can then no longer be bagged.

        Parameters
        ----------
        features : array-like of int or bool
            Their numbers, or a mask.
        """
        kept = row_numbers(features, len(self.vocabulary))
        n_sections = int(np.prod(self.sections))
        columns = (np.arange(n_sections)[:, None] * len(self.vocabulary) + kept).ravel()
        return type(self)(self.counts[:, columns], self.vocabulary.take(kept), self.items, self.sections)

    def take_frequent(self, n_features: int) -> Self:
        """Return the most frequent features; new texts can still be bagged, with these words.

        Parameters
        ----------
        n_features : int
            How many to keep; all where there are no more. Of equally frequent ones the first are kept.
        """
        n_all = len(self.vocabulary)
        if n_features < 1:
            raise ValueError(f"n_features={n_features} must be at least 1; use for instance n_features=10_000.")
        if n_features >= n_all:
            return self
        totals = np.asarray(self.counts.sum(axis=0, dtype=np.float64)).reshape(-1, n_all).sum(axis=0)
        kept = np.sort(np.argsort(-totals, kind="stable")[:n_features])
        taken = self.take_features(kept)
        if len(self.steps) == 1 and isinstance(self.steps[0], Words):
            taken.steps = [self.steps[0].restricted(taken.vocabulary.names)]
        return taken

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Concatenate collections.

        Parameters
        ----------
        parts : sequence of Collection
            Collections with the same sections and features.
        """
        first = parts[0]
        for part in parts:
            if part.sections != first.sections or part.fingerprint != first.fingerprint:
                raise ValueError(
                    f"{part!r} and {first!r} must have the same sections and features; "
                    "bag the second with the codebook of the first."
                )
        counts = sp.vstack([part.counts for part in parts], format="csr")
        items = Items.join([part.items for part in parts])
        return cls(counts, first.vocabulary, items, first.sections, first.steps)

    def for_model(self, model: Any) -> Self:
        """Sum sections to those of a fitted model.

        Parameters
        ----------
        model : GridModel
            A fitted model of the same features.

        Raises
        ------
        ValueError
            If the model was fitted to other features.
        """
        self.check_features(model.fingerprint_)
        return self._at_sections(model.geometry_.painted)

    def for_sections(self, sections: Shape, fingerprint: str | None) -> tuple[sp.csr_array, str]:
        """Return the counts at the sections of a model, and the fingerprint of the features.

        Parameters
        ----------
        sections : tuple of int
            The sections that the model takes.
        fingerprint : str or None
            Fingerprint of the features that the model was fitted to; None accepts all.

        Returns
        -------
        counts : csr_array of shape (n_items, n_sections * n_features)
            The bags.
        fingerprint : str
            Fingerprint of the features of the collection.
        """
        self.check_features(fingerprint)
        return self._at_sections(sections).counts, self.fingerprint

    def _at_sections(self, sections: Shape) -> Self:
        # A model of one section takes bags of any number of axes.
        if tuple(sections) == self.sections:
            return self
        return self.coarsen(sections) if len(self.sections) == len(sections) or max(sections) > 1 else self

    def check_features(self, fingerprint: str | None) -> None:
        """Raise if the features are others than those of a fingerprint.

        Parameters
        ----------
        fingerprint : str or None
            The fingerprint; None accepts all features.
        """
        if fingerprint not in (None, self.fingerprint):
            raise ValueError(
                f"{self!r} must have the features of the model; bag it with the codebook of the fitted collection."
            )
