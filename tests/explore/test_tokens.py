"""Searches cut queries as the collection's texts were cut, and no file can make them hang."""

import json
import shutil
import subprocess
import time
import unicodedata
from importlib.resources import files as resources

import pytest
from maps import TOPICS

import countinggrids as cg
from countinggrids.data import collection_file, container
from countinggrids.explore import ItemMap, views
from countinggrids.explore.routes import LARGEST_TEXT, Routes
from countinggrids.explore.word_index import word_index
from countinggrids.features import Words
from countinggrids.features.text import Document
from countinggrids.features.tokenizers import tokenizer_of

CHINESE = ["我们去公园散步", "公园散步很好", "我们喝茶", "喝茶很好 tea"]


def atlas_of(texts, **options):
    """Fit a small map to texts."""
    collection = cg.Collection.from_texts([Document(text) for text in texts], Words(**options))
    return ItemMap(cg.CountingGrid((4, 4), (2, 2), random_state=0, tol=1e-2).fit(collection.counts), collection)


def rewritten(path, **parameters):
    """Change the parameters of the words of a file, as one who means harm would."""
    facts, arrays = container.read(path, collection_file.FORMAT, collection_file.VERSION)
    facts["steps"][0]["parameters"] |= parameters
    container.write(path, facts, {name: array.copy() for name, array in arrays.items()})


@pytest.mark.parametrize(
    "parameters",
    [
        {"token_pattern": r"(\w+\s?)+$"},
        {"tokenizer": r"(\w+\s?)+$"},
        {"tokenizer": {"name": "words"}},
        {"tokenizer": None},
        {"ngram_range": [1, 1_000_000]},
        {"ngram_range": [0, 1]},
        {"ngram_range": 3},
        {"min_length": "many"},
        {"keep": ["everything"]},
        {"stop_words": 5},
        {"stop_words": [["x"]]},
    ],
    ids=str,
)
def test_a_file_with_other_options_is_refused_on_load(tmp_path, parameters):
    cg.Collection.from_texts([Document("tea cup")]).save(tmp_path / "a.cg")
    rewritten(tmp_path / "a.cg")
    cg.Collection.load(tmp_path / "a.cg")
    rewritten(tmp_path / "a.cg", **parameters)
    with pytest.raises(ValueError, match=r"a\.cg is inconsistent"):
        cg.Collection.load(tmp_path / "a.cg")


def test_a_collection_with_a_function_for_a_tokenizer_is_not_saved(tmp_path):
    made = cg.Collection.from_texts([Document("tea cup")], Words(tokenizer=lambda text: text.split("e")))
    assert made.vocabulary.names == ("a cup",)
    assert made.fingerprint
    with pytest.raises(
        ValueError, match=r"Words\(tokenizer=<function .*cannot be saved because it is a function; use the name of a"
    ):
        made.save(tmp_path / "a.cg")
    assert not (tmp_path / "a.cg").exists()


@pytest.mark.parametrize("piece", ["a", "a ", "tea ", "<a ", "<!--", "a'", "東", "@", "&#1", "\u0301"])
def test_a_megabyte_is_searched_in_seconds(piece):
    item_map = atlas_of(list(TOPICS.values()), ngram_range=(1, 2))
    text = (piece * 1_000_000)[:1_000_000]
    began = time.monotonic()
    views.search(item_map, text)
    Routes(item_map).locate("text/plain", text.encode()[:LARGEST_TEXT])
    assert time.monotonic() - began < 60  # quadratic time would be hours


def test_long_queries_are_refused():
    item_map = atlas_of(list(TOPICS.values()))
    answer = Routes(item_map).get("/search.json", {"q": "tea " * 1000})
    assert answer.status == 400
    assert "q has 4000 characters; expected 1 to 2000" in json.loads(answer.body)["error"]


def test_searches_use_the_tokenizer_of_the_collection():
    item_map = atlas_of(CHINESE)
    assert views.search(item_map, "去公园!")["words"] == ["公园", "去公"]
    assert views.search(atlas_of(CHINESE, tokenizer="words"), "去公园 喝茶很好")["words"] == ["喝茶很好"]
    bare = cg.Collection(item_map.collection.counts, item_map.collection.vocabulary, item_map.collection.items, 1)
    assert views.search(ItemMap(item_map.model, bare), "公园")["words"] == ["公园"]


def test_a_tokenizer_that_is_not_installed_is_an_answer(monkeypatch):
    pytest.importorskip("jieba")
    item_map = atlas_of(CHINESE, tokenizer="jieba")

    def missing():
        raise ImportError("tokenizer='jieba' needs the package jieba")

    monkeypatch.setattr("countinggrids.features.tokenizers._loaded_jieba", missing)
    answer = Routes(item_map).get("/search.json", {"q": "公园"})
    assert (answer.status, json.loads(answer.body)["error"]) == (400, "tokenizer='jieba' needs the package jieba")


QUERIES = [
    "The pastor's cup, don't we'll 10th a_b",
    "l\u2019homme don\u2019t naïve",
    "हिन्दी में लिखा שָׁלוֹם مَرْحَبًا می\u200cخواهم 한국어",
    "東京都はtea日本の首都です。茶 สวัสดี コーヒー",
    "ﬁne ＴＥＡ ☕",
    "",
]


@pytest.mark.parametrize("tokenizer", ["auto", "words", "characters", "whitespace"])
def test_exported_pages_cut_queries_as_the_library_does(tokenizer):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    script = resources("countinggrids.explore").joinpath("assets", "tokens.js").read_text(encoding="utf-8")
    facts = {"tokenizer": tokenizer, "lowercase": True, "ngram_range": [1, 1], "stop_words": []}
    script += f"\nconst queries = {json.dumps(QUERIES)};"
    script += f"\nconsole.log(JSON.stringify(queries.map((q) => tokensOf(q, {json.dumps(facts)}, (w) => w !== ''))));"
    told = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout
    wanted = [tokenizer_of(tokenizer)(unicodedata.normalize("NFKC", query).lower()) for query in QUERIES]
    assert json.loads(told) == wanted


def test_exported_pages_know_sequences_and_stop_words():
    facts, _ = word_index(atlas_of(["tea and cup", "cup and tea"], ngram_range=(1, 2), stop_words=["and"]))
    assert (facts["ngram_range"], facts["stop_words"], facts["tokenizer"]) == ([1, 2], ["and"], "auto")
    assert "tea cup" in facts["names"]
