"""Functions on arrays of any library."""

import numpy as np

from countinggrids.core import arrays


def test_sums_of_float32_are_taken_in_float64():
    values = np.full(10_000_001, 0.1, np.float32)
    assert arrays.summed(values, axis=0) == np.float64(np.float32(0.1)) * values.size
    assert arrays.summed(values[None], axis=1).dtype == np.float64


def test_values_that_match_already_are_not_copied():
    values = np.ones(3, np.float32)
    assert arrays.like(np.empty(0, np.float32), values) is values
    assert arrays.like(np.empty(0), values).dtype == np.float64


def test_the_namespace_of_numpy_arrays_is_numpy():
    assert arrays.namespace(np.ones(2)) is np
    assert arrays.fetched(np.ones(2)).tolist() == [1, 1]


def test_exponentials_have_no_subnormal_numbers():
    for dtype in (np.float32, np.float64):
        smallest = np.finfo(dtype).smallest_normal
        logs = np.linspace(1.2 * np.log(smallest), 0, 10_001).astype(dtype)
        values = arrays.exp_in_place(logs.copy())
        assert values[0] == 0
        assert values[-1] == 1
        assert ((values == 0) | (values >= smallest)).all()
        is_kept = logs > 0.89 * np.log(smallest)
        np.testing.assert_array_equal(values[is_kept], np.exp(logs[is_kept]))


def test_exponentials_are_written_in_place():
    logs = np.log(np.array([0.25, 1.0], np.float32))
    assert arrays.exp_in_place(logs) is logs
