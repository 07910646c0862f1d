"""Encode estimators as the nodes and arrays of `estimator_state`."""

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import singledispatchmethod
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from countinggrids.data.container import Texts
from countinggrids.data.known_classes import known_class, known_record

LOCAL = frozenset({"device", "n_jobs", "verbose", "callback", "on_error"})
"""Parameters that belong to a machine or a session, not to what was fitted."""
FEW_TEXTS = 100
"""Length of a list of texts up to which it is JSON rather than an array."""
Nodes = list[dict[str, Any]]


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
        if type(estimator) is not known_class(name):
            raise ValueError(f"{name} cannot be saved; use an estimator of countinggrids, or a Pipeline of such ones.")
        excluded: frozenset[str] = LOCAL | getattr(type(estimator), "_local", frozenset())
        parameters = estimator.get_params(deep=False).items()
        parameters = {key: _plain(value) for key, value in parameters if key not in excluded}
        attributes = {key: value for key, value in vars(estimator).items() if key in attributes_of(estimator)}
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
        if type(value) is not known_record(name):
            raise TypeError(f"{name} cannot be saved")
        names = [field.name for field in fields(value)] if is_dataclass(value) else value._fields
        return {"record": [name, {each: self.encode(getattr(value, each), each) for each in names}]}

    def _kept(self, array: NDArray[Any], key: str) -> str:
        name = f"{len(self.arrays)}.{key}"
        self.arrays[name] = array
        return name


def attributes_of(estimator: Any) -> set[str]:
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
