"""Dense SIFT: histograms of gradient directions in patches at regular places."""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.features.maps import FeatureMap, patch_corners
from countinggrids.features.stream import Verbose
from countinggrids.features.transformer import ImageTransformer, document

BINS, DIRECTIONS = 4, 8
DENSE_UP_TO = 768  # pixels along a side up to which a product with all weights beats one with those above zero
LARGEST = 0.2  # no gradient may make up more of a descriptor: what changes with the light is cut off
Array = NDArray[np.float32]


@document
class DenseSIFT(ImageTransformer):
    """Describes patches at regular places by 128 numbers: four by four bins, eight gradient directions in each.

    A gradient counts towards the four bins around it by its distance from their centres, and towards a direction by
    the ninth power of the cosine between the two. Descriptors have length 1, but for those of patches with little
    contrast: they are shorter, down to zero where the patch is flat, so that noise in a clear sky does not look
    like structure.

    Parameters
    ----------
    patch : pixels along each side of a patch; an image smaller than that has one patch, hanging over its edges
    step : pixels from one patch to the next
    contrast : mean gradient, in grey levels per pixel, from which on descriptors have length 1
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

    _is_colour = False

    def __init__(
        self,
        patch: int = 16,
        step: int = 8,
        contrast: float = 1.5,
        max_side: int | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: Verbose = 0,
    ):
        self.patch = patch
        self.step = step
        self.contrast = contrast
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.on_error = on_error
        self.verbose = verbose

    def _map(self, pixels: NDArray[np.uint8]) -> FeatureMap:
        values = describe(pixels, self.patch, self.step, self.contrast)
        origin = tuple(int(patch_corners(n, self.patch, self.step)[0]) for n in pixels.shape)
        return FeatureMap(values, origin, self.step, self.patch, pixels.shape, pixels)


def describe(pixels: NDArray[np.uint8], patch: int, step: int, contrast: float) -> Array:
    """Give the descriptors of one grey image, (rows, columns, 128)."""
    (down, rows), (across, columns) = (_bins(n, patch, step) for n in pixels.shape)
    parts = _directions(pixels)
    halfway = parts @ across.T if isinstance(across, np.ndarray) else np.stack([(across @ part.T).T for part in parts])
    pooled = np.stack([down @ part for part in halfway])
    bins = pooled.transpose(1, 2, 0)[rows[:, None, :, None], columns[None, :, None, :]]
    return _normalised(bins.reshape(len(rows), len(columns), -1), contrast * BINS * (patch / BINS) ** 2)


def _directions(pixels: NDArray[np.uint8]) -> Array:
    """Split the gradient at each pixel into eight directions, (directions, rows, columns)."""
    grey = np.pad(pixels, 1, mode="edge").astype(np.float32)
    dx = (grey[1:-1, 2:] - grey[1:-1, :-2]) / 2
    dy = (grey[2:, 1:-1] - grey[:-2, 1:-1]) / 2
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
    """Give the weight of each pixel in each bin along one side, and which bins each patch has, (patches, 4).

    Patches share bins where the step allows it, so a bin is summed up once.
    """
    width = patch / BINS
    centres = patch_corners(length, patch, step)[:, None] + width * (np.arange(BINS) + 0.5) - 0.5
    distinct, which = np.unique(centres, return_inverse=True)
    weights = np.maximum(0, 1 - np.abs(np.arange(length) - distinct[:, None]) / width)
    weights = weights.astype(np.float32)
    return weights if length <= DENSE_UP_TO else sp.csr_array(weights), which.reshape(centres.shape)


def _normalised(descriptors: Array, faint: float) -> Array:
    """Bring descriptors to length 1, or to less where they were shorter than `faint`; limit single numbers."""
    length = _length(descriptors)
    descriptors = descriptors / np.maximum(length, np.float32(faint))
    np.minimum(descriptors, np.float32(LARGEST), out=descriptors)
    wanted = np.minimum(1, length / np.float32(faint))
    descriptors *= wanted / np.maximum(_length(descriptors), np.float32(1e-9))
    return descriptors


def _length(descriptors: Array) -> Any:
    return np.sqrt(np.einsum("rcd,rcd->rc", descriptors, descriptors))[..., None]
