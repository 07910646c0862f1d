"""Models inside pipelines and meta-estimators: fit them unless they are fitted, seed them, and find the last step."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from countinggrids.models import CountingGrid


def fitted_grid(estimator: Any, X: Any, sample_weight: Any = None) -> Any:
    """Return the estimator if it is fitted, otherwise a clone of it fitted to X; None stands for `CountingGrid()`."""
    model = CountingGrid() if estimator is None else estimator
    if hasattr(innermost(model), "pi_"):
        return model
    weights = {} if sample_weight is None else {weight_parameter(model): sample_weight}
    return clone(model).fit(X, **weights)


def innermost(model: Any) -> Any:
    """Return the last step of pipelines, fitted or not; anything else is returned as it is."""
    while isinstance(model, Pipeline):
        model = model[-1]
    return model


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Pass X through fitted pipelines; return the innermost last step and its input."""
    while isinstance(model, Pipeline):
        X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    return model, X


def weight_parameter(model: Any) -> str:
    """Return the name under which `fit` takes sample weights: a pipeline routes them to its last step."""
    names = []
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        names.append(name)
    return "__".join([*names, "sample_weight"])


def set_seeds(model: Any, seed: int, shift_given: bool = False) -> None:
    """Set every `random_state` of a model, nested ones too, that is None.

    Parameters
    ----------
    model : estimator
        Its parameters are set in place.
    seed : int
        The seed.
    shift_given : bool, default=False
        Whether to add the seed to those that are given, so that copies of a seeded model differ.
    """
    seeds = {
        name: seed if value is None else (seed + value) % 2**31
        for name, value in model.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state"))
        and (value is None or (shift_given and isinstance(value, int | np.integer)))
    }
    model.set_params(**seeds)
