"""Sequence matching as in SeqSLAM: local contrast, and straight lines through the matrix of similarities."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.meta.options import check_integer
from countinggrids.meta.root_bags import RootBags
from countinggrids.meta.tracking import sequences

Array = NDArray[np.float64]


class SequenceMatcher(BaseEstimator):  # type: ignore[misc]
    """Compare the last frames of a query sequence with runs of the reference walk, at several speeds.

    Similarities are first standardized among neighboring reference frames. The similarity of a query and a reference
    frame is then the mean along the best straight line that ends there, as in SeqSLAM.

    Parameters
    ----------
    matcher : estimator, default=None
        Compares single frames; None stands for `RootBags()`.
    length : int, default=10
        Number of frames of a sequence, up to the current one.
    speeds : sequence of float, default=(0.8, 0.9, 1.0, 1.1, 1.2)
        Reference frames per query frame.
    contrast : int, default=10
        Number of reference frames on either side by which similarities are standardized.

    Attributes
    ----------
    matcher_ : estimator
        The fitted matcher of single frames.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import SequenceMatcher
    >>> walk = np.random.default_rng(0).integers(0, 9, (30, 6))
    >>> SequenceMatcher(length=4).fit(walk).similarity(walk[10:20]).argmax(axis=1).tolist()[4:]
    [14, 15, 16, 17, 18, 19]
    """

    def __init__(
        self,
        matcher: Any = None,
        *,
        length: int = 10,
        speeds: Sequence[float] = (0.8, 0.9, 1.0, 1.1, 1.2),
        contrast: int = 10,
    ):
        self.matcher = matcher
        self.length = length
        self.speeds = speeds
        self.contrast = contrast

    @whole_or_nothing
    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the matcher of single frames to the reference walk.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            The reference walk in temporal order.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted matcher.
        """
        check_integer(self, "length", "contrast")
        speeds = np.asarray(self.speeds, dtype=np.float64)
        if speeds.ndim != 1 or not speeds.size or not np.isfinite(speeds).all():
            raise ValueError(f"speeds={self.speeds!r} must be finite numbers; use speeds=(0.8, 1.0, 1.2).")
        self.matcher_ = clone(RootBags() if self.matcher is None else self.matcher).fit(X)
        self.settings_ = settings_of(self, "length", "speeds", "contrast")
        return self

    def similarity(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Return the similarity of the sequence up to each query with those up to each reference frame.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Queries in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        similarity : ndarray of shape (n_frames, n_references)
            Mean of the standardized similarities along the best line.
        """
        check_is_fitted(self)
        single = enhanced(self.matcher_.similarity(X), self.settings_.contrast)
        found = np.empty_like(single)
        for part in sequences(len(single), lengths):
            found[part] = self._along_lines(single[part])
        return found

    def _along_lines(self, single: Array) -> Array:
        n_frames, n_references = single.shape
        best = np.full(single.shape, -np.inf)
        for speed in self.settings_.speeds:
            total, n = np.zeros_like(single), np.zeros_like(single)
            for back in range(min(self.settings_.length, n_frames)):
                shift = round(back * speed)
                to, start = np.arange(back, n_frames), np.arange(n_frames - back)
                inside = np.arange(max(shift, 0), n_references + min(shift, 0))
                total[np.ix_(to, inside)] += single[np.ix_(start, inside - shift)]
                n[np.ix_(to, inside)] += 1
            np.maximum(best, total / np.maximum(n, 1), out=best)
        return best


def enhanced(similarity: Array, radius: int) -> Array:
    """Subtract the mean of the neighboring reference frames from each similarity, and divide by their deviation."""
    n = similarity.shape[1]
    low, high = np.maximum(np.arange(n) - radius, 0), np.minimum(np.arange(n) + radius + 1, n)
    sums, squares = (np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0))) for each in (similarity, similarity**2))
    counts = high - low
    mean = (sums[:, high] - sums[:, low]) / counts
    variance = np.maximum((squares[:, high] - squares[:, low]) / counts - mean**2, 0)
    return (similarity - mean) / np.sqrt(variance + 1e-12)
