"""Online filtering of one sequence, and sequences as slices of a table."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.meta import chain as chains
from countinggrids.meta.options import is_integer

Array = NDArray[Any]


class Tracking:
    """Online filtering of one sequence.

    Parameters
    ----------
    tracker : PlaceTracker
        A fitted tracker.

    Attributes
    ----------
    log_posterior : ndarray of shape (n_places,) or None
        The current log p(place | frames so far); None before the first frame.
    """

    def __init__(self, tracker: Any):
        self.tracker = tracker
        self.log_posterior: Array | None = None

    def step(self, bag: Any) -> Array:
        """Filter the next frame.

        Parameters
        ----------
        bag : array-like or sparse matrix of shape (1, n_columns)
            The frame.

        Returns
        -------
        probabilities : ndarray of shape (n_places,)
            The filtered p(place | frames so far).
        """
        scores = self.tracker._scores(bag)
        if len(scores) != 1:
            raise ValueError(f"bag has {len(scores)} rows but must be one frame; call step for each frame.")
        filtered, _ = chains.forward(self.tracker.chain_, scores, self.log_posterior)
        self.log_posterior = filtered[0]
        return np.exp(filtered[0])


def sequences(n_frames: int, lengths: Sequence[int] | None) -> list[slice]:
    """Cut frames into sequences."""
    sizes = [n_frames] if lengths is None else list(lengths)
    if not sizes or not all(is_integer(n) for n in sizes):
        raise ValueError(f"lengths={sizes} must be integers of at least 1; leave out empty sequences.")
    if sum(sizes) != n_frames:
        raise ValueError(f"lengths={sizes} sums to {sum(sizes)} but X has {n_frames} frames; count every frame once.")
    ends = np.cumsum([0, *sizes])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
