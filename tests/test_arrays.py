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


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (130, 9), (64, 8)])
def test_a_turned_matrix_is_its_transpose(rng, shape):
    matrix = rng.random(shape, np.float32)
    given = arrays.turned(matrix)
    assert given.flags.c_contiguous
    np.testing.assert_array_equal(given, matrix.T)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("n", [1, 7, 12, 64, 1000])
def test_summed_logs_are_the_sum_of_the_logs(rng, n, is_compiled):
    values = (10 ** rng.uniform(-25, 0, (5, n))).astype(np.float32)
    given = arrays.summed_logs(values, is_compiled)
    assert given.dtype == np.float64
    np.testing.assert_allclose(given, np.log(values.astype(np.float64)).sum(axis=1), rtol=1e-6)


def test_products_of_the_smallest_numbers_do_not_vanish():
    values = np.full((1, 64), 1e-30, np.float32)
    np.testing.assert_allclose(arrays.summed_logs(values, False), 64 * np.log(1e-30), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 4e-7), ("float64", 1e-15)])
def test_compiled_exponentials_keep_their_digits(dtype, tolerance):
    exponents = -np.r_[0, np.geomspace(1e-6, 79, 500)].astype(dtype)
    exp = arrays.compiled_exp(np.dtype(dtype))
    given = [exp(x) for x in exponents]
    np.testing.assert_allclose(given, np.exp(exponents.astype(np.float64)), rtol=tolerance)
