"""Grids that are learnt, unless they already are."""

from typing import Any

from sklearn.base import clone

from countinggrids.rows import CountingGrid


def fitted_grid(estimator: Any, X: Any) -> Any:
    """Give the estimator itself if it is fitted, otherwise a clone of it learnt from X; None is `CountingGrid()`."""
    model = CountingGrid() if estimator is None else estimator
    return model if hasattr(model, "pi_") else clone(model).fit(X)
