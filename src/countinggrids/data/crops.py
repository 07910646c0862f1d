"""Crops of images that show what features are, where their descriptors came without images."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.geometry import Shape
from countinggrids.data.items import Items
from countinggrids.features import image_files
from countinggrids.features.maps import FeatureMap
from countinggrids.features.outside import SIDE
from countinggrids.features.stream import BadItemError

GRAY = 128
"""Gray level of the crop of a feature whose image cannot be read."""


class CropFinder:
    """Finds the place at which each feature is clearest, and cuts it out of the image.

    Parameters
    ----------
    n_features : int
        Number of features.
    """

    def __init__(self, n_features: int):
        self.scores = np.full(n_features, -np.inf)
        self.images = np.full(n_features, -1)
        self.places = np.zeros(n_features, np.int64)
        self.shapes: dict[int, Shape] = {}
        self.crops = np.full((n_features, SIDE, SIDE, 3), GRAY, np.uint8)

    def see(self, index: int, found: FeatureMap, scores: NDArray[Any], places: NDArray[np.int64]) -> None:
        """Note where the features of an image are clearer than in those before.

        Parameters
        ----------
        index : int
            Number of the image.
        found : FeatureMap
            Its descriptors.
        scores : ndarray of shape (n_features,)
            How clear each feature is.
        places : ndarray of shape (n_features,)
            Flat indices of the places.
        """
        better = np.flatnonzero(scores > self.scores)
        self.scores[better], self.places[better], self.images[better] = scores[better], places[better], index
        self.shapes[index] = found.shape[:2]
        if found.image is not None and better.size:
            self.images[better] = -1
            self.crops[better] = [image_files.resized(each, (SIDE, SIDE)) for each in found.cut(places[better])]

    def cut(self, items: Items) -> NDArray[np.uint8] | None:
        """Cut the features that were seen without an image out of the files of the items.

        Parameters
        ----------
        items : Items
            The items, by whose numbers images were seen.

        Returns
        -------
        crops : ndarray of shape (n_features, side, side, 3) or None
            Crops; None if not one image can be read.
        """
        n_cut = int((self.images < 0).sum())
        for index in np.unique(self.images[self.images >= 0]).tolist():
            features = np.flatnonzero(self.images == index)
            rows, columns = self.shapes[index]
            try:
                pixels = image_files.read(items.path(index), is_color=True, max_side=SIDE * max(rows, columns))
            except BadItemError:
                continue
            image = image_files.resized(pixels, (rows * SIDE, columns * SIDE))
            tiles = image.reshape(rows, SIDE, columns, SIDE, 3).swapaxes(1, 2)
            self.crops[features] = tiles.reshape(-1, SIDE, SIDE, 3)[self.places[features]]
            n_cut += len(features)
        return self.crops if n_cut else None
