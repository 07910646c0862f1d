"""TF-IDF bags: features of few reference bags weigh more, as in image retrieval by visual words."""

from typing import Any

from sklearn.feature_extraction.text import TfidfTransformer

from countinggrids.meta.matching import BagMatcher


class TfidfBags(BagMatcher):
    """Represent a bag by its counts times the inverse document frequency of each feature.

    The weights are scikit-learn's, log((1 + n_bags) / (1 + n_bags with the feature)) + 1, from the reference bags.

    Parameters
    ----------
    power : float, default=1.0
        Power of the counts; less than 1 if features come in bursts.

    Attributes
    ----------
    weights_ : TfidfTransformer
        The fitted weights.
    reference_ : csr_array of shape (n_bags, n_columns)
        Vectors of the reference bags.
    power_ : float
        Power of the counts at the time of the fit.

    Examples
    --------
    >>> from countinggrids.baselines import TfidfBags
    >>> TfidfBags().fit([[9, 0, 1], [9, 1, 0], [9, 0, 2]]).similarity([[9, 2, 0]]).argmax(axis=1).tolist()
    [1]
    """

    def __init__(self, power: float = 1.0):
        self.power = power

    def _learn(self, X: Any) -> None:
        super()._learn(X)
        self.weights_ = TfidfTransformer(norm=None).fit(X)

    def _vectors(self, X: Any) -> Any:
        return self.weights_.transform(self._raised(X))
