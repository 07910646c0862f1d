"""The types of parameters in files, by the annotations of the constructor."""

from collections.abc import Mapping, Sequence
from inspect import signature
from math import isfinite
from types import UnionType
from typing import Any, Union, get_args, get_origin

from countinggrids.data.constraints import check_parameters

SEQUENCES = (list, tuple, Sequence)


def check_types(estimator: Any, parameters: Mapping[str, Any]) -> None:
    """Raise about values that the constructor of an estimator does not take.

    Parameters
    ----------
    estimator : estimator
        Its class says what is taken, in `_parameter_constraints` or in the annotations of its constructor.
    parameters : mapping of str to object
        Values by name.
    """
    cls = type(estimator)
    if getattr(cls, "_parameter_constraints", None):
        check_parameters(estimator)
        return
    known = signature(cls).parameters
    for name, value in parameters.items():
        if name not in known or not is_a(value, known[name].annotation):
            raise ValueError(f"{cls.__name__} has {name}={value!r:.80}")


def is_a(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type; integers must be below 2**31, as those of images and texts are.

    Parameters
    ----------
    value : object
        The value.
    hint : type or annotation
        The type.

    Returns
    -------
    is_so : bool
        Whether it is.

    Examples
    --------
    >>> is_a([1, 2], Sequence[int] | None), is_a("ab", Sequence[int] | None)
    (True, False)
    """
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(is_a(value, option) for option in get_args(hint))
    if origin in SEQUENCES:
        return isinstance(value, list | tuple) and all(is_a(each, get_args(hint)[0]) for each in value)
    if hint is float:
        return type(value) in (int, float) and isfinite(value)
    if hint is int:
        return type(value) is int and abs(value) < 2**31
    return isinstance(value, origin or hint)
