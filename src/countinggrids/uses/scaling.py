"""Bags made ready for grids: brought to one number of tokens, or to coarser sections."""

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from countinggrids.bags import coarsen
from countinggrids.geometry import Shape, as_shape


class BagScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scales every bag to the same number of tokens.

    The features of an image overlap and are far from independent draws, so that a likelihood that takes them for
    independent is overconfident. Bags of about 100 tokens are often classified better than the raw counts. Features
    also come in bursts: a wall of bricks has many of the same. A power below one tells them less often.

    Parameters
    ----------
    tokens : the sum of every bag afterwards; empty bags stay empty. None does not scale
    power : of the counts, before they are scaled; 1 leaves them as they are

    Examples
    --------
    >>> from countinggrids.uses import BagScaler
    >>> BagScaler(10).fit_transform([[1, 4], [20, 0], [0, 0]])
    array([[ 2.,  8.],
           [10.,  0.],
           [ 0.,  0.]])
    """

    def __init__(self, tokens: float | None = 100.0, power: float = 1.0):
        self.tokens = tokens
        self.power = power

    def fit(self, X: Any, y: object = None) -> Self:
        """Check X; there is nothing to learn."""
        validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if self.tokens is not None and not self.tokens > 0:
            raise ValueError(f"tokens is {self.tokens}; wanted a number above 0 or None; give for instance tokens=100")
        if not 0 < self.power < np.inf:
            raise ValueError(f"power is {self.power}; wanted a number above 0; give for instance power=0.6")
        return self

    def transform(self, X: Any) -> Any:
        """Scale the bags."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.power != 1:
            X = _raised(X, self.power)
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


class BagCoarsener(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Adds sections up to coarser ones.

    Parameters
    ----------
    sections : sections of the bags that come out, along each axis; an integer stands for all axes
    x_sections : sections of the bags that go in, one number per axis

    Examples
    --------
    >>> from countinggrids.uses import BagCoarsener
    >>> BagCoarsener(sections=(1, 2), x_sections=(2, 2)).fit_transform([[1, 2, 3, 4]])
    array([[4, 6]])
    """

    def __init__(self, sections: int | Sequence[int] = 1, x_sections: Sequence[int] = (1, 1)):
        self.sections = sections
        self.x_sections = x_sections

    def fit(self, X: Any, y: object = None) -> Self:
        """Check that the sections go into X; there is nothing to learn."""
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric")
        self._shapes(X.shape[1])
        return self

    def transform(self, X: Any) -> Any:
        """Give the bags at the coarser sections, (bags, sections * features)."""
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        fine, coarse = self._shapes(X.shape[1])
        return X if fine == coarse else coarsen(X, X.shape[1] // prod(fine), fine, coarse)

    def _shapes(self, n_columns: int) -> tuple[Shape, Shape]:
        fine = as_shape(self.x_sections, "x_sections")
        coarse = as_shape(self.sections, "sections", len(fine))
        if n_columns % prod(fine):
            raise ValueError(f"X has {n_columns} columns; wanted a multiple of the {prod(fine)} sections {fine}")
        if any(f % c for f, c in zip(fine, coarse, strict=True)):
            raise ValueError(f"sections {coarse} must divide those of X, {fine}")
        return fine, coarse

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        return tags


def _raised(X: Any, power: float) -> Any:
    """Raise counts to a power; those that are not there stay so."""
    if not sp.issparse(X):
        return np.sign(X) * np.abs(X) ** X.dtype.type(power)
    raised = X.copy()
    raised.data = np.sign(X.data) * np.abs(X.data) ** X.dtype.type(power)
    return raised
