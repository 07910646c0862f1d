"""The candidates of a search: which combinations of values there are, and the sections of the bags they need."""

import pytest

from countinggrids.meta.search_space import SearchSpace

SPACE = SearchSpace((4, 6), (2,), (1,), (None,), (None,), (1.0,), (None,))


def test_candidates_are_all_combinations_within_the_limits():
    space = SPACE._replace(grids=(2, 4, 6, (4, 8), 40), windows=(2, 4), tokens=(20, None), max_iters=(5, 10))
    found = list(space.candidates(2, 9))
    assert all(2 <= candidate.capacity <= 9 for candidate in found)
    shapes = {((4, 4), (2, 2)), ((6, 6), (2, 2)), ((6, 6), (4, 4)), ((4, 8), (2, 2)), ((4, 8), (4, 4))}
    assert {(candidate.grid, candidate.window) for candidate in found} == shapes
    assert len(set(found)) == len(found) == 4 * len(shapes)


def test_windows_are_cut_only_into_sections_that_divide_them():
    space = SPACE._replace(windows=(4,), sections=(1, 2, 3), paint=(None, 2, 4))
    cuts = [(candidate.sections, candidate.paint) for candidate in space.candidates(1, 9) if candidate.grid == (4, 4)]
    one, two, four = (1, 1), (2, 2), (4, 4)
    assert cuts == [(one, None), (one, two), (one, four), (two, None), (two, two), (two, four)]


def test_a_space_without_candidates_is_refused():
    with pytest.raises(ValueError, match="no grid and window has a capacity from 1 to 3; use other grids"):
        list(SPACE.candidates(1, 3))


def test_bags_need_the_finest_sections_unless_others_are_given():
    space = SPACE._replace(sections=(1, (2, 3)), paint=(None, 2))
    assert space.x_sections(None) == (2, 3)
    assert space._replace(paint=(None, 4)).x_sections(None) == (4, 4)
    assert space.x_sections(6) == (6, 6)
