import numpy as np

from countinggrids.core.alignment import align


def test_a_common_shift_round_the_torus_counts_as_right(rng):
    known = rng.integers(0, 20, (30, 2))
    result = align(np.add(known, (13, 7)) % (24, 30), known, (24, 30))
    assert result.is_correct.all()
    np.testing.assert_array_equal(np.abs(result.shift - [13, 7]) <= 1, [True, True])


def test_random_places_are_not_right(rng):
    known, found = rng.integers(0, 30, (2, 100, 2))
    assert align(found, known, (30, 30)).is_correct.mean() < 0.2


def test_a_reflection_counts_only_where_it_may(rng):
    known = rng.integers(0, 30, (50, 2))
    mirrored = (known * [1, -1])[:, ::-1] % 30
    assert align(mirrored, known, (30, 30)).is_correct.mean() < 0.5
    assert align(mirrored, known, (30, 30), has_symmetries=True).is_correct.all()


def test_places_two_cells_off_are_wrong():
    known = np.array([[0, 0], [5, 5], [9, 2], [3, 7]])
    found = known.copy()
    found[3] += [0, 3]
    assert align(found, known, (20, 20)).is_correct.tolist() == [True, True, True, False]
