"""Functions on arrays against NumPy's in float64."""

import numpy as np
import pytest

from countinggrids import arrays


@pytest.mark.parametrize("is_compiled", [False, True])
def test_logarithms_keep_the_digits_of_float32(is_compiled):
    values = np.r_[np.geomspace(1e-25, 1e5, 20_000), 1 + np.linspace(-0.3, 0.5, 9999), 1].astype(np.float32)
    found = arrays.log(values, np.empty_like(values), is_compiled)
    wanted = np.log(values.astype(np.float64))
    assert found[-1] == 0
    np.testing.assert_allclose(found, wanted, rtol=2.5e-7)


def test_logarithms_go_into_the_array_that_was_given():
    values = np.ones((3, 4), np.float32)
    out = np.full((3, 4), 9, np.float32)
    assert arrays.log(values, out, is_compiled=True) is out
    assert not out.any()


def test_logarithms_of_arrays_in_another_order_are_right_too():
    values = np.arange(1, 13, dtype=np.float32).reshape(3, 4).T
    found = arrays.log(values, np.empty_like(values), is_compiled=True)
    np.testing.assert_allclose(found, np.log(values.astype(np.float64)), rtol=2.5e-7)
