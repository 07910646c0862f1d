"""Where items lie on the map, and what its windows hold."""

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.core import em
from countinggrids.data.items import Items
from countinggrids.explore import ItemMap
from countinggrids.features import Vocabulary
from countinggrids.features.text import Document
from countinggrids.meta.posteriors import MOST_CELLS, largest_entries


def test_posteriors_are_the_models_largest_first(story_map):
    q = story_map.model.transform(story_map.collection.counts)
    for item in (0, 17, 79):
        found = story_map.posterior(item)
        assert (np.diff(found.probabilities) <= 0).all()
        assert found.cells[0] == q[item].argmax()
        np.testing.assert_allclose(found.probabilities, q[item, found.cells], rtol=1e-5)
        assert np.setdiff1d(np.flatnonzero(q[item] >= 0.01), found.cells).size == 0


def test_usage_is_the_sum_of_all_posteriors(story_map):
    q = story_map.model.transform(story_map.collection.counts)
    np.testing.assert_allclose(story_map.usage, q.sum(axis=0).reshape(10, 12), rtol=1e-4, atol=1e-5)


def test_places_are_the_middles_of_windows(story_map):
    corners = story_map.model.locate(story_map.collection.counts)
    away = story_map.places - (corners + np.array([1.0, 1.5]))
    away = (away + story_map.grid / np.array(2)) % story_map.grid - story_map.grid / np.array(2)
    assert np.abs(away).max() <= 2
    assert np.abs(away).mean() < 0.5
    assert story_map.window_at(corners[5] + np.array([1.0, 1.5])) == tuple(corners[5])


def test_an_item_between_two_cells_lies_between_them_also_across_the_seam():
    collection = cg.Collection.from_texts([Document("aa bb cc dd"), Document("aa bb cc dd")])
    model = cg.CountingGrid((1, 8), (1, 4), location_prior="uniform", anneal=None, max_iter=500).fit(collection.counts)
    model.pi_ = np.full((1, 8, 4), 0.25, np.float32)
    model.log_prior_ = np.log(np.array([[0.5, *[1e-9] * 6, 0.5]], np.float32))
    # Windows of four from 0 and from 7: their middles are at 1.5 and at 0.5.
    np.testing.assert_allclose(ItemMap(model, collection).places, [[0, 1.0], [0, 1.0]], atol=1e-3)


def test_distinctive_features_are_those_of_the_definition(story_map, monkeypatch):
    h = em.histograms(np.moveaxis(story_map.pi, -1, 0), story_map.window).reshape(story_map.pi.shape[-1], -1).T
    everywhere = np.average(h, axis=0, weights=story_map.usage.ravel())
    scores = h * np.log(h / everywhere)
    found = story_map.distinctive
    np.testing.assert_allclose(found.everywhere, everywhere, rtol=1e-4)
    for cell in (0, 50, 119):
        assert found.features[cell].tolist() == np.argsort(-scores[cell], kind="stable")[:12].tolist()
        np.testing.assert_allclose(found.frequencies[cell], h[cell, found.features[cell]], rtol=1e-5)
    monkeypatch.setattr("countinggrids.explore.item_map.BLOCK", 500)
    again = ItemMap(story_map.model, story_map.collection).distinctive
    np.testing.assert_array_equal(again.features, found.features)


def test_the_largest_entries_of_each_row_are_kept(rng):
    q = rng.dirichlet(np.full(200, 0.05), 30).astype(np.float32)
    q[3] = 1 / 200
    kept = largest_entries(q)
    for row in range(30):
        cells = kept.indices[slice(*kept.indptr[row : row + 2])]
        largest = np.argsort(-q[row], kind="stable")[:MOST_CELLS]
        assert cells.tolist() == [k for k in largest if q[row, k] >= min(0.002, q[row].max())]


def test_a_grid_of_one_axis_is_one_row_and_three_axes_are_too_many():
    X = np.random.default_rng(0).integers(0, 5, (20, 6)).astype(float)
    collection = cg.Collection(
        X, Vocabulary("words", tuple("abcdef")), Items({"title": [str(i) for i in range(20)]}), 1
    )
    item_map = ItemMap(cg.CountingGrid((12,), (3,), random_state=0).fit(X), collection)
    assert (item_map.grid, item_map.window, item_map.places[:, 0].tolist()) == ((1, 12), (1, 3), [0.0] * 20)
    with pytest.raises(
        ValueError, match=r"grid=\(4, 4, 4\) has 3 axes; expected one or two for a map; fit a grid such as \(32, 32\)"
    ):
        ItemMap(cg.CountingGrid((4, 4, 4), (2, 2, 2), random_state=0).fit(X), collection)


def test_other_features_are_refused(stories, walks):
    with pytest.raises(ValueError, match="must have the features of the model"):
        ItemMap(cg.load(stories[0]), cg.Collection.load(walks[1]))
