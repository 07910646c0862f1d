import itertools

import numpy as np
import pytest

from countinggrids.core import torus


@pytest.mark.parametrize("grid", [(7,), (6, 5), (3, 4, 5), (70,), (3, 70), (130, 2)])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 70])
def test_window_sums_equal_loops_on_short_and_long_axes(rng, grid, length):
    window = tuple(min(length, n) for n in grid)
    planes = rng.random((2, *grid))
    wanted = sum(
        np.roll(planes, [-d for d in step], tuple(range(1, planes.ndim)))
        for step in itertools.product(*(range(w) for w in window))
    )
    np.testing.assert_allclose(torus.window_sum(planes, window), wanted)


def test_covering_sum_is_the_adjoint_of_window_sum(rng):
    a, b = rng.random((2, 6, 70)), rng.random((2, 6, 70))
    left = (torus.window_sum(a, (4, 9)) * b).sum()
    assert left == pytest.approx((a * torus.covering_sum(b, (4, 9))).sum())


def test_fold_is_the_adjoint_of_pad(rng):
    a, b = rng.random((2, 6, 5)), rng.random((2, 9, 6))
    assert (torus.pad(a, (3, 1)) * b).sum() == pytest.approx((a * torus.fold(b, (3, 1))).sum())


def test_padding_wraps_round():
    padded = torus.pad(np.arange(6).reshape(2, 3), (1, 2))
    assert padded.tolist() == [[0, 1, 2, 0, 1], [3, 4, 5, 3, 4], [0, 1, 2, 0, 1]]


def test_shift_brings_the_cell_at_the_offset_to_the_origin():
    assert torus.shift(np.arange(5), (2,)).tolist() == [2, 3, 4, 0, 1]


@pytest.mark.parametrize("axis", [32, 200])
def test_float32_window_sums_keep_their_digits_on_uneven_planes(rng, axis):
    planes = rng.random((1, axis, axis)) * 10.0 ** rng.integers(-8, 8, (1, axis, axis))
    exact = torus.window_sum(planes, (3, 3))
    given = torus.window_sum(planes.astype(np.float32), (3, 3))
    np.testing.assert_allclose(given, exact, rtol=1e-6)


def test_distances_take_the_short_way_round():
    assert torus.displacement((1, 1), (9, 4), (10, 10)).tolist() == [-2.0, 3.0]


def test_section_offsets_run_over_the_last_axis_first():
    assert torus.section_offsets((4, 6), (2, 3)) == [(0, 0), (0, 2), (0, 4), (2, 0), (2, 2), (2, 4)]


@pytest.mark.parametrize("grid", [(7,), (6, 5), (3, 70), (130, 2)])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 70])
def test_covering_sums_equal_loops_on_short_and_long_axes(rng, grid, length):
    window = tuple(min(length, n) for n in grid)
    planes = rng.random((2, *grid))
    wanted = sum(
        np.roll(planes, step, tuple(range(1, planes.ndim))) for step in itertools.product(*(range(w) for w in window))
    )
    np.testing.assert_allclose(torus.covering_sum(planes, window), wanted)


def test_a_window_of_one_cell_is_the_plane_itself(rng):
    planes = rng.random((2, 4, 5))
    assert torus.window_sum(planes, (1, 1)) is planes
    assert torus.covering_sum(planes, (1, 1)) is planes
    assert torus.shift(planes, (0, 0)) is planes


def test_folding_leaves_the_planes_as_they_are(rng):
    planes = rng.random((1, 4))
    before = planes.copy()
    torus.fold(planes, (1,))
    np.testing.assert_array_equal(planes, before)
