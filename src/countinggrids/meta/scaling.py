"""Preprocessing of bags: scale them to one number of tokens, or sum sections to coarser ones."""

from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of
from countinggrids.core.geometry import Shape, as_shape
from countinggrids.data.counts import coarsen, tokens_of
from countinggrids.data.validation import check_table
from countinggrids.features.bagger import column_names
from countinggrids.features.saving import Saveable
from countinggrids.meta.options import check_positive

FLOATS = [np.float64, np.float32]


class BagScaler(Saveable, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale every bag to the same number of tokens.

    The features of an image overlap and are far from independent draws, so that a likelihood that takes them for
    independent is overconfident. Bags of about 100 tokens are often classified better than the raw counts. Features
    also come in bursts: a wall of bricks has many of the same. A power below one counts repeated features less.

    Parameters
    ----------
    tokens : float, default=100.0
        Sum of every bag after scaling; empty bags stay empty. None does not scale.
    power : float, default=1.0
        Power of the counts, before they are scaled.

    Attributes
    ----------
    settings_ : namespace
        Parameters at the time of the fit, which `transform` uses; without a fit, it uses the current ones.

    Examples
    --------
    >>> from countinggrids.meta import BagScaler
    >>> BagScaler(10).fit_transform([[1, 4], [20, 0], [0, 0]])
    array([[ 2.,  8.],
           [10.,  0.],
           [ 0.,  0.]])
    """

    def __init__(self, tokens: float | None = 100.0, power: float = 1.0):
        self.tokens = tokens
        self.power = power

    def fit(self, X: Any, y: object = None) -> Self:
        """Check X and keep the parameters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The scaler.
        """
        check_table(self, X, is_fitting=True, dtype=FLOATS)
        self.settings_ = self._checked()
        return self

    def transform(self, X: Any) -> Any:
        """Scale bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        X_scaled : ndarray or csr_array of shape (n_bags, n_columns)
            Scaled counts.
        """
        X = check_table(self, X, is_fitting=False, dtype=FLOATS)
        settings = self.settings_ if hasattr(self, "settings_") else self._checked()
        with np.errstate(over="ignore"):
            if settings.power != 1:
                X = _to_power(X, settings.power)
            total = tokens_of(X)
        if not np.isfinite(total).all():
            row = int(np.argmin(np.isfinite(total)))
            raise ValueError(
                f"the counts of X at row {row} overflow {X.dtype} with power={settings.power}; "
                "divide the counts by a constant, or use a lower power."
            )
        if settings.tokens is None:
            return X
        factor = (settings.tokens / np.where(total > 0, total, settings.tokens)).astype(X.dtype)
        return X.multiply(factor[:, None]).tocsr() if sp.issparse(X) else X * factor[:, None]

    def _checked(self) -> SimpleNamespace:
        """Return the parameters, or raise."""
        settings = settings_of(self, "tokens", "power")
        _check_scaling(settings)
        return settings

    def _restored(self) -> None:
        _check_scaling(self.settings_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        return tags


class BagCoarsener(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sum sections of bags to coarser ones.

    Parameters
    ----------
    sections : int or tuple of int, default=1
        Sections of the output along each axis; an integer stands for all axes.
    x_sections : tuple of int, default=(1, 1)
        Sections of the input along each axis.

    Attributes
    ----------
    shapes_ : tuple of tuple of int
        Sections of input and output, which `transform` uses; without a fit, it uses the current parameters.

    Examples
    --------
    >>> from countinggrids.meta import BagCoarsener
    >>> BagCoarsener(sections=(1, 2), x_sections=(2, 2)).fit_transform([[1, 2, 3, 4]])
    array([[4, 6]])
    """

    def __init__(self, sections: int | Sequence[int] = 1, x_sections: Sequence[int] = (1, 1)):
        self.sections = sections
        self.x_sections = x_sections

    def fit(self, X: Any, y: object = None) -> Self:
        """Check that X has the given sections.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        X = check_table(self, X, is_fitting=True, dtype="numeric")
        self.shapes_ = self._shapes(X.shape[1])
        return self

    def transform(self, X: Any) -> Any:
        """Sum the counts of fine sections to those of coarse ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        X_coarse : ndarray or csr_array of shape (n_bags, n_sections * n_features)
            Counts at the coarser sections.
        """
        X = check_table(self, X, is_fitting=False, dtype="numeric")
        fine, coarse = self.shapes_ if hasattr(self, "shapes_") else self._shapes(X.shape[1])
        return X if fine == coarse else coarsen(X, X.shape[1] // prod(fine), fine, coarse)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns: the section and the number of the feature, such as "0_1_17".

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            Names of the columns.
        """
        check_is_fitted(self)
        fine, coarse = self.shapes_
        return column_names(coarse, self.n_features_in_ // prod(fine))

    def _restored(self) -> None:
        fine, coarse = self.shapes_
        self.shapes_ = _checked_shapes(fine, coarse, self.n_features_in_)

    def _shapes(self, n_columns: int) -> tuple[Shape, Shape]:
        return _checked_shapes(self.x_sections, self.sections, n_columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        return tags


def _checked_shapes(x_sections: Any, sections: Any, n_columns: int) -> tuple[Shape, Shape]:
    """Return sections of input and output, or raise unless the columns can be summed from one to the other."""
    fine = as_shape(x_sections, "x_sections")
    coarse = as_shape(sections, "sections", len(fine))
    if n_columns % prod(fine):
        raise ValueError(
            f"X has {n_columns} columns, but x_sections={fine} needs a multiple of {prod(fine)}; "
            "use the sections that X was made with."
        )
    if any(f % c for f, c in zip(fine, coarse, strict=True)):
        raise ValueError(f"sections={coarse} must divide x_sections={fine}; use for instance sections=1.")
    return fine, coarse


def _check_scaling(settings: SimpleNamespace) -> None:
    """Raise about a number of tokens or a power that bags cannot be scaled to."""
    if settings.tokens is not None:
        check_positive(settings, "tokens", example=100)
    check_positive(settings, "power", example=0.6)


def _to_power(X: Any, power: float) -> Any:
    """Raise counts to a power; zeros stay zero."""
    if not sp.issparse(X):
        return np.sign(X) * np.abs(X) ** X.dtype.type(power)
    result = X.copy()
    result.data = np.sign(X.data) * np.abs(X.data) ** X.dtype.type(power)
    return result
