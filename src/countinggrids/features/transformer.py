"""The base class of feature extractors for images."""

from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from countinggrids.features import image_files
from countinggrids.features.saving import Saveable
from countinggrids.features.stream import Progress, Stream

OPTIONS = """max_side : int, default=None
    Largest number of pixels along the longer side; larger images are downsampled. None keeps them.
n_jobs : int, default=None
    Number of threads; None uses as many as the models do.
on_error : {"raise", "skip"}, default="raise"
    Whether a broken image raises `BadItemError`, or is left out and listed in `skipped` of the stream.
verbose : int, default=0
    Whether progress is logged to stderr, every two seconds.
callback : callable, default=None
    Called after each image with the number of images done, and of all images or None."""


LARGEST_PATCH = 1024
"""Largest number of pixels along a patch: smaller images are padded to its size."""


class ImageTransformer(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of extractors: images in, a stream of feature maps out.

    Images are paths, arrays, or a generator of either. Nothing is computed before the stream is iterated.
    """

    max_side: int | None
    n_jobs: int | None
    on_error: str
    verbose: int
    callback: Progress | None
    _is_color = True

    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Return the extractor: it has nothing to learn.

        Parameters
        ----------
        images : iterable
            Ignored.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The extractor.
        """
        return self

    def transform(self, images: Iterable[Any]) -> Stream:
        """Compute the feature map of every image.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns) or (n_rows, n_columns, 3)
            Paths, arrays, or a generator of either.

        Returns
        -------
        maps : Stream of FeatureMap
            Feature maps, computed while they are iterated.
        """
        return self._pixels(images).then(self._map)

    def _check_options(self) -> None:
        for name in ("patch", "step", "max_side"):
            value = getattr(self._in_force, name, None)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ValueError(f"{name}={value!r} must be a number of pixels of at least 1; use for instance 16.")
        patch = getattr(self._in_force, "patch", 1)
        if patch > LARGEST_PATCH:
            raise ValueError(f"patch={patch} must be at most {LARGEST_PATCH} pixels; use for instance patch=16.")

    @property
    def _in_force(self) -> Any:
        """The settings when it was fitted, or else the parameters."""
        return self.settings_ if hasattr(self, "settings_") else self

    def _restored(self) -> None:
        self._check_options()

    def _map(self, pixels: Any) -> Any:
        raise NotImplementedError

    def _pixels(self, images: Iterable[Any]) -> Stream:
        self._check_options()

        def read(source: Any) -> Any:
            return image_files.read(source, self._is_color, self._in_force.max_side)

        return self._stream(images, read)

    def _stream(self, images: Iterable[Any], read: Callable[[Any], Any]) -> Stream:
        return Stream(images, read, self.n_jobs, self.on_error, self.verbose, self.callback)


def document(cls: type) -> type:
    """Insert the shared options into a docstring."""
    cls.__doc__ = cleandoc(cls.__doc__ or "").replace("{options}", OPTIONS)
    return cls
