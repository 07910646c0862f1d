"""Textons: patches of the image itself, whitened and clustered into a dictionary."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.features import clusters
from countinggrids.features.maps import FeatureMap, patch_corners
from countinggrids.features.stream import Verbose
from countinggrids.features.transformer import ImageTransformer, document
from countinggrids.features.vocabulary import Vocabulary

NOISE = 10.0  # variance, in squared grey levels, below which contrast is taken for noise
SMALLEST = 0.1  # added to the variance of each direction, so that whitening does not blow noise up


@document
class Textons(ImageTransformer):
    """Names the nearest dictionary patch at regular places of an image.

    Each patch is brought to mean zero and equal contrast, then whitened (ZCA), then clustered.

    Parameters
    ----------
    n_textons : how many dictionary patches
    patch : pixels along each side of a patch
    step : pixels from one patch to the next
    n_samples : patches that k-means sees at the most
    n_images : images they are drawn from, where there are more
    max_iter : iterations of k-means at the most
    random_state : seed of the sample and of k-means
    {options}

    Attributes
    ----------
    centres_ : (textons, dimensions) the dictionary, whitened
    mean_, whitening_ : what whitens a patch: (patch - mean_) @ whitening_
    patches_ : (textons, patch, patch, 3) uint8, what the patches of each texton look like on average

    Examples
    --------
    >>> from sklearn.datasets import load_sample_images
    >>> from countinggrids.features import Textons
    >>> photos = load_sample_images().images
    >>> textons = Textons(20, n_samples=2000, random_state=0).fit(photos)
    >>> textons.patches_.shape
    (20, 8, 8, 3)
    """

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
        verbose: Verbose = 0,
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

    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Learn how to whiten, and the dictionary."""
        patches = self._pixels(images).then(lambda pixels: cut(pixels, self.patch, self.step).reshape(-1, self._dims))
        [sample] = clusters.gather(
            patches, len, lambda rows, places: (rows[places],), self.n_samples, self.n_images, self.random_state
        )
        self.mean_, self.whitening_ = _whitening(_even(sample))
        whitened = self._whitened(sample)
        self.centres_ = clusters.k_means(whitened, self.n_textons, self.max_iter, self.random_state)
        which = clusters.nearest(whitened, self.centres_)
        sums = np.zeros((self.n_textons, self._dims))
        np.add.at(sums, which, sample)
        means = sums / np.maximum(np.bincount(which, minlength=self.n_textons), 1)[:, None]
        self.patches_ = means.round().astype(np.uint8).reshape(-1, self.patch, self.patch, 3)
        return self

    @property
    def vocabulary_(self) -> Vocabulary:
        return Vocabulary.of_patches(self.patches_, self.n_textons)

    def transform(self, images: Iterable[Any]) -> Any:
        """Give the map of textons of every image, one at a time."""
        check_is_fitted(self)
        return super().transform(images)

    @property
    def _dims(self) -> int:
        return self.patch * self.patch * 3

    def _whitened(self, patches: NDArray[Any]) -> NDArray[np.float32]:
        return np.matmul(_even(patches) - self.mean_, self.whitening_)

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        patches = cut(pixels, self.patch, self.step)
        labels = clusters.nearest(self._whitened(patches.reshape(-1, self._dims)), self.centres_)
        origin = tuple(int(patch_corners(n, self.patch, self.step)[0]) for n in pixels.shape[:2])
        return FeatureMap(labels.reshape(patches.shape[:2]), origin, self.step, self.patch, pixels.shape[:2])


def cut(pixels: NDArray[np.uint8], patch: int, step: int) -> NDArray[np.uint8]:
    """Cut patches at regular places, (rows, columns, patch, patch, 3); small images are continued by their edges."""
    rows, columns = (patch_corners(n, patch, step) for n in pixels.shape[:2])
    before = [max(0, -int(corners[0])) for corners in (rows, columns)]
    after = [max(0, int(c[-1]) + patch - n) for c, n in zip((rows, columns), pixels.shape, strict=False)]
    padded = np.pad(pixels, [(b, a) for b, a in zip(before, after, strict=True)] + [(0, 0)], mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (patch, patch), axis=(0, 1))
    return windows[rows[0] + before[0] :: step, columns[0] + before[1] :: step].transpose(0, 1, 3, 4, 2)


def _even(patches: NDArray[Any]) -> NDArray[np.float32]:
    """Bring each patch to mean zero and equal contrast."""
    values = patches.astype(np.float32)
    values -= values.mean(axis=1, keepdims=True)
    values /= np.sqrt(values.var(axis=1, keepdims=True) + np.float32(NOISE))
    return values


def _whitening(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Give the mean, and the symmetric matrix that makes directions uncorrelated and of equal variance (ZCA)."""
    mean = values.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(values - mean, rowvar=False))
    return mean, ((axes / np.sqrt(variances + SMALLEST)) @ axes.T).astype(np.float32)
