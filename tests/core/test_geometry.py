import numpy as np
import pytest

from countinggrids.core.geometry import Geometry, as_shape


@pytest.mark.parametrize("value", [(8, 8), [8, 8], np.array([8, 8]), (np.int64(8), 8)])
def test_shapes_may_come_in_any_sequence(value):
    assert as_shape(value, "window", 2) == (8, 8)


def test_one_number_stands_for_every_axis():
    assert as_shape(4, "window", 3) == (4, 4, 4)
    assert as_shape(np.int32(4), "grid") == (4,)


@pytest.mark.parametrize("value", [0, -1, (), (4, 0), (2.5, 2), True, (True, 2), "4x4", None, [[4]]])
def test_what_is_no_shape_is_refused(value):
    with pytest.raises(ValueError, match="must be one positive integer per axis"):
        as_shape(value, "grid", 2)


def test_blocks_and_offsets_follow_from_window_and_sections():
    geometry = Geometry.of((12, 12), (4, 6), (2, 3), (4, 6))
    assert geometry.block(painted=False) == (2, 2)
    assert geometry.block(painted=True) == (1, 1)
    assert geometry.matched_offsets[-1] == (2, 4)
    assert len(geometry.painted_offsets) == geometry.n_column_sections == 24
