"""Colors as features: pixels, or means of blocks of pixels, quantized by a palette."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.features import kmeans
from countinggrids.features.maps import FeatureMap
from countinggrids.features.saving import check_array
from countinggrids.features.stream import Progress, Stream
from countinggrids.features.transformer import ImageTransformer, document
from countinggrids.features.vocabulary import Vocabulary


@document
class Colors(ImageTransformer):
    """Quantized colors: the palette is learned by k-means from a random sample of pixels.

    Parameters
    ----------
    n_colors : int, default=64
        Number of colors. If the images have fewer, these are the palette.
    step : int, default=1
        Pixels along each side of the blocks whose mean color is one feature.
    palette : array-like of shape (n_colors, 3), default=None
        Colors from 0 to 255 to use; None learns them.
    n_samples : int, default=100_000
        Largest number of blocks for k-means.
    n_images : int, default=1000
        Largest number of images that they are drawn from.
    random_state : int, RandomState or None, default=None
        Random numbers of the sample and of k-means.
    {options}

    Attributes
    ----------
    palette_ : ndarray of shape (n_colors, 3)
        Colors from 0 to 255, float32.
    settings_ : namespace
        `step` and `max_side` when it was fitted, which `transform` uses.

    Examples
    --------
    >>> from sklearn.datasets import load_sample_images
    >>> from countinggrids.features import Colors
    >>> photos = load_sample_images().images
    >>> colors = Colors(16, step=8, random_state=0).fit(photos)
    >>> [feature_map.shape for feature_map in colors.transform(photos)]
    [(53, 80), (53, 80)]
    """

    _kept = ("step", "max_side")

    def __init__(
        self,
        n_colors: int = 64,
        step: int = 1,
        palette: Any = None,
        n_samples: int = 100_000,
        n_images: int = 1000,
        random_state: Any = None,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.n_colors = n_colors
        self.step = step
        self.palette = palette
        self.n_samples = n_samples
        self.n_images = n_images
        self.random_state = random_state
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose
        self.callback = callback

    @whole_or_nothing
    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Learn the palette, unless it is given.

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
        self.palette_ = self._learn_palette(images) if self.palette is None else _as_palette(self.palette)
        return self

    @property
    def vocabulary_(self) -> Vocabulary:
        """The colors as features."""
        return Vocabulary.of_colors(self.palette_.round().astype(np.uint8))

    def transform(self, images: Iterable[Any]) -> Stream:
        """Compute the map of colors of every image.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns, 3)
            Paths, arrays, or a generator of either.

        Returns
        -------
        maps : Stream of FeatureMap
            Maps of colors, computed while they are iterated.
        """
        check_is_fitted(self)
        return super().transform(images)

    def _restored(self) -> None:
        super()._restored()
        check_array(self, "palette_", "f", (None, 3))
        _as_palette(self.palette_)

    def _learn_palette(self, images: Iterable[Any]) -> NDArray[np.float32]:
        blocks = self._pixels(images).then(lambda pixels: block_means(pixels, self.step).reshape(-1, 3))
        [sample] = kmeans.gather(
            blocks, len, lambda rows, places: (rows[places],), self.n_samples, self.n_images, self.random_state
        )
        distinct = np.unique(sample, axis=0)
        if len(distinct) <= self.n_colors:
            return distinct
        return kmeans.k_means(sample, self.n_colors, 100, self.random_state)

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        step = self.settings_.step
        means = block_means(pixels, step)
        labels = kmeans.nearest(means.reshape(-1, 3), self.palette_).reshape(means.shape[:2])
        return FeatureMap(labels, (0, 0), step, step, pixels.shape[:2], n_features=len(self.palette_))


def block_means(pixels: NDArray[np.uint8], step: int) -> NDArray[np.float32]:
    """Compute the mean color of each block of `step` by `step` pixels; incomplete blocks are left out."""
    if step == 1:
        return pixels.astype(np.float32)
    step = min(step, *pixels.shape[:2])
    rows, columns = (n // step for n in pixels.shape[:2])
    blocks = pixels[: rows * step, : columns * step].reshape(rows, step, columns, step, 3)
    return blocks.mean(axis=(1, 3), dtype=np.float32)


def _as_palette(palette: Any) -> NDArray[np.float32]:
    colors = np.asarray(palette, dtype=np.float32)
    if colors.ndim != 2 or colors.shape[1] != 3 or len(colors) < 2 or colors.min() < 0 or colors.max() > 255:
        raise ValueError(
            f"palette of shape {colors.shape} must be at least two colors of three numbers from 0 to 255; "
            "use for instance palette=[(0, 0, 0), (255, 255, 255)]."
        )
    return colors
