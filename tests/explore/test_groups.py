"""Regions, selections and comparisons as JSON, and the same numbers in an exported page."""

import gzip
import json
import shutil
import subprocess
from importlib.resources import files as resources

import numpy as np
import pytest
from maps import TOPICS, ask, browsing

import countinggrids as cg
from countinggrids.explore import ItemMap, counts_index, groups, region_view, views
from countinggrids.explore.map_view import map_view
from countinggrids.explore.routes import Routes


def test_regions_are_nested_and_hold_every_item_once(story_map):
    found = region_view.regions(story_map)
    for level in range(3):
        members = [each for each in found["regions"] if each["level"] == level]
        assert sum(each["n_items"] for each in members) == 80
        assert {each["id"] for each in members} == set(np.ravel(found["levels"][level]).tolist())
    one = region_view.region(story_map, 0)
    assert len(one["items"]) == one["n_items"] == sum(each["n_items"] for each in one["inside"])
    assert [each["item"] for each in one["representatives"]] == list(story_map.regions.regions[0].representatives)
    with pytest.raises(LookupError, match="region=99 must be from 0 to"):
        region_view.region(story_map, 99)


def test_the_page_has_the_region_of_every_item(story_map):
    shown = map_view(story_map)["regions"]
    assert shown["item"] == story_map.regions.items[-1].tolist()
    parents = {each["id"]: each["parent"] for each in shown["list"]}
    assert [parents[id] for id in shown["item"]] == story_map.regions.items[-2].tolist()
    assert all(each["is_named"] for each in shown["list"])
    names = region_view.place_name(story_map, 0, 0)
    assert names in {each["name"] for each in shown["list"]}


@pytest.mark.parametrize("group", ["label:kitchen", "items:0,4,8,12", [0, 4, 8, 12]])
def test_a_selection_is_told_by_its_own_words(story_map, group):
    found = groups.selection(story_map, group)
    assert {each["word"] for each in found["words"][:5]} <= set(TOPICS["kitchen"].split())
    assert found["labels"] == {"kitchen": 1.0}
    assert {each["label"] for each in found["representatives"]} == {"kitchen"}
    assert found["n_items"] == len(found["items"])


def test_times_are_a_group(story_map):
    early = groups.rows_of(story_map, "time:..2020-09-23")
    assert early.sum() == (story_map.collection.items["time"] < 1600819200).sum() == 10
    late = groups.rows_of(story_map, f"time:{1.6e9 + 86400 * 70}..")
    assert late.sum() == 10


def test_a_comparison_is_that_of_the_library(story_map):
    found = groups.compare(story_map, "label:station", "label:garden")
    twin = cg.compare(
        story_map.model,
        story_map.collection,
        "station",
        "garden",
        regions=story_map.regions,
        n_permutations=groups.N_PERMUTATIONS,
    )
    assert [each["word"] for each in found["over"]] == [each["word"] for each in twin.words[:40] if each["z"] > 0]
    assert (found["n_a"], found["n_b"]) == (20, 20)
    assert [each["z"] for each in found["regions"]] == [each["z"] for each in twin.regions]
    assert found["under"][0]["z"] == min(each["z"] for each in twin.words)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    rest = groups.compare(story_map, "label:station", n_permutations=0)
    assert rest["n_b"] == 60
    assert rest["over"][0]["p_value"] is None


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("label:zoo", None, "a: no item has 'zoo' in the column 'label'"),
        ("mood:good", None, "a: items have no column 'mood'"),
        ("region:999", None, "region:999 does not exist"),
        ("time:2020", None, "must have two limits"),
        ("time:never..", None, "must be a number or a date"),
        ("kitchen", None, "must be COLUMN:VALUE"),
        ([], None, "a holds nothing"),
        ([5, 80], None, "a holds 80"),
        (["x"], None, "must be a text or a list of numbers"),
        (range(80), None, "none are left for b"),
        ("label:station", "items:1,2", "share 1 items and must not overlap"),
    ],
)
def test_groups_that_make_no_sense_are_told(story_map, a, b, message):
    with pytest.raises(ValueError, match=message):
        groups.compare(story_map, a, b)


def test_a_label_with_one_item_can_be_compared(story_map):
    found = groups.compare(story_map, [7])
    assert (found["n_a"], found["n_b"]) == (1, 79)


@pytest.fixture(scope="module")
def rated():
    """Texts with a rating that depends on the topic, and an author."""
    rng = np.random.default_rng(1)
    topics = [TOPICS["kitchen"].split(), TOPICS["harbor"].split()]
    rows = {
        "text": [" ".join(rng.choice(topics[i % 2], 12)) for i in range(60)],
        "rating": [f"{i % 2 * 3 + rng.random():.3f}" if i else "" for i in range(60)],
        "author": ["ann" if i % 3 else "bob" for i in range(60)],
    }
    collection = cg.Collection.from_frame(rows)
    return ItemMap(cg.CountingGrid((8, 8), (3, 3), random_state=0).fit(collection), collection)


def test_columns_of_numbers_have_means_by_region(rated):
    shown = map_view(rated)
    assert list(shown["numbers"]) == ["rating"]
    assert shown["numbers"]["rating"][0] is None
    assert shown["items"]["columns"]["author"]["values"] == ["ann", "bob"]
    top = [
        row
        for row, region in zip(shown["means"]["rating"], shown["regions"]["list"], strict=True)
        if region["level"] == 0
    ]
    assert sum(row[0] for row in top) == 59
    assert all(low <= mean <= high for n, mean, low, high in top if n > 1)
    assert groups.means(rated, "rating")["regions"][0]["n"] == top[0][0]
    with pytest.raises(ValueError, match="column 'author' holds 'bob' and must hold numbers"):
        groups.means(rated, "author")


def test_every_view_is_listed_and_found(story_map):
    routes = Routes(story_map)
    examples = {"ID": "1", "ROW": "1", "COLUMN.": "2.", "NUMBER": "3", "WORDS": "tea", "=GROUP": "=label:kitchen"}
    for view in views.index(story_map)["views"]:
        for name, value in examples.items():
            view = view.replace(name, value)
        path, _, query = view.replace("b=label:kitchen", "b=label:garden").partition("?")
        answer = routes.get(path, dict(part.split("=") for part in query.split("&") if part))
        assert answer.status == (400 if path == "/means.json" else 200), view
        json.loads(answer.body)


def test_groups_can_be_sent(stories):
    with browsing(stories) as port:
        status, _, body = ask(port, "/selection.json", "POST", json.dumps({"items": [0, 4, 8]}))
        assert (status, json.loads(body)["n_items"]) == (200, 3)
        status, _, body = ask(port, "/compare.json", "POST", json.dumps({"a": [0, 4, 8], "b": None}))
        assert (status, json.loads(body)["n_b"]) == (200, 77)
        for body in (b"", b"[1]", b"{", b'{"items": "x"}', b'{"items": [1e99]}', b'{"items": [[]]}', b"[" * 100_000):
            status, _, answer = ask(port, "/selection.json", "POST", body)
            assert status == 400, body[:20]
            assert json.loads(answer)["error"]


def test_an_exported_page_computes_the_same(story_map):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    index = counts_index.encode(story_map, 10**6)
    assert index.facts == {"features": list(range(len(story_map.collection.vocabulary))), "n_left_out": 0}
    assets = resources("countinggrids.explore").joinpath("assets")
    script = "".join(
        assets.joinpath(f"{name}.js").read_text("utf-8") for name in ("torus", "counts", "regions", "source")
    )
    pack = {"map": {name: map_view(story_map)[name] for name in ("regions", "grid", "items")}, "counts": index.facts}
    script += f"""
    const source = new Embedded({json.dumps(pack)}, {{}});
    source._counts = readPostings(Uint8Array.from({list(gzip.decompress(index.content))}));
    const items = [...Array(80).keys()];
    const [a, b] = [items.filter((i) => i % 4 === 1), items.filter((i) => i % 4 === 2)];
    const all = Promise.all([source.selection(a), source.compare(a, b), source.compare(a, null)]);
    all.then((found) => console.log(JSON.stringify(found)));
    """
    shown = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    selection, compared, rest = shown
    a, b = list(range(1, 80, 4)), list(range(2, 80, 4))
    twin = groups.selection(story_map, a)
    assert [each["word"] for each in selection["words"]] == [each["word"] for each in twin["words"]]
    np.testing.assert_allclose(column(selection["words"], "z"), column(twin["words"], "z"), atol=1e-4)
    assert selection["representatives"] == [each["item"] for each in twin["representatives"]]
    for mine, other in ((compared, groups.compare(story_map, a, b)), (rest, groups.compare(story_map, a))):
        assert (mine["n_a"], mine["n_b"]) == (other["n_a"], other["n_b"])
        for part in ("over", "under", "regions"):
            np.testing.assert_allclose(column(mine[part], "z"), column(other[part], "z"), atol=1e-6)
            np.testing.assert_allclose(column(mine[part], "log_odds"), column(other[part], "log_odds"), atol=1e-6)
            p_values = {row.get("word", row.get("id")): row["p_value"] for row in other[part]}
            away = [abs(row["p_value"] - p_values[row.get("word", row.get("id"))]) for row in mine[part]]
            assert np.median(away) < 0.12  # by other random numbers
            assert max(away) < 0.45


def column(rows, name):
    return [row[name] for row in rows]


def test_counts_that_are_no_whole_numbers_are_not_exported(story_map):
    halved = ItemMap(story_map.model, story_map.collection)
    halved.feature_counts = story_map.feature_counts * 0.5
    assert counts_index.encode(halved, 10**6) is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_word_has_a_place_where_the_model_has_one_for_each(story_map):
    texts = [" ".join(TOPICS["kitchen"].split()[:6] + TOPICS["harbor"].split()[: i % 6]) for i in range(30)]
    collection = cg.Collection.from_texts(texts)
    model = cg.ComponentialGrid((6, 6), (2, 2), max_iter=10, random_state=0).fit(collection)
    found = views.item(ItemMap(model, collection), 3)["word_places"]
    assert set(found) == set(texts[3].split())
    assert all(0 <= row < 6 and 0 <= column < 6 for row, column in found.values())
    assert views.item(story_map, 3)["word_places"] == {}
