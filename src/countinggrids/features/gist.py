"""Gist: the energy of oriented filters of several scales in the blocks of an image."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features import image_files
from countinggrids.features.stream import Progress
from countinggrids.features.transformer import ImageTransformer

Array = NDArray[np.float64]
HIGHEST = 0.3
"""Center frequency of the finest scale, in cycles per pixel: well below the Nyquist frequency of 0.5."""
RATIO = 1.85
"""Ratio of the center frequencies of adjacent scales."""
BANDWIDTH = 0.38
"""Standard deviation of a filter along frequency, as a fraction of its center frequency."""
OVERLAP = 0.6
"""Standard deviation of a filter along angle, as a fraction of the angle between orientations."""
WIDE = 4.0
"""Cutoff of the low-pass filter of local mean and contrast, in cycles per image."""
FAINT = 0.2
"""Added to the local contrast, so that noise is not amplified."""
PADDING = 16
"""Pixels of mirrored padding, so that opposite borders do not interact."""


class Gist(ImageTransformer):
    """Gist descriptors: the mean energy of oriented filters in the blocks of an image.

    Gray images are resized to squares, and the logarithm of their brightness is normalized by its local mean and
    contrast. Filters are Gaussians in the frequency domain, each with a scale and an orientation; the magnitude of
    their complex responses is averaged over each block. Torralba et al. recognize places with such descriptors. A
    broken image always raises: every row of the result is an image.

    Parameters
    ----------
    size : int, default=128
        Pixels along each side to which images are resized.
    orientations : sequence of int, default=(8, 8, 4, 4)
        Number of orientations of each scale, finest first.
    blocks : int, default=4
        Blocks along each side.
    n_jobs : int, default=None
        Number of threads; None uses as many as the models do.
    verbose : int, default=0
        Whether progress is logged to stderr, every two seconds.
    callback : callable, default=None
        Called after each image with the number of images done, and of all images or None.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import Gist
    >>> stripes = np.tile([[0.0, 0.0, 1.0, 1.0]], (64, 16))
    >>> Gist().transform([stripes, stripes.T]).shape
    (2, 384)
    """

    _is_color = False
    max_side = None
    on_error = "raise"

    def __init__(
        self,
        size: int = 128,
        orientations: Sequence[int] = (8, 8, 4, 4),
        blocks: int = 4,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Progress | None = None,
    ):
        self.size = size
        self.orientations = orientations
        self.blocks = blocks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def transform(self, images: Iterable[Any]) -> Array:  # type: ignore[override]
        """Compute the descriptor of every image.

        Parameters
        ----------
        images : iterable of path-like or array-like of shape (n_rows, n_columns) or (n_rows, n_columns, 3)
            Paths, arrays, or a generator of either.

        Returns
        -------
        descriptors : ndarray of shape (n_images, blocks * blocks * n_filters)
            Descriptors, block by block.
        """
        found = list(super().transform(images))
        if not found:
            raise ValueError("images is empty; expected at least one image; check the list of paths.")
        return np.stack(found)

    def _map(self, pixels: NDArray[np.uint8]) -> Array:
        image = image_files.pillow().fromarray(pixels)
        square = image.resize((self.size, self.size), image_files.pillow().Resampling.BILINEAR)
        energy = responses(normalized(np.asarray(square)), tuple(self.orientations))
        side = self.size // self.blocks
        means = energy.reshape(len(energy), self.blocks, side, self.blocks, side).mean(axis=(2, 4))
        return means.transpose(1, 2, 0).ravel()

    def _check_options(self) -> None:
        for name in ("size", "blocks", "orientations"):
            value = getattr(self, name)
            numbers = np.ravel(value)
            if not numbers.size or numbers.dtype.kind not in "iu" or numbers.min() < 1:
                raise ValueError(f"{name}={value!r} must be integers of at least 1; use for instance 4.")
        if self.size % self.blocks:
            fitting = self.size // self.blocks * self.blocks or self.blocks
            raise ValueError(f"blocks={self.blocks} must divide size={self.size}; use for instance size={fitting}.")


def normalized(pixels: NDArray[np.uint8]) -> Array:
    """Normalize the logarithm of the brightness by its local mean and contrast."""
    bright = _padded(np.log1p(pixels.astype(np.float64)))
    rows, columns = _frequencies(*bright.shape)
    # The filter is one half at WIDE cycles per image.
    wide = np.exp(-np.log(2) * (rows**2 + columns**2) / (WIDE / max(pixels.shape)) ** 2)
    detail = bright - _filtered(bright, wide).real
    contrast = np.sqrt(np.maximum(_filtered(detail**2, wide).real, 0))
    return _cropped(detail / (FAINT + contrast))


def responses(image: Array, orientations: tuple[int, ...]) -> Array:
    """Compute the magnitude of the response of each filter, (n_filters, n_rows, n_columns)."""
    padded = _padded(image)
    spectrum = np.fft.fft2(padded)
    found = np.abs(np.fft.ifft2(spectrum * filters(*padded.shape, orientations)))
    return _cropped(found)


@lru_cache(maxsize=4)
def filters(height: int, width: int, orientations: tuple[int, ...]) -> Array:
    """Compute the transfer functions, (n_filters, n_rows, n_columns), with the frequency zero at the corner.

    The first filter of each scale responds to vertical stripes, the others to stripes turned clockwise step by step.
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
    """Return the frequencies along rows, (n_rows, 1), and along columns, (1, n_columns), in cycles per pixel."""
    down, across = (np.asarray(np.fft.fftfreq(n), np.float64) for n in (height, width))
    return down[:, None], across[None]


def _filtered(image: Array, transfer: Array) -> NDArray[np.complex128]:
    return np.fft.ifft2(np.fft.fft2(image) * transfer)


def _padded(image: Array) -> Array:
    return np.pad(image, PADDING, mode="symmetric")


def _cropped(planes: Array) -> Array:
    return planes[..., PADDING:-PADDING, PADDING:-PADDING]
