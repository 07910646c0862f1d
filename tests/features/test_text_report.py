"""What `Collection.from_texts` reports: nothing is left out without a word."""

import json
import subprocess
import sys

import pytest

import countinggrids as cg
from countinggrids.features import Words
from countinggrids.features.stop_words import ENGLISH, looks_english
from countinggrids.features.text import Columns, Document, read_documents
from countinggrids.features.text_report import lines_of


def bagged(texts, **options):
    """Bag texts; return the collection."""
    return cg.Collection.from_texts([Document(text) for text in texts], Words(**options))


def test_empty_and_wordless_texts_are_left_off_the_map_and_listed():
    made = bagged(["tea cup", "", "  \n", "☕🎉", "12 34", "tea"])
    assert len(made) == 2
    assert made.report["texts"] == 6
    assert made.report["empty"] == {"n": 2, "rows": {"": [2, 3]}}
    assert made.report["without_words"] == {"n": 2, "rows": {"": [4, 5]}}
    assert "empty texts: 2, left out (rows 2, 3)" in lines_of(made.report)


def test_duplicates_are_counted_and_stay():
    made = bagged(["tea cup", "Tea  CUP\n", "spoon", "tea cup"])
    assert len(made) == 4
    assert made.report["duplicates"] == {"n": 2, "rows": {"": [[1, 2], [1, 4]]}}
    assert "duplicates of an earlier text: 2, bagged too (row 2 as 1, 4 as 1)" in lines_of(made.report)


def test_one_huge_text_is_named_with_its_share():
    texts = [Document(f"tea cup {i}x", f"small {i}") for i in range(60)] + [Document("spoon " * 5000, "huge")]
    report = cg.Collection.from_texts(texts).report
    assert report["longest"][0] == {"title": "huge", "row": 61, "tokens": 5000, "fraction": 0.9653}
    assert any("dominate the map" in line for line in lines_of(report))


def test_every_dropped_token_is_accounted_for():
    texts = ["the tea 12 a x https://a.org/b me@b.org " + "k" * 80, "the tea rare", "the tea cup", "the cup"] * 2
    texts[-1] = "the cup only"
    report = bagged(texts, min_df=2, max_df=0.7, stop_words=["the"], max_features=2).report
    dropped = {reason: each["tokens"] for reason, each in report["dropped"].items()}
    assert dropped == {
        **{"stop words": 8, "too frequent": 6, "numbers": 2, "too short": 4, "too long": 2, "URLs": 2},
        **{"e-mail addresses": 2, "too rare": 1},
    }
    words = sum(n for reason, n in dropped.items() if reason not in ("URLs", "e-mail addresses"))
    assert report["tokens"] == report["tokens_kept"] + words
    assert report["dropped"]["too frequent"]["examples"] == ["tea"]


def test_words_beyond_the_limit_and_words_not_known_are_reported():
    made = bagged(["tea tea cup spoon", "tea cup"], max_features=1)
    assert made.report["dropped"] == {"beyond max_features": {"words": 2, "tokens": 3, "examples": ["cup", "spoon"]}}
    again = cg.Collection.from_texts([Document("tea cup plate")], made.steps[0])
    assert again.report["dropped"] == {"not in the vocabulary": {"words": 2, "tokens": 2, "examples": ["cup", "plate"]}}


def test_what_is_kept_is_counted():
    text = "<b>tea</b> 12 www.a.org me@b.org"
    assert Words().fit([text]).names_ == ["tea"]
    assert Words(keep=["numbers"]).fit([text]).names_ == ["12", "tea"]
    assert Words(keep=["urls"]).fit([text]).names_ == ["org", "tea", "www"]
    assert Words(keep=["emails"]).fit([text]).names_ == ["me", "org", "tea"]
    assert Words(keep=["html"], min_length=1).fit([text]).names_ == ["b", "tea"]
    with pytest.raises(ValueError, match=r"keep=\['nouns'\] must be some of numbers, urls, emails, html"):
        Words(keep=["nouns"]).fit([text])


def test_html_and_scripts_without_spaces_are_reported():
    report = bagged(["<p>tea</p>", "東京都", "cup"]).report
    assert (report["texts_with_html"], report["fraction_without_spaces"]) == (1, round(3 / 9, 4))
    assert "scripts without spaces: 33.3% of the characters" in lines_of(report)


def test_sentences_without_spaces_share_features():
    made = bagged(["我们去公园散步", "公园散步很好", "我们喝茶"])
    shared = (made.counts.toarray() > 0).sum(axis=0)
    assert {name for name, n in zip(made.vocabulary.names, shared, strict=True) if n == 2} == {
        "公园", "园散", "散步", "我们",
    }  # fmt: skip


def test_content_words_are_no_stop_words():
    assert not ENGLISH & {"interest", "bill", "fire", "system", "mine", "us", "first", "two", "computer", "state"}
    assert {"the", "of", "and", "don't", "was", "they"} <= ENGLISH
    assert 120 <= len(ENGLISH) <= 160
    texts = ["the bill of the system was on fire", "they don't have interest in mine"]
    names = Words(stop_words="english").fit(texts).names_
    assert names == ["bill", "fire", "interest", "mine", "system"]


def test_auto_drops_function_words_of_english_only():
    english = ["the tea is on the table and it was hot", "she was in the house with all of them"]
    german = ["die Frau war in dem Haus und es war so heiß", "was hat er an der Tür gesagt"]
    assert Words(stop_words="auto").fit(english).stop_words_ == sorted(ENGLISH)
    assert Words(stop_words="auto").fit(german).stop_words_ == []
    assert not looks_english([])
    report = bagged(english, stop_words="auto").report
    assert report["dropped"]["stop words"]["tokens"] == 15
    assert report["counting"]["n_stop_words"] == len(ENGLISH)


def test_the_report_travels_with_the_collection(tmp_path):
    (tmp_path / "a.csv").write_text("body,when\ntea,01/06/2023\n,02/06/2023\ntea,soon\n")
    documents = read_documents(tmp_path / "a.csv", Columns(date="when"))
    made = cg.Collection.from_texts(documents)
    [source] = made.report["sources"]
    assert source["column"] == {"name": "body", "reason": "usual name"}
    assert (source["rows"], source["delimiter"]) == (3, "comma")
    assert (source["dates"]["unread"], source["dates"]["ambiguous"]) == (3, 2)
    made.save(tmp_path / "a.cg")
    assert cg.Collection.load(tmp_path / "a.cg").report == json.loads(json.dumps(made.report))
    told = "\n".join(lines_of(made.report))
    assert "text from column 'body' (usual name); encoding utf-8 (certain, valid); delimiter comma" in told
    assert "dates not read: 3, such as '01/06/2023', '02/06/2023', 'soon'" in told
    assert "2 of them may have the day or the month first; use --date-format '%d/%m/%Y' or '%m/%d/%Y'" in told


def test_many_empty_texts_do_not_fill_the_report():
    report = bagged(["tea"] + [""] * 5000).report
    assert report["empty"]["n"] == 5000
    assert len(report["empty"]["rows"][""]) == 1000
    assert "empty texts: 5,000, left out (rows 2, 3, 4, 5, 6, 7, 8, 9 and 4,992 more)" in lines_of(report)


def test_a_damaged_report_is_refused():
    for bad in ({}, {"sources": 1}, {"sources": [{}]}, {"sources": [], "texts": "x"}):
        with pytest.raises(ValueError, match=r"the report on the texts is damaged .*; bag the texts again"):
            lines_of(bad)


def test_a_report_has_the_same_bytes_in_every_run(tmp_path):
    code = (
        "import sys, countinggrids as cg\nfrom countinggrids.features import Words\n"
        "from countinggrids.features.text import Document\n"
        "texts = [Document('the tea 12 x a.b@c.de http://d.e'), Document('the cup 13 y tea')]\n"
        "cg.Collection.from_texts(texts, Words(stop_words={'the', 'a'})).save(sys.argv[1])"
    )
    for seed in "12":
        command = [sys.executable, "-c", code, str(tmp_path / seed)]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
