"""The vocabulary: what each feature is, a word, color, patch or label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The features of a collection.

    Parameters
    ----------
    kind : {"words", "colors", "patches", "labels"}
        What the features are.
    names : tuple of str
        Name of each feature.
    colors : ndarray of shape (n_features, 3), default=None
        Color of each feature, uint8.
    patches : ndarray of shape (n_features, patch, patch, 3), default=None
        Patch of each feature, uint8.

    Examples
    --------
    >>> from countinggrids.features import Vocabulary
    >>> Vocabulary("words", ("cup", "tea")).take([1]).names
    ('tea',)
    """

    kind: str
    names: tuple[str, ...]
    colors: NDArray[np.uint8] | None = None
    patches: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        for name, part, n_axes in (("colors", self.colors, 2), ("patches", self.patches, 4)):
            if part is not None and (part.ndim != n_axes or (len(part), part.shape[-1]) != (len(self.names), 3)):
                raise ValueError(
                    f"{name} of shape {part.shape} must be RGB of each of {len(self.names)} features; "
                    "check how the vocabulary was made."
                )

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of_patches(cls, patches: NDArray[np.uint8] | None, n: int) -> Self:
        """Return the vocabulary of n visual words with their patches, if these are known."""
        colors = None if patches is None else patches.mean(axis=(1, 2)).round().astype(np.uint8)
        return cls("patches", tuple(f"word {i}" for i in range(n)), colors, patches)

    @classmethod
    def of_colors(cls, colors: NDArray[np.uint8]) -> Self:
        """Return the vocabulary of a palette, (n_features, 3)."""
        return cls("colors", tuple("#" + bytes(color.tolist()).hex() for color in colors), colors)

    def take(self, features: Sequence[int] | NDArray[Any]) -> "Vocabulary":
        """Return the vocabulary of some of the features.

        Parameters
        ----------
        features : sequence of int
            Indices of features.

        Returns
        -------
        vocabulary : Vocabulary
            A new vocabulary.
        """
        chosen = np.asarray(features)
        colors, patches = (None if part is None else part[chosen] for part in (self.colors, self.patches))
        return Vocabulary(self.kind, tuple(self.names[i] for i in chosen), colors, patches)
