"""Cells of texts are told apart by what is particular to the texts that lie around them."""

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.features.text import Document
from countinggrids.meta import region_points

GRID = (4, 8)
COMMON = " ".join(f"common{i}" for i in range(40))


@pytest.fixture(scope="module")
def halves():
    """Texts of common words and, in the left half of the map, of one topic, in the right half of another."""
    rng = np.random.default_rng(0)
    topics = [[f"{name}{i}" for i in range(40)] for name in ("tea", "rail")]
    cells = np.repeat(np.arange(32), 6)
    texts = [Document(" ".join([COMMON, *rng.choice(topics[int(cell % 8 >= 4)], 10)])) for cell in cells]
    posteriors = sp.csr_array((np.ones(len(cells)), (np.arange(len(cells)), cells)), shape=(len(cells), 32))
    return cg.Collection.from_texts(texts), posteriors


def points_of(halves):
    return region_points.of_texts(*halves, np.full(GRID, 6.0), np.array([0.5, 0.5])).reshape(*GRID, -1)


def test_cells_of_a_topic_have_one_direction_though_most_words_are_common(halves):
    points = points_of(halves)
    assert points.shape[2] == region_points.N_DIMENSIONS < len(halves[0].vocabulary)
    np.testing.assert_allclose(np.linalg.norm(points, axis=2), 1)
    inside = points[:, [1, 2, 5, 6]].reshape(-1, points.shape[2])
    is_right = np.tile([False, False, True, True], 4)
    cosines = inside @ inside.T
    assert cosines[np.ix_(is_right, is_right)].min() > 0.2
    assert cosines[np.ix_(~is_right, ~is_right)].min() > 0.2
    assert cosines[np.ix_(is_right, ~is_right)].max() < -0.2


def test_with_dimensions_for_all_words_nothing_is_lost(halves, monkeypatch):
    monkeypatch.setattr(region_points, "N_DIMENSIONS", 119)
    nearly_all = points_of(halves)
    monkeypatch.setattr(region_points, "N_DIMENSIONS", 10_000)
    everything = points_of(halves)
    assert nearly_all.shape[2] == 119 < everything.shape[2] == len(halves[0].vocabulary)
    cosines = [each.reshape(32, -1) @ each.reshape(32, -1).T for each in (nearly_all, everything)]
    np.testing.assert_allclose(*cosines, atol=0.05)


def test_most_texts_limits_only_the_axes(halves, monkeypatch):
    monkeypatch.setattr(region_points, "MOST_TEXTS", 96)
    points = points_of(halves)
    assert points[1, 1] @ points[2, 2] > 0.2
    assert points[1, 1] @ points[2, 6] < -0.2


def test_equal_texts_have_no_direction(halves):
    collection = cg.Collection.from_texts([Document("tea with milk")] * len(halves[0]))
    points = region_points.of_texts(collection, halves[1], np.full(GRID, 6.0), np.array([0.5, 0.5]))
    np.testing.assert_allclose(points, 0, atol=1e-6)
