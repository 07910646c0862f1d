"""Feature maps: what was found at regular places of an image."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.geometry import Shape


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features at regular places of one image; an array of it is its values, so `countinggrids.bag` takes it as it is.

    Attributes
    ----------
    values : (rows, columns) labels, or (rows, columns, dimensions) descriptors before they are quantised
    origin : row and column of the pixel at the corner of the first patch
    step : pixels from one patch to the next
    patch : pixels along each side of a patch
    size : height and width of the image in pixels
    image : the pixels, where a codebook may still want to cut patches from them
    """

    values: NDArray[Any]
    origin: Shape
    step: int
    patch: int
    size: Shape
    image: NDArray[np.uint8] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def shape(self) -> Shape:
        return self.values.shape

    def corners(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the pixel rows and the pixel columns at which patches begin."""
        rows, columns = (o + self.step * np.arange(n) for o, n in zip(self.origin, self.shape, strict=False))
        return rows, columns

    def cut(self, places: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        """Cut the patches at flat places out of the image: (places, patch, patch), then colours if there are any."""
        assert self.image is not None
        rows, columns = self.corners()
        at_row, at_column = np.divmod(places, self.shape[1])
        inside = np.arange(self.patch)
        down = np.clip(rows[at_row, None] + inside, 0, self.size[0] - 1)
        across = np.clip(columns[at_column, None] + inside, 0, self.size[1] - 1)
        return self.image[down[:, :, None], across[:, None, :]]


def patch_corners(length: int, patch: int, step: int) -> NDArray[np.int64]:
    """Place as many patches along one side as fit, centred; at least one, even where it hangs over the edge."""
    n = max(0, length - patch) // step + 1
    margin = (length - patch - (n - 1) * step) // 2
    return margin + step * np.arange(n)
