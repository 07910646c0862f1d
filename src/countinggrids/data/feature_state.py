"""Fitted extractors as JSON and arrays, for a file."""

from collections.abc import Sequence
from inspect import signature
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from countinggrids.core.fitting import settings_of
from countinggrids.data.container import Texts
from countinggrids.features.codebook import Codebook
from countinggrids.features.colors import Colors
from countinggrids.features.labels import LabelMaps
from countinggrids.features.sift import DenseSIFT
from countinggrids.features.text import Words
from countinggrids.features.textons import Textons

LEARNED: dict[type, tuple[str, ...]] = {
    DenseSIFT: (),
    Codebook: ("centers_", "patches_"),
    Colors: ("palette_",),
    Textons: ("centers_", "mean_", "whitening_", "patches_"),
    LabelMaps: ("names_",),
    Words: ("names_", "stop_words_"),
}
"""Fitted attributes of each class."""
AXES = {"centers_": 2, "patches_": 4, "palette_": 2, "mean_": 1, "whitening_": 2}
"""Number of axes of fitted arrays; attributes that are not listed are texts."""
EXCLUDED = frozenset({"n_jobs", "on_error", "verbose", "callback", "random_state", "palette"})
"""Parameters that do not affect what a fitted extractor computes."""


def to_state(steps: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Return the classes and parameters of fitted steps, such as DenseSIFT then Codebook, and their arrays."""
    arrays = arrays_of(steps)
    return [{"class": type(step).__name__, "parameters": _parameters(step)} for step in steps], arrays


def arrays_of(steps: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Return the fitted attributes of steps as arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, step in enumerate(steps):
        if type(step) not in LEARNED:
            raise ValueError(f"{type(step).__name__} cannot be saved; use one of {', '.join(_names())}.")
        learned = {name: getattr(step, name) for name in LEARNED[type(step)]}
        arrays |= {f"{number}.{name}": value for name, value in learned.items() if isinstance(value, np.ndarray)}
        for name, value in learned.items():
            if isinstance(value, list):
                texts = Texts.pack(value)
                arrays |= {f"{number}.{name}.bytes": texts.packed, f"{number}.{name}.ends": texts.ends}
    return arrays


def _parameters(step: Any) -> dict[str, Any]:
    """Return the parameters of a step as plain data."""
    in_force = step.get_params() | vars(getattr(step, "settings_", SimpleNamespace()))
    kept = {name: value for name, value in in_force.items() if name not in EXCLUDED}
    for name, value in kept.items():
        if callable(value):
            given = f"{type(step).__name__}({name}={value!r})"
            raise ValueError(f"{given} cannot be saved because it is a function; use the name of a {name}.")
    return {name: sorted(value) if isinstance(value, set | frozenset) else value for name, value in kept.items()}


def from_state(facts: Sequence[dict[str, Any]], arrays: dict[str, NDArray[Any]]) -> list[Any]:
    """Restore fitted steps."""
    return [_step(each, number, arrays) for number, each in enumerate(facts)]


def _step(facts: dict[str, Any], number: int, arrays: dict[str, NDArray[Any]]) -> Any:
    if facts["class"] not in _names():
        raise ValueError(f"class {facts['class']!r} is not one of {', '.join(_names())}")
    cls = _names()[facts["class"]]
    parameters = {name: tuple(value) if name == "ngram_range" else value for name, value in facts["parameters"].items()}
    if cls is not Words:
        _check_parameters(cls, parameters)
    step = cls(**parameters)
    if getattr(cls, "_kept", ()):
        step.settings_ = settings_of(step, *step._kept)
    for name in LEARNED[cls]:
        setattr(step, name, _learned(name, f"{number}.{name}", arrays))
    if isinstance(step, Words):
        _check_words(step)
    return step


def _check_words(words: Words) -> None:
    """Raise about options and words of a file that cannot be used."""
    words._check_options()
    missing = [name for name in LEARNED[Words] if not isinstance(getattr(words, name), list)]
    if missing:
        raise ValueError(f"Words lack {', '.join(missing)}")


def _check_parameters(cls: type, parameters: dict[str, Any]) -> None:
    """Raise about values of types that the constructor does not take."""
    known = signature(cls).parameters
    for name, value in parameters.items():
        if name not in known or not _is_a(value, known[name].annotation):
            raise ValueError(f"{cls.__name__} has {name}={value!r}")


def _is_a(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type; numbers must be below 2**31, as those of images and texts are."""
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_is_a(value, option) for option in get_args(hint))
    if get_origin(hint) in (list, tuple):
        return isinstance(value, get_origin(hint)) and all(_is_a(each, get_args(hint)[0]) for each in value)
    if hint in (int, float):
        return type(value) in (int, hint) and abs(value) < 2**31
    return isinstance(value, hint)


def _learned(name: str, key: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Read a fitted attribute; raise about an array that it cannot be."""
    if name not in AXES:
        return list(Texts(arrays[f"{key}.bytes"], arrays[f"{key}.ends"]))
    if name == "patches_" and key not in arrays:
        return None
    kind = "u" if name == "patches_" else "f"
    array = np.array(arrays[key])
    if array.ndim != AXES[name] or array.dtype.kind != kind or array.size == 0:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    return array


def _names() -> dict[str, type]:
    return {cls.__name__: cls for cls in LEARNED}
