"""Each constraint accepts what it describes, and the message names parameter, value, expectation and a way out."""

import re
from typing import ClassVar

import numpy as np
import pytest

from countinggrids.data.constraints import (
    Annealing,
    Boolean,
    Choice,
    HasMethods,
    Instance,
    Integer,
    Numbers,
    RandomSeed,
    Real,
    check_parameter,
    check_parameters,
)

ACCEPTED = [
    (Choice("a", "b"), ["a", "b"], ["c", 1, None, ["a"], np.array("ab")]),
    (Integer(), [-3, np.int8(2)], [True, 1.0, "1", None, np.nan]),
    (Integer(at_least=1), [1, 2**70], [0, -1]),
    (Integer(at_least=1, below=3), [1, 2], [3]),
    (Real(at_least=0), [0, 0.5, np.float32(2), np.inf], [-0.1, np.nan, True, "1", None, [1.0], 1j]),
    (Real(above=0, at_most=1), [1, 1e-9], [0, 1.01, np.inf]),
    (Boolean(), [True, np.False_], [0, 1, None, "True"]),
    (Instance((str, bytes), "a name"), ["x", b"x"], [1, None]),
    (HasMethods(("append", "pop"), "a list"), [[]], [(), None, {}]),
    (Numbers("one number per feature"), [[1, 2], np.ones((2, 2)), ()], ["12", None, 1, [[1], [1, 2]], {1: 2}, ["a"]]),
    (
        Annealing(),
        [(0.1, 1.1, 1), [0.5, 2, 0.5]],
        [(0.1, 1.1), (0, 2, 1), (0.5, 1, 1), (0.9, 2, 0.5), (0.5, np.inf, 1), "auto", "111", None],
    ),
    (
        RandomSeed(),
        [0, 2**32 - 1, np.random.RandomState(0), np.random],
        [-1, 2**32, 0.5, "0", np.random.default_rng(0)],
    ),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), ACCEPTED, ids=lambda each: type(each).__name__)
def test_constraint_accepts_what_it_describes(constraint, good, bad):
    assert all(constraint.accepts(value) for value in good)
    assert not any(constraint.accepts(value) for value in bad)


@pytest.mark.parametrize(
    "constraint", [row[0] for row in ACCEPTED[:7] + ACCEPTED[9:]], ids=lambda each: type(each).__name__
)
def test_example_of_a_constraint_is_accepted(constraint):
    assert constraint.accepts(constraint.example)


@pytest.mark.parametrize(
    ("accepted", "value", "message"),
    [
        ([Choice("a", "b")], "c", "x='c' must be one of 'a', 'b'; use for instance x='a'."),
        ([None, Choice("a")], "c", "x='c' must be None or 'a'; use for instance x=None."),
        (
            [Integer(at_least=1, at_most=9), None],
            0,
            "x=0 must be an integer of at least 1 and at most 9 or None; use for instance x=1.",
        ),
        (
            [Choice("cv"), Real(above=0), Numbers("numbers above 0")],
            -1,
            "x=-1 must be 'cv', a number above 0 or numbers above 0; use for instance x='cv'.",
        ),
        ([Real(above=0, below=1)], 3, "x=3 must be a number above 0 and below 1; use for instance x=0.5."),
    ],
)
def test_message_names_value_expectation_and_a_way_out(accepted, value, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_parameter("x", value, accepted)


def test_long_values_are_shortened_in_messages():
    with pytest.raises(ValueError, match=r"^x='aaa") as caught:
        check_parameter("x", "a" * 10_000, [Boolean()])
    assert len(str(caught.value)) < 200


def test_default_of_the_parameter_is_recommended():
    class Estimator:
        _parameter_constraints: ClassVar = {"size": [Integer(at_least=1)]}

        def __init__(self, size=32):
            self.size = size

    check_parameters(Estimator())
    with pytest.raises(
        ValueError, match=re.escape("size=0 must be an integer of at least 1; use for instance size=32.")
    ):
        check_parameters(Estimator(0))
