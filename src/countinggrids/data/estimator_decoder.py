"""Decode estimators from the nodes and arrays of `estimator_state`, and check what a file says about them."""

import re
from collections.abc import Callable, Mapping
from inspect import getattr_static
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from countinggrids.data import sparse_files
from countinggrids.data.container import Texts
from countinggrids.data.known_classes import known_class, known_record
from countinggrids.data.parameter_types import check_types

ATTRIBUTE = re.compile(r"_?[a-zA-Z]\w*")
LARGEST_CHARACTER = 0x10FFFF
Arrays = Mapping[str, NDArray[Any]]


class Decoder:
    """Makes estimators again; a node may only name estimators before it.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The arrays by name.
    """

    def __init__(self, arrays: Arrays):
        self.arrays = arrays
        self.estimators: list[Any] = []

    def add(self, node: dict[str, Any]) -> None:
        """Append the estimator of a node."""
        cls = known_class(node["class"])
        if cls is None:
            raise ValueError(f"class {node['class']!r:.80} is not one of countinggrids")
        parameters = {name: self.decode(value) for name, value in node["parameters"].items()}
        if cls is Pipeline:
            _check_steps(parameters["steps"])
        estimator = cls(**parameters)
        if cls is not Pipeline:
            check_types(estimator, parameters)
        for name, value in node["attributes"].items():
            default = getattr_static(cls, name, None)
            if not ATTRIBUTE.fullmatch(name) or not (default is None or isinstance(default, np.ndarray)):
                raise ValueError(f"{node['class']} has no attribute {name!r:.80}")
            setattr(estimator, name, self.decode(value))
        if node["attributes"]:
            _check_general(estimator)
            estimator._restored()
        self.estimators.append(estimator)

    def decode(self, value: Any) -> Any:
        """Return the value that JSON stands for."""
        if isinstance(value, list):
            return [self.decode(each) for each in value]
        if not isinstance(value, dict):
            return value
        [(kind, content)] = value.items()
        return KINDS[kind](self, content)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array of its own, which may be written to."""
        return np.array(self.arrays[name])

    def strings(self, name: str) -> NDArray[Any]:
        """Return an array of strings."""
        characters = self.array(name)
        if characters.dtype != np.uint32 or characters.max(initial=0) > LARGEST_CHARACTER or not characters.shape[-1]:
            raise ValueError(f"{name} holds no characters")
        return characters.view(f"U{characters.shape[-1]}")[..., 0]

    def texts(self, content: Any) -> list[str]:
        """Return a list of texts."""
        packed, ends = (self.array(name) for name in content)
        return list(Texts(packed, ends))

    def objects(self, content: Any) -> NDArray[Any]:
        """Return an array of Python objects."""
        shape, values = content
        array = np.empty(len(values), dtype=object)
        array[:] = [self.decode(each) for each in values]
        return array.reshape(shape)

    def record(self, content: Any) -> Any:
        """Return a named tuple or a data class."""
        name, values = content
        cls = known_record(name)
        if cls is None:
            raise ValueError(f"record {name!r:.80} is not one of countinggrids")
        return cls(**{key: self.decode(value) for key, value in values.items()})

    def csr(self, content: Any) -> sp.csr_array:
        """Return a sparse matrix."""
        shape, names = content
        data, indices, indptr = (self.array(name) for name in names)
        sparse_files.check_parts(shape, data, indices, indptr)
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix


KINDS: dict[str, Callable[[Decoder, Any], Any]] = {
    "tuple": lambda decoder, content: tuple(decoder.decode(each) for each in content),
    "set": lambda decoder, content: {decoder.decode(each) for each in content},
    "dict": lambda decoder, content: {decoder.decode(key): decoder.decode(each) for key, each in content},
    "namespace": lambda decoder, content: SimpleNamespace(**{k: decoder.decode(each) for k, each in content.items()}),
    "estimator": lambda decoder, content: decoder.estimators[range(len(decoder.estimators))[content]],
    "scalar": lambda decoder, content: decoder.array(content)[()],
    "array": Decoder.array,
    "texts": Decoder.texts,
    "strings": Decoder.strings,
    "objects": Decoder.objects,
    "record": Decoder.record,
    "csr": Decoder.csr,
}
"""How values are decoded, by kind."""


def _check_steps(steps: Any) -> None:
    """Raise unless the steps of a pipeline are names with estimators."""
    if not steps:
        raise ValueError("a pipeline has no steps")
    for number, (name, step) in enumerate(steps):
        is_skipped = step is None or (isinstance(step, str) and step == "passthrough")
        is_usable = isinstance(step, BaseEstimator) and (number + 1 == len(steps) or hasattr(step, "transform"))
        if not isinstance(name, str) or not (is_skipped or is_usable):
            raise ValueError(f"a pipeline has the step {name!r:.80}")


def _check_general(estimator: Any) -> None:
    """Raise if the number or the names of the columns, or the settings of the fit, are impossible."""
    n = vars(estimator).get("n_features_in_", 1)
    names = vars(estimator).get("feature_names_in_")
    if type(n) is not int or n < 1:
        raise ValueError(f"n_features_in_ is {n!r:.80}")
    if names is not None and (names.shape != (n,) or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names_in_ are not the names of {n} columns")
    get_tags(estimator)  # raises where a part that should be an estimator is none
    missing = [name for name in getattr(type(estimator), "_kept", ()) if name not in vars(estimator.settings_)]
    if missing:
        raise ValueError(f"settings_ lack {', '.join(missing)}")
    if hasattr(estimator, "settings_"):
        check_types(estimator, vars(estimator.settings_))
