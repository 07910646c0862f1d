"""The paper's drawing, put back together from histograms (needs the data)."""

import sys
from pathlib import Path

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import demo
from countinggrids.alignment import align

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import scene


def put_back(data, sections, seed, **options):
    labels = demo.tree_scene(data).labels
    corners, maps = scene.windows(labels, seed)
    X = cg.bag(maps, sections, scene.N_COLOURS)
    model = cg.CountingGrid(scene.GRID, scene.WINDOW, sections, random_state=seed, **options).fit(X)
    return align(model.locate(X), corners, scene.GRID).is_right.mean()


def test_four_histograms_a_window_put_the_drawing_back(data):
    assert np.median([put_back(data, 2, seed) for seed in range(3)]) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("sections", [2, 4])
def test_the_default_settings_put_nine_windows_in_ten_back(data, sections):
    assert np.median([put_back(data, sections, seed) for seed in range(5)]) >= 0.9
