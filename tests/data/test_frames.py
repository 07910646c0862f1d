"""Collections from tables in memory and from plain texts."""

import base64
import gzip
import json
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import countinggrids as cg
from countinggrids.data.items import Items
from countinggrids.features.frames import columns_of, plain, title_of
from countinggrids.features.text import Document, Words

ROWS = {
    "body": ["tea with milk", "", "trains on tracks", None, "milk and sugar"],
    "kind": ["drink", "none", "rail", "none", "drink"],
    "day": ["2024-05-17", "2024-05-18", "19 May 2024", None, "2024-05-21"],
    "price": [3.0, 1.0, 40.5, 2.0, None],
}


def pandas_frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows, index=list("vwxyz")[: len(rows["body"])])


def polars_frame(rows):
    return pytest.importorskip("polars").DataFrame(rows)


def arrow_table(rows):
    return pytest.importorskip("pyarrow").table(rows)


def page_of(page):
    """Unpack the data of a page."""
    packed = re.search(r'id="pack">([^<]*)</script>', page.text)
    return gzip.decompress(base64.b64decode(packed[1])).decode()


@pytest.mark.parametrize("make", [dict, pandas_frame, polars_frame, arrow_table])
def test_tables_of_all_kinds_give_the_same_collection(make):
    collection = cg.Collection.from_frame(make(ROWS), text="body", label="kind", time="day")
    items = collection.items
    assert items["text"].tolist() == ["tea with milk", "trains on tracks", "milk and sugar"]
    assert items["label"].tolist() == ["drink", "rail", "drink"]
    assert items["row"].tolist() == [0, 2, 4]
    assert np.diff(items["time"]).tolist() == [2 * 86400, 2 * 86400]
    assert items["price"].tolist() == ["3", "40.5", ""]
    assert items["title"].tolist() == items["text"].tolist()
    assert collection.report["texts"] == 5
    assert collection.report["bagged"] == 3


def test_a_map_is_three_lines_from_a_table():
    pytest.importorskip("pandas")
    collection = cg.Collection.from_frame(pandas_frame(ROWS), label="kind")
    model = cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(collection)
    assert "trains on tracks" in page_of(model.explore(collection))


def test_datetimes_and_missing_values_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": ["tea", "milk"], "day": pd.to_datetime(["2024-05-17", None])})
    frame["n"] = pd.array([3, pd.NA], dtype="Int64")
    items = cg.Collection.from_frame(frame, time="day").items
    assert items["time"][0] == 1715904000
    assert np.isnan(items["time"][1])
    assert items["n"].tolist() == ["3", ""]


def test_all_columns_survive_a_file(tmp_path):
    cg.Collection.from_frame(ROWS).save(tmp_path / "bags")
    items = cg.Collection.load(tmp_path / "bags").items
    assert items["price"].tolist() == ["3", "40.5", ""]
    assert items["row"].tolist() == [0, 2, 4]


def test_words_of_a_large_table_are_capped_and_the_report_says_so():
    texts = [f"word{i} other{i} word{i + 1}" for i in range(200)]
    collection = cg.Collection.from_frame({"text": texts}, words=Words(max_features=50))
    assert len(collection.vocabulary) == 50
    assert any("max_features" in reason for reason in str(collection.report).split("'"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "nope"}, "frame has columns body, kind, day, price; expected nope; check the names"),
        ({"label": "nope"}, "expected nope"),
        ({"text": "price"}, r"text='price' holds '3.0', a float; expected a column of strings"),
        ({"time": "kind"}, r"time='kind': 5 of 5 times, such as 'drink', 'none', cannot be read; expected dates"),
    ],
)
def test_wrong_columns_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        cg.Collection.from_frame(ROWS, **options)


def test_a_table_without_a_usual_text_column_asks_for_it():
    with pytest.raises(ValueError, match="pass text=, the name of the column"):
        cg.Collection.from_frame({"a": ["tea"], "b": ["milk"]})


def test_times_that_cannot_be_read_are_counted():
    rows = {"text": ["tea", "milk"], "day": ["2024-05-17", "soon"]}
    with pytest.warns(UserWarning, match=r"time='day': 1 of 2 times, such as 'soon', cannot be read and are missing"):
        times = cg.Collection.from_frame(rows, time="day").items["time"]
    assert np.isnan(times[1])


@pytest.mark.parametrize("frame", [["tea", "milk"], 3, "tea", np.zeros(3)])
def test_what_is_no_table_is_refused(frame):
    with pytest.raises(TypeError, match=r"must be a table.*use from_texts"):
        cg.Collection.from_frame(frame)


def test_a_lazy_frame_is_to_be_collected():
    class LazyFrame:
        columns = ("text",)

        def collect(self):
            return self

    with pytest.raises(TypeError, match="LazyFrame and must be a table"):
        columns_of(LazyFrame())


def test_columns_with_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["tea", "milk"]], columns=["text", "text"])
    with pytest.raises(ValueError, match="frame has several columns called text; rename all but one"):
        cg.Collection.from_frame(frame)


def test_columns_may_be_called_by_numbers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: ["tea with milk", "trains"], 1: ["a", "b"]})
    assert cg.Collection.from_frame(frame, text=0, label=1).items["label"].tolist() == ["a", "b"]


def test_days_and_months_in_doubt_are_not_guessed():
    rows = {"text": ["tea", "milk"], "day": ["03/05/2024", "04/05/2024"]}
    with pytest.raises(ValueError, match=r"2 of 2 times.*day and month may be either.*dayfirst=True"):
        cg.Collection.from_frame(rows, time="day")
    rows["day"][1] = "14/05/2024"
    assert np.isfinite(cg.Collection.from_frame(rows, time="day").items["time"]).all()


@pytest.mark.parametrize(
    "times",
    [
        ["2024-05-17", "17 May 2024", "May 17, 2024", "2024-05-17T00:00:00Z"],
        [1715904000] * 4,
        [1715904000000] * 4,
        [np.datetime64("2024-05-17")] * 4,
    ],
    ids=["texts in several formats", "seconds", "milliseconds", "datetime64"],
)
def test_times_of_several_formats_are_the_same_moment(times):
    rows = {"text": ["tea", "milk", "cup", "tracks"], "when": times}
    assert cg.Collection.from_frame(rows, time="when").items["time"].tolist() == [1715904000.0] * 4


def test_an_arrow_array_is_a_list_of_texts():
    arrow = pytest.importorskip("pyarrow")
    assert cg.Collection.from_texts(arrow.array(["tea", None, "milk"])).items["row"].tolist() == [0, 2]


def test_tables_are_not_texts_and_texts_are_not_counts():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"texts is a DataFrame.*Collection.from_frame for a table"):
        cg.Collection.from_texts(polars.DataFrame({"text": ["tea"]}))
    model = cg.CountingGrid((4, 4), (2, 2), random_state=0).fit(np.eye(3))
    with pytest.raises(TypeError, match=r"a DataFrame must be a Collection or counts; use Collection.from_frame"):
        model.explore(polars.DataFrame({"text": ["tea"]}))
    with pytest.raises(TypeError, match=r"a list must be a Collection or counts.*Collection.from_texts for texts"):
        model.items(["tea", "milk"])
    with pytest.raises(NotFittedError):
        cg.CountingGrid((4, 4), (2, 2)).explore(np.eye(3))


def test_counts_of_a_fitted_collection_are_explored_with_a_list_of_words():
    collection = cg.Collection.from_texts(["tea with milk", "trains on tracks"] * 5)
    model = cg.CountingGrid((4, 4), (2, 2), random_state=0).fit(collection)
    page = model.explore(collection.counts, words=collection.vocabulary.names)
    assert "tracks" in page_of(page)
    assert model.items(collection.counts)["region"].size == 10


def test_titles_in_other_scripts_and_of_emoji_alone_survive(tmp_path):
    titles = ["\u0634\u0631\u0642 \u0623\u0648\u0633\u0637", "\U0001f389\U0001f389", "\u05e9\u05dc\u05d5\u05dd", ""]
    rows = {"text": ["tea milk", "tea cup", "train track", "cup of milk"], "title": titles}
    collection = cg.Collection.from_frame(rows, title="title")
    assert collection.items["title"].tolist() == [*titles[:3], "cup of milk"]
    collection.save(tmp_path / "bags")
    assert cg.Collection.load(tmp_path / "bags").items["title"].tolist() == collection.items["title"].tolist()
    model = cg.CountingGrid((4, 4), (2, 2), random_state=0).fit(collection)
    assert json.loads(page_of(model.explore(collection)))["map"]["items"]["title"][:3] == titles[:3]


def test_texts_in_all_forms_give_the_same_bags():
    texts = ["tea with milk", "trains and tracks"]
    forms = [texts, tuple(texts), iter(texts), np.array(texts), [{"text": t} for t in texts], map(Document, texts)]
    counts = [cg.Collection.from_texts(form).counts.toarray().tolist() for form in forms]
    assert all(found == counts[0] for found in counts)


def test_a_series_is_a_list_of_texts():
    pd = pytest.importorskip("pandas")
    collection = cg.Collection.from_texts(pd.Series(["tea", None, "milk"], index=[7, 8, 9]))
    assert collection.items["text"].tolist() == ["tea", "milk"]
    assert collection.items["row"].tolist() == [0, 2]


def test_dicts_bring_labels_and_times():
    given = [{"text": "tea", "label": "drink", "time": "2024-05-17"}, {"text": "rail", "title": "A"}]
    items = cg.Collection.from_texts(given).items
    assert items["label"].tolist() == ["drink", ""]
    assert items["title"].tolist() == ["tea", "A"]
    assert items["time"][0] == 1715904000


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("tea", r"texts is a str and must be a list of texts; use \[text\]"),
        ({"text": ["tea"]}, "Collection.from_frame for a table"),
        ([3], r"texts\[0\] is a int and must be a text"),
        (["tea", {"body": "x"}], r"texts\[1\] has keys body and must have the key text"),
    ],
)
def test_what_is_no_text_is_refused(texts, message):
    with pytest.raises(TypeError, match=message):
        cg.Collection.from_texts(texts)


@pytest.mark.parametrize("title", ["", "   ", "🍵🍵", "שלום עולם", "x" * 500, "many words " * 50])
def test_titles_are_short_whatever_the_script(title):
    found = title_of(title)
    assert len(found) <= 80
    assert found or not title.strip()


def test_a_text_of_ten_megabytes_is_bagged():
    long = "tea milk sugar " * 700_000
    collection = cg.Collection.from_frame({"text": [long, "tea"]})
    assert collection.counts[0].sum() == 2_100_000
    assert len(collection.items["title"][0]) <= 80


def test_values_as_texts():
    assert [plain(v) for v in (None, float("nan"), 3.0, 3.5, "a\0b", True)] == ["", "", "3", "3.5", "ab", "True"]


def test_counts_with_words_make_a_collection_to_explore():
    counts = np.array([[3, 0, 1], [0, 2, 2]])
    model = cg.CountingGrid((5, 5), (2, 2), random_state=0, tol=0.1).fit(counts)
    assert "sugar" in page_of(model.explore(counts, words=["tea", "milk", "sugar"]))
    collection = cg.Collection.from_counts(counts, label=["a", "b"])
    assert collection.vocabulary.names[0] == "feature 0"
    assert collection.items["label"].tolist() == ["a", "b"]


def test_counts_that_do_not_fit_the_words_are_named():
    with pytest.raises(ValueError, match="words has 1 names for 3 columns"):
        cg.Collection.from_counts(np.ones((2, 3)), ["tea"])
    with pytest.raises(ValueError, match=r"counts of shape \(3,\) must have two axes"):
        cg.Collection.from_counts(np.ones(3))


def test_row_is_a_number():
    assert Items({"row": ["3"]})["row"].dtype == float
