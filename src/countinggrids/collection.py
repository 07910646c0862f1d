"""A collection: bags, what their features are, and the items they were made from. It travels as one file."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids import bags, files, sources
from countinggrids.features import pictures, state, video
from countinggrids.features.stream import Skipped
from countinggrids.features.text import Document, Words
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.geometry import Shape, as_shape
from countinggrids.items import Items, chosen

FORMAT, VERSION = sources.COLLECTION, sources.COLLECTION_VERSION


class Collection:
    """Bags of features with their vocabulary and their items.

    Parameters
    ----------
    counts : (items, sections * features) sparse counts: column = section * features + feature
    vocabulary : what the features are
    items : the table of items, one row per bag
    sections : parts that bags are cut into, along each axis
    steps : the fitted extractors that made the counts, so that new images or texts can be bagged alike

    Attributes
    ----------
    skipped : items that could not be used when the collection was made

    Examples
    --------
    >>> import countinggrids as cg
    >>> from countinggrids.features.text import Document
    >>> texts = [Document("tea for two", label="tea"), Document("two cups", label="cups")]
    >>> collection = cg.Collection.from_texts(texts)
    >>> len(collection), collection.vocabulary.names
    (2, ('cups', 'for', 'tea', 'two'))
    >>> collection.split("label")["tea"].counts.toarray()
    array([[0., 1., 1., 1.]], dtype=float32)
    """

    def __init__(
        self,
        counts: Any,
        vocabulary: Vocabulary,
        items: Items,
        sections: int | Sequence[int] = (1, 1),
        steps: Sequence[Any] = (),
    ):
        self._counts = counts if isinstance(counts, sp.csr_array) else sp.csr_array(counts)
        self._is_trusted = True
        self.vocabulary, self.items, self.steps = vocabulary, items, list(steps)
        self.sections: Shape = as_shape(sections, "sections")
        self.skipped: list[Skipped] = []
        n_columns = int(np.prod(self.sections)) * len(vocabulary)
        if self._counts.shape != (len(items), n_columns):
            raise ValueError(
                f"counts have shape {self._counts.shape}; wanted ({len(items)}, {n_columns}) for {len(items)} items, "
                f"sections {self.sections} and {len(vocabulary)} features; check what belongs together"
            )

    @property
    def counts(self) -> sp.csr_array:
        """(items, sections * features) sparse counts; those from a file are checked when they are first asked for."""
        if not self._is_trusted:
            try:
                self._counts.check_format(full_check=True)
            except ValueError as error:
                raise ValueError(f"the counts in the file are damaged ({error}); make the collection again") from error
            self._is_trusted = True
        return self._counts

    @cached_property
    def fingerprint(self) -> str:
        """A word that two collections share only if their features mean the same."""
        _, arrays = state.to_state(self.steps)
        parts = [self.vocabulary.colours, self.vocabulary.patches, *(arrays[name] for name in sorted(arrays))]
        digest = sha256(repr((self.vocabulary.kind, self.vocabulary.names)).encode("utf-8", "surrogatepass"))
        for part in parts:
            digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        parts = "x".join(map(str, self.sections))
        return f"<Collection of {len(self)} bags, {len(self.vocabulary)} {self.vocabulary.kind}, sections {parts}>"

    @classmethod
    def from_images(
        cls,
        items: Items,
        steps: Any,
        sections: int | Sequence[int] = (1, 1),
        images: Iterable[Any] | None = None,
    ) -> "Collection":
        """Bag images.

        Parameters
        ----------
        items : the table, whose column `path` says where the images are
        steps : fitted extractors, one after the other; for instance [DenseSIFT(), Codebook().fit(...)]. Those with
            on_error="skip" leave out broken images and their items
        sections : parts that bags are cut into
        images : arrays or paths to use instead of the column `path`
        """
        sections = as_shape(sections, "sections", 2)
        stream: Any = images if images is not None else [items.path(i) for i in range(len(items))]
        if hasattr(stream, "__len__") and len(stream) != len(items):
            raise ValueError(f"got {len(stream)} images for {len(items)} items; wanted one for each")
        for step in steps:
            stream = step.transform(stream)
        vocabulary = steps[-1].vocabulary_
        sizes: dict[int, Shape] = {}

        def maps() -> Iterator[Any]:
            for index, feature_map in stream.enumerate():
                sizes[index] = (*feature_map.shape, *feature_map.size)
                yield feature_map

        found = maps()
        first = next(iter(found), None)
        if first is None:
            raise ValueError(f"none of {len(items)} images could be read{_first_of(stream.skipped)}; check them")
        counts = bags.bag(chain([first], found), sections, len(vocabulary))
        used = items.take(list(sizes))
        rows, columns, height, width = np.array(list(sizes.values())).T
        used = used.with_columns(rows=rows, columns=columns, height=height, width=width)
        collection = cls(counts, vocabulary, used, sections, steps)
        collection.skipped = stream.skipped
        return collection

    @classmethod
    def from_texts(
        cls,
        documents: Iterable[Document],
        words: Words | None = None,
        root: str | Path = "",
        keep_texts: bool = True,
        watch: Callable[[int], None] | None = None,
    ) -> "Collection":
        """Bag texts.

        Parameters
        ----------
        documents : the documents; they are read once, one after another
        words : how to count; a fitted one keeps its vocabulary. None counts every word
        root : the folder that the documents' paths are relative to
        keep_texts : whether the collection holds the texts themselves, for people to read
        watch : called with the number of documents done
        """
        words = Words() if words is None else words
        rows: list[Document] = []

        def texts() -> Iterator[str]:
            for document in documents:
                rows.append(document if keep_texts else document._replace(text=""))
                if watch is not None:
                    watch(len(rows))
                yield document.text

        all_texts = texts()
        first = next(iter(all_texts), None)
        if first is None:
            raise ValueError("there are no documents; wanted at least one; check the files")
        given = chain([first], all_texts)
        counts = words.transform(given) if hasattr(words, "names_") else words.fit_transform(given)
        columns = {name: [getattr(row, name) for row in rows] for name in Document._fields}
        known = {name: values for name, values in columns.items() if any(v == v and v != "" for v in values)}
        return cls(counts, words.vocabulary_, Items(known or {"title": columns["title"]}, root), 1, [words])

    def bag(self, sources: Iterable[Any]) -> sp.csr_array:
        """Bag new images, or new texts, as those of the collection were."""
        if not self.steps:
            raise ValueError("the collection does not know its extractors; wanted one made from images or texts")
        for step in self.steps:
            sources = step.transform(sources)
        if isinstance(self.steps[-1], Words):
            return sources
        return bags.bag(sources, self.sections, len(self.vocabulary))

    def take(self, which: Any) -> "Collection":
        """Give some of the items, by their numbers or by a mask."""
        rows = chosen(which, len(self))
        counts = self.counts[rows] if rows.size else sp.csr_array((0, self.counts.shape[1]), dtype=np.float32)
        return Collection(counts, self.vocabulary, self.items.take(rows), self.sections, self.steps)

    def split(self, column: str = "label") -> "Mapping[str, Collection]":
        """Give a collection for each value of a column, such as label, split or sequence."""
        values = self.items[column]
        return {str(value): self.take(values == value) for value in sorted(set(values.tolist()))}

    def split_time(self, at: float) -> "tuple[Collection, Collection]":
        """Give what was before a time, and what was at it or after; items without a time are in neither."""
        times = self.items["time"]
        return self.take(times < at), self.take(times >= at)

    def coarsen(self, sections: int | Sequence[int]) -> "Collection":
        """Add neighbouring sections up."""
        coarse = as_shape(sections, "sections", len(self.sections))
        if any(f % c for f, c in zip(self.sections, coarse, strict=True)):
            raise ValueError(f"sections {coarse} must divide the collection's {self.sections}; bag again for others")
        counts = bags.coarsen(self.counts, len(self.vocabulary), self.sections, coarse)
        return Collection(counts, self.vocabulary, self.items, coarse, self.steps)

    def for_model(self, model: Any) -> "Collection":
        """Bring the bags to the sections that a model takes; raise if the model was learnt from other features."""
        if model.fingerprint_ not in (None, self.fingerprint):
            raise ValueError(f"{self!r} has other features than the model; wanted the same; bag with --codebook")
        finest = model._geometry().painted
        return self.coarsen(finest) if len(self.sections) == len(finest) else self

    def take_features(self, features: Any) -> "Collection":
        """Give some of the features, by their numbers or by a mask; new images can then no longer be bagged alike."""
        kept = chosen(features, len(self.vocabulary))
        n_sections = int(np.prod(self.sections))
        columns = (np.arange(n_sections)[:, None] * len(self.vocabulary) + kept).ravel()
        return Collection(self.counts[:, columns], self.vocabulary.take(kept), self.items, self.sections)

    @staticmethod
    def join(parts: "Sequence[Collection]") -> "Collection":
        """Put collections one below the other."""
        first = parts[0]
        for part in parts:
            if part.sections != first.sections or part.fingerprint != first.fingerprint:
                raise ValueError(
                    f"cannot join {part!r} and {first!r}; wanted the same sections and features; "
                    "bag the second with the codebook of the first"
                )
        counts = sp.vstack([part.counts for part in parts], format="csr")
        return Collection(
            counts, first.vocabulary, Items.join([part.items for part in parts]), first.sections, first.steps
        )

    def thumbnail(self, index: int, side: int = 64) -> NDArray[np.uint8]:
        """Read the image of an item, shrunk so that its longer side has so many pixels, (rows, columns, 3)."""
        if "path" not in self.items:
            raise ValueError("the items have no files; wanted a collection of images; texts have no thumbnails")
        path: Any = self.items.path(index)
        source = video.frame_at(path, self.items["time"][index]) if video.is_video_path(path) else path
        return pictures.read(source, is_colour=True, max_side=side)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the collection into one file; an existing file is replaced whole or not at all."""
        step_facts, arrays = state.to_state(self.steps)
        arrays = {f"step.{name}": array for name, array in arrays.items()}
        for part in ("data", "indices", "indptr"):
            arrays[f"counts.{part}"] = getattr(self.counts, part)
        for part in ("colours", "patches"):
            if getattr(self.vocabulary, part) is not None:
                arrays[f"vocabulary.{part}"] = getattr(self.vocabulary, part)
        texts = {"vocabulary.names": files.Texts.pack(self.vocabulary.names)}
        for name, column in self.items.columns.items():
            if isinstance(column, files.Texts):
                texts[f"item.{name}"] = column
            else:
                arrays[f"item.{name}"] = column
        for name, packed in texts.items():
            arrays |= {f"{name}.bytes": packed.packed, f"{name}.ends": packed.ends}
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "shape": self.counts.shape,
            "sections": self.sections,
            "kind": self.vocabulary.kind,
            "columns": list(self.items.columns),
            "root": str(self.items.root),
            "steps": step_facts,
        }
        files.write(path, facts, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], root: str | Path | None = None) -> "Collection":
        """Read a collection; its arrays stay in the file until they are touched.

        Parameters
        ----------
        path : a file that `save` wrote
        root : where the items' files are now, if they have moved

        Raises
        ------
        ValueError
            If the file is truncated, not one of ours, from a later version, or does not fit together.
        """
        facts, arrays = files.read(path, FORMAT, VERSION)
        try:
            return _rebuilt(facts, arrays, root)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError(
                f"{path} does not fit together ({error}); wanted a file that save() wrote; make it again"
            ) from error


def _first_of(skipped: Sequence[Skipped]) -> str:
    return f" (the first: {skipped[0].reason})" if skipped else ""


def _rebuilt(facts: dict[str, Any], arrays: files.Arrays, root: str | Path | None) -> Collection:
    def texts(name: str) -> files.Texts:
        return files.Texts(arrays[f"{name}.bytes"], arrays[f"{name}.ends"])

    names = facts["columns"]
    columns = {name: arrays.get(f"item.{name}", None) for name in names}
    items = Items(
        {name: texts(f"item.{name}") if column is None else column for name, column in columns.items()},
        facts["root"] if root is None else root,
    )
    vocabulary = Vocabulary(
        str(facts["kind"]),
        tuple(texts("vocabulary.names")),
        arrays.get("vocabulary.colours"),
        arrays.get("vocabulary.patches"),
    )
    counts = sources.mapped_counts(facts, arrays)
    steps = state.from_state(
        facts["steps"], {name[len("step.") :]: array for name, array in arrays.items() if name.startswith("step.")}
    )
    collection = Collection(counts, vocabulary, items, facts["sections"], steps)
    collection._is_trusted = False
    return collection
