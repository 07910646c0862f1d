"""Colours as features: every pixel, or block of pixels, becomes an entry of a palette."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countinggrids.features import clusters
from countinggrids.features.maps import FeatureMap
from countinggrids.features.stream import Verbose
from countinggrids.features.transformer import ImageTransformer, document
from countinggrids.features.vocabulary import Vocabulary


@document
class Colours(ImageTransformer):
    """Quantises colours: the palette is learnt by k-means from a random sample of pixels.

    Parameters
    ----------
    n_colours : how many colours; images that have fewer keep theirs
    step : pixels along each side of the blocks whose mean colour is one feature
    palette : (colours, 3) colours from 0 to 255 to use instead of learning them
    n_samples : blocks that k-means sees at the most
    n_images : images they are drawn from, where there are more
    random_state : seed of the sample and of k-means
    {options}

    Attributes
    ----------
    palette_ : (colours, 3) float32, from 0 to 255

    Examples
    --------
    >>> from sklearn.datasets import load_sample_images
    >>> from countinggrids.features import Colours
    >>> photos = load_sample_images().images
    >>> colours = Colours(16, step=8, random_state=0).fit(photos)
    >>> [feature_map.shape for feature_map in colours.transform(photos)]
    [(53, 80), (53, 80)]
    """

    def __init__(
        self,
        n_colours: int = 64,
        step: int = 1,
        palette: Any = None,
        n_samples: int = 100_000,
        n_images: int = 1000,
        random_state: Any = None,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: Verbose = 0,
    ):
        self.n_colours = n_colours
        self.step = step
        self.palette = palette
        self.n_samples = n_samples
        self.n_images = n_images
        self.random_state = random_state
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose

    def fit(self, images: Iterable[Any], y: object = None) -> Self:
        """Learn the palette, unless it was given."""
        self.palette_ = self._learnt(images) if self.palette is None else _as_palette(self.palette)
        return self

    @property
    def vocabulary_(self) -> Vocabulary:
        return Vocabulary.of_colours(self.palette_.round().astype(np.uint8))

    def transform(self, images: Iterable[Any]) -> Any:
        """Give the map of colours of every image, one at a time."""
        check_is_fitted(self)
        return super().transform(images)

    def _learnt(self, images: Iterable[Any]) -> NDArray[np.float32]:
        blocks = self._pixels(images).then(lambda pixels: block_means(pixels, self.step).reshape(-1, 3))
        [sample] = clusters.gather(
            blocks, len, lambda rows, places: (rows[places],), self.n_samples, self.n_images, self.random_state
        )
        distinct = np.unique(sample, axis=0)
        if len(distinct) <= self.n_colours:
            return distinct
        return clusters.k_means(sample, self.n_colours, 100, self.random_state)

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        means = block_means(pixels, self.step)
        labels = clusters.nearest(means.reshape(-1, 3), self.palette_).reshape(means.shape[:2])
        return FeatureMap(labels, (0, 0), self.step, self.step, pixels.shape[:2])


def block_means(pixels: NDArray[np.uint8], step: int) -> NDArray[np.float32]:
    """Give the mean colour of each block of `step` by `step` pixels; blocks that do not fit whole are left out."""
    if step == 1:
        return pixels.astype(np.float32)
    step = min(step, *pixels.shape[:2])
    rows, columns = (n // step for n in pixels.shape[:2])
    blocks = pixels[: rows * step, : columns * step].reshape(rows, step, columns, step, 3)
    return blocks.mean(axis=(1, 3), dtype=np.float32)


def _as_palette(palette: Any) -> NDArray[np.float32]:
    colours = np.asarray(palette, dtype=np.float32)
    if colours.ndim != 2 or colours.shape[1] != 3 or len(colours) < 2 or colours.min() < 0 or colours.max() > 255:
        raise ValueError(
            f"palette has shape {colours.shape}; wanted at least two colours of three numbers from 0 to 255; "
            "give for instance palette=[(0, 0, 0), (255, 255, 255)]"
        )
    return colours
