"""What `fit` leaves on an estimator: all of it or nothing, finite, and the settings that predictions go by."""

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

Fit = TypeVar("Fit", bound=Callable[..., Any])


def whole_or_nothing(fit: Fit) -> Fit:
    """Let a `fit` that fails leave the estimator as it was before."""

    @wraps(fit)
    def safely(estimator: Any, *given: Any, **options: Any) -> Any:
        before = dict(vars(estimator))
        try:
            return fit(estimator, *given, **options)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return safely  # type: ignore[return-value]


def check_finite(objective: Any, number: int) -> None:
    """Raise about an objective, or one of several, that is not finite at an iteration."""
    if not np.isfinite(objective).all():
        raise ValueError(
            f"the objective is {np.min(objective)} at iteration {number}; wanted a finite number; "
            "bring the counts, the weights and the pseudocounts nearer to 1"
        )


def settings_of(estimator: Any, *names: str) -> SimpleNamespace:
    """Copy some parameters, for predictions to go by whatever is set later."""
    return SimpleNamespace(**{name: deepcopy(getattr(estimator, name)) for name in names})
