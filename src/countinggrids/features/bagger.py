"""Bags: the features of each map, counted by section."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.core.geometry import Shape, as_shape
from countinggrids.features.maps import FeatureMap
from countinggrids.features.saving import Saveable, check_count


def bag(
    maps: Iterable[ArrayLike], sections: int | Sequence[int] | None = None, n_features: int | None = None
) -> sp.csr_array:
    """Count the features of each map, section by section.

    Parameters
    ----------
    maps : iterable of array-like of int, or of FeatureMap
        Feature maps, one for each image, of any sizes: feature labels from 0 to n_features - 1. The labels of a
        `FeatureMap` with weights count as much as these.
    sections : int or tuple of int, default=None
        Sections along each axis; None counts each map as one bag. A position belongs to the section in which it
        falls when the map is stretched over the window.
    n_features : int, default=None
        Number of features; None takes that of the maps where they know it, or the largest label plus one.

    Returns
    -------
    counts : csr_array of shape (n_maps, n_sections * n_features)
        The bags, float32.

    Examples
    --------
    >>> import numpy as np
    >>> bag([np.array([[0, 1], [2, 2]])], sections=(2, 1), n_features=3).toarray()
    array([[1., 1., 0., 0., 0., 2.]], dtype=float32)
    """
    counted: list[_Counted] = []
    parts: Shape | None = None
    for index, each in enumerate(maps):
        labels, weights = _as_labels(each, index)
        if parts is None:
            n_axes = labels.ndim - 1
            parts = (1,) * n_axes if sections is None else as_shape(sections, "sections", n_axes)
        known = each.n_features if isinstance(each, FeatureMap) else None
        counted.append(_count(labels, weights, index, parts, known if n_features is None else n_features))
    if parts is None:
        raise ValueError("maps=[] must hold at least one feature map; pass a list of integer arrays.")
    if n_features is None:
        n_features = max(each.n_features for each in counted)
    return _joined(counted, parts, n_features)


class Bagger(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Count the features of maps by section: the last step from images to bags in a pipeline.

    Parameters
    ----------
    sections : int or tuple of int, default=1
        Sections along each axis of a map.
    n_features : int, default=None
        Number of features; None takes that of the extractor before it, or the largest label of the maps that are
        fitted, plus one.

    Attributes
    ----------
    sections_ : tuple of int
        Sections along each axis.
    n_features_ : int
        Number of features of a section.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from sklearn.pipeline import make_pipeline
    >>> from countinggrids.features import Bagger, Codebook, DenseSIFT
    >>> photos = [np.random.default_rng(i).random((64, 64)) for i in range(5)]
    >>> grid = cg.CountingGrid((4, 4), (2, 2), random_state=0)
    >>> model = make_pipeline(DenseSIFT(), Codebook(10, random_state=0), Bagger(), grid).fit(photos)
    >>> model.transform(photos).shape
    (5, 16)
    """

    def __init__(self, sections: int | Sequence[int] = 1, n_features: int | None = None):
        self.sections = sections
        self.n_features = n_features

    @whole_or_nothing
    def fit(self, maps: Iterable[Any], y: object = None) -> Self:
        """Learn the number of features.

        Parameters
        ----------
        maps : iterable of FeatureMap or array-like of int
            Feature maps.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self.fit_transform(maps)
        return self

    @whole_or_nothing
    def fit_transform(self, maps: Iterable[Any], y: object = None, **options: Any) -> sp.csr_array:
        """Learn the number of features, and count those of the same maps.

        Parameters
        ----------
        maps : iterable of FeatureMap or array-like of int
            Feature maps; they are read once.
        y : None
            Ignored.
        **options : dict
            Ignored.

        Returns
        -------
        counts : csr_array of shape (n_maps, n_sections * n_features)
            The bags, float32.
        """
        if self.n_features is not None and (not isinstance(self.n_features, int | np.integer) or self.n_features < 1):
            raise ValueError(f"n_features={self.n_features!r} must be None or at least 1; use for instance 200.")
        axes: list[int] = []

        def noted(maps: Iterable[Any]) -> Iterable[Any]:
            for each in maps:
                axes.append(_n_axes(each))
                yield each

        counts = bag(noted(maps), self.sections, self.n_features)
        self.sections_ = as_shape(self.sections, "sections", axes[0])
        self.n_features_ = counts.shape[1] // prod(self.sections_)
        return counts

    def transform(self, maps: Iterable[Any]) -> sp.csr_array:
        """Count the features of maps.

        Parameters
        ----------
        maps : iterable of FeatureMap or array-like of int
            Feature maps.

        Returns
        -------
        counts : csr_array of shape (n_maps, n_sections * n_features)
            The bags, float32.
        """
        check_is_fitted(self)
        return bag(maps, self.sections_, self.n_features_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns: the section and the feature, such as "0_1_17".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features of a section; None numbers them.

        Returns
        -------
        names : ndarray of str
            Names of the columns.
        """
        check_is_fitted(self)
        return column_names(self.sections_, self.n_features_, input_features)

    def _restored(self) -> None:
        self.sections_ = as_shape(self.sections_, "sections")
        if prod(self.sections_) * check_count(self, "n_features_") >= 2**31:
            raise ValueError(f"there are {prod(self.sections_)} sections of {self.n_features_} features")


def column_names(sections: Shape, n_features: int, features: Any = None) -> NDArray[Any]:
    """Return names of the columns of a table of bags: the section, then the feature."""
    names = [str(i) for i in range(n_features)] if features is None else [str(name) for name in features]
    if len(names) != n_features:
        raise ValueError(f"input_features has {len(names)} names and must have {n_features}; pass one per feature.")
    return np.array(["_".join([*map(str, s), name]) for s in np.ndindex(*sections) for name in names], dtype=object)


class _Counted(NamedTuple):
    """Counts of each label in each section of one map, zeros left out, and the number of features it knows of."""

    section: NDArray[np.int32]
    label: NDArray[np.int32]
    times: NDArray[np.float32]
    n_features: int


def _joined(counted: list[_Counted], parts: Shape, n_features: int) -> sp.csr_array:
    ends = np.cumsum([0] + [each.label.size for each in counted])
    ends = ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)
    columns = np.concatenate([each.section * n_features + each.label for each in counted])
    times = np.concatenate([each.times for each in counted])
    counts = sp.csr_array((times, columns, ends), shape=(len(counted), prod(parts) * n_features))
    counts.sort_indices()
    return counts


def _n_axes(feature_map: Any) -> int:
    is_soft = isinstance(feature_map, FeatureMap) and feature_map.weights is not None
    return np.asarray(feature_map).ndim - is_soft


def _as_labels(feature_map: Any, index: int) -> tuple[NDArray[np.integer], NDArray[Any] | None]:
    """Return labels with an axis for those of one place, last, and their weights."""
    labels = np.asarray(feature_map)
    if labels.dtype.kind not in "iu" or labels.ndim == 0:
        raise ValueError(
            f"maps[{index}] of dtype {labels.dtype} with {labels.ndim} axes must be an array of integer labels; "
            "quantize the features first."
        )
    weights = feature_map.weights if isinstance(feature_map, FeatureMap) else None
    return (labels[..., None], None) if weights is None else (labels, weights)


def _count(
    labels: NDArray[np.integer], weights: NDArray[Any] | None, index: int, parts: Shape, n_features: int | None
) -> _Counted:
    shape = labels.shape[:-1]
    if len(shape) != len(parts):
        raise ValueError(
            f"maps[{index}] of shape {shape} must have {len(parts)} axes, as sections={parts}; "
            "pass maps with the same number of axes."
        )
    low, high = int(labels.min(initial=0)), int(labels.max(initial=0))
    if low < 0 or (n_features is not None and high >= n_features):
        limit = "of at least 0" if n_features is None else f"from 0 to {n_features - 1}"
        raise ValueError(
            f"maps[{index}] has label {low if low < 0 else high} and must have labels {limit}; "
            "increase n_features or relabel the map."
        )
    section = np.zeros((1,) * labels.ndim, dtype=np.int64)
    for axis, (size, n) in enumerate(zip(shape, parts, strict=True)):
        along = np.arange(size) * n // max(size, 1)
        section = section * n + along.reshape([-1 if a == axis else 1 for a in range(labels.ndim)])
    flat = None if weights is None else weights.ravel()
    codes, times = _tally((section * (high + 1) + labels).ravel(), flat, prod(parts) * (high + 1))
    found, label = np.divmod(codes, high + 1)
    return _Counted(found.astype(np.int32), label.astype(np.int32), times.astype(np.float32), n_features or high + 1)


def _tally(
    codes: NDArray[np.integer], weights: NDArray[Any] | None, n_codes: int
) -> tuple[NDArray[np.integer], NDArray[Any]]:
    """Return the distinct codes in order, and the count or the sum of the weights of each."""
    if n_codes > 4 * codes.size + 2**16:
        distinct, which = np.unique(codes, return_inverse=True)
        return distinct, np.bincount(which, weights)
    times = np.bincount(codes, weights, minlength=n_codes)
    distinct = np.flatnonzero(times)
    return distinct, times[distinct]
