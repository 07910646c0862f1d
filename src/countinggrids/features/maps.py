"""Feature maps: features at regular places of an image."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.geometry import Shape


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features at regular places of one image; NumPy and `countinggrids.bag` take it as the array of its values.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_dimensions)
        Features, or descriptors before they are quantized. With weights, several features of each place.
    origin : tuple of int
        Row and column of the first pixel of the first patch.
    step : int
        Pixels from one patch to the next.
    patch : int
        Pixels along each side of a patch.
    size : tuple of int
        Height and width of the image.
    image : ndarray of shape (height, width) or (height, width, 3), default=None
        The pixels, if a codebook may need patches of them; those of a resized image, if patches are cut from that.
    weights : ndarray of shape (n_rows, n_columns, n_dimensions), default=None
        How much each feature of a place counts.
    n_features : int, default=None
        Number of features that values are taken from, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import FeatureMap
    >>> feature_map = FeatureMap(np.array([[0, 1], [1, 1]]), (0, 0), 8, 16, (24, 24))
    >>> feature_map.shape, np.bincount(np.asarray(feature_map).ravel()).tolist()
    ((2, 2), [1, 3])
    """

    values: NDArray[Any]
    origin: Shape
    step: int
    patch: int
    size: Shape
    image: NDArray[np.uint8] | None = None
    weights: NDArray[np.float32] | None = None
    n_features: int | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def shape(self) -> Shape:
        """Shape of the values."""
        return self.values.shape

    def corners(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where patches begin.

        Returns
        -------
        rows : ndarray of shape (n_rows,)
            Rows of pixels.
        columns : ndarray of shape (n_columns,)
            Columns of pixels.
        """
        rows, columns = (o + self.step * np.arange(n) for o, n in zip(self.origin, self.shape, strict=False))
        return rows, columns

    def cut(self, places: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        """Cut patches out of the image.

        Parameters
        ----------
        places : ndarray of shape (n_places,)
            Flat indices of values.

        Returns
        -------
        patches : ndarray of shape (n_places, patch, patch) or (n_places, patch, patch, 3)
            The pixels.
        """
        assert self.image is not None
        rows, columns = self.corners()
        at_row, at_column = np.divmod(places, self.shape[1])
        inside = np.arange(self.patch)
        down = np.clip(rows[at_row, None] + inside, 0, self.image.shape[0] - 1)
        across = np.clip(columns[at_column, None] + inside, 0, self.image.shape[1] - 1)
        return self.image[down[:, :, None], across[:, None, :]]


def patch_corners(length: int, patch: int, step: int) -> NDArray[np.int64]:
    """Return where patches begin along one side: as many as fit, centered, and at least one, even if it is larger."""
    n = max(0, length - patch) // step + 1
    margin = (length - patch - (n - 1) * step) // 2
    return margin + step * np.arange(n)
