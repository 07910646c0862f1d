"""What the features are: words, colours, patches or labels, for people to read and for grids to be painted with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The features of a collection.

    Attributes
    ----------
    kind : "words", "colours", "patches" or "labels"
    names : a name for each feature
    colours : (features, 3) uint8, where features have colours
    patches : (features, patch, patch, 3) uint8, where features have patches
    """

    kind: str
    names: tuple[str, ...]
    colours: NDArray[np.uint8] | None = None
    patches: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of_patches(cls, patches: NDArray[np.uint8] | None, n: int) -> Self:
        colours = None if patches is None else patches.mean(axis=(1, 2)).round().astype(np.uint8)
        return cls("patches", tuple(f"word {i}" for i in range(n)), colours, patches)

    @classmethod
    def of_colours(cls, colours: NDArray[np.uint8]) -> Self:
        return cls("colours", tuple("#" + bytes(colour.tolist()).hex() for colour in colours), colours)

    def take(self, features: Sequence[int] | NDArray[Any]) -> "Vocabulary":
        """Give the vocabulary of some of the features."""
        chosen = np.asarray(features)
        colours, patches = (None if part is None else part[chosen] for part in (self.colours, self.patches))
        return Vocabulary(self.kind, tuple(self.names[i] for i in chosen), colours, patches)
