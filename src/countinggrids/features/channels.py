"""Channels as features: the activations of a network, counted without words."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.features.descriptors import as_map
from countinggrids.features.maps import FeatureMap
from countinggrids.features.projection import of_unit_length
from countinggrids.features.saving import Saveable, check_array, check_count
from countinggrids.features.stream import Stream
from countinggrids.features.vocabulary import Vocabulary


class Channels(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Channels of descriptors as features, without a codebook.

    The descriptor of a place is scaled to length 1 and squared: its channels are counts that sum to one.

    Attributes
    ----------
    n_channels_ : int
        Number of channels.
    patches_ : ndarray of shape (n_channels, patch, patch, 3) or None
        The patch in which each channel is strongest, uint8, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from countinggrids.features import Channels
    >>> activations = [np.array([[[3.0, 4.0], [0.0, 2.0]]])]
    >>> cg.bag(Channels().fit_transform(activations)).toarray().round(2)
    array([[0.36, 1.64]], dtype=float32)
    """

    @whole_or_nothing
    def fit(self, descriptors: Iterable[Any], y: object = None) -> Self:
        """Learn the number of channels.

        Parameters
        ----------
        descriptors : iterable of FeatureMap or array-like of shape (rows, columns, n_channels)
            Feature maps, or arrays of descriptors; the first one is read.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        first = next(iter(descriptors), None)
        if first is None:
            raise ValueError("descriptors=[] must hold at least one array; pass those of the images.")
        self.n_channels_ = as_map(first).shape[-1]
        self.patches_ = None
        return self

    def transform(self, descriptors: Iterable[Any]) -> Stream:
        """Compute the counts of every map of descriptors.

        Parameters
        ----------
        descriptors : iterable of FeatureMap or array-like of shape (rows, columns, n_channels)
            Feature maps, or arrays of descriptors.

        Returns
        -------
        maps : Stream of FeatureMap
            All channels at each place, with weights, computed while they are iterated.
        """
        check_is_fitted(self)
        if isinstance(descriptors, Stream):
            return descriptors.then(self._counts)
        return Stream(descriptors, self._counts)

    @property
    def vocabulary_(self) -> Vocabulary:
        """The channels as features."""
        colors = None if self.patches_ is None else self.patches_.mean(axis=(1, 2)).round().astype(np.uint8)
        names = tuple(f"channel {i}" for i in range(self.n_channels_))
        return Vocabulary("patches", names, colors, self.patches_)

    def best_places(self, item: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return where each channel of a map of descriptors is strongest.

        Parameters
        ----------
        item : FeatureMap or array-like of shape (rows, columns, n_channels)
            Descriptors of an image.

        Returns
        -------
        scores : ndarray of shape (n_channels,)
            The largest count.
        places : ndarray of shape (n_channels,)
            The flat index of its place.
        """
        counts = self._squared(as_map(item, self.n_channels_))
        places = counts.argmax(axis=0)
        return counts[places, np.arange(counts.shape[1])], places

    def _squared(self, given: FeatureMap) -> NDArray[np.float32]:
        vectors = given.values.reshape(-1, given.shape[-1]).astype(np.float32)
        return of_unit_length(vectors) ** 2

    def _counts(self, item: Any) -> FeatureMap:
        given = as_map(item, self.n_channels_)
        labels = np.broadcast_to(np.arange(self.n_channels_, dtype=np.int32), given.shape)
        weights = self._squared(given).reshape(given.shape)
        return FeatureMap(
            labels, given.origin, given.step, given.patch, given.size, weights=weights, n_features=self.n_channels_
        )

    def _restored(self) -> None:
        check_count(self, "n_channels_", most=2**24)
        if self.patches_ is not None:
            check_array(self, "patches_", "u", (self.n_channels_, None, None, 3))
