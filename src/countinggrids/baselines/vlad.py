"""VLAD: sums of the differences between local descriptors and their visual words."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features import kmeans
from countinggrids.features.stream import Stream
from countinggrids.meta.matching import CosineMatcher
from countinggrids.meta.options import check_integer

Array = NDArray[np.float64]
MOST_IMAGES = 1000
"""Images from which descriptors are sampled."""


class VLAD(CosineMatcher):
    """Represent an image by the sum of differences between its descriptors and the nearest of a few words.

    The sum of each word is scaled to length one (intra-normalization), so that repeated structures do not decide. It
    takes the descriptors that codebooks take, such as `features.DenseSIFT().transform(paths)`.

    Parameters
    ----------
    n_words : int, default=64
        Number of words.
    n_samples : int, default=100000
        Largest number of descriptors that the words are learned from.
    random_state : int, RandomState or None, default=None
        Seed of the sample and of k-means.

    Attributes
    ----------
    centers_ : ndarray of shape (n_words, n_dimensions)
        The words.
    reference_ : ndarray of shape (n_images, n_words * n_dimensions)
        Vectors of the reference images.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import VLAD
    >>> images = np.random.default_rng(0).random((4, 5, 6, 3))
    >>> VLAD(4, random_state=0).fit(images).similarity(images).argmax(axis=1).tolist()
    [0, 1, 2, 3]
    """

    def __init__(self, n_words: int = 64, *, n_samples: int = 100_000, random_state: Any = None):
        self.n_words = n_words
        self.n_samples = n_samples
        self.random_state = random_state

    def _checked(self, X: Iterable[Any], is_fitting: bool) -> Any:
        if is_fitting:
            check_integer(self, "n_words", "n_samples", example=64)
        # A stream computes descriptors anew for every pass, and holds those of few images at a time.
        return X if isinstance(X, Stream) else Stream([_descriptors(each) for each in X], lambda each: each)

    def _learn(self, X: Any) -> None:
        vectors, _ = kmeans.gather(X, _n_rows, _take, self.n_samples, MOST_IMAGES, self.random_state)
        if len(vectors) < self.n_words:
            raise ValueError(f"n_words={self.n_words} must not exceed the {len(vectors)} descriptors; use fewer words.")
        self.centers_ = kmeans.k_means(vectors, self.n_words, 50, self.random_state)

    def _vectors(self, X: Any) -> Any:
        found = [self._sums(_descriptors(each)) for each in X]
        if not found:
            raise ValueError("X has no images; pass at least one.")
        return np.stack(found)

    def _sums(self, descriptors: Array) -> Array:
        """Return the normalized sums of one image, one word after the other."""
        if descriptors.shape[1] != self.centers_.shape[1]:
            raise ValueError(
                f"descriptors have {descriptors.shape[1]} dimensions but must have the {self.centers_.shape[1]} of the "
                "reference; use the same extractor."
            )
        words = kmeans.nearest(descriptors, self.centers_)
        sums = np.zeros(self.centers_.shape)
        np.add.at(sums, words, descriptors - self.centers_[words])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return (sums / np.maximum(lengths, 1e-12)).ravel()


def _descriptors(item: Any) -> Array:
    """Return the descriptors of an image as rows, or raise."""
    values = np.asarray(item)
    if values.ndim < 2 or values.dtype.kind != "f":
        raise ValueError(
            f"descriptors of shape {values.shape} and dtype {values.dtype} must be floats of shape (..., n); "
            "pass feature maps of an extractor such as DenseSIFT."
        )
    return values.reshape(-1, values.shape[-1])


def _n_rows(item: Any) -> int:
    return int(np.prod(item.shape[:-1]))


def _take(item: Any, places: Any) -> Any:
    return _descriptors(item)[places], np.zeros((len(places), 0), np.uint8)
