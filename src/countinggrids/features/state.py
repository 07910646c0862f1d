"""Fitted extractors as plain facts and arrays, to be kept in a file and made again from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.features.codebook import Codebook
from countinggrids.features.colours import Colours
from countinggrids.features.labels import LabelMaps
from countinggrids.features.sift import DenseSIFT
from countinggrids.features.text import Words
from countinggrids.features.textons import Textons
from countinggrids.files import Texts

# What fitting sets, class by class.
LEARNT: dict[type, tuple[str, ...]] = {
    DenseSIFT: (),
    Codebook: ("centres_", "patches_"),
    Colours: ("palette_",),
    Textons: ("centres_", "mean_", "whitening_", "patches_"),
    LabelMaps: ("names_",),
    Words: ("names_",),
}
# How the work is done, and where from, does not belong to what was learnt.
PASSING = frozenset({"n_jobs", "on_error", "verbose", "random_state", "palette"})


def to_state(steps: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Turn fitted steps, such as DenseSIFT then Codebook, into facts and arrays."""
    facts: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for number, step in enumerate(steps):
        if type(step) not in LEARNT:
            raise ValueError(f"{type(step).__name__} cannot be kept; wanted one of {', '.join(_names())}")
        parameters = {name: value for name, value in step.get_params().items() if name not in PASSING}
        learnt = {name: getattr(step, name) for name in LEARNT[type(step)]}
        arrays |= {f"{number}.{name}": value for name, value in learnt.items() if isinstance(value, np.ndarray)}
        for name, value in learnt.items():
            if isinstance(value, list):
                texts = Texts.pack(value)
                arrays |= {f"{number}.{name}.bytes": texts.packed, f"{number}.{name}.ends": texts.ends}
        facts.append({"class": type(step).__name__, "parameters": parameters})
    return facts, arrays


def from_state(facts: Sequence[dict[str, Any]], arrays: dict[str, NDArray[Any]]) -> list[Any]:
    """Make fitted steps again."""
    return [_step(each, number, arrays) for number, each in enumerate(facts)]


def _step(facts: dict[str, Any], number: int, arrays: dict[str, NDArray[Any]]) -> Any:
    if facts["class"] not in _names():
        raise ValueError(f"class {facts['class']!r} is not one of {', '.join(_names())}")
    cls = _names()[facts["class"]]
    parameters = {name: tuple(value) if name == "ngram_range" else value for name, value in facts["parameters"].items()}
    step = cls(**parameters)
    for name in LEARNT[cls]:
        key = f"{number}.{name}"
        if f"{key}.bytes" in arrays:
            setattr(step, name, list(Texts(arrays[f"{key}.bytes"], arrays[f"{key}.ends"])))
        else:
            setattr(step, name, np.array(arrays[key]) if key in arrays else None)
    return step


def _names() -> dict[str, type]:
    return {cls.__name__: cls for cls in LEARNT}
