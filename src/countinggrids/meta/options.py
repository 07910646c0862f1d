"""Checks of single parameters of an estimator: the value, what is expected, and what to use instead."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from countinggrids.data.validation import LARGEST_TOTAL


def check_choice(estimator: Any, name: str, choices: Sequence[Any]) -> None:
    """Raise unless a parameter is one of some values."""
    value = getattr(estimator, name)
    if not any(value is each or (isinstance(value, str) and value == each) for each in choices):
        *others, last = map(repr, choices)
        raise ValueError(f"{name}={value!r} must be {', '.join(others)} or {last}; use {name}={choices[0]!r}.")


def check_integer(estimator: Any, *names: str, example: int = 10) -> None:
    """Raise unless parameters are integers of at least 1."""
    for name in names:
        if not is_integer(getattr(estimator, name)):
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} must be an integer of at least 1; use {name}={example}."
            )


def check_positive(estimator: Any, *names: str, example: float = 0.1) -> None:
    """Raise unless parameters are numbers above 0 that can be summed."""
    for name in names:
        value = getattr(estimator, name)
        if not is_number(value) or not 0 < value <= LARGEST_TOTAL:
            raise ValueError(
                f"{name}={value!r} must be a number above 0, at most {LARGEST_TOTAL:g}; use {name}={example:g}."
            )


def is_integer(value: Any, least: int = 1) -> bool:
    """Return whether a value is an integer of at least `least`."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
