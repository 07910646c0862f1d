"""Regions are connected, nested, named, and the same wherever the torus is cut."""

import json

import numpy as np
import pytest
from scipy.ndimage import label as components
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

import countinggrids as cg
from countinggrids.core.log_odds import log_odds
from countinggrids.data.items import Items
from countinggrids.features import Words
from countinggrids.features.text import Document
from countinggrids.features.vocabulary import Vocabulary
from countinggrids.meta import region_names, region_places
from countinggrids.meta.agglomeration import ward_levels
from countinggrids.meta.clusters import torus_neighbors
from countinggrids.meta.regions import find_regions

TOPICS = {
    "kitchen": "tea cup kettle sugar spoon milk",
    "railway": "train track station engine signal ticket",
    "garden": "rose soil spade hedge lawn seed",
    "sea": "ship harbor sail anchor wave captain",
}


def stories(rng, n=160, is_labeled=True):
    for i in range(n):
        label = list(TOPICS)[i % 4]
        words = [*rng.choice(TOPICS[label].split(), 12), *rng.choice(["2024", "the", "said", "thing", "day"], 8)]
        yield Document(" ".join(words), f"story {i}", label=label if is_labeled else "")


@pytest.fixture(scope="module")
def story_model():
    rng = np.random.default_rng(0)
    collection = cg.Collection.from_texts(stories(rng), Words(keep=["numbers"]))
    return cg.CountingGrid((12, 12), (3, 3), random_state=0).fit(collection), collection


def is_connected(is_inside):
    """Return whether a part of a torus is connected, by flooding three by three copies of the map."""
    copies, _ = components(np.tile(is_inside, (3, 3)))
    rows, columns = is_inside.shape
    middle = copies[rows : 2 * rows, columns : 2 * columns]
    found = set(middle[is_inside].tolist())
    if len(found) == 1:
        return True
    # Parts of the middle copy may only meet beyond its edge: join what is the same cell of the torus.
    groups = [set(np.unique(copies[r::rows, c::columns])) for r, c in np.argwhere(is_inside)]
    joined = groups.pop()
    while any(joined & group for group in groups):
        joined |= set().union(*(group for group in groups if joined & group))
        groups = [group for group in groups if not joined & group]
    return not groups


def test_the_connection_check_can_fail():
    two = np.zeros((5, 5), bool)
    two[0, 0] = two[2, 2] = True
    across = np.zeros((5, 5), bool)
    across[0, 0] = across[4, 0] = across[4, 4] = True
    assert not is_connected(two)
    assert is_connected(across)


def test_merging_with_equal_weights_is_ward_clustering(rng):
    points = rng.normal(size=(48, 5)).astype(np.float32)
    links = np.zeros((48, 48))
    for beside in torus_neighbors((6, 8)):
        links[np.arange(48), beside] = 1
    for n in (2, 5, 11):
        expected = AgglomerativeClustering(n, connectivity=links).fit_predict(points)
        [found] = ward_levels(points, np.ones(48), (6, 8), [n])
        assert adjusted_rand_score(expected, found) == pytest.approx(1)


def test_light_cells_join_their_surroundings_first(rng):
    points = np.repeat([[0.0], [10.0]], 8, axis=0)
    points[3] = 40.0
    weights = np.ones(16)
    weights[3] = 1e-6
    [found] = ward_levels(points, weights, (1, 16), [2])
    assert len(set(found[:8])) == len(set(found[8:])) == 1


def test_regions_are_connected_and_nested(story_model):
    regions = find_regions(*story_model, levels=[2, 4, 9])
    assert [len(regions.level(level)) for level in range(3)] == [2, 4, 9]
    for region in regions.regions:
        is_inside = regions.labels[region.level] == region.id
        assert is_connected(is_inside)
        assert is_inside.sum() == region.n_cells
        if region.parent is not None:
            assert (regions.labels[region.level - 1][is_inside] == region.parent).all()
            assert (regions.items[region.level - 1][regions.items[region.level] == region.id] == region.parent).all()
        assert region.n_items == (regions.items[region.level] == region.id).sum()
    for level in range(3):
        assert sum(region.n_items for region in regions.level(level)) == 160
        sizes = [region.n_items for region in regions.level(level)]
        assert sizes == sorted(sizes, reverse=True)


def test_four_topics_are_four_regions_named_by_their_words(story_model):
    regions = find_regions(*story_model, levels=[4])
    labels = story_model[1].items["label"]
    assert adjusted_rand_score(labels, regions.items[0]) > 0.95
    for region in regions.regions:
        label, fraction = next(iter(region.labels.items()))
        assert fraction > 0.9
        assert set(region.name.split(", ")) <= set(TOPICS[label].split())
        assert len(region.name.split(", ")) == 3
        assert {word for word, _ in region.words[:6]} == set(TOPICS[label].split())
        assert (labels[list(region.representatives)] == label).all()


def test_regions_do_not_depend_on_where_the_torus_is_cut(story_model):
    model, collection = story_model
    moved = cg.CountingGrid((12, 12), (3, 3))
    moved.__dict__.update(model.__dict__)
    moved.pi_ = np.roll(model.pi_, (5, -3), (0, 1))
    moved.log_prior_ = np.roll(model.log_prior_, (5, -3), (0, 1))
    here, there = (find_regions(each, collection, levels=[4]) for each in (model, moved))
    assert {region.name for region in here.regions} == {region.name for region in there.regions}
    back = np.roll(there.labels[0], (-5, 3), (0, 1))
    assert adjusted_rand_score(here.labels[0].ravel(), back.ravel()) == 1


def test_the_same_call_has_the_same_result(story_model):
    assert json.dumps(find_regions(*story_model).to_json()) == json.dumps(find_regions(*story_model).to_json())


def test_names_do_not_repeat_those_of_larger_regions(story_model):
    regions = find_regions(*story_model, levels=[2, 8])
    for region in regions.level(1):
        parent = regions.regions[region.parent]
        if len(regions.children(parent.id)) > 1:
            assert not set(region.name.split(", ")) & set(parent.name.split(", "))


@pytest.mark.parametrize(
    "word", ["1988", "x2", "the", "of", "ab", "monday", "ten", "", "--", "said", "going", "sen", "never"]
)
def test_junk_names_nothing(word):
    assert not region_names.is_telling(word)


@pytest.mark.parametrize("word", ["tea", "new york", "l'eau", "茶", "école", "well-known"])
def test_words_of_all_scripts_may_name(word):
    assert region_names.is_telling(word)


def test_a_name_says_nothing_twice():
    names = ["election", "elections", "vote", "voting", "party"]
    assert region_names.name_of(range(5), names, set()) == "election, vote, party"


def test_bounds_and_center_of_a_part_across_the_edges():
    is_inside = np.zeros((6, 8), bool)
    is_inside[np.ix_([5, 0, 1], [7, 0])] = True
    assert region_places.bounds(is_inside) == (5, 7, 3, 2)
    assert region_places.center(is_inside, np.ones((6, 8))) in [(0, 0), (0, 7)]
    assert region_places.bounds(np.ones((6, 8), bool)) == (0, 0, 6, 8)


def test_centers_lie_inside(story_model):
    regions = find_regions(*story_model)
    for region in regions.regions:
        row, column = (np.array(region.center) - 1) % 12
        assert regions.labels[region.level][int(row), int(column)] == region.id


def test_land_without_items_is_empty(rng):
    collection = cg.Collection.from_texts(stories(rng, 8))
    model = cg.CountingGrid((20, 20), (2, 2), location_prior="exact", random_state=0).fit(collection)
    regions = find_regions(model, collection)
    is_used = np.zeros((20, 20), bool)
    is_used.flat[model.predict(collection)] = True
    assert regions.is_empty.mean() > 0.3
    assert not regions.is_empty[is_used].any()


def test_small_collections_and_grids_of_one_axis(rng):
    collection = cg.Collection.from_texts(stories(rng, 2, is_labeled=False))
    model = cg.CountingGrid((7,), (2,), tol=0.1, random_state=0).fit(collection)
    regions = find_regions(model, collection.take([0]))
    assert [region.n_items for region in regions.regions] == [1, 1, 1]
    assert regions.labels[0].shape == (1, 7)
    assert regions.regions[0].labels == {}


def test_regions_of_images_are_named_by_labels():
    from countinggrids.data.items import Items
    from countinggrids.features import Vocabulary

    counts = np.repeat([[20, 1, 0], [0, 1, 20]], 30, axis=0)
    items = Items({"label": ["sky"] * 30 + ["sand"] * 30})
    collection = cg.Collection(counts, Vocabulary("patches", ("a", "b", "c")), items)
    model = cg.CountingGrid((8, 8), (2, 2), random_state=0).fit(collection)
    regions = find_regions(model, collection, levels=[2])
    assert {region.name for region in regions.regions} == {"sky", "sand"}
    assert regions.regions[0].words == ()


def test_wrong_levels_and_grids_are_named(story_model):
    for levels in (0, [], [4, 2], [0], [1000]):
        with pytest.raises(ValueError, match=r"levels=.*use for instance"):
            find_regions(*story_model, levels=levels)
    cube = cg.CountingGrid((3, 3, 3), (2, 2, 2), random_state=0).fit(story_model[1])
    with pytest.raises(ValueError, match=r"grid=\(3, 3, 3\) must have one or two axes"):
        find_regions(cube, story_model[1])


def test_log_odds_are_those_of_the_definition(rng):
    a, b, prior = rng.poisson(5, 6), rng.poisson(5, 6), np.full(6, 0.5)
    found, z = log_odds(a, b, prior)
    for w in range(6):
        one = np.log((a[w] + 0.5) / (a.sum() + 3 - a[w] - 0.5))
        other = np.log((b[w] + 0.5) / (b.sum() + 3 - b[w] - 0.5))
        assert found[w] == pytest.approx(one - other)
        assert z[w] == pytest.approx((one - other) / np.sqrt(1 / (a[w] + 0.5) + 1 / (b[w] + 0.5)))


def test_log_odds_of_features_that_never_occur_are_zero():
    found, z = log_odds([0, 3, 2], [0, 1, 4], [0, 1, 1])
    assert found[0] == z[0] == 0
    assert np.isfinite(found).all()


def test_one_label_for_all_items_names_no_region(rng):
    X = rng.multinomial(30, [0.25] * 4, 30) @ np.eye(4, 8, dtype=int)
    X[::2] = np.roll(X[::2], 4, axis=1)
    vocabulary = Vocabulary("colors", tuple("abcdefgh"), colors=np.zeros((8, 3), np.uint8))
    for labels, is_named in ((["here"] * 30, False), (["left", "right"] * 15, True)):
        collection = cg.Collection(X.astype("f4"), vocabulary, Items({"label": labels}))
        model = cg.CountingGrid((8, 8), (2, 2), location_prior="exact", random_state=0).fit(collection)
        names = {region.name for region in find_regions(model, collection, levels=[2]).regions}
        assert names == ({"left", "right"} if is_named else {"Region 0", "Region 1"})


def test_regions_of_mixed_images_are_named_by_labels_of_half_of_their_items(rng):
    X = np.repeat([[30, 1, 0, 0], [0, 0, 1, 30]], 20, axis=0)
    labels = ["sky"] * 7 + ["sea"] * 5 + ["hill"] * 4 + ["town"] * 4 + ["sand"] * 20
    vocabulary = Vocabulary("colors", tuple("abcd"), colors=np.zeros((4, 3), np.uint8))
    collection = cg.Collection(X.astype("f4"), vocabulary, Items({"label": labels}))
    model = cg.CountingGrid((8, 8), (2, 2), location_prior="exact", random_state=0).fit(collection)
    assert {region.name for region in find_regions(model, collection, levels=[2]).regions} == {"sky, sea", "sand"}


def test_names_begin_with_words_of_their_own_and_labels_stay_whole():
    assert region_names.with_own_leads([["Paris, France", "Rome"], ["Paris, France", "Oslo"], []]) == [
        "Paris, France, Rome",
        "Oslo, Paris, France",
        "",
    ]
