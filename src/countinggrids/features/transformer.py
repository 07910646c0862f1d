"""What all feature extractors for images share."""

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from countinggrids.features import pictures
from countinggrids.features.stream import Stream, Verbose

OPTIONS = """max_side : images with a longer side are shrunk to this many pixels; None keeps them
n_jobs : threads; None takes as many as the models use
on_error : what to do about broken images: "raise", or "skip" them and list them in the stream's `skipped`
verbose : 1 writes a line to stderr every two seconds; a function is told how many images are done, and of how
    many, or None"""


class ImageTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Images in, a stream of feature maps out.

    Images are paths, arrays, or a generator of either. Nothing is computed before the stream is gone through.
    """

    max_side: int | None
    n_jobs: int | None
    on_error: str
    verbose: Verbose
    _is_colour = True

    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Learn nothing: there is nothing to learn."""
        return self

    def transform(self, images: Iterable[Any]) -> Stream:
        """Give the feature map of every image, one at a time."""
        return self._pixels(images).then(self._map)

    def _check_options(self) -> None:
        for name in ("patch", "step", "max_side"):
            value = getattr(self, name, None)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ValueError(f"{name} is {value!r}; wanted pixels, an integer of at least 1; give for instance 16")

    def _map(self, pixels: Any) -> Any:
        raise NotImplementedError

    def _pixels(self, images: Iterable[Any]) -> Stream:
        self._check_options()

        def read(source: Any) -> Any:
            return pictures.read(source, self._is_colour, self.max_side)

        return Stream(images, read, self.n_jobs, self.on_error, self.verbose)


def document(cls: type) -> type:
    """Fill the shared options into a docstring."""
    cls.__doc__ = cleandoc(cls.__doc__ or "").replace("{options}", OPTIONS)
    return cls
