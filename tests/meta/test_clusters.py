"""Regions of the grid: hills, valleys, and the seam of the torus."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import countinggrids as cg
from countinggrids.meta.clusters import merged, watershed


def hills(shape, tops):
    """Make a map with a round hill at each top, on a torus."""
    cells = np.stack(np.indices(shape), axis=-1)
    heights = np.zeros(shape)
    for top, height in tops:
        apart = np.abs(cells - top)
        apart = np.minimum(apart, np.array(shape) - apart)
        heights = np.maximum(heights, height * np.exp(-(apart**2).sum(axis=-1) / 8))
    return heights


def test_each_hill_is_a_region_also_across_the_seam():
    regions = watershed(hills((12, 12), [((0, 0), 2.0), ((6, 6), 1.0)]))
    assert regions.max() == 1
    assert regions[0, 0] == regions[11, 11] == regions[1, 11] == regions[11, 0]
    assert regions[6, 6] == regions[5, 7] != regions[0, 0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.integers(0, 6))
def test_rolling_the_map_rolls_the_regions(seed, down, across):
    heights = np.random.default_rng(seed).random((6, 7))
    rolled = watershed(np.roll(heights, (down, across), (0, 1)))
    assert adjusted_rand_score(np.roll(watershed(heights), (down, across), (0, 1)).ravel(), rolled.ravel()) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_joining_leaves_as_many_as_wanted(seed, n):
    heights = np.random.default_rng(seed).random((6, 7))
    regions = watershed(heights)
    assert len(np.unique(merged(regions, heights, n))) == min(n, len(np.unique(regions)))


def test_the_shallowest_valley_goes_first():
    heights = hills((1, 40), [((0, 5), 1.0), ((0, 11), 1.0), ((0, 27), 1.0)])
    two = merged(watershed(heights), heights, 2)
    assert two[0, 5] == two[0, 11] != two[0, 27]


def test_plains_and_plateaus_are_no_hills():
    assert watershed(np.zeros((3, 4))).max() == 0
    lonely = np.zeros((9, 9))
    lonely[4, 4] = 1
    assert watershed(lonely).max() == 0
    horseshoe = np.zeros((7, 7))
    horseshoe[1:6, 1] = horseshoe[5, 1:6] = horseshoe[1:6, 5] = 1
    assert watershed(horseshoe).max() == 0


@pytest.mark.parametrize("shape", [(9,), (3, 4, 5)])
def test_any_number_of_axes(shape):
    regions = watershed(np.random.default_rng(0).random(shape))
    assert regions.shape == shape


@pytest.fixture(scope="module")
def bags():
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(9, 0.2), 3)
    which = np.repeat([0, 1, 2], 25)
    return np.array([rng.multinomial(60, histograms[c]) for c in which], dtype=float), which, histograms


def test_clusters_are_found_and_named(bags):
    X, which, histograms = bags
    model = cg.GridClusters(cg.CountingGrid((10, 10), (3, 3), random_state=0), n_clusters=3).fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(which, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    names = [f"word {z}" for z in range(9)]
    for cluster, words in enumerate(model.features(names, n=2)):
        own = np.bincount(which[model.labels_ == cluster]).argmax()
        relevance = histograms[own] * np.log(histograms[own] / histograms.mean(axis=0))
        assert f"word {relevance.argmax()}" in words
    assert isinstance(model.features()[0][0], int)


def test_too_few_hills_are_a_warning(bags):
    grid = cg.CountingGrid((8, 8), (2, 2), random_state=0).fit(bags[0])
    with pytest.warns(
        UserWarning, match="n_clusters=1000 is more than the .* hills of the grid; each is a cluster; use a larger grid"
    ):
        few = cg.GridClusters(grid, n_clusters=1000).fit(bags[0])
    rough = cg.GridClusters(grid, n_clusters=few.n_clusters_, smoothing=3.0).fit(bags[0])
    assert rough.n_clusters_ == few.n_clusters_


def test_a_fitted_grid_is_used_as_it_is(bags):
    X, _, _ = bags
    grid = cg.CountingGrid((8, 8), (2, 2), random_state=0).fit(X)
    model = cg.GridClusters(grid).fit(X)
    assert model.model_ is grid
    sizes = np.bincount(model.regions_.ravel(), grid.transform(X).sum(axis=0))
    assert (np.diff(sizes) <= 1e-3).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer of at least 1"),
        ({"smoothing": -1}, "smoothing=-1 must be a fraction of at least 0"),
    ],
)
def test_wrong_use_is_refused(bags, options, message):
    with pytest.raises(ValueError, match=message):
        cg.GridClusters(cg.CountingGrid((6, 6), (2, 2), random_state=0), **options).fit(bags[0])


def test_tables_of_clusters_have_rows_of_the_input():
    rows = {"text": ["tea with milk", "", "trains on tracks"] * 15, "kind": ["drink", "", "rail"] * 15}
    collection = cg.Collection.from_frame(rows, label="kind")
    grid = cg.CountingGrid((8, 8), (2, 2), random_state=0)
    clusters = cg.GridClusters(grid, n_clusters=2).fit(collection)
    items = clusters.items(collection)
    assert items["row"].tolist() == [i for i in range(45) if i % 3 != 1]
    np.testing.assert_array_equal(items["cluster"], clusters.labels_)
    np.testing.assert_array_equal(clusters.predict(collection), clusters.labels_)
    np.testing.assert_array_equal(items[["map_row", "map_column"]], clusters.model_.locate(collection))
    table = clusters.summary(collection, n=2)
    assert table["n_items"].sum() == 30
    assert table["share drink"].tolist() in ([1.0, 0.0], [0.0, 1.0])
    kinds = [{rows["kind"][row] for row in found} for found in table["representatives"]]
    assert sorted(map(sorted, kinds)) == [["drink"], ["rail"]]
    plain = clusters.items(collection.counts, words=collection.vocabulary.names)
    assert plain["row"].tolist() == list(range(30))
