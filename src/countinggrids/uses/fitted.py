"""Fitted models: learnt unless they already are, and found at the end of pipelines."""

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from countinggrids.rows import CountingGrid


def fitted_grid(estimator: Any, X: Any) -> Any:
    """Give the estimator itself if it is fitted, otherwise a clone of it learnt from X; None is `CountingGrid()`."""
    model = CountingGrid() if estimator is None else estimator
    return model if hasattr(model, "pi_") else clone(model).fit(X)


def at_the_end(model: Any, X: Any) -> tuple[Any, Any]:
    """Take X through fitted pipelines; give the last step of all and what it sees."""
    while isinstance(model, Pipeline):
        X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    return model, X
