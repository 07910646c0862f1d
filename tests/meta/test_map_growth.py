"""Maps that grow: old items keep their places, new ones find free land, and what changed is listed."""

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.core import torus
from countinggrids.meta.growth import with_new_items
from countinggrids.meta.map_growth import combined
from countinggrids.training import growing

TOPICS = {
    "kitchen": "tea cup kettle sugar spoon milk bread butter",
    "railway": "train track station engine signal ticket platform bridge",
    "garden": "rose tree leaf soil seed spade hedge lawn",
}
NEW = {"sea": "ship wave harbor sail anchor captain deck storm"}


def texts_of(topics, n, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"text": " ".join(rng.choice(words.split(), 15)), "label": label} for label, words in topics.items()
        for _ in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def previous():
    return cg.Collection.from_texts(texts_of(TOPICS, 60))


@pytest.fixture(scope="module")
def model(previous):
    return cg.CountingGrid((12, 12), (3, 3), max_iter=60, tol=1e-3, random_state=0).fit(previous)


@pytest.fixture(scope="module")
def growth(model, previous):
    return model.grow(cg.Collection.from_texts(texts_of(NEW, 40)), previous)


def test_old_items_keep_their_places(model, previous, growth):
    assert np.median(growth.moved) == 0
    before, after = model.locate(previous), growth.model.locate(growth.collection)[: len(previous)]
    away = torus.displacement(before, after, growth.model.geometry_.grid)
    np.testing.assert_allclose(growth.moved, np.hypot(*away.T))


def test_a_new_topic_lands_on_free_land_with_its_own_words(growth, previous):
    places = growth.model.locate(growth.collection)[len(previous) :]
    assert growth.was_free[tuple(places.T)].mean() > 0.9
    born = [row for row in growth.changes if row.change == "born"]
    assert born
    assert sum(row.n_new for row in born) >= 30
    assert all(set(row.words) & set(NEW["sea"].split()) for row in born)
    assert not any(row.change == "died" for row in growth.changes)


def test_more_of_an_old_topic_grows_its_regions_and_gives_birth_to_none(model, previous):
    more = cg.Collection.from_texts(texts_of({"garden": TOPICS["garden"]}, 60, seed=1))
    growth = model.grow(more, previous)
    grew = [row for row in growth.changes if row.n_new]
    names = {word for row in grew for word in row.name.split(", ")}
    assert names & set(TOPICS["garden"].split())
    in_garden = sum(row.n_new for row in grew if set(row.name.split(", ")) & set(TOPICS["garden"].split()))
    assert in_garden >= 0.9 * len(more)


def test_the_collection_of_a_grown_map_holds_all_items_and_all_words(growth, previous):
    together = growth.collection
    assert len(together) == len(previous) + 40
    assert together.items["split"].tolist() == ["before"] * len(previous) + ["new"] * 40
    assert set(NEW["sea"].split()) <= set(together.vocabulary.names)
    assert together.counts[: len(previous)].sum() == previous.counts.sum()
    assert together.bag(["rose ship"]).sum() == 2


def test_a_grown_map_grows_again_is_saved_and_its_changes_are_a_table(growth, tmp_path):
    again = growth.model.grow(
        cg.Collection.from_texts(texts_of({"pub": "beer darts cider bar pint"}, 20)), growth.collection
    )
    assert np.median(again.moved) == 0
    again.model.save(tmp_path / "model")
    again.collection.save(tmp_path / "bags")
    kept, bags = cg.load(tmp_path / "model"), cg.Collection.load(tmp_path / "bags")
    np.testing.assert_array_equal(kept.locate(bags), again.model.locate(again.collection))
    table = again.to_frame()
    assert list(table.columns)[:5] == ["change", "name", "n_before", "n_after", "n_new"]
    assert again.to_json()[0]["n_new"] == table["n_new"].max()


def test_old_regions_stay_with_their_names_and_new_land_has_its_own(model, previous, growth):
    old, new = cg.find_regions(model, previous), growth.regions
    for level in range(3):
        before = [old.regions[i].name for i in old.items[level]]
        after = [new.regions[i].name for i in new.items[level][: len(previous)]]
        assert np.mean([a == b for a, b in zip(before, after, strict=True)]) > 0.95
        settlers = new.items[level][len(previous) :]
        names = {region.name for region in old.level(level)}
        assert np.mean([new.regions[i].name not in names for i in settlers]) > 0.8
        for region in new.level(level):
            assert (
                region.parent is None or (new.labels[level - 1][new.labels[level] == region.id] == region.parent).all()
            )


def test_a_split_of_the_users_own_is_kept(previous):
    mine = previous.take(range(5))
    mine.items = mine.items.with_columns(split=["train"] * 5)
    joined = combined(mine, previous.take(range(5, 8)))
    assert joined.items["split"].tolist() == ["train"] * 5 + [""] * 3
    assert joined.items["arrived"].tolist() == ["before"] * 5 + ["new"] * 3


def test_the_model_that_grows_stays_as_it_is(model, previous, growth):
    assert model.geometry_.grid == (12, 12)
    assert model.locate(previous).shape == (180, 2)
    assert growth.model is not model


def test_windows_of_an_extended_grid_are_those_of_the_old_one(model):
    geometry, old = model.geometry_, model.planes()
    filling = np.full(len(old.pi), 1 / len(old.pi))
    larger = growing.extended(old, geometry, (12, 20), filling, np.random.RandomState(0))
    was, now = (torus.window_sum(grid.pi, geometry.window) for grid in (old, larger))
    np.testing.assert_allclose(now[:, :12, :12], was, rtol=1e-5)


def test_what_cannot_grow_is_refused_with_advice(model, previous):
    with pytest.raises(TypeError, match=r"new is a list and must be a Collection; use Collection\.from_frame"):
        model.grow(["tea"], previous)
    with pytest.raises(ValueError, match=r"strength=0 must be above 0"):
        model.grow(previous, previous, strength=0)
    with pytest.raises(ValueError, match="new has no items"):
        model.grow(previous.take([]), previous)
    mixture = cg.MixtureOfUnigrams(2, random_state=0, max_iter=200, tol=1e-3).fit(previous)
    with pytest.raises(ValueError, match="MixtureOfUnigrams cannot grow"):
        mixture.grow(previous, previous)


def test_new_texts_are_shown_beside_the_old_ones(model, previous):
    shown = with_new_items(previous, ["tea milk cup", "a word unknown", {"text": "train track", "label": "rail"}])
    assert shown.items["split"].tolist() == ["before"] * len(previous) + ["new"] * 2
    assert len(model.explore(previous, new=["tea milk cup"]).text) > 10_000
    with pytest.raises(TypeError, match="bag the new items with its extractors"):
        with_new_items(cg.Collection.from_counts(np.eye(3)), ["tea"])
