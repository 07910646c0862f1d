"""Estimators as JSON and arrays, for files.

An estimator is a node: its class, its parameters and its fitted attributes. Estimators inside it are nodes before it.
Values that JSON does not have are objects with one key, which names their kind: ``{"tuple": [2, 2]}``.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.data.estimator_decoder import Arrays, Decoder
from countinggrids.data.estimator_encoder import Encoder, Nodes, attributes_of

ILLUSTRATIONS = frozenset({"settings_", "patches_", "name_"})
"""Fitted attributes on which the meaning of features does not depend."""


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
    attributes = {name: vars(estimator)[name] for name in sorted(attributes_of(estimator) - ILLUSTRATIONS)}
    text = json.dumps({name: encoder.encode(value, name) for name, value in attributes.items()})
    digest = sha256(f"{type(estimator).__name__} {text}".encode())
    for array in encoder.arrays.values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
