"""A codebook: descriptors become words."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.features import clusters
from countinggrids.features.maps import FeatureMap
from countinggrids.features.stream import Stream
from countinggrids.features.vocabulary import Vocabulary


class Codebook(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns words by k-means from a random sample of descriptors, and names the nearest word of each descriptor.

    Parameters
    ----------
    n_words : how many words
    n_samples : descriptors that k-means sees at the most
    n_images : images they are drawn from, where there are more
    max_iter : iterations of k-means at the most
    random_state : seed of the sample and of k-means

    Attributes
    ----------
    centres_ : (words, dimensions) float32
    patches_ : (words, patch, patch, 3) uint8, for each word the sampled patch nearest to its centre; None where the
        descriptors came without an image

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
        """Learn the words from a stream of feature maps, or from arrays whose last axis is the descriptor."""
        stream = descriptors if isinstance(descriptors, Stream) else Stream(descriptors, lambda item: item)
        vectors, patches = clusters.gather(stream, _n_rows, _take, self.n_samples, self.n_images, self.random_state)
        self.centres_ = clusters.k_means(vectors, self.n_words, self.max_iter, self.random_state)
        self.patches_ = _coloured(patches[_typical(vectors, self.centres_)]) if patches.size else None
        return self

    def transform(self, descriptors: Iterable[Any]) -> Stream:
        """Give the map of words of every map of descriptors, one at a time."""
        check_is_fitted(self)
        if isinstance(descriptors, Stream):
            return descriptors.then(self._words)
        return Stream(descriptors, self._words)

    @property
    def vocabulary_(self) -> Vocabulary:
        return Vocabulary.of_patches(self.patches_, len(self.centres_))

    def _words(self, item: Any) -> Any:
        values = np.asarray(item)
        words = clusters.nearest(values.reshape(-1, values.shape[-1]), self.centres_).reshape(values.shape[:-1])
        if isinstance(item, FeatureMap):
            return FeatureMap(words, item.origin, item.step, item.patch, item.size)
        return words


def _typical(vectors: Any, centres: Any) -> Any:
    """Give, for each centre, the vector nearest to it among those that are nearest to no other centre."""
    words = clusters.nearest(vectors, centres)
    distances = ((vectors - centres[words]) ** 2).sum(axis=1)
    order = np.lexsort((distances, words))
    return order[np.searchsorted(words[order], np.arange(len(centres))).clip(max=len(order) - 1)]


def _coloured(patches: Any) -> Any:
    return patches if patches.ndim == 4 else np.repeat(patches[..., None], 3, axis=3)


def _n_rows(item: Any) -> int:
    return int(np.prod(item.shape[:-1]))


def _take(item: Any, places: Any) -> clusters.Rows:
    values = np.asarray(item)
    vectors = values.reshape(-1, values.shape[-1])[places]
    if isinstance(item, FeatureMap) and item.image is not None:
        return vectors, item.cut(places)
    return vectors, np.zeros((len(places), 0), np.uint8)
