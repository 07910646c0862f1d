"""Bags brought to one number of tokens."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data


class BagScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scales every bag to the same number of tokens.

    The features of an image overlap and are far from independent draws, so that a likelihood that takes them for
    independent is overconfident. Bags of about 100 tokens are often classified better than the raw counts.

    Parameters
    ----------
    tokens : the sum of every bag afterwards; empty bags stay empty. None leaves bags as they are

    Examples
    --------
    >>> from countinggrids.uses import BagScaler
    >>> BagScaler(10).fit_transform([[1, 4], [20, 0], [0, 0]])
    array([[ 2.,  8.],
           [10.,  0.],
           [ 0.,  0.]])
    """

    def __init__(self, tokens: float | None = 100.0):
        self.tokens = tokens

    def fit(self, X: Any, y: object = None) -> Self:
        """Check X; there is nothing to learn."""
        validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if self.tokens is not None and not self.tokens > 0:
            raise ValueError(f"tokens is {self.tokens}; wanted a number above 0 or None; give for instance tokens=100")
        return self

    def transform(self, X: Any) -> Any:
        """Scale the bags."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.tokens is None:
            return X
        total = np.asarray(X.sum(axis=1)).ravel()
        factor = (self.tokens / np.where(total > 0, total, self.tokens)).astype(X.dtype)
        return X.multiply(factor[:, None]).tocsr() if sp.issparse(X) else X * factor[:, None]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        return tags
