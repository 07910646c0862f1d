"""Extractors from outside of this package: any function of an image."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.fitting import settings_of
from countinggrids.features import image_files
from countinggrids.features.descriptors import as_map
from countinggrids.features.maps import FeatureMap
from countinggrids.features.stream import Progress, Stream
from countinggrids.features.transformer import ImageTransformer, document

SIDE = 16
"""Pixels along each side of the crop that shows a place."""
Function = Callable[[NDArray[np.uint8]], Any]


class OutsideExtractor(ImageTransformer):
    """Base class of extractors that are not part of a file: a collection keeps their name, and a digest of them."""

    name_: str
    digest_: str

    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Keep the name and the digest of the extractor, which has nothing to learn.

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
        self.name_, self.digest_ = self._identity()
        if self._kept:
            self.settings_ = settings_of(self, *self._kept)
        return self

    def transform(self, images: Iterable[Any]) -> Stream:
        """Compute the descriptors of every image.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns) or (n_rows, n_columns, 3)
            Paths, arrays, or a generator of either.

        Returns
        -------
        maps : Stream of FeatureMap
            Descriptors, computed while they are iterated.

        Raises
        ------
        ValueError
            If the extractor is not the one that was fitted, or is unavailable.
        """
        name, digest = self._identity()
        if getattr(self, "digest_", digest) != digest:
            raise ValueError(
                f"{name} is not the extractor {self.name_} that the features were made with; use that one, or bag all "
                "images again."
            )
        return super().transform(images)

    def _identity(self) -> tuple[str, str]:
        """Return the name and the digest of the extractor, or raise if it is unavailable."""
        raise NotImplementedError

    def _restored(self) -> None:
        super()._restored()
        if not isinstance(self.name_, str) or not isinstance(self.digest_, str):
            raise ValueError(f"name_ and digest_ are {self.name_!r:.40} and {self.digest_!r:.80}")


@document
class FunctionDescriptors(OutsideExtractor):
    """Descriptors by a function of your own, such as a network in torch.

    Collections keep the name of the function, not the function: after loading one, set it again with
    ``collection.steps[0].set_params(function=...)`` to bag new images.

    Parameters
    ----------
    function : callable, default=None
        Takes an image, uint8 of shape (height, width, 3), and returns its descriptors, an array of shape (rows,
        columns, channels), whose places are evenly spread over the image. It is called on several threads.
    name : str, default=None
        Name of the extractor, to tell it from others; None takes that of the function.
    {options}

    Attributes
    ----------
    name_ : str
        The name.
    digest_ : str
        Digest of the name.
    settings_ : namespace
        `max_side` when it was fitted, which `transform` uses.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import FunctionDescriptors
    >>> def quarters(image):
    ...     return image[: image.shape[0] // 4 * 4, : image.shape[1] // 4 * 4 : 4][::4].astype(float)
    >>> photos = [np.random.default_rng(i).random((64, 48, 3)) for i in range(2)]
    >>> [feature_map.shape for feature_map in FunctionDescriptors(quarters).transform(photos)]
    [(16, 12, 3), (16, 12, 3)]
    """

    _local = frozenset({"function"})
    _kept = ("max_side",)

    def __init__(
        self,
        function: Function | None = None,
        name: str | None = None,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.function = function
        self.name = name
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose
        self.callback = callback

    def _identity(self) -> tuple[str, str]:
        if not callable(self.function):
            given = getattr(self, "name_", "that made the descriptors")
            raise ValueError(
                f"function={self.function!r} must be the function {given}, which files do not hold; set it with "
                "set_params(function=...)."
            )
        name = str(self.name or getattr(self.function, "__qualname__", type(self.function).__qualname__))
        return name, sha256(name.encode()).hexdigest()

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        assert self.function is not None
        return over_image(as_map(self.function(pixels)), pixels)


def over_image(found: FeatureMap, pixels: NDArray[np.uint8]) -> FeatureMap:
    """Return descriptors with the image that they were computed from, resized so that a place is a square crop.

    Parameters
    ----------
    found : FeatureMap
        Descriptors, whose places are evenly spread over the image.
    pixels : ndarray of shape (height, width, 3)
        The image.

    Returns
    -------
    feature_map : FeatureMap
        The descriptors, with patches.
    """
    if found.values.ndim != 3:
        raise ValueError(
            f"the function returned an array of shape {found.shape}; expected (rows, columns, channels); reshape the "
            "tokens to their rows and columns."
        )
    rows, columns = found.shape[:2]
    image = image_files.resized(pixels, (rows * SIDE, columns * SIDE))
    return FeatureMap(found.values, (0, 0), SIDE, SIDE, pixels.shape[:2], image)
