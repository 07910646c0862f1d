"""A codebook: descriptors are quantized into visual words."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.features import kmeans
from countinggrids.features.descriptors import as_map
from countinggrids.features.maps import FeatureMap
from countinggrids.features.projection import Projection, fit_projection, of_unit_length
from countinggrids.features.saving import Saveable, check_array
from countinggrids.features.stream import Stream
from countinggrids.features.vocabulary import Vocabulary

Best = tuple[NDArray[Any], NDArray[np.int64]]


class Codebook(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Visual words: centers of k-means on a random sample of descriptors, and the nearest ones of each descriptor.

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
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between descriptors. "cosine" scales descriptors to length 1, before a projection and after it.
    pca : int, default=None
        Number of principal components that descriptors are projected to before k-means; None keeps all channels.
    whiten : bool, default=False
        Whether the principal components are scaled to variance 1.
    soft : int, default=1
        Number of nearest words that a descriptor is counted for. With several, each counts a fraction: fractions
        decrease with the squared distance, relative to the mean one of the sample, and sum to one.

    Attributes
    ----------
    centers_ : ndarray of shape (n_words, n_components)
        The words, float32, in the space of the projection.
    mean_ : ndarray of shape (n_channels,) or None
        Mean of the descriptors, if they are projected.
    axes_ : ndarray of shape (n_channels, n_components) or None
        Axes that descriptors are projected to.
    scale_ : float
        Mean squared distance of the sample from its nearest words.
    patches_ : ndarray of shape (n_words, patch, patch, 3) or None
        The sampled patch nearest to each center, uint8; None if the descriptors come without an image.
    settings_ : namespace
        `metric` and `soft` when it was fitted, which `transform` uses.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from countinggrids.features import Codebook, DenseSIFT
    >>> photos = [np.random.default_rng(i).random((64, 64)) for i in range(5)]
    >>> words = make_pipeline(DenseSIFT(), Codebook(10, random_state=0)).fit(photos)
    >>> [feature_map.shape for feature_map in words.transform(photos[:2])]
    [(7, 7), (7, 7)]

    Descriptors of a network, compared by their angle, each counted for its three nearest words:

    >>> import countinggrids as cg
    >>> tokens = [np.random.default_rng(i).normal(size=(4, 6, 32)) for i in range(5)]
    >>> words = Codebook(10, metric="cosine", pca=8, soft=3, random_state=0).fit(tokens)
    >>> cg.bag(words.transform(tokens)).sum(axis=1).round(3).tolist()
    [24.0, 24.0, 24.0, 24.0, 24.0]
    """

    _kept = ("metric", "soft")

    def __init__(
        self,
        n_words: int = 200,
        n_samples: int = 100_000,
        n_images: int = 1000,
        max_iter: int = 50,
        random_state: Any = None,
        metric: str = "euclidean",
        pca: int | None = None,
        whiten: bool = False,
        soft: int = 1,
    ):
        self.n_words = n_words
        self.n_samples = n_samples
        self.n_images = n_images
        self.max_iter = max_iter
        self.random_state = random_state
        self.metric = metric
        self.pca = pca
        self.whiten = whiten
        self.soft = soft

    @whole_or_nothing
    def fit(self, descriptors: Iterable[Any], y: object = None) -> Self:
        """Learn the words.

        Parameters
        ----------
        descriptors : iterable of FeatureMap or array-like of shape (rows, columns, n_channels)
            Feature maps, such as those of `DenseSIFT`, or arrays of descriptors, such as `Descriptors`.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted codebook.
        """
        self._check_options()
        stream = _stream(descriptors, as_map)
        vectors, patches = kmeans.gather(stream, _n_rows, _take, self.n_samples, self.n_images, self.random_state)
        projection = fit_projection(vectors, self.metric == "cosine", self.pca, self.whiten)
        vectors = projection.apply(vectors)
        centers = kmeans.k_means(vectors, self.n_words, self.max_iter, self.random_state)
        self.centers_ = of_unit_length(centers) if projection.is_cosine else centers
        self.mean_, self.axes_ = projection.mean, projection.axes
        words = kmeans.nearest(vectors, self.centers_)
        distances = ((vectors - self.centers_[words]) ** 2).sum(axis=1)
        self.scale_ = float(distances.mean(dtype=np.float64))
        self.patches_ = _as_rgb(patches[_closest(words, distances, len(self.centers_))]) if patches.size else None
        self.settings_ = settings_of(self, *self._kept)
        return self

    def transform(self, descriptors: Iterable[Any]) -> Stream:
        """Compute the map of words of every map of descriptors.

        Parameters
        ----------
        descriptors : iterable of FeatureMap or array-like of shape (rows, columns, n_channels)
            Feature maps, or arrays of descriptors.

        Returns
        -------
        maps : Stream of FeatureMap
            Maps of words, computed while they are iterated; of several words at each place, with weights, if `soft`
            is above 1.
        """
        check_is_fitted(self)
        return _stream(descriptors, self._words)

    @property
    def vocabulary_(self) -> Vocabulary:
        """The words as features."""
        return Vocabulary.of_patches(self.patches_, len(self.centers_))

    def best_places(self, item: Any) -> Best:
        """Return where a map of descriptors comes nearest to each word.

        Parameters
        ----------
        item : FeatureMap or array-like of shape (rows, columns, n_channels)
            Descriptors of an image.

        Returns
        -------
        scores : ndarray of shape (n_words,)
            Minus the squared distance of the nearest descriptor.
        places : ndarray of shape (n_words,)
            Its flat index.
        """
        distances = kmeans.squared_distances(self._projected(as_map(item, self._n_channels)), self.centers_)
        places = distances.argmin(axis=0)
        return -distances[places, np.arange(distances.shape[1])], places

    @property
    def _n_channels(self) -> int:
        return int((self.centers_.T if self.axes_ is None else self.axes_).shape[0])

    def _projected(self, feature_map: FeatureMap) -> NDArray[np.float32]:
        projection = Projection(self.settings_.metric == "cosine", self.mean_, self.axes_)
        return projection.apply(feature_map.values.reshape(-1, feature_map.shape[-1]))

    def _words(self, item: Any) -> FeatureMap:
        given = as_map(item, self._n_channels)
        vectors, places, weights = self._projected(given), given.shape[:-1], None
        if self.settings_.soft > 1:
            words, weights = self._several(vectors)
            words, weights = words.reshape(*places, -1), weights.reshape(*places, -1)
        else:
            words = kmeans.nearest(vectors, self.centers_).reshape(places)
        return FeatureMap(
            words, given.origin, given.step, given.patch, given.size, weights=weights, n_features=len(self.centers_)
        )

    def _several(self, vectors: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the nearest words of each vector, (n_vectors, soft), and how much each counts."""
        distances = kmeans.squared_distances(vectors, self.centers_)
        words = np.argpartition(distances, self.settings_.soft - 1, axis=1)[:, : self.settings_.soft]
        words.sort(axis=1)
        near = np.take_along_axis(distances, words, axis=1)
        weights = np.exp((near.min(axis=1, keepdims=True) - near) / max(self.scale_, 1e-12))
        return words.astype(np.int32), (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)

    def _check_options(self) -> None:
        if self.metric not in ("euclidean", "cosine"):
            raise ValueError(f"metric={self.metric!r} must be 'euclidean' or 'cosine'; use metric='cosine'.")
        if self.pca is not None and (not isinstance(self.pca, int | np.integer) or self.pca < 1):
            raise ValueError(f"pca={self.pca!r} must be None or a number of components of at least 1; use pca=64.")
        if not isinstance(self.soft, int | np.integer) or not 1 <= self.soft <= max(self.n_words, 1):
            raise ValueError(f"soft={self.soft!r} must be from 1 to n_words={self.n_words}; use soft=1 or soft=3.")

    def _restored(self) -> None:
        n_words, n_components = check_array(self, "centers_", "f", (None, None)).shape
        if (self.mean_ is None) != (self.axes_ is None):
            raise ValueError("there are axes or a mean alone")
        if self.axes_ is not None:
            n_channels = len(check_array(self, "axes_", "f", (None, n_components)))
            check_array(self, "mean_", "f", (n_channels,))
        if self.patches_ is not None:
            check_array(self, "patches_", "u", (n_words, None, None, 3))
        if not 0 <= self.scale_ < np.inf:
            raise ValueError(f"scale_ is {self.scale_}")
        type(self)(n_words, **vars(self.settings_))._check_options()


def _stream(descriptors: Iterable[Any], work: Any) -> Stream:
    return descriptors.then(work) if isinstance(descriptors, Stream) else Stream(descriptors, work)


def _closest(words: Any, distances: Any, n_words: int) -> Any:
    """Return, for each word, the index of the nearest vector among those assigned to it."""
    order = np.lexsort((distances, words))
    return order[np.searchsorted(words[order], np.arange(n_words)).clip(max=len(order) - 1)]


def _as_rgb(patches: Any) -> Any:
    return patches if patches.ndim == 4 else np.repeat(patches[..., None], 3, axis=3)


def _n_rows(item: FeatureMap) -> int:
    return int(np.prod(item.shape[:-1]))


def _take(item: FeatureMap, places: Any) -> kmeans.Rows:
    vectors = np.asarray(item).reshape(-1, item.shape[-1])[places].astype(np.float32)
    if item.image is not None:
        return vectors, item.cut(places)
    return vectors, np.zeros((len(places), 0), np.uint8)
