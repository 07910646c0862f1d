import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import countinggrids as cg
from countinggrids.data.counts import coarsen

maps = st.lists(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 4)),
    min_size=1,
    max_size=4,
)


@given(maps, st.tuples(st.integers(1, 4), st.integers(1, 4)))
@settings(deadline=None)
def test_the_sections_of_a_bag_sum_to_the_whole_bag(maps, sections):
    parts = cg.bag(maps, sections, 5).toarray().reshape(len(maps), -1, 5).sum(axis=1)
    np.testing.assert_array_equal(parts, cg.bag(maps, None, 5).toarray())
    np.testing.assert_array_equal(parts.sum(axis=1), [each.size for each in maps])


@given(st.lists(hnp.arrays(np.int64, (8, 12), elements=st.integers(0, 4)), min_size=1, max_size=3))
@settings(deadline=None)
def test_coarsening_equals_cutting_coarsely(maps):
    for fine, coarse in [((4, 4), (2, 2)), ((8, 12), (4, 2)), ((4, 6), (1, 1)), ((4, 4), (4, 4))]:
        X = cg.bag(maps, fine, 5)
        for form in (X, X.toarray()):
            given = coarsen(form, 5, fine, coarse)
            np.testing.assert_array_equal(
                given if isinstance(given, np.ndarray) else given.toarray(), cg.bag(maps, coarse, 5).toarray()
            )


def test_each_position_lands_in_its_section():
    labels = np.arange(16).reshape(4, 4)
    X = cg.bag([labels], (2, 2), 16).toarray().reshape(4, 16)
    assert [np.flatnonzero(section).tolist() for section in X] == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


def test_the_number_of_features_can_be_left_to_the_maps():
    assert cg.bag([np.array([3, 0]), np.array([1])]).shape == (2, 4)


@pytest.mark.parametrize("n_axes", [1, 3])
def test_maps_may_have_other_than_two_axes(n_axes):
    assert cg.bag([np.zeros((4,) * n_axes, int)], 2, 3).shape == (1, 2**n_axes * 3)
