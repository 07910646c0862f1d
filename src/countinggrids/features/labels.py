"""Object labels as features: polygons of LabelMe, and label images."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.features import image_files
from countinggrids.features.limits import check_pixels
from countinggrids.features.maps import FeatureMap
from countinggrids.features.saving import check_texts
from countinggrids.features.stream import BadItemError, Progress, Stream
from countinggrids.features.transformer import ImageTransformer, document
from countinggrids.features.vocabulary import Vocabulary

UNLABELED = "unlabeled"


@document
class LabelMaps(ImageTransformer):
    """Labels at regular places of annotated images.

    Annotations are XML files of LabelMe, label images (whose gray level or palette index is the label), or integer
    arrays. Labels other than the `n_labels` most frequent ones, and places without annotation, become "unlabeled",
    feature 0.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels to keep, the most frequent by area; None keeps all.
    step : int, default=8
        Pixels from one place to the next.
    {options}

    Attributes
    ----------
    names_ : list of str
        The labels; the first is "unlabeled".
    settings_ : namespace
        `step` when it was fitted, which `transform` uses.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import LabelMaps
    >>> annotation = np.array([[7, 7, 9], [7, 9, 9]])
    >>> labels = LabelMaps(step=1).fit([annotation])
    >>> labels.names_
    ['unlabeled', '7', '9']
    >>> [np.asarray(feature_map).tolist() for feature_map in labels.transform([annotation])]
    [[[1, 1, 2], [1, 2, 2]]]
    """

    _kept = ("step",)

    def __init__(
        self,
        n_labels: int | None = None,
        step: int = 8,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.n_labels = n_labels
        self.step = step
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose
        self.callback = callback

    @whole_or_nothing
    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Learn the labels.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns)
            Annotations.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted extractor.
        """
        self.settings_ = settings_of(self, *self._kept)
        total: Counter[str] = Counter()
        for names, places, _ in self._pixels(images):
            counts = np.bincount(places.ravel(), minlength=len(names))
            total.update({name: int(n) for name, n in zip(names, counts, strict=True) if n})
        total.pop(UNLABELED, None)
        frequent = sorted(total, key=lambda name: (-total[name], name))[: self.n_labels]
        self.names_ = [UNLABELED, *frequent]
        return self

    def transform(self, images: Iterable[Any]) -> Stream:
        """Compute the map of labels of every annotation.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns)
            Annotations.

        Returns
        -------
        maps : Stream of FeatureMap
            Maps of labels, computed while they are iterated.
        """
        check_is_fitted(self)
        return super().transform(images)

    @property
    def vocabulary_(self) -> Vocabulary:
        """The labels as features."""
        return Vocabulary("labels", tuple(self.names_))

    def _restored(self) -> None:
        super()._restored()
        check_texts(self, "names_")
        if self.names_[:1] != [UNLABELED]:
            raise ValueError(f"names_ begin with {self.names_[:1]}")

    def _pixels(self, images: Iterable[Any]) -> Stream:
        self._check_options()

        def read(source: Any) -> Any:
            return read_labels(source, self.settings_.step)

        return self._stream(images, read)

    def _map(self, annotation: "Annotation") -> FeatureMap:
        names, places, size = annotation
        known = {name: index for index, name in enumerate(self.names_)}
        relabel = np.array([known.get(name, 0) for name in names], dtype=np.int32)
        origin = tuple(_first(n, self.settings_.step) for n in size)
        return FeatureMap(relabel[places], origin, self.settings_.step, 1, size, n_features=len(self.names_))


Annotation = tuple[list[str], NDArray[np.int64], tuple[int, int]]


def read_labels(source: Any, step: int) -> Annotation:
    """Read an annotation: names of labels, the index of the name at each place, and the size of the image."""
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == ".xml":
        return _read_xml(Path(source), step)
    is_path = isinstance(source, str | os.PathLike)
    pixels = image_files.read_raw(source) if is_path else np.asarray(source)
    if pixels.ndim != 2 or pixels.dtype.kind not in "iu" or 0 in pixels.shape:
        raise BadItemError(
            f"a label image of {pixels.dtype} and shape {pixels.shape} must be integers (rows, columns); "
            "check its axes."
        )
    distinct = np.unique(pixels)
    rows, columns = (slice(_first(n, step), None, step) for n in pixels.shape)
    places = np.searchsorted(distinct, pixels[rows, columns])
    return [str(value) for value in distinct], places, pixels.shape


def _first(length: int, step: int) -> int:
    """Return the first place, such that places are centered in the image."""
    return (length - 1) % step // 2


def _read_xml(path: Path, step: int) -> Annotation:
    """Draw the polygons of LabelMe, large ones first, so that small objects are on top."""
    from PIL import Image, ImageDraw

    try:
        root = _parsed(path)
        height, width = (int(float(root.findtext(f"imagesize/{side}") or 0)) for side in ("nrows", "ncols"))
        polygons = [found for found in map(_polygon, root.findall("object")) if found]
        if not polygons and not height * width:
            raise ValueError("it has neither objects nor a size")
    except (ElementTree.ParseError, OSError, ValueError, LookupError, ArithmeticError) as error:
        raise BadItemError(f"{path} cannot be read ({error}); expected an annotation of LabelMe.") from error
    if not height or not width:
        width, height = (int(n) + 1 for n in np.max([corner for _, points in polygons for corner in points], axis=0))
    if height < 1 or width < 1:
        raise BadItemError(f"{path} declares {width}x{height} pixels; expected at least 1x1; check its <imagesize>.")
    check_pixels(path, (width, height))
    names = [UNLABELED, *sorted({name for name, _ in polygons})]
    canvas = Image.new("I", (width, height), 0)
    draw = ImageDraw.Draw(canvas)
    for name, points in sorted(polygons, key=lambda polygon: -_area(polygon[1])):
        draw.polygon(points, fill=names.index(name))
    places = np.asarray(canvas)[_first(height, step) :: step, _first(width, step) :: step]
    return names, places.astype(np.int64), (height, width)


def _parsed(path: Path) -> ElementTree.Element:
    """Parse XML without a document type."""
    return ElementTree.fromstring(path.read_bytes(), ElementTree.XMLParser(target=_PlainBuilder()))


class _PlainBuilder(ElementTree.TreeBuilder):
    """A builder that refuses a document type in any encoding: LabelMe has none, and its entities can be bombs."""

    def doctype(self, *_: object) -> None:
        raise ValueError("it has a document type")


def _polygon(element: ElementTree.Element) -> tuple[str, list[tuple[float, float]]] | None:
    """Read the name and the corners of an object; None if it was deleted or has no area."""
    name = " ".join((element.findtext("name") or "").split()).lower()
    is_deleted = (element.findtext("deleted") or "0").strip() == "1"
    polygon = element.find("polygon")
    if not name or is_deleted or polygon is None:
        return None
    points = [(float(pt.findtext("x") or "nan"), float(pt.findtext("y") or "nan")) for pt in polygon.findall("pt")]
    if len(points) < 3 or not np.isfinite(points).all():
        return None
    return name, points


def _area(points: list[tuple[float, float]]) -> float:
    x, y = np.array(points).T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)
