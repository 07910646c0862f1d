"""The JSON views: cells, items, searches."""

import io
import json

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

import countinggrids as cg
from countinggrids.explore import Atlas, pictures, views
from countinggrids.explore.chart import chart
from countinggrids.explore.lexicon import lexicon


def test_a_cell_lists_its_items_by_posterior(story_atlas):
    q = story_atlas.model.transform(story_atlas.collection.counts).reshape(-1, 10, 12)
    row, column = np.unravel_index(story_atlas.usage.argmax(), (10, 12))
    found = views.cell(story_atlas, int(row), int(column))
    rows, columns = np.arange(row - 1, row + 2) % 10, np.arange(column - 1, column + 2) % 12
    around = q[:, rows][:, :, columns].sum(axis=(1, 2))
    shares = [each["posterior"] for each in found["items"]]
    assert shares == sorted(shares, reverse=True)
    assert found["n_items"] == (around >= 0.01).sum() > 0
    np.testing.assert_allclose(shares[0], around.max(), atol=0.02)
    alone = views.cell(story_atlas, int(row), int(column), radius=0)
    assert alone["n_items"] == (q[:, row, column] >= 0.01).sum()


def test_features_of_a_cell_come_with_their_share_there_and_everywhere(story_atlas):
    row, column = np.unravel_index(story_atlas.usage.argmax(), (10, 12))
    found = views.cell(story_atlas, int(row), int(column))["features"]
    assert len(found) == 12
    assert found[0]["share"] > found[0]["everywhere"]
    assert found[0]["name"] in story_atlas.collection.vocabulary.names


def test_an_item_knows_its_neighbours_on_the_torus(story_atlas):
    found = views.item(story_atlas, 5)
    away = [
        min(
            float(np.hypot(*(story_atlas.places[i] - story_atlas.places[5] + [a * 10, b * 12])))
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
        )
        for i in range(80)
    ]
    distances = [each["distance"] for each in found["neighbours"]]
    np.testing.assert_allclose(distances, np.sort(np.delete(away, 5))[:12], atol=1e-3)
    assert 5 not in [each["item"] for each in found["neighbours"]]
    assert (found["known"]["title"], found["known"]["link"]) == ("story 5", "https://example.org/5")
    assert found["features"][0]["name"] in found["known"]["text"]


def test_a_search_falls_where_the_words_are_at_home(story_atlas):
    found = views.search(story_atlas, "train ticket unheard")
    assert found["words"] == ["ticket", "train"]
    assert sum(share for *_, share in found["posterior"]) > 0.9
    assert {each["label"] for each in found["items"][:10]} == {"station"}


def test_a_search_finds_names_too(story_atlas, walk_atlas):
    assert [each["item"] for each in views.search(story_atlas, "STORY 17")["named"]] == [17]
    found = views.search(walk_atlas, "houses")
    assert (found["n_named"], found["posterior"]) == (16, [])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_counts_without_an_extractor_can_be_searched(story_atlas):
    whole = story_atlas.collection
    model = clone(story_atlas.model).set_params(max_iter=1, anneal=None).fit(whole.counts)
    bare = Atlas(model, cg.Collection(whole.counts, whole.vocabulary, whole.items, 1))
    assert views.search(bare, "Train")["words"] == ["train"]


@pytest.mark.parametrize("query", ["tea", "tea milk train rose", "boat boat wave"])
def test_a_search_is_placed_as_the_model_places_it(story_atlas, query):
    counts = views.counted(story_atlas, query)
    np.testing.assert_allclose(
        story_atlas.locate(counts).ravel(), story_atlas.model.transform(counts)[0], rtol=1e-3, atol=1e-6
    )


def test_what_falls_where_nothing_lies_lists_the_nearest(story_atlas):
    row, column = (int(n) for n in np.unravel_index(story_atlas.usage.argmin(), (10, 12)))
    away = views.distances(story_atlas, np.array([row, column]) + story_atlas.middle)
    q = np.zeros((10, 12))
    q[row, column] = 1
    alone = Atlas(story_atlas.model, story_atlas.collection)
    alone.locate = lambda counts: q
    found = [each["item"] for each in views.search(alone, "tea")["items"]]
    assert len(found) == views.MOST_ITEMS
    assert away[found[0]] <= np.sort(away)[20]


def test_out_of_range_is_told(story_atlas):
    with pytest.raises(LookupError, match="row is 10; wanted 0 to 9"):
        views.cell(story_atlas, 10, 0)
    with pytest.raises(LookupError, match="item is 80; wanted 0 to 79"):
        views.item(story_atlas, 80)


def test_views_are_plain_json(story_atlas, walk_atlas):
    for atlas in (story_atlas, walk_atlas):
        for view in (
            views.whole(atlas),
            views.item(atlas, 3),
            views.cell(atlas, 1, 2),
            views.search(atlas, "tea"),
            chart(atlas),
        ):
            assert json.loads(json.dumps(view, allow_nan=False)) == view


def test_the_chart_names_what_its_lists_point_at(story_atlas):
    told = chart(story_atlas)
    names = story_atlas.collection.vocabulary.names
    flat = 37
    first = told["cells"]["name"][flat * 12 : flat * 12 + 12]
    assert [told["names"][k] for k in first] == [names[i] for i in story_atlas.telling.features[flat]]
    assert [told["feature"][k] for k in first] == story_atlas.telling.features[flat].tolist()
    assert {told["names"][word[0]] for word in told["words"]} <= set(names)
    assert told["items"]["lead"][0].split()[0] in names


def test_the_lexicon_finds_the_same_place_as_the_model(story_atlas):
    facts, levels = lexicon(story_atlas)
    table = np.frombuffer(levels, np.uint8).reshape(len(facts["names"]), -1)
    for query in ("tea milk", "boat", "train rose"):
        scores = np.array(facts["log_prior"])
        for word in query.split():
            scores = scores + facts["step"] * (table[facts["names"].index(word)].astype(float) - 128)
        place = np.unravel_index(scores.argmax(), (len(facts["rows"]), len(facts["columns"])))
        found = views.search(story_atlas, query)["posterior"]
        held = [facts["rows"][place[0]], facts["columns"][place[1]]]
        best = max(share for row, column, share in found if [row, column] == held)
        assert best > 0.7 * found[0][2]


def test_a_small_lexicon_keeps_the_most_frequent_words(story_atlas):
    facts, levels = lexicon(story_atlas, most_bytes=10 * 120)
    totals = np.asarray(story_atlas.collection.counts.sum(axis=0)).ravel()
    assert len(facts["names"]) == 10
    assert facts["n_left_out"] == len(totals) - 10
    kept = [story_atlas.collection.vocabulary.names.index(name) for name in facts["names"]]
    assert totals[kept].min() >= np.sort(totals)[-10]
    assert len(levels) == 10 * 120


def test_sheets_hold_every_thumbnail_where_the_table_says(walk_atlas):
    table = pictures.sheet_table(walk_atlas)
    sheet = np.asarray(Image.open(io.BytesIO(pictures.sheet(walk_atlas, 0, quality=95)))).astype(int)
    assert sorted(table["slot"]) == list(range(48))
    for item in (0, 20, 47):
        top, left = table["slot"][item] // 16 * 64, table["slot"][item] % 16 * 64
        tall, wide = table["height"][item], table["width"][item]
        own = walk_atlas.collection.thumbnail(item, 64).astype(int)
        assert own.shape == (tall, wide, 3)
        assert np.abs(sheet[top : top + tall, left : left + wide] - own).mean() < 8


def test_images_that_are_gone_stay_grey_and_are_counted(walks):
    atlas = Atlas(cg.load(walks[0]), cg.Collection.load(walks[1], root="/nowhere"))
    assert pictures.n_missing(atlas) == 48
    assert len(pictures.sheet(atlas, 0)) > 100
    with pytest.raises(LookupError, match="the image of item 3 cannot be read; check that the files have not moved"):
        pictures.full(atlas, 3)


def test_a_link_that_leads_out_of_the_folder_is_not_served(walks, tmp_path):
    collection = cg.Collection.load(walks[1])
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link.png").symlink_to(collection.items.path(0))
    items = collection.items.with_columns(path=["link.png"] * 48)
    sly = cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps)
    sly.items.root = tmp_path / "inside"
    atlas = Atlas(cg.load(walks[0]), sly)
    assert atlas.collection.items.path(0).is_file()
    assert pictures.n_missing(atlas) == 48
    with pytest.raises(LookupError, match="cannot be read"):
        pictures.full(atlas, 0)


def test_a_file_outside_the_collections_folder_is_not_served(walks):
    collection = cg.Collection.load(walks[1])
    items = collection.items.with_columns(path=["../walk 1/frame_000.png"] * 48)
    sly = cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps)
    sly.items.root = collection.items.root / "walk 0"
    assert sly.items.path(0).is_file()
    with pytest.raises(LookupError, match="cannot be read"):
        pictures.full(Atlas(cg.load(walks[0]), sly), 0)
