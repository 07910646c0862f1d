"""Estimators as JSON and arrays, for files.

An estimator is a node: its class, its parameters and its fitted attributes. Estimators inside it are nodes before it.
Values that JSON does not have are objects with one key, which names their kind: ``{"tuple": [2, 2]}``.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatchmethod
from hashlib import sha256
from importlib import import_module
from inspect import getattr_static
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from countinggrids.core.geometry import Geometry
from countinggrids.data import sparse_files
from countinggrids.data.container import Texts
from countinggrids.data.parameter_types import check_types
from countinggrids.features.saving import Saveable

PACKAGES = ("countinggrids.models", "countinggrids.meta", "countinggrids.features")
"""Where the classes that files may name are looked for, besides scikit-learn's Pipeline."""
ABSTRACT = ("GridModel",)
RECORDS = {
    "Chain": "countinggrids.meta.chain",
    "Walk": "countinggrids.meta.walk",
    "NoveltyModel": "countinggrids.meta.reference",
    "Choice": "countinggrids.meta.recognizer",
    "Stream": "countinggrids.training.stepwise",
    "Fitted": "countinggrids.training.stepwise",
}
"""Named tuples that fitted attributes may be, with their modules; geometries are records too."""
LOCAL = frozenset({"device", "n_jobs", "verbose", "callback", "on_error"})
"""Parameters that belong to a machine or a session, not to what was fitted."""
ATTRIBUTE = re.compile(r"_?[a-zA-Z]\w*")
ILLUSTRATIONS = frozenset({"settings_", "patches_", "name_"})
"""Fitted attributes on which the meaning of features does not depend."""
FEW_TEXTS = 100
"""Length of a list of texts up to which it is JSON rather than an array."""
LARGEST_CHARACTER = 0x10FFFF
Arrays = Mapping[str, NDArray[Any]]
Nodes = list[dict[str, Any]]


def to_state(estimators: Sequence[Any]) -> tuple[Nodes, dict[str, NDArray[Any]]]:
    """Encode estimators.

    Parameters
    ----------
    estimators : sequence of estimator
        Estimators of this package, or pipelines of them.

    Returns
    -------
    nodes : list of dict
        JSON; those of the given estimators have the key "number", their place in the sequence.
    arrays : dict of str to ndarray
        Arrays by name.
    """
    encoder = Encoder()
    for number, estimator in enumerate(estimators):
        encoder.nodes[encoder.add(estimator)]["number"] = number
    return encoder.nodes, encoder.arrays


def from_state(nodes: Any, arrays: Arrays) -> list[Any]:
    """Decode estimators.

    Parameters
    ----------
    nodes : list of dict
        What `to_state` returned.
    arrays : mapping of str to ndarray
        Arrays by name.

    Returns
    -------
    estimators : list of estimator
        The estimators.

    Raises
    ------
    ValueError, TypeError, LookupError, AttributeError or ArithmeticError
        If they are not what `to_state` returns.
    """
    decoder = Decoder(arrays)
    for node in nodes:
        decoder.add(node)
    given = {int(node["number"]): i for i, node in enumerate(nodes) if "number" in node}
    return [decoder.estimators[given[number]] for number in range(len(given))]


def digest_of(estimator: Any) -> str:
    """Return a digest of what an extractor has learned: equal for two only if their features mean the same.

    Neither the settings count nor the patches, which only show what features look like.

    Parameters
    ----------
    estimator : estimator
        A fitted extractor.

    Returns
    -------
    digest : str
        Hexadecimal digits.
    """
    encoder = Encoder()
    attributes = {name: vars(estimator)[name] for name in sorted(_attributes(estimator) - ILLUSTRATIONS)}
    text = json.dumps({name: encoder.encode(value, name) for name, value in attributes.items()})
    digest = sha256(f"{type(estimator).__name__} {text}".encode())
    for array in encoder.arrays.values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Encoder:
    """Collects the nodes and the arrays of estimators; each estimator is encoded once, however often it is held."""

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self._places: dict[int, int] = {}

    def add(self, estimator: Any) -> int:
        """Append the node of an estimator, and return its place."""
        if id(estimator) in self._places:
            return self._places[id(estimator)]
        name = type(estimator).__name__
        if type(estimator) is not _known(name):
            raise ValueError(f"{name} cannot be saved; use an estimator of countinggrids, or a Pipeline of such ones.")
        excluded: frozenset[str] = LOCAL | getattr(type(estimator), "_local", frozenset())
        parameters = estimator.get_params(deep=False).items()
        parameters = {key: _plain(value) for key, value in parameters if key not in excluded}
        attributes = {key: value for key, value in vars(estimator).items() if key in _attributes(estimator)}
        node: dict[str, Any] = {"class": name}
        for part, values in (("parameters", parameters), ("attributes", attributes)):
            node[part] = {key: self._value(value, f"{name}({key}={value!r:.80})", key) for key, value in values.items()}
        self.nodes.append(node)
        self._places[id(estimator)] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _value(self, value: Any, given: str, key: str) -> Any:
        try:
            return self.encode(value, key)
        except TypeError as error:
            what = "function" if callable(value) else type(value).__name__
            raise ValueError(
                f"{given} cannot be saved because it is a {what}; use the name of a {key}, or set it to a number, text "
                "or array before you save."
            ) from error

    @singledispatchmethod
    def encode(self, value: Any, key: str) -> Any:
        """Return a value as JSON, or raise a TypeError."""
        return self._record(value)

    @encode.register(str | int | float | bool | None)
    def _(self, value: Any, key: str) -> Any:
        return value

    @encode.register
    def _(self, value: list, key: str) -> Any:  # type: ignore[type-arg]
        if len(value) > FEW_TEXTS and all(isinstance(each, str) for each in value):
            texts = Texts.pack(value)
            return {"texts": [self._kept(texts.packed, key), self._kept(texts.ends, key)]}
        return [self.encode(each, key) for each in value]

    @encode.register
    def _(self, value: tuple, key: str) -> Any:  # type: ignore[type-arg]
        return {"tuple": [self.encode(each, key) for each in value]} if type(value) is tuple else self._record(value)

    @encode.register(set | frozenset)
    def _(self, value: Any, key: str) -> Any:
        return {"set": [self.encode(each, key) for each in sorted(value)]}

    @encode.register
    def _(self, value: Mapping, key: str) -> Any:  # type: ignore[type-arg]
        return {"dict": [[self.encode(name, key), self.encode(each, key)] for name, each in value.items()]}

    @encode.register
    def _(self, value: SimpleNamespace, key: str) -> Any:
        return {"namespace": {name: self.encode(each, name) for name, each in vars(value).items()}}

    @encode.register
    def _(self, value: BaseEstimator, key: str) -> Any:
        return {"estimator": self.add(value)}

    @encode.register
    def _(self, value: np.generic, key: str) -> Any:
        return {"scalar": self._kept(np.asarray(value), key)}

    @encode.register
    def _(self, value: np.ndarray, key: str) -> Any:
        if value.dtype.kind == "O":
            return {"objects": [list(value.shape), [self.encode(each, key) for each in value.ravel().tolist()]]}
        if value.dtype.kind == "U":
            characters = np.ascontiguousarray(value).reshape(-1).view(np.uint32).reshape(*value.shape, -1)
            return {"strings": self._kept(characters, key)}
        if value.dtype.kind not in "biuf":
            raise TypeError(f"an array of {value.dtype} cannot be saved")
        return {"array": self._kept(value, key)}

    @encode.register(sp.csr_array)
    def _(self, value: Any, key: str) -> Any:
        parts = [self._kept(part, key) for part in (value.data, value.indices, value.indptr)]
        return {"csr": [list(value.shape), parts]}

    def _record(self, value: Any) -> Any:
        """Encode the fields of a named tuple or a data class."""
        name = type(value).__name__
        if type(value) is not _record_type(name):
            raise TypeError(f"{name} cannot be saved")
        names = [field.name for field in fields(value)] if is_dataclass(value) else value._fields
        return {"record": [name, {each: self.encode(getattr(value, each), each) for each in names}]}

    def _kept(self, array: NDArray[Any], key: str) -> str:
        name = f"{len(self.arrays)}.{key}"
        self.arrays[name] = array
        return name


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
        cls = _known(node["class"])
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
        cls = _record_type(name)
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


def _known(name: Any) -> Any:
    """Return the class that files may call by a name, or None."""
    if name == Pipeline.__name__:
        return Pipeline
    homes = [package for package in map(import_module, PACKAGES) if name in package.__all__]
    cls = getattr(homes[0], name) if homes else None
    return cls if isinstance(cls, type) and issubclass(cls, Saveable) and name not in ABSTRACT else None


def _record_type(name: Any) -> Any:
    """Return the named tuple or the geometry that files may call by a name, or None."""
    if name in RECORDS:
        return getattr(import_module(RECORDS[name]), name)
    import_module(PACKAGES[0])  # with the geometries of all models
    geometries: list[type[Geometry]] = [Geometry, *Geometry.__subclasses__()]
    return next((each for each in geometries if each.__name__ == name), None)


def _attributes(estimator: Any) -> set[str]:
    """Return the names of what a fit has set, except for what is computed again when a file is read."""
    rebuilt: frozenset[str] = getattr(type(estimator), "_rebuilt", frozenset())
    return vars(estimator).keys() - estimator.get_params(deep=False).keys() - rebuilt


def _plain(value: Any) -> Any:
    """Return a parameter as a file holds it: paths as texts, NumPy's numbers as Python's, no state of a generator."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # the estimator is fitted, so only a later fit would use it
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


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
