"""Estimators as JSON and arrays: values of every kind come back, and what was learned has a digest."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from countinggrids import features
from countinggrids.core.geometry import Geometry
from countinggrids.data import estimator_state
from countinggrids.data.estimator_decoder import KINDS, Decoder
from countinggrids.data.estimator_encoder import FEW_TEXTS, Encoder
from estimators import ESTIMATORS

VALUES = {
    "tuple": (2, (None, "a")),
    "set": {"a", "b"},
    "dict": {1: "a", (2, 3): [0.5]},
    "namespace": SimpleNamespace(grid=(4, 4), tol=None),
    "estimator": features.Gist(blocks=2),
    "scalar": np.float32(0.1),
    "array": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "texts": [f"text {i}" for i in range(FEW_TEXTS + 1)],
    "strings": np.array([["a", "bcd"], ["", "\u00e9"]]),
    "objects": np.array([["a", 1], [None, (2,)]], dtype=object),
    "record": Geometry((4, 4), (2, 2), (1, 1), (1, 1)),
    "csr": sp.csr_array(np.eye(3, 5)),
}


def test_values_of_every_kind_are_tried():
    assert VALUES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", VALUES)
def test_values_come_back_with_their_type(kind):
    value, encoder = VALUES[kind], Encoder()
    encoded = json.loads(json.dumps(encoder.encode(value, "value")))
    assert list(encoded) == [kind]
    decoder = Decoder(encoder.arrays)
    for node in encoder.nodes:
        decoder.add(node)
    decoded = decoder.decode(encoded)
    assert type(decoded) is type(value)
    assert getattr(decoded, "dtype", None) == getattr(value, "dtype", None)
    if kind == "estimator":
        assert decoded.get_params() == value.get_params()
    elif kind == "csr":
        np.testing.assert_array_equal(decoded.toarray(), value.toarray())
    else:
        assert np.array_equal(decoded, value) if isinstance(value, np.ndarray) else decoded == value


@pytest.mark.parametrize(
    "value", [object(), 1j, len, np.array([1j]), np.array(["2024"], "M8[Y]")], ids=lambda value: type(value).__name__
)
def test_values_of_other_kinds_are_refused(value):
    with pytest.raises(TypeError, match="cannot be saved"):
        Encoder().encode(value, "value")


def test_what_an_extractor_has_learned_has_a_digest_of_its_own():
    codebook, X, _ = ESTIMATORS["codebook"]
    first = clone(codebook).fit(X)
    digest = estimator_state.digest_of(first)
    assert digest == estimator_state.digest_of(first.set_params(n_samples=7))
    assert digest != estimator_state.digest_of(features.Codebook(5, random_state=1).fit(X))
