"""Square-rooted bags: the Hellinger distance between histograms, without any model."""

from typing import Any

from countinggrids.features.saving import Saveable
from countinggrids.meta.matching import BagMatcher
from countinggrids.meta.options import is_number


class RootBags(Saveable, BagMatcher):
    """Represent a bag by the square roots of its counts, whose cosine is the Bhattacharyya coefficient of histograms.

    The square root keeps frequent features from deciding alone. The Euclidean distance of the vectors is the Hellinger
    distance of the histograms times the square root of two, so that scikit-learn's neighbors, linear SVMs and logistic
    regression work on them. Sections of a bag are columns like any others.

    Parameters
    ----------
    power : float, default=0.5
        Power of the counts.

    Attributes
    ----------
    reference_ : ndarray or csr_array of shape (n_bags, n_columns)
        Vectors of the reference bags.
    power_ : float
        Power of the counts at the time of the fit.

    Examples
    --------
    >>> from countinggrids.baselines import RootBags
    >>> RootBags().fit([[9, 16], [16, 9], [0, 1]]).similarity([[16, 9]]).round(2).tolist()
    [[0.96, 1.0, 0.6]]
    """

    def __init__(self, power: float = 0.5):
        self.power = power

    def _vectors(self, X: Any) -> Any:
        return self._raised(X)

    def _restored(self) -> None:
        if len(self.reference_.shape) != 2 or self.reference_.shape[1] != self.n_features_in_:
            raise ValueError(f"reference_ has shape {self.reference_.shape}")
        if not is_number(self.power_) or not self.power_ > 0:
            raise ValueError(f"power_ is {self.power_!r}")
