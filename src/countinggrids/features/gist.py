"""Gist: how much of each scale and orientation there is in each part of an image."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features import pictures
from countinggrids.features.stream import Verbose
from countinggrids.features.transformer import ImageTransformer

Array = NDArray[np.float64]
HIGHEST = 0.3  # cycles per pixel at the middle of the finest scale: well below the 0.5 that pixels can hold
RATIO = 1.85  # from the frequency of one scale to that of the next
BANDWIDTH = 0.38  # of a filter along frequency: the deviation of a Gaussian, in parts of its middle
OVERLAP = 0.6  # of a filter along angle: the deviation of a Gaussian, in parts of the angle to the next orientation
WIDE = 4.0  # cycles per image up to which the local mean and contrast follow the image
FAINT = 0.2  # added to the local contrast: what is fainter is not blown up
PADDING = 16  # pixels around the image, mirrored, so that the opposite borders do not meet


class Gist(ImageTransformer):
    """Describes whole images by the mean energy of oriented filters in the blocks of a grid.

    Grey images are brought to one size, their brightness to its logarithm, and the local mean and contrast of that are
    taken out. Filters are Gaussians in the frequency domain, each with a scale and an orientation; the length of
    their complex responses is averaged over each block. This is what Torralba's places are told apart by. A broken
    image is always raised: every row of the result is an image.

    Parameters
    ----------
    size : pixels along each side to which images are brought
    orientations : of the filters of each scale, finest first
    blocks : along each side
    n_jobs : threads; None takes as many as the models use
    verbose : 1 writes a line to stderr every two seconds; a function is told how many images are done, and of how
        many, or None

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import Gist
    >>> stripes = np.tile([[0.0, 0.0, 1.0, 1.0]], (64, 16))
    >>> Gist().transform([stripes, stripes.T]).shape
    (2, 384)
    """

    _is_colour = False
    max_side = None
    on_error = "raise"

    def __init__(
        self,
        size: int = 128,
        orientations: Sequence[int] = (8, 8, 4, 4),
        blocks: int = 4,
        n_jobs: int | None = None,
        verbose: Verbose = 0,
    ):
        self.size = size
        self.orientations = orientations
        self.blocks = blocks
        self.n_jobs = n_jobs
        self.verbose = verbose

    def transform(self, images: Iterable[Any]) -> Array:  # type: ignore[override]
        """Give the descriptor of every image, (images, blocks * blocks * filters), block by block."""
        found = list(super().transform(images))
        if not found:
            raise ValueError("there are no images; wanted at least one; check the list of paths")
        return np.stack(found)

    def _map(self, pixels: NDArray[np.uint8]) -> Array:
        image = pictures.pillow().fromarray(pixels)
        square = image.resize((self.size, self.size), pictures.pillow().Resampling.BILINEAR)
        energy = responses(normalised(np.asarray(square)), tuple(self.orientations))
        side = self.size // self.blocks
        means = energy.reshape(len(energy), self.blocks, side, self.blocks, side).mean(axis=(2, 4))
        return means.transpose(1, 2, 0).ravel()

    def _check_options(self) -> None:
        for name in ("size", "blocks", "orientations"):
            value = getattr(self, name)
            numbers = np.ravel(value)
            if not numbers.size or numbers.dtype.kind not in "iu" or numbers.min() < 1:
                raise ValueError(f"{name} is {value!r}; wanted integers of at least 1; give for instance 4")
        if self.size % self.blocks:
            wanted = self.size // self.blocks * self.blocks or self.blocks
            raise ValueError(f"blocks {self.blocks} must divide size {self.size}; try size {wanted}")


def normalised(pixels: NDArray[np.uint8]) -> Array:
    """Take the local mean and contrast out of the logarithm of the brightness."""
    bright = _padded(np.log1p(pixels.astype(np.float64)))
    rows, columns = _frequencies(*bright.shape)
    # At WIDE cycles per image the filter has come down to a half.
    wide = np.exp(-np.log(2) * (rows**2 + columns**2) / (WIDE / max(pixels.shape)) ** 2)
    detail = bright - _filtered(bright, wide).real
    contrast = np.sqrt(np.maximum(_filtered(detail**2, wide).real, 0))
    return _cropped(detail / (FAINT + contrast))


def responses(image: Array, orientations: tuple[int, ...]) -> Array:
    """Give how strongly each filter responds at each pixel, (filters, rows, columns)."""
    padded = _padded(image)
    spectrum = np.fft.fft2(padded)
    found = np.abs(np.fft.ifft2(spectrum * filters(*padded.shape, orientations)))
    return _cropped(found)


@lru_cache(maxsize=4)
def filters(height: int, width: int, orientations: tuple[int, ...]) -> Array:
    """Make the transfer functions, (filters, rows, columns), with the frequency zero at the corner.

    The first filter of each scale responds to upright stripes, the others to stripes turned clockwise step by step.
    """
    rows, columns = _frequencies(height, width)
    frequency, angle = np.hypot(rows, columns), np.arctan2(rows, columns)
    made = []
    for scale, n in enumerate(orientations):
        middle = HIGHEST / RATIO**scale
        radial = np.exp(-(((frequency / middle - 1) / BANDWIDTH) ** 2) / 2)
        for i in range(n):
            turned = angle - np.pi * i / n
            turned -= 2 * np.pi * np.round(turned / (2 * np.pi))
            made.append(radial * np.exp(-((turned / (np.pi / n * OVERLAP)) ** 2) / 2))
    bank = np.stack(made)
    bank[:, 0, 0] = 0  # the mean of an image has no orientation
    return bank


def _frequencies(height: int, width: int) -> tuple[Array, Array]:
    """Give the frequencies along rows, (rows, 1), and along columns, (1, columns), in cycles per pixel."""
    down, across = (np.asarray(np.fft.fftfreq(n), np.float64) for n in (height, width))
    return down[:, None], across[None]


def _filtered(image: Array, transfer: Array) -> NDArray[np.complex128]:
    return np.fft.ifft2(np.fft.fft2(image) * transfer)


def _padded(image: Array) -> Array:
    return np.pad(image, PADDING, mode="symmetric")


def _cropped(planes: Array) -> Array:
    return planes[..., PADDING:-PADDING, PADDING:-PADDING]
