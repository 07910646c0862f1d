"""A codebook: descriptors are quantized into visual words."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.features import kmeans
from countinggrids.features.maps import FeatureMap
from countinggrids.features.saving import Saveable, check_array
from countinggrids.features.stream import Stream
from countinggrids.features.vocabulary import Vocabulary


class Codebook(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Visual words: centers of k-means on a random sample of descriptors, and the nearest one of each descriptor.

    Parameters
    ----------
    n_words : int, default=200
        Number of words.
    n_samples : int, default=100_000
        Largest number of descriptors for k-means.
    n_images : int, default=1000
        Largest number of images that they are drawn from.
    max_iter : int, default=50
        Largest number of iterations of k-means.
    random_state : int, RandomState or None, default=None
        Random numbers of the sample and of k-means.

    Attributes
    ----------
    centers_ : ndarray of shape (n_words, n_dimensions)
        The words, float32.
    patches_ : ndarray of shape (n_words, patch, patch, 3) or None
        The sampled patch nearest to each center, uint8; None if the descriptors come without an image.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from countinggrids.features import Codebook, DenseSIFT
    >>> photos = [np.random.default_rng(i).random((64, 64)) for i in range(5)]
    >>> words = make_pipeline(DenseSIFT(), Codebook(10, random_state=0)).fit(photos)
    >>> [feature_map.shape for feature_map in words.transform(photos[:2])]
    [(7, 7), (7, 7)]
    """

    def __init__(
        self,
        n_words: int = 200,
        n_samples: int = 100_000,
        n_images: int = 1000,
        max_iter: int = 50,
        random_state: Any = None,
    ):
        self.n_words = n_words
        self.n_samples = n_samples
        self.n_images = n_images
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, descriptors: Iterable[Any], y: object = None) -> Self:
        """Learn the words.

        Parameters
        ----------
        descriptors : iterable of FeatureMap or array-like of shape (..., n_dimensions)
            Feature maps, such as those of `DenseSIFT`, or arrays of descriptors.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted codebook.
        """
        stream = descriptors if isinstance(descriptors, Stream) else Stream(descriptors, lambda item: item)
        vectors, patches = kmeans.gather(stream, _n_rows, _take, self.n_samples, self.n_images, self.random_state)
        self.centers_ = kmeans.k_means(vectors, self.n_words, self.max_iter, self.random_state)
        self.patches_ = _as_rgb(patches[_nearest_samples(vectors, self.centers_)]) if patches.size else None
        return self

    def transform(self, descriptors: Iterable[Any]) -> Stream:
        """Compute the map of words of every map of descriptors.

        Parameters
        ----------
        descriptors : iterable of FeatureMap or array-like of shape (..., n_dimensions)
            Feature maps, or arrays of descriptors.

        Returns
        -------
        maps : Stream of FeatureMap or ndarray
            Maps of words, computed while they are iterated.
        """
        check_is_fitted(self)
        if isinstance(descriptors, Stream):
            return descriptors.then(self._words)
        return Stream(descriptors, self._words)

    @property
    def vocabulary_(self) -> Vocabulary:
        """The words as features."""
        return Vocabulary.of_patches(self.patches_, len(self.centers_))

    def _restored(self) -> None:
        check_array(self, "centers_", "f", (None, None))
        if self.patches_ is not None:
            check_array(self, "patches_", "u", (len(self.centers_), None, None, 3))

    def _words(self, item: Any) -> Any:
        values = np.asarray(item)
        words = kmeans.nearest(values.reshape(-1, values.shape[-1]), self.centers_).reshape(values.shape[:-1])
        if isinstance(item, FeatureMap):
            return FeatureMap(words, item.origin, item.step, item.patch, item.size, n_features=len(self.centers_))
        return words


def _nearest_samples(vectors: Any, centers: Any) -> Any:
    """Return, for each center, the index of the nearest vector among those assigned to it."""
    words = kmeans.nearest(vectors, centers)
    distances = ((vectors - centers[words]) ** 2).sum(axis=1)
    order = np.lexsort((distances, words))
    return order[np.searchsorted(words[order], np.arange(len(centers))).clip(max=len(order) - 1)]


def _as_rgb(patches: Any) -> Any:
    return patches if patches.ndim == 4 else np.repeat(patches[..., None], 3, axis=3)


def _n_rows(item: Any) -> int:
    return int(np.prod(item.shape[:-1]))


def _take(item: Any, places: Any) -> kmeans.Rows:
    values = np.asarray(item)
    vectors = values.reshape(-1, values.shape[-1])[places]
    if isinstance(item, FeatureMap) and item.image is not None:
        return vectors, item.cut(places)
    return vectors, np.zeros((len(places), 0), np.uint8)
