"""The paper's drawing, put back together from histograms (needs the data)."""

import sys
from pathlib import Path

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.core.alignment import align
from countinggrids.reproduce import demo

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import scene


def put_back(data, sections, seed, **options):
    trees = demo.tree_scene(data)
    corners, maps = scene.windows(trees.labels, seed)
    X = cg.bag(maps, sections, scene.N_COLORS)
    model = cg.CountingGrid(trees.grid, scene.WINDOW, sections, random_state=seed, **options).fit(X)
    return align(model.locate(X), corners, trees.grid, has_symmetries=sections == 1).is_correct.mean()


def test_four_histograms_a_window_put_the_drawing_back(data):
    assert np.median([put_back(data, 2, seed) for seed in range(3)]) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("sections", [2, 4])
def test_the_default_settings_put_nine_windows_in_ten_back(data, sections):
    assert np.median([put_back(data, sections, seed) for seed in range(5)]) >= 0.9


@pytest.mark.slow
def test_the_default_settings_put_windows_back_from_one_histogram_each(data):
    assert np.mean([put_back(data, 1, seed) for seed in range(8)]) >= 0.65
