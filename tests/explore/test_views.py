"""The JSON views: cells, items, searches."""

import io
import json

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

import countinggrids as cg
from countinggrids.explore import ItemMap, pictures, views
from countinggrids.explore.map_view import map_view
from countinggrids.explore.word_index import word_index
from countinggrids.features import Words


def test_a_cell_lists_its_items_by_posterior(story_map):
    q = story_map.model.transform(story_map.collection.counts).reshape(-1, 10, 12)
    row, column = np.unravel_index(story_map.usage.argmax(), (10, 12))
    found = views.cell(story_map, int(row), int(column))
    rows, columns = np.arange(row - 1, row + 2) % 10, np.arange(column - 1, column + 2) % 12
    around = q[:, rows][:, :, columns].sum(axis=(1, 2))
    posteriors = [each["posterior"] for each in found["items"]]
    assert posteriors == sorted(posteriors, reverse=True)
    assert found["n_items"] == (around >= 0.01).sum() > 0
    np.testing.assert_allclose(posteriors[0], around.max(), atol=0.02)
    alone = views.cell(story_map, int(row), int(column), radius=0)
    assert alone["n_items"] == (q[:, row, column] >= 0.01).sum()


def test_features_of_a_cell_come_with_their_frequency_there_and_everywhere(story_map):
    row, column = np.unravel_index(story_map.usage.argmax(), (10, 12))
    found = views.cell(story_map, int(row), int(column))["features"]
    assert len(found) == 12
    assert found[0]["frequency"] > found[0]["everywhere"]
    assert found[0]["name"] in story_map.collection.vocabulary.names


def test_an_item_knows_its_neighbors_on_the_torus(story_map):
    found = views.item(story_map, 5)
    away = [
        min(
            float(np.hypot(*(story_map.places[i] - story_map.places[5] + [a * 10, b * 12])))
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
        )
        for i in range(80)
    ]
    distances = [each["distance"] for each in found["neighbors"]]
    np.testing.assert_allclose(distances, np.sort(np.delete(away, 5))[:12], atol=1e-3)
    assert 5 not in [each["item"] for each in found["neighbors"]]
    assert (found["known"]["title"], found["known"]["link"]) == ("story 5", "https://example.org/5")
    assert found["features"][0]["name"] in found["known"]["text"]


def test_a_search_falls_where_the_words_are_at_home(story_map):
    found = views.search(story_map, "train ticket unheard")
    assert found["words"] == ["ticket", "train"]
    assert sum(share for *_, share in found["posterior"]) > 0.9
    assert {each["label"] for each in found["items"][:10]} == {"station"}


def test_a_search_finds_names_too(story_map, walk_map):
    assert views.search(story_map, "STORY 17")["found"][0]["item"] == 17
    found = views.search(walk_map, "houses", lists_all=True)
    assert (found["n_found"], len(found["all"]), found["posterior"]) == (16, 16, [])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_counts_without_an_extractor_can_be_searched(story_map):
    whole = story_map.collection
    model = clone(story_map.model).set_params(max_iter=1, anneal=None).fit(whole.counts)
    bare = ItemMap(model, cg.Collection(whole.counts, whole.vocabulary, whole.items, 1))
    assert views.search(bare, "Train")["words"] == ["train"]


@pytest.mark.parametrize("query", ["tea", "tea milk train rose", "boat boat wave"])
def test_a_search_is_placed_as_the_model_places_it(story_map, query):
    counts = views.count_words(story_map, query)
    np.testing.assert_allclose(
        story_map.locate(counts).ravel(), story_map.model.transform(counts)[0], rtol=1e-3, atol=1e-6
    )


def test_what_falls_where_nothing_lies_lists_the_nearest(story_map):
    row, column = (int(n) for n in np.unravel_index(story_map.usage.argmin(), (10, 12)))
    away = views.distances(story_map, np.array([row, column]) + story_map.middle)
    q = np.zeros((10, 12))
    q[row, column] = 1
    alone = ItemMap(story_map.model, story_map.collection)
    alone.locate = lambda counts: q
    found = [each["item"] for each in views.search(alone, "tea")["items"]]
    assert len(found) == views.MOST_ITEMS
    assert away[found[0]] <= np.sort(away)[20]


def test_out_of_range_is_reported(story_map):
    with pytest.raises(LookupError, match="row=10 must be from 0 to 9"):
        views.cell(story_map, 10, 0)
    with pytest.raises(LookupError, match="item=80 must be from 0 to 79"):
        views.item(story_map, 80)


def test_views_are_plain_json(story_map, walk_map):
    for item_map in (story_map, walk_map):
        for view in (
            views.index(item_map),
            views.item(item_map, 3),
            views.cell(item_map, 1, 2),
            views.search(item_map, "tea"),
            map_view(item_map),
        ):
            assert json.loads(json.dumps(view, allow_nan=False)) == view


def test_the_map_names_what_its_lists_point_at(story_map):
    shown = map_view(story_map)
    names = story_map.collection.vocabulary.names
    flat = 37
    first = shown["cells"]["name"][flat * 12 : flat * 12 + 12]
    assert [shown["names"][k] for k in first] == [names[i] for i in story_map.distinctive.features[flat]]
    assert [shown["feature"][k] for k in first] == story_map.distinctive.features[flat].tolist()
    assert {shown["names"][word[0]] for word in shown["words"]} <= set(names)
    assert shown["items"]["lead"][0].split()[0] in names


def test_words_on_the_map_are_not_junk():
    texts = [f"{word} the 1988 us {word}" for word in ("kettle", "engine", "harbor", "meadow") for _ in range(10)]
    words = Words(tokenizer="whitespace", stop_words=None, min_df=1, max_df=1.0, min_length=1, keep=("numbers",))
    collection = cg.Collection.from_texts(texts, words)
    assert {"the", "1988", "us"} <= set(collection.vocabulary.names)
    model = cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(collection)
    shown = map_view(ItemMap(model, collection))
    written = {shown["names"][word[0]] for word in shown["words"]}
    assert written == {"kettle", "engine", "harbor", "meadow"}


def test_the_word_index_finds_the_same_place_as_the_model(story_map):
    facts, levels = word_index(story_map)
    table = np.frombuffer(levels, np.uint8).reshape(len(facts["names"]), -1)
    for query in ("tea milk", "boat", "train rose"):
        scores = np.array(facts["log_prior"])
        for word in query.split():
            scores = scores + facts["step"] * (table[facts["names"].index(word)].astype(float) - 128)
        place = np.unravel_index(scores.argmax(), (len(facts["rows"]), len(facts["columns"])))
        found = views.search(story_map, query)["posterior"]
        held = [facts["rows"][place[0]], facts["columns"][place[1]]]
        best = max(share for row, column, share in found if [row, column] == held)
        assert best > 0.7 * found[0][2]


def test_a_small_word_index_keeps_the_most_frequent_words(story_map):
    facts, levels = word_index(story_map, most_bytes=10 * 120)
    totals = np.asarray(story_map.collection.counts.sum(axis=0)).ravel()
    assert len(facts["names"]) == 10
    assert facts["n_left_out"] == len(totals) - 10
    kept = [story_map.collection.vocabulary.names.index(name) for name in facts["names"]]
    assert totals[kept].min() >= np.sort(totals)[-10]
    assert len(levels) == 10 * 120


def test_sheets_hold_every_thumbnail_where_the_table_says(walk_map):
    table = pictures.sheet_table(walk_map)
    sheet = np.asarray(Image.open(io.BytesIO(pictures.sheet(walk_map, 0, quality=95)))).astype(int)
    assert sorted(table["slot"]) == list(range(48))
    for item in (0, 20, 47):
        top, left = table["slot"][item] // 16 * 64, table["slot"][item] % 16 * 64
        tall, wide = table["height"][item], table["width"][item]
        own = walk_map.collection.thumbnail(item, 64).astype(int)
        assert own.shape == (tall, wide, 3)
        assert np.abs(sheet[top : top + tall, left : left + wide] - own).mean() < 8


def test_images_that_are_gone_stay_gray_and_are_counted(walks):
    item_map = ItemMap(cg.load(walks[0]), cg.Collection.load(walks[1], root="/nowhere"))
    assert len(pictures.left_out(item_map)) == 48
    assert len(pictures.sheet(item_map, 0)) > 100
    with pytest.raises(LookupError, match="the image of item=3 cannot be read; check that the files have not moved"):
        pictures.full(item_map, 3)


def test_a_link_that_leads_out_of_the_folder_is_not_served(walks, tmp_path):
    collection = cg.Collection.load(walks[1])
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link.png").symlink_to(collection.items.path(0))
    items = collection.items.with_columns(path=["link.png"] * 48)
    sly = cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps)
    sly.items.root = tmp_path / "inside"
    item_map = ItemMap(cg.load(walks[0]), sly)
    assert item_map.collection.items.path(0).is_file()
    assert len(pictures.left_out(item_map)) == 48
    with pytest.raises(LookupError, match="cannot be read"):
        pictures.full(item_map, 0)


def test_a_file_outside_the_collections_folder_is_not_served(walks):
    collection = cg.Collection.load(walks[1])
    items = collection.items.with_columns(path=["../walk 1/frame_000.png"] * 48)
    sly = cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps)
    sly.items.root = collection.items.root / "walk 0"
    assert sly.items.path(0).is_file()
    with pytest.raises(LookupError, match="cannot be read"):
        pictures.full(ItemMap(cg.load(walks[0]), sly), 0)
