"""Full-text search: what it finds and how it ranks, in Python and in an exported page."""

import gzip
import json
import math
import re
import shutil
import subprocess
from importlib.resources import files as resources

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import datasets
from countinggrids.data.items import Items
from countinggrids.explore import search_index
from countinggrids.explore.queries import parse, tokens
from countinggrids.explore.text_search import TextSearch
from countinggrids.features.text import Document

TEXTS = [
    "The airline said the crash killed nobody.",
    "Two airlines crashed on the market; shares of one airline fell.",
    "A crash test of a car. Plane crash? No: car crash, crash, crash.",
    "The plane landed. A crash was heard in Łódź.",
    "東京都の茶 and tea",
    "☕ 🙂",
]
QUERIES = [
    "airline crash",
    '"plane crash"',
    "crash -car",
    'airline -"market; shares"',
    "cra*",
    "ŁÓDŹ",
    "東京",
    "-crash",
    "the car plane airline",
    "nothing-like-it",
    '"',
    "- *",
    "☕",
]


@pytest.fixture(scope="module")
def search():
    return TextSearch(cg.Collection.from_texts([Document(text, f"story {i}") for i, text in enumerate(TEXTS[:5])]))


def naive_scores(word, documents):
    """BM25 of one word without forms, as loops."""
    lengths = [len(document) for document in documents]
    mean, n_with = sum(lengths) / len(lengths), sum(word in document for document in documents)
    weight = math.log(1 + (len(documents) - n_with + 0.5) / (n_with + 0.5))
    found = []
    for document, length in zip(documents, lengths, strict=True):
        n = document.count(word)
        found.append(weight * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / mean)))
    return found


def test_scores_are_bm25(search):
    documents = [tokens(f"story {i}\n{text}") for i, text in enumerate(TEXTS[:5])]
    scores = np.array(naive_scores("car", documents)) + naive_scores("the", documents)
    hits = search.find('"the" "car"')
    assert hits.items.tolist() == []
    hits = search.find("the car")
    expected = np.lexsort((-scores, [-sum(w in d for w in ("the", "car")) for d in documents]))[: len(hits.items)]
    assert hits.items.tolist() == expected.tolist()
    np.testing.assert_allclose(hits.scores, scores[expected])


def test_items_with_all_words_come_first_and_forms_count(search):
    hits = search.find("airline crash")
    assert sorted(hits.items[: hits.n_all].tolist()) == [0, 1]
    assert set(hits.items.tolist()) == {0, 1, 2, 3}


def test_phrases_exclusions_and_prefixes(search):
    assert search.find('"plane crash"').items.tolist() == [2]
    assert set(search.find("crash -car").items.tolist()) == {0, 1, 3}
    assert set(search.find("-crash").items.tolist()) == {4}
    assert set(search.find("lan*").items.tolist()) == {3}
    assert search.find("story").n_all == 5
    assert search.find("").items.size == search.find('- "" *').items.size == 0


def test_counts_without_texts_can_be_searched(story_map):
    whole = story_map.collection
    items = Items({"title": whole.items["title"].tolist()})
    bare = TextSearch(cg.Collection(whole.counts, whole.vocabulary, items, 1))
    full = TextSearch(whole)
    assert not bare.has_texts
    assert set(bare.find("train").items.tolist()) == set(full.find("train").items.tolist())


def test_items_without_a_single_word_are_no_error():
    items = Items({"title": ["☕", "🙂🙂"]})
    vocabulary = cg.Collection.from_texts([Document("tea cup")]).vocabulary
    collection = cg.Collection(np.zeros((2, 2)), vocabulary, items, 1)
    assert TextSearch(collection).find("☕ tea").items.size == 0


def test_a_snippet_is_where_most_words_are():
    long = "filler " * 200 + "the airline and the crash came together " + "filler " * 200 + "airline"
    search = TextSearch(cg.Collection.from_texts([Document(long)]))
    assert "airline and the crash" in search.snippet(0, "crash airline")
    assert search.snippet(0, "zebra").startswith("filler filler")
    assert len(search.snippet(0, "crash")) < 190


def test_a_query_is_parsed_into_parts():
    parts = parse('Airline "plane crash" -navy -anti-war cra* "open')
    assert [part.words for part in parts] == [
        ("airline",),
        ("plane", "crash"),
        ("navy",),
        ("anti", "war"),
        ("cra",),
        ("open",),
    ]
    assert [part.is_excluded for part in parts] == [False, False, True, True, False, False]
    assert [part.is_phrase for part in parts] == [False, True, False, True, False, True]
    assert [part.is_prefix for part in parts] == [False, False, False, False, True, False]


def test_integers_of_variable_length_are_read_back():
    numbers = np.array([0, 1, 127, 128, 16383, 16384, 2**31, 2**35 - 1])
    content = search_index.variable_length(numbers)
    found, value, shift = [], 0, 0
    for byte in content:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value, shift = 0, 0
    assert found == numbers.tolist()


def test_an_index_that_is_too_large_leaves_out_the_most_frequent_words(search):
    whole, kept = search_index.encode(search.terms, search.counts, 10**6)
    assert len(kept) == len(search.terms)
    small, kept = search_index.encode(search.terms, search.counts, len(whole) - 20)
    assert len(kept) < len(search.terms)
    words = gzip.decompress(small).decode("utf-8", "ignore")
    assert "story" not in words
    assert "market" in words


def test_an_exported_page_finds_the_same(story_map):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    search = TextSearch(cg.Collection.from_texts([Document(text, f"story {i}") for i, text in enumerate(TEXTS[:5])]))
    content, _ = search_index.encode(search.terms, search.counts, 10**6)
    script = "const make = null, plain = null;\n" + "".join(
        resources("countinggrids.explore").joinpath("assets", f"{name}.js").read_text("utf-8")
        for name in ("tokens", "counts", "search")
    )
    texts = [f"story {i}\n{text}" for i, text in enumerate(TEXTS)]
    script += f"""
    const content = Uint8Array.from({list(gzip.decompress(content))}), texts = {json.dumps(texts)};
    const index = new TextIndex(content, (item) => texts[item]);
    const found = {json.dumps(QUERIES)}.map((query) => index.find(query));
    console.log(JSON.stringify(found.map((each) => [each.items, each.nWithAll])));
    """
    shown = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout
    hits = [search.find(query) for query in QUERIES]
    assert json.loads(shown) == [[each.items.tolist(), each.n_all] for each in hits]


def test_airline_crash_lists_the_stories_with_both_words_first(data):
    collection = cg.Collection.from_texts(datasets.ap(data / "text" / "ap.txt"))
    search = TextSearch(collection)
    hits = search.find("airline crash")
    texts = collection.items["text"]
    both = [i for i, text in enumerate(texts) if all(re.search(rf"\b{w}", text, re.I) for w in ("airline", "crash"))]
    assert sorted(hits.items[: hits.n_all].tolist()) == both
    assert len(both) == 11
    assert len(search_index.encode(search.terms, search.counts, 10**7)[0]) < 0.15 * sum(map(len, texts))
