"""Dense SIFT: histograms of gradient orientations in patches at regular places."""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.features.maps import FeatureMap, patch_corners
from countinggrids.features.stream import Progress
from countinggrids.features.transformer import ImageTransformer, document

BINS, DIRECTIONS = 4, 8
DENSE_UP_TO = 768
"""Pixels along a side up to which a product with dense weights is faster than one with sparse weights."""
LARGEST = 0.2
"""Largest entry of a normalized descriptor, for robustness to changes of lighting."""
Array = NDArray[np.float32]


@document
class DenseSIFT(ImageTransformer):
    """SIFT descriptors of patches at regular places: four by four bins of eight orientations, 128 numbers.

    A gradient is distributed over the four bins around it by its distance from their centers, and contributes to an
    orientation by the ninth power of the cosine between the two. Descriptors have norm 1, except for those of patches
    with little contrast: their norm is smaller, down to zero for a constant patch, so that noise in a clear sky does
    not look like structure.

    Parameters
    ----------
    patch : int, default=16
        Pixels along each side of a patch; an image smaller than that has one patch.
    step : int, default=8
        Pixels from one patch to the next.
    contrast : float, default=1.5
        Mean gradient, in gray levels per pixel, from which on descriptors have norm 1.
    {options}

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import DenseSIFT
    >>> ramp = np.linspace(0, 1, 64)[None].repeat(48, axis=0)
    >>> [feature_map] = DenseSIFT().transform([ramp])
    >>> feature_map.shape
    (5, 7, 128)
    """

    _is_color = False

    def __init__(
        self,
        patch: int = 16,
        step: int = 8,
        contrast: float = 1.5,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.patch = patch
        self.step = step
        self.contrast = contrast
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose
        self.callback = callback

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        values = describe(pixels, self.patch, self.step, self.contrast)
        origin = tuple(int(patch_corners(n, self.patch, self.step)[0]) for n in pixels.shape)
        return FeatureMap(values, origin, self.step, self.patch, pixels.shape, pixels)


def describe(pixels: NDArray[np.uint8], patch: int, step: int, contrast: float) -> Array:
    """Compute the descriptors of one gray image, (n_rows, n_columns, 128)."""
    (down, rows), (across, columns) = (_bins(n, patch, step) for n in pixels.shape)
    parts = _directions(pixels)
    halfway = parts @ across.T if isinstance(across, np.ndarray) else np.stack([(across @ part.T).T for part in parts])
    pooled = np.stack([down @ part for part in halfway])
    bins = pooled.transpose(1, 2, 0)[rows[:, None, :, None], columns[None, :, None, :]]
    return _normalized(bins.reshape(len(rows), len(columns), -1), contrast * BINS * (patch / BINS) ** 2)


def _directions(pixels: NDArray[np.uint8]) -> Array:
    """Split the gradient at each pixel into eight directions, (8, n_rows, n_columns)."""
    gray = np.pad(pixels, 1, mode="edge").astype(np.float32)
    dx = (gray[1:-1, 2:] - gray[1:-1, :-2]) / 2
    dy = (gray[2:, 1:-1] - gray[:-2, 1:-1]) / 2
    length = np.sqrt(dx * dx + dy * dy)
    scale = 1 / np.maximum(length, np.float32(1e-3))
    dx *= scale
    dy *= scale
    parts = np.empty((DIRECTIONS, *pixels.shape), np.float32)
    for i in range(DIRECTIONS // 2):
        angle = i * 2 * np.pi / DIRECTIONS
        cosine = dx * np.float32(np.cos(angle)) + dy * np.float32(np.sin(angle))
        eighth = np.square(np.square(np.square(cosine)))
        part = eighth * cosine * length
        np.maximum(part, 0, out=parts[i])
        np.maximum(-part, 0, out=parts[i + DIRECTIONS // 2])
    return parts


@lru_cache(maxsize=16)
def _bins(length: int, patch: int, step: int) -> tuple[Any, NDArray[np.intp]]:
    """Compute the weight of each pixel in each bin along one side, and the bins of each patch, (n_patches, 4).

    Where the step allows it, patches have bins in common, which are summed once.
    """
    width = patch / BINS
    centers = patch_corners(length, patch, step)[:, None] + width * (np.arange(BINS) + 0.5) - 0.5
    distinct, which = np.unique(centers, return_inverse=True)
    weights = np.maximum(0, 1 - np.abs(np.arange(length) - distinct[:, None]) / width)
    weights = weights.astype(np.float32)
    return weights if length <= DENSE_UP_TO else sp.csr_array(weights), which.reshape(centers.shape)


def _normalized(descriptors: Array, faint: float) -> Array:
    """Scale descriptors to norm 1, or to less where their norm is below `faint`; clip their entries."""
    length = _length(descriptors)
    descriptors = descriptors / np.maximum(length, np.float32(faint))
    np.minimum(descriptors, np.float32(LARGEST), out=descriptors)
    wanted = np.minimum(1, length / np.float32(faint))
    descriptors *= wanted / np.maximum(_length(descriptors), np.float32(1e-9))
    return descriptors


def _length(descriptors: Array) -> Any:
    return np.sqrt(np.einsum("rcd,rcd->rc", descriptors, descriptors))[..., None]
