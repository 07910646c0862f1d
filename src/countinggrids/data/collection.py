"""A collection: bags, what their features are, and the items they were made from."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core.geometry import as_shape
from countinggrids.data import collection_file, container
from countinggrids.data.image_bags import bag_images
from countinggrids.data.items import Items
from countinggrids.data.labeled_bags import LabeledBags
from countinggrids.features import image_files, video
from countinggrids.features.bagger import bag
from countinggrids.features.documents import Columns, Documents
from countinggrids.features.frames import as_documents, columns_of, documents_of, plain
from countinggrids.features.text import NoWordError, Words
from countinggrids.features.text_bags import ITEM_COLUMNS, MAX_WORDS, bag_texts, every_word, words_for
from countinggrids.features.vocabulary import Vocabulary


class Collection(LabeledBags):
    """Bags of features with their vocabulary and their items.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_items, n_sections * n_features)
        Counts; column = section * n_features + feature.
    vocabulary : Vocabulary
        What the features are.
    items : Items
        One row for each bag.
    sections : int or tuple of int, default=(1, 1)
        Sections of the bags along each axis.
    steps : sequence of transformer, default=()
        The fitted extractors that made the counts; `bag` applies them to new images or texts.

    Attributes
    ----------
    counts : csr_array of shape (n_items, n_sections * n_features)
        Counts; those of a file are verified when they are first used.
    fingerprint : str
        Digest of the features; equal for two collections only if their features mean the same.
    skipped : list of Skipped
        Images that could not be used.
    report : dict
        How texts were read and counted, and what was left out; empty for images.

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

    @classmethod
    def from_images(
        cls,
        items: Items | Sequence[str | os.PathLike[str]],
        steps: Any,
        sections: int | Sequence[int] = (1, 1),
        images: Iterable[Any] | None = None,
    ) -> Self:
        """Bag images; those that are left out are listed in `skipped`.

        Parameters
        ----------
        items : Items or sequence of path-like
            One row for each image; the column `path` names the files. A sequence of paths is that column.
        steps : sequence of transformer or callable
            Fitted extractors, in order, for instance [DenseSIFT(), Codebook().fit(...)]. Those with
            on_error="skip" leave out images that cannot be read, and their items. A function of an image that returns
            descriptors, (rows, columns, channels), is an extractor too.
        sections : int or tuple of int, default=(1, 1)
            Sections of the bags.
        images : iterable of ndarray or path-like, default=None
            What to read instead of the column `path`: images, or, where the first step is a `Codebook` or `Channels`,
            arrays of descriptors of shape (rows, columns, channels), such as `Descriptors`. Crops that show the words
            are then cut from the files of the column `path`.
        """
        sections = as_shape(sections, "sections", 2)
        if not isinstance(items, Items):
            items = Items({"path": [os.fspath(path) for path in items]})
        bagged = bag_images(items, steps, sections, images)
        collection = cls(bagged.counts, bagged.steps[-1].vocabulary_, bagged.items, sections, bagged.steps)
        collection.skipped = bagged.skipped
        return collection

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[Any],
        words: Words | None = None,
        root: str | Path = "",
        keep_texts: bool = True,
        callback: Callable[[int, int | None], object] | None = None,
    ) -> Self:
        """Bag texts; those that are empty, or have no word that counts, are left out and listed in `report`.

        Parameters
        ----------
        texts : iterable of str, mapping or Document
            The texts, read once, one after another: strings (a list or a Series), dicts with the key text and perhaps
            title, link, label and time, or documents.
        words : Words, default=None
            How to count; a fitted one keeps its vocabulary. None counts every word.
        root : path-like, default=""
            The folder that the documents' paths are relative to.
        keep_texts : bool, default=True
            Whether the collection holds the texts themselves, for people to read.
        callback : callable, default=None
            Called with the number of documents done, and None for their unknown total.
        """
        words = Words() if words is None else words
        documents = texts if isinstance(texts, Documents) else as_documents(texts)
        counts, used, report = bag_texts(documents, words, keep_texts, callback)
        columns = {name: [getattr(document, name) for document in used] for name in ITEM_COLUMNS}
        known = {name: values for name, values in columns.items() if any(v == v and v != "" for v in values)}
        rows = [document.row - 1 for document in used]
        items = Items((known or {"title": columns["title"]}) | {"row": rows}, root)
        collection = cls(counts, words.vocabulary_, items, 1, [words])
        collection.report = report
        return collection

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        text: str | None = None,
        label: str | None = None,
        time: str | None = None,
        title: str | None = None,
        link: str | None = None,
        words: Words | None = None,
        callback: Callable[[int, int | None], object] | None = None,
    ) -> Self:
        """Bag the texts of a table; its other columns become columns of the items, as texts.

        Parameters
        ----------
        frame : DataFrame, Table or mapping of str to sequence
            A table of pandas, polars or Arrow, or a dict of lists.
        text : str, default=None
            Column of the texts; None takes one called text, body, content, abstract or document, or the only one.
        label, time, title, link : str, default=None
            Columns of the labels, of the times (dates in any common format, or seconds since 1970), of the titles and
            of the web addresses.
        words : Words, default=None
            How to count. None drops words of a single text and of more than half of them, and function words if the
            texts are English, and keeps at most 10,000.
        callback : callable, default=None
            Called with the number of texts done, and None.

        Returns
        -------
        collection : Collection
            The texts that have a word; the column `row` of its items is the number of their row, from 0.

        Examples
        --------
        >>> import countinggrids as cg
        >>> table = {"body": ["tea with milk", "trains and tracks"], "price": [3, 40]}
        >>> cg.Collection.from_frame(table).items["price"].tolist()
        ['3', '40']
        """
        columns = columns_of(frame)
        documents = documents_of(columns, Columns(text, title, link, label, time))
        collection = cls._of_any_words(documents, words or words_for(len(documents)), callback)
        rows = collection.items["row"].astype(int)
        others = {name: values for name, values in columns.items() if name not in (*ITEM_COLUMNS, "row", str(text))}
        kept = {name: [plain(values[row]) for row in rows] for name, values in others.items()}
        collection.items = collection.items.with_columns(**kept)
        return collection

    @classmethod
    def for_map(
        cls,
        documents: Documents,
        n_documents: int,
        max_words: int,
        callback: Callable[[int, int | None], object] | None = None,
    ) -> Self:
        """Bag documents of files with a vocabulary that suits a map.

        Parameters
        ----------
        documents : Documents
            Documents of files.
        n_documents : int
            Their number.
        max_words : int
            Largest number of words.
        callback : callable, default=None
            Called with the number of documents done, and None.

        Returns
        -------
        collection : Collection
            The texts that have a word.
        """
        return cls._of_any_words(documents, words_for(n_documents, max_words), callback, documents.root)

    @classmethod
    def _of_any_words(cls, documents: Iterable[Any], words: Words, callback: Any, root: str = "") -> Self:
        """Bag texts; if words that are neither rare nor frequent are missing altogether, count every word."""
        try:
            return cls.from_texts(documents, words, root, callback=callback)
        except NoWordError:
            return cls.from_texts(documents, every_word(words.max_features or MAX_WORDS), root, callback=callback)

    @classmethod
    def from_counts(cls, counts: Any, words: Sequence[str] | None = None, **columns: Sequence[Any]) -> Self:
        """Return a collection of plain counts.

        Parameters
        ----------
        counts : array-like or sparse matrix of shape (n_items, n_features)
            Counts.
        words : sequence of str, default=None
            Names of the features; None numbers them.
        **columns : sequence
            Columns of the items, such as title or label.

        Returns
        -------
        collection : Collection
            The bags with their items.
        """
        shape = np.shape(counts) if not sp.issparse(counts) else counts.shape
        if len(shape) != 2:
            raise ValueError(f"counts of shape {shape} must have two axes, bags and features; pass such an array.")
        names = [f"feature {i}" for i in range(shape[1])] if words is None else [str(word) for word in words]
        if len(names) != shape[1]:
            raise ValueError(
                f"words has {len(names)} names for {shape[1]} columns; pass one for each column of counts."
            )
        items = Items(columns or {"title": [f"bag {i}" for i in range(shape[0])]})
        return cls(sp.csr_array(counts, dtype=np.float32), Vocabulary("words", tuple(names)), items)

    @classmethod
    def of(cls, given: Any, words: Sequence[str] | None = None, model: Any = None) -> "Collection":
        """Return a collection as it is, and plain counts as a collection.

        Parameters
        ----------
        given : Collection, array-like or sparse matrix of shape (n_items, n_features)
            A collection, or counts.
        words : sequence of str, default=None
            Names of the features of plain counts; None numbers them.
        model : estimator, default=None
            A fitted model, whose features those of plain counts are taken to be.

        Returns
        -------
        collection : Collection
            The collection.

        Raises
        ------
        TypeError
            If it is a table of texts, or the texts themselves.
        """
        if isinstance(given, Collection):
            return given
        if hasattr(given, "columns") or hasattr(given, "column_names") or not _are_numbers(given):
            raise TypeError(
                f"a {type(given).__name__} must be a Collection or counts; use Collection.from_frame for a table, and "
                "Collection.from_texts for texts."
            )
        found = cls.from_counts(given, words)
        if model is not None and model.fingerprint_ is not None:
            found.fingerprint = model.fingerprint_
        return found

    def bag(self, sources: Iterable[Any]) -> sp.csr_array:
        """Bag new images or texts with the extractors of the collection.

        Parameters
        ----------
        sources : iterable of ndarray, path-like or str
            Images or texts.

        Returns
        -------
        counts : csr_array of shape (n_sources, n_sections * n_features)
            Their bags.
        """
        if not self.steps:
            raise ValueError(f"{self!r} has no extractors; use a collection made from images or texts.")
        for step in self.steps:
            sources = step.transform(sources)
        if isinstance(self.steps[-1], Words):
            return sources
        return bag(sources, self.sections, len(self.vocabulary))

    def thumbnail(self, index: int, side: int = 64) -> NDArray[np.uint8]:
        """Read the image of an item, downsampled.

        Parameters
        ----------
        index : int
            Number of the item.
        side : int, default=64
            Pixels of the longer side.

        Returns
        -------
        image : ndarray of shape (n_rows, n_columns, 3)
            The image.

        Raises
        ------
        ValueError
            If the items have no files, or the file lies outside the collection's folder or is no image.
        """
        if "path" not in self.items:
            raise ValueError(f"the items of {self!r} have no files; use a collection of images for thumbnails.")
        path = self.items.file(index)
        if not video.is_video_path(path):
            return image_files.read_small(path, side)
        seconds = self.items["time"][index] if "time" in self.items else np.nan
        return image_files.read_small(video.frame_at(path, seconds), side)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the collection into one file; an existing file is replaced whole or not at all.

        Parameters
        ----------
        path : path-like
            Where to write.
        """
        contents = collection_file.Contents(
            self.counts, self.vocabulary, self.items, self.sections, self.steps, self.report
        )
        collection_file.write(path, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str], root: str | Path | None = None) -> Self:
        """Read a collection; its counts and texts stay in the file, and are verified when they are first used.

        Parameters
        ----------
        path : path-like
            A file that `save` wrote.
        root : path-like, default=None
            Folder of the items' files, if they have moved.

        Raises
        ------
        ValueError
            If the file is damaged, not one of ours, of another version, or inconsistent.
        """
        contents = collection_file.read(path, root)
        with container.fitting_together(path):
            collection = cls(contents.counts, contents.vocabulary, contents.items, contents.sections, contents.steps)
        collection.report, collection._verify = contents.report, contents.verify
        return collection


def _are_numbers(given: Any) -> bool:
    """Return whether something is an array of numbers."""
    return sp.issparse(given) or np.asarray(given).dtype.kind in "biuf"
