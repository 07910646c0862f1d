"""Object labels as features: LabelMe's polygons, and images whose pixels are labels."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.features import pictures
from countinggrids.features.maps import FeatureMap
from countinggrids.features.stream import BadItemError, Stream, Verbose
from countinggrids.features.transformer import ImageTransformer, document
from countinggrids.features.vocabulary import Vocabulary

UNLABELLED = "unlabelled"


@document
class LabelMaps(ImageTransformer):
    """Gives the label at regular places of annotated images.

    Annotations are LabelMe's XML files, label images (whose grey level or palette index is the label), or integer
    arrays. Labels below the `n_labels` most frequent, and what nobody annotated, become "unlabelled", feature 0.

    Parameters
    ----------
    n_labels : how many labels to keep, the most frequent by area; None keeps all
    step : pixels from one place to the next
    {options}

    Attributes
    ----------
    names_ : the labels; the first is "unlabelled"

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import LabelMaps
    >>> annotation = np.array([[7, 7, 9], [7, 9, 9]])
    >>> labels = LabelMaps(step=1).fit([annotation])
    >>> labels.names_
    ['unlabelled', '7', '9']
    >>> [np.asarray(feature_map).tolist() for feature_map in labels.transform([annotation])]
    [[[1, 1, 2], [1, 2, 2]]]
    """

    def __init__(
        self,
        n_labels: int | None = None,
        step: int = 8,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: Verbose = 0,
    ):
        self.n_labels = n_labels
        self.step = step
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose

    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Find the labels there are."""
        total: Counter[str] = Counter()
        for names, places, _ in self._pixels(images):
            counts = np.bincount(places.ravel(), minlength=len(names))
            total.update({name: int(n) for name, n in zip(names, counts, strict=True) if n})
        total.pop(UNLABELLED, None)
        frequent = sorted(total, key=lambda name: (-total[name], name))[: self.n_labels]
        self.names_ = [UNLABELLED, *frequent]
        return self

    def transform(self, images: Iterable[Any]) -> Stream:
        """Give the map of labels of every annotation, one at a time."""
        check_is_fitted(self)
        return super().transform(images)

    @property
    def vocabulary_(self) -> Vocabulary:
        return Vocabulary("labels", tuple(self.names_))

    def _pixels(self, images: Iterable[Any]) -> Stream:
        self._check_options()

        def read(source: Any) -> Any:
            return read_labels(source, self.step)

        return Stream(images, read, self.n_jobs, self.on_error, self.verbose)

    def _map(self, annotation: "Annotation") -> FeatureMap:
        names, places, size = annotation
        known = {name: index for index, name in enumerate(self.names_)}
        relabel = np.array([known.get(name, 0) for name in names], dtype=np.int32)
        origin = tuple(_first(n, self.step) for n in size)
        return FeatureMap(relabel[places], origin, self.step, 1, size)


Annotation = tuple[list[str], NDArray[np.int64], tuple[int, int]]


def read_labels(source: Any, step: int) -> Annotation:
    """Read an annotation: names, which of them lies at each place, and the size of the image."""
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == ".xml":
        return _read_xml(Path(source), step)
    is_path = isinstance(source, str | os.PathLike)
    pixels = pictures.read_raw(source).astype(np.int64) if is_path else np.asarray(source)
    if pixels.ndim != 2 or pixels.dtype.kind not in "iu" or 0 in pixels.shape:
        raise BadItemError(
            f"a label image is {pixels.dtype} of shape {pixels.shape}; wanted integers (rows, columns); check its axes"
        )
    distinct, which = np.unique(pixels, return_inverse=True)
    rows, columns = (slice(_first(n, step), None, step) for n in pixels.shape)
    places = which.reshape(pixels.shape)[rows, columns]
    return [str(value) for value in distinct], places, pixels.shape


def _first(length: int, step: int) -> int:
    """Put the first place so that places lie in the middle of the image."""
    return (length - 1) % step // 2


def _read_xml(path: Path, step: int) -> Annotation:
    """Draw LabelMe's polygons, large ones first, so that small things lie on top of what they stand before."""
    from PIL import Image, ImageDraw

    try:
        root = _parsed(path)
        height, width = (int(float(root.findtext(f"imagesize/{side}") or 0)) for side in ("nrows", "ncols"))
        polygons = [found for found in map(_polygon, root.findall("object")) if found]
        if not polygons and not height * width:
            raise ValueError("it has neither objects nor a size")
    except (ElementTree.ParseError, OSError, ValueError, LookupError, ArithmeticError) as error:
        raise BadItemError(f"{path} cannot be read ({error}); wanted an annotation as LabelMe writes it") from error
    if not height or not width:
        width, height = (int(n) + 1 for n in np.max([corner for _, points in polygons for corner in points], axis=0))
    if height * width > pictures.MAX_PIXELS or height < 1 or width < 1:
        raise BadItemError(
            f"{path} tells of {width}x{height} pixels; wanted 1 to {pictures.MAX_PIXELS}; check its <imagesize>"
        )
    names = [UNLABELLED, *sorted({name for name, _ in polygons})]
    canvas = Image.new("I", (width, height), 0)
    draw = ImageDraw.Draw(canvas)
    for name, points in sorted(polygons, key=lambda polygon: -_area(polygon[1])):
        draw.polygon(points, fill=names.index(name))
    places = np.asarray(canvas)[_first(height, step) :: step, _first(width, step) :: step]
    return names, places.astype(np.int64), (height, width)


def _parsed(path: Path) -> ElementTree.Element:
    """Parse XML; a document type is refused, for LabelMe has none and entities can blow up."""
    content = path.read_bytes()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError("it has a document type")
    return ElementTree.fromstring(content)


def _polygon(element: ElementTree.Element) -> tuple[str, list[tuple[float, float]]] | None:
    """Read one object: its name and its corners; None if it was deleted or has no area."""
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
