"""Constraints on the parameters of estimators: one table per class, checked before any work.

A class lists what each parameter may be, as scikit-learn's estimators do; None in a list allows None::

    _parameter_constraints: ClassVar[Constraints] = {
        **Parent._parameter_constraints,
        "weights": [Choice("uniform", "distance")],
        "n_neighbors": [Integer(at_least=1)],
        "n_jobs": [Integer(), None],
    }

and calls `check_parameters(self)` first in `fit`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from math import isfinite, isnan
from numbers import Integral
from numbers import Real as RealNumber
from typing import Any, Protocol

import numpy as np

LONGEST_VALUE = 80
"""Characters of a value that a message repeats."""


class Constraint(Protocol):
    """What a parameter may be."""

    @property
    def description(self) -> str:
        """What is accepted, to follow the words "must be"."""

    @property
    def example(self) -> Any:
        """A value that is accepted."""

    def accepts(self, value: Any) -> bool:
        """Return whether a value is accepted."""


Constraints = Mapping[str, Sequence[Constraint | None]]


class Choice:
    """One of some strings.

    Parameters
    ----------
    *choices : str
        What is accepted.
    """

    def __init__(self, *choices: str):
        self.choices = choices
        self.example = choices[0]

    @property
    def description(self) -> str:
        return ("one of " if len(self.choices) > 1 else "") + ", ".join(map(repr, self.choices))

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices


@dataclass(frozen=True)
class Interval:
    """Numbers between limits.

    Parameters
    ----------
    at_least : float, default=None
        Smallest number that is accepted.
    above : float, default=None
        Limit that a number must exceed.
    at_most : float, default=None
        Largest number that is accepted; None also accepts infinity.
    below : float, default=None
        Limit that a number must stay below.
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def limits(self) -> str:
        """Return the limits in words."""
        words = (("of at least", self.at_least), ("above", self.above), ("at most", self.at_most))
        return " and ".join(f"{word} {limit:g}" for word, limit in (*words, ("below", self.below)) if limit is not None)

    def contains(self, value: Any) -> bool:
        """Return whether a number lies between the limits."""
        return bool(
            not isnan(value)
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )


class Integer(Interval):
    """An integer between limits; booleans are no integers."""

    @property
    def description(self) -> str:
        return f"an integer {self.limits()}".rstrip()

    @property
    def example(self) -> int:
        return int(self.at_least if self.at_least is not None else 1)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool) and self.contains(value)


class Real(Interval):
    """A number between limits; booleans are no numbers, and NaN is never accepted."""

    @property
    def description(self) -> str:
        return f"a number {self.limits()}".rstrip()

    @property
    def example(self) -> float:
        return next(
            value for value in (1.0, 0.5, self.at_least, self.at_most) if value is not None and self.contains(value)
        )

    def accepts(self, value: Any) -> bool:
        return isinstance(value, RealNumber) and not isinstance(value, bool) and self.contains(value)


class Boolean:
    """True or False."""

    description, example = "True or False", False

    def accepts(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)


@dataclass(frozen=True)
class Instance:
    """An object of a class.

    Parameters
    ----------
    types : type or tuple of type
        Classes that are accepted.
    description : str
        What they are, with an article.
    example : object, default=None
        A value that is accepted.
    """

    types: Any
    description: str
    example: Any = None

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.types)


@dataclass(frozen=True)
class HasMethods:
    """An object with some methods, such as an estimator.

    Parameters
    ----------
    methods : tuple of str
        Names of the methods.
    description : str
        What such an object is, with an article.
    example : object, default=None
        A value that is accepted.
    """

    methods: tuple[str, ...]
    description: str
    example: Any = None

    def accepts(self, value: Any) -> bool:
        return all(callable(getattr(value, name, None)) for name in self.methods)


@dataclass(frozen=True)
class Numbers:
    """An array-like of numbers, whose shape is checked together with the data.

    Parameters
    ----------
    description : str
        What the numbers are, such as "one number per feature".
    """

    description: str
    example: Any = ()

    def accepts(self, value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
            return False
        try:
            return np.asarray(value).dtype.kind in "biuf"
        except ValueError:  # ragged
            return False


class Annealing:
    """An annealing schedule: (start, rate, end) of the inverse temperature."""

    description = "(start, rate, end) with 0 < start <= end <= 1 and rate > 1"
    example = (0.01, 1.03, 1.0)

    def accepts(self, value: Any) -> bool:
        try:
            start, rate, end = (float(number) for number in value)
        except (TypeError, ValueError, OverflowError):
            return False
        return not isinstance(value, str) and 0 < start <= end <= 1 < rate and isfinite(rate)


class RandomSeed:
    """What `sklearn.utils.check_random_state` accepts, other than None."""

    description, example = "an integer from 0 to 2**32 - 1, a RandomState", 0

    def accepts(self, value: Any) -> bool:
        is_source = isinstance(value, np.random.RandomState) or value is np.random
        return is_source or Integer(at_least=0, below=2**32).accepts(value)


def check_parameters(estimator: Any) -> None:
    """Raise about the first parameter of an estimator that its table does not accept.

    Parameters
    ----------
    estimator : estimator
        Its `_parameter_constraints` say what each parameter may be.

    Raises
    ------
    ValueError
        With the parameter and its value, what it must be, and the default to use instead.
    """
    for name, accepted in estimator._parameter_constraints.items():
        check_parameter(name, getattr(estimator, name), accepted, _default(estimator, name))


def check_parameter(
    name: str, value: Any, accepted: Sequence[Constraint | None], default: Any = Parameter.empty
) -> None:
    """Raise unless one of some constraints accepts a value.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        Its value.
    accepted : sequence of Constraint or None
        What it may be.
    default : object, optional
        The value that the message recommends; by default the example of the first constraint.
    """
    if any(value is None if each is None else each.accepts(value) for each in accepted):
        return
    if default is Parameter.empty:
        default = None if accepted[0] is None else accepted[0].example
    wanted = [str(None) if each is None else each.description for each in accepted]
    listed = " or ".join([", ".join(wanted[:-1]), wanted[-1]] if len(wanted) > 1 else wanted)
    raise ValueError(f"{name}={_short(value)} must be {listed}; use for instance {name}={default!r}.")


def _default(estimator: Any, name: str) -> Any:
    parameters = signature(type(estimator).__init__).parameters
    return parameters[name].default if name in parameters else Parameter.empty


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."
