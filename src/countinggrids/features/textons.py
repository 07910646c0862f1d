"""Textons: patches of images, whitened and clustered into a dictionary."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.features import kmeans
from countinggrids.features.maps import FeatureMap, patch_corners
from countinggrids.features.saving import check_array
from countinggrids.features.stream import Progress, Stream
from countinggrids.features.transformer import ImageTransformer, document
from countinggrids.features.vocabulary import Vocabulary

NOISE = 10.0
"""Variance, in squared gray levels, below which contrast is regarded as noise."""
SMALLEST = 0.1
"""Added to the variance of each direction, so that whitening does not amplify noise."""


@document
class Textons(ImageTransformer):
    """Textons: the nearest patch of a learned dictionary at regular places of an image.

    Each patch is normalized to mean zero and equal contrast, whitened (ZCA), and clustered by k-means.

    Parameters
    ----------
    n_textons : int, default=200
        Size of the dictionary.
    patch : int, default=8
        Pixels along each side of a patch.
    step : int, default=4
        Pixels from one patch to the next.
    n_samples : int, default=100_000
        Largest number of patches for k-means.
    n_images : int, default=1000
        Largest number of images that they are drawn from.
    max_iter : int, default=50
        Largest number of iterations of k-means.
    random_state : int, RandomState or None, default=None
        Random numbers of the sample and of k-means.
    {options}

    Attributes
    ----------
    centers_ : ndarray of shape (n_textons, patch * patch * 3)
        The dictionary, whitened.
    mean_ : ndarray of shape (patch * patch * 3,)
        Mean of normalized patches.
    whitening_ : ndarray of shape (patch * patch * 3, patch * patch * 3)
        A patch is whitened by (patch - mean_) @ whitening_.
    patches_ : ndarray of shape (n_textons, patch, patch, 3)
        Mean of the patches of each texton, uint8.
    settings_ : namespace
        `patch`, `step` and `max_side` when it was fitted, which `transform` uses.

    Examples
    --------
    >>> from sklearn.datasets import load_sample_images
    >>> from countinggrids.features import Textons
    >>> photos = load_sample_images().images
    >>> textons = Textons(20, n_samples=2000, random_state=0).fit(photos)
    >>> textons.patches_.shape
    (20, 8, 8, 3)
    """

    _kept = ("patch", "step", "max_side")

    def __init__(
        self,
        n_textons: int = 200,
        patch: int = 8,
        step: int = 4,
        n_samples: int = 100_000,
        n_images: int = 1000,
        max_iter: int = 50,
        random_state: Any = None,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.n_textons = n_textons
        self.patch = patch
        self.step = step
        self.n_samples = n_samples
        self.n_images = n_images
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose
        self.callback = callback

    @whole_or_nothing
    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Learn the whitening and the dictionary.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns, 3)
            Paths, arrays, or a generator of either.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted extractor.
        """
        self.settings_ = settings_of(self, *self._kept)
        patches = self._pixels(images).then(lambda pixels: cut(pixels, self.patch, self.step).reshape(-1, self._dims))
        [sample] = kmeans.gather(
            patches, len, lambda rows, places: (rows[places],), self.n_samples, self.n_images, self.random_state
        )
        self.mean_, self.whitening_ = _whitening(_normalized(sample))
        whitened = self._whitened(sample)
        self.centers_ = kmeans.k_means(whitened, self.n_textons, self.max_iter, self.random_state)
        means = _cluster_means(sample, kmeans.nearest(whitened, self.centers_), self.n_textons)
        self.patches_ = means.round().astype(np.uint8).reshape(-1, self.patch, self.patch, 3)
        return self

    @property
    def vocabulary_(self) -> Vocabulary:
        """The textons as features."""
        return Vocabulary.of_patches(self.patches_, len(self.centers_))

    def transform(self, images: Iterable[Any]) -> Stream:
        """Compute the map of textons of every image.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns, 3)
            Paths, arrays, or a generator of either.

        Returns
        -------
        maps : Stream of FeatureMap
            Maps of textons, computed while they are iterated.
        """
        check_is_fitted(self)
        return super().transform(images)

    def _restored(self) -> None:
        super()._restored()
        patch = self.settings_.patch
        check_array(self, "patches_", "u", (None, patch, patch, 3))
        check_array(self, "centers_", "f", (len(self.patches_), self._dims))
        check_array(self, "mean_", "f", (self._dims,))
        check_array(self, "whitening_", "f", (self._dims, self._dims))

    @property
    def _dims(self) -> int:
        return int(self.settings_.patch**2 * 3)

    def _whitened(self, patches: NDArray[Any]) -> NDArray[np.float32]:
        return np.matmul(_normalized(patches) - self.mean_, self.whitening_)

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        patch, step = self.settings_.patch, self.settings_.step
        patches = cut(pixels, patch, step)
        labels = kmeans.nearest(self._whitened(patches.reshape(-1, self._dims)), self.centers_)
        origin = tuple(int(patch_corners(n, patch, step)[0]) for n in pixels.shape[:2])
        words = labels.reshape(patches.shape[:2])
        return FeatureMap(words, origin, step, patch, pixels.shape[:2], n_features=len(self.centers_))


def cut(pixels: NDArray[np.uint8], patch: int, step: int) -> NDArray[np.uint8]:
    """Cut patches at regular places, (n_rows, n_columns, patch, patch, 3); small images are padded by their edges."""
    rows, columns = (patch_corners(n, patch, step) for n in pixels.shape[:2])
    before = [max(0, -int(corners[0])) for corners in (rows, columns)]
    after = [max(0, int(c[-1]) + patch - n) for c, n in zip((rows, columns), pixels.shape, strict=False)]
    padded = np.pad(pixels, [(b, a) for b, a in zip(before, after, strict=True)] + [(0, 0)], mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (patch, patch), axis=(0, 1))
    return windows[rows[0] + before[0] :: step, columns[0] + before[1] :: step].transpose(0, 1, 3, 4, 2)


def _cluster_means(sample: NDArray[Any], clusters: NDArray[np.int32], n: int) -> NDArray[np.float64]:
    sums = np.zeros((n, sample.shape[1]))
    np.add.at(sums, clusters, sample)
    return sums / np.maximum(np.bincount(clusters, minlength=n), 1)[:, None]


def _normalized(patches: NDArray[Any]) -> NDArray[np.float32]:
    """Scale each patch to mean zero and equal contrast."""
    values = patches.astype(np.float32)
    values -= values.mean(axis=1, keepdims=True)
    values /= np.sqrt(values.var(axis=1, keepdims=True) + np.float32(NOISE))
    return values


def _whitening(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute the mean, and the symmetric whitening matrix (ZCA)."""
    mean = values.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(values - mean, rowvar=False))
    return mean, ((axes / np.sqrt(variances + SMALLEST)) @ axes.T).astype(np.float32)
