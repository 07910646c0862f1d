"""Regions, items and words of a map as tables, and new items on it."""

import sys

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.core import em, relevance
from countinggrids.meta.regions import find_regions

pd = pytest.importorskip("pandas")
TOPICS = {"kitchen": "tea cup kettle sugar spoon milk", "railway": "train track station engine signal ticket"}


@pytest.fixture(scope="module")
def story_map():
    rng = np.random.default_rng(0)
    labels = list(TOPICS) * 30
    texts = [" ".join(rng.choice(TOPICS[label].split(), 12)) for label in labels]
    table = pd.DataFrame({"text": texts, "kind": labels, "price": np.arange(60)})
    table.loc[7, "text"] = ""
    collection = cg.Collection.from_frame(table, label="kind")
    return cg.CountingGrid((8, 8), (2, 2), tol=1e-4, random_state=0).fit(collection), collection, table


def test_the_table_of_regions_has_what_find_regions_finds(story_map):
    model, collection, _ = story_map
    table, found = model.regions(collection, levels=[2, 4]), find_regions(model, collection, levels=[2, 4])
    assert table.index.tolist() == [region.id for region in found.regions]
    assert table["name"].tolist() == [region.name for region in found.regions]
    assert table[table["level"] == 0]["n_items"].sum() == 59
    assert table[table["level"] == 0]["parent"].isna().all()
    shares = table[[f"share {label}" for label in TOPICS]]
    assert np.allclose(shares.sum(axis=1), table["n_items"] > 0)
    assert set(table.loc[0, "words"][:6]) in [set(words.split()) for words in TOPICS.values()]


def test_the_table_of_items_keeps_all_columns_and_row_numbers(story_map):
    model, collection, given = story_map
    table = model.items(collection)
    assert len(table) == 59
    assert (table[["map_row", "map_column"]].to_numpy() == model.locate(collection)).all()
    assert np.allclose(table["posterior"], model.transform(collection).max(axis=1))
    assert table["row"].tolist() == [i for i in range(60) if i != 7]
    joined = given.iloc[table["row"].astype(int)]
    assert joined["text"].tolist() == table["text"].tolist()
    assert table["price"].astype(float).tolist() == joined["price"].tolist()
    names = model.regions(collection)["name"]
    assert (names[table["region"]].to_numpy() == table["region_name"]).all()


def test_plain_counts_make_tables_too(story_map):
    model, collection, _ = story_map
    plain = cg.CountingGrid((8, 8), (2, 2), tol=1e-4, random_state=0).fit(collection.counts)
    table = plain.regions(collection.counts, words=collection.vocabulary.names)
    assert table["name"].tolist() == model.regions(collection)["name"].tolist()
    assert plain.items(collection.counts)["title"][3] == "bag 3"


def test_top_words_of_a_window_are_the_most_relevant(story_map):
    model, collection, _ = story_map
    found = model.top_words((3, 4), collection, n=3)
    h = em.histograms(np.moveaxis(model.pi_, -1, 0), (2, 2))
    scores = relevance.relevance(h[:, 3, 4], relevance.mean_histogram(np.moveaxis(h, 0, -1), np.exp(model.log_prior_)))
    best = np.argsort(-scores)[:3]
    assert [word for word, _ in found] == [collection.vocabulary.names[i] for i in best]
    assert [i for i, _ in model.top_words((3, 4), n=3)] == best.tolist()


def test_words_that_are_rarer_than_elsewhere_are_not_top_words(story_map):
    model, collection = story_map[:2]
    found = model.top_words((3, 4), collection, n=10_000)
    assert 0 < len(found) < len(collection.vocabulary)
    assert all(score > 0 for _, score in found)


def test_top_words_of_a_region_by_id_or_name(story_map):
    model, collection, _ = story_map
    region = find_regions(model, collection).regions[1]
    assert model.top_words(1, collection, n=4) == list(region.words[:4])
    assert model.top_words(region.name, collection, n=4)[0] in region.words


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ((9, 0), r"where=\(9, 0\) must be a cell of the grid \(8, 8\)"),
        ((1,), "must be a cell"),
        ("nowhere", "where='nowhere' must be the name of a region, such as"),
        (999, "where=999 must be the name"),
    ],
)
def test_wrong_places_are_named(story_map, where, message):
    with pytest.raises(ValueError, match=message):
        story_map[0].top_words(where, story_map[1])


def test_regions_need_the_collection(story_map):
    with pytest.raises(ValueError, match="which needs the collection; pass it"):
        story_map[0].top_words(0)


def test_without_pandas_the_error_says_what_to_do(story_map, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"need pandas.*pip install 'countinggrids\[frames\]'"):
        story_map[0].items(story_map[1])


def test_new_texts_are_placed_where_their_words_are(story_map):
    model, collection, _ = story_map
    placed = model.place(["tea cup sugar milk", "train station", "zzz"], collection)
    counts = collection.bag(["tea cup sugar milk", "train station", "zzz"])
    assert (placed.cells == model.locate(counts)).all()
    assert placed.scores[0] == pytest.approx(model.score_samples(counts)[0] / 4, rel=1e-5)
    assert np.isnan(placed.scores[2])
    assert (model.place(collection).cells == model.locate(collection)).all()


def test_texts_need_the_extractors(story_map):
    with pytest.raises(ValueError, match="need the extractors of the fitted collection; pass collection, or counts"):
        story_map[0].place(["tea"])
    with pytest.raises(TypeError, match=r"is a single text and must be a list of items; use \[text\]"):
        story_map[0].place("tea", story_map[1])
