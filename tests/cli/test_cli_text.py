"""`bag text`: what people with texts bring, and what they are told about it."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app

ALL = ("--min-df", 1, "--max-df", 1.0)


def bag(path, *options, code=0):
    """Run `bag text` on a file; return the result."""
    arguments = ["bag", "text", path, "-o", path.parent / "a.cg", "--force", *options]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def names(path, *options):
    """Return the vocabulary of a file."""
    bag(path, *ALL, *options)
    return cg.Collection.load(path.parent / "a.cg").vocabulary.names


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_93_rows_with_line_breaks_are_93_bags(tmp_path):
    rows = "".join(f'"tea {i}\n\ncup ""two"""\tx{i}\n' for i in range(93))
    path = write(tmp_path / "a.tsv", "text\tlabel\n" + rows)
    bag(path, *ALL, "--label", "label")
    assert cg.Collection.load(tmp_path / "a.cg").items["label"].tolist() == [f"x{i}" for i in range(93)]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_letters_survive_every_encoding(tmp_path, encoding):
    path = write(tmp_path / "a.csv", "text,label\ncafé façade,x\nnaïve café,y\n", encoding)
    assert names(path) == ("café", "façade", "naïve")


def test_the_encoding_is_said_and_can_be_set(tmp_path):
    path = write(tmp_path / "a.txt", "お茶を飲む\nコーヒーを飲む\n", "shift_jis")
    assert "encoding cp932 (likely, detected)" in bag(path, *ALL).stderr
    assert "encoding shift_jis (certain, given)" in bag(path, *ALL, "--encoding", "shift_jis").stderr
    refused = bag(path, "--encoding", "utf-8", code=2)
    assert "a.txt cannot be read with encoding='utf-8-sig': byte 0x82 at position 0" in refused.stderr
    assert "encoding='elvish' must be one that Python supports" in bag(path, "--encoding", "elvish", code=2).stderr


def test_the_report_is_printed_and_written(tmp_path):
    rows = ["tea and cup,2020-01-02", "tea and cup,01/06/2023", ",2020-01-04", "12 34,not a date", "cup,"]
    path = write(tmp_path / "a.csv", "\n".join(["body,when", *rows]))
    told = bag(path, *ALL, "--date", "when", "--report", tmp_path / "report.json").stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["texts"], report["bagged"]) == (5, 3)
    assert report["empty"]["rows"] == {"a.csv": [3]}
    assert report["without_words"]["rows"] == {"a.csv": [4]}
    assert report["duplicates"]["rows"] == {"a.csv": [[1, 2]]}
    dates = report["sources"][0]["dates"]
    assert (dates["read"], dates["missing"], dates["unread"], dates["ambiguous"]) == (2, 1, 2, 1)
    assert dates["examples"] == ["01/06/2023", "not a date"]
    assert "a.csv: 5 rows or lines; text from column 'body' (usual name); encoding utf-8" in told
    assert "empty texts: 1, left out (row 3)" in told
    assert "dates not read: 2, such as '01/06/2023', 'not a date'" in told
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "a.cg")]).stdout
    assert "empty texts: 1, left out (row 3)" in shown
    facts = json.loads(CliRunner().invoke(app, ["info", str(tmp_path / "a.cg"), "--json"]).stdout)
    assert facts["report"] == report


def test_day_first_dates_with_a_format(tmp_path):
    path = write(tmp_path / "a.csv", "text,when\ntea,01/06/2023\n")
    bag(path, *ALL, "--date", "when", "--date-format", "%d/%m/%Y")
    time = cg.Collection.load(tmp_path / "a.cg").items["time"][0]
    assert np.datetime64(int(time), "s") == np.datetime64("2023-06-01")
    assert "date_format='%d' has no year" in bag(path, "--date", "when", "--date-format", "%d", code=2).stderr


def test_html_mail_urls_and_numbers_are_no_words(tmp_path):
    mail = "<html><style>p {}</style><body><p>Tea&nbsp;&amp; c<b>u</b>ps 12 https://a.org/x me@b.org</p></body></html>"
    path = write(tmp_path / "a.jsonl", json.dumps({"text": mail}))
    assert names(path) == ("cups", "tea")
    assert names(path, "--keep", "numbers,emails") == ("12", "cups", "me", "org", "tea")
    assert "keep=['nouns'] must be some of numbers" in bag(path, "--keep", "nouns", code=2).stderr


def test_scripts_without_spaces_are_cut(tmp_path):
    path = write(tmp_path / "a.txt", "我们去公园\nสวัสดี\ntea\n")
    assert {"我们", "公园", "สวั", "tea"} <= set(names(path))
    assert set(names(path, "--tokenizer", "words")) == {"我们去公园", "สวัสดี", "tea"}
    assert "scripts without spaces: 78.6% of the characters" in bag(path, *ALL).stderr
    assert "'french' is not one of" in bag(path, "--tokenizer", "french", code=2).stderr


def test_right_to_left_and_emoji(tmp_path):
    path = write(tmp_path / "a.txt", "שלום עולם\nمرحبا بالعالم\n☕🎉\n")
    assert set(names(path)) == {"שלום", "עולם", "مرحبا", "بالعالم"}
    assert "texts without a word of the vocabulary: 1, left out (row 3)" in bag(path, *ALL).stderr


def test_stop_words(tmp_path):
    path = write(tmp_path / "a.txt", "the bill of the house is on fire\nit is the system of the mine\n")
    content = ("bill", "fire", "house", "mine", "system")
    assert names(path) == names(path, "--stop-words", "english") == content
    assert "the" in names(path, "--stop-words", "none")
    stop = write(tmp_path / "stop.txt", "The\nof café\n", "latin-1")
    assert set(names(path, "--stop-words", stop)) == {*content, "is", "on", "it"}
    assert "dropped, stop words: 10 tokens, 5 different (the, of, is, on, it)" in bag(path, *ALL).stderr


def test_a_text_of_ten_megabytes_is_one_bag(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"' + "tea cup\n" * 1_250_000 + '",x\nspoon,y\n')
    report = tmp_path / "report.json"
    bag(path, *ALL, "--report", report)
    longest = json.loads(report.read_text())["longest"]
    assert [(each["row"], each["tokens"]) for each in longest] == [(1, 2_500_000), (2, 1)]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", (), "documents has no texts (0 read); expected at least one"),
        ("text,label\n", (), "documents has no texts (0 read)"),
        ("text,label\n,x\n,y\n", (), "documents has no texts (2 read)"),
        ("a,b\n1,2\n", (), "has columns a, b; expected the name of that of the text"),
        ("text,label\ntea,x\n", ("--column", "body"), "has columns text, label; expected body"),
        ("tea,x\n", ("--no-header", "--column", "3"), "has columns 1, 2; expected 3"),
        ("text\ntea\n", ("--delimiter", "::"), "delimiter='::' must be one character"),
        ("text\ntea\n", ("--ngrams", "11"), "ngram_range=(1, 11) must be two integers"),
    ],
)
def test_what_cannot_be_bagged_exits_with_two(tmp_path, content, options, message):
    path = write(tmp_path / "a.csv", content)
    assert message in bag(path, *options, code=2).stderr
    assert os.listdir(tmp_path) == ["a.csv"]


def test_no_header(tmp_path):
    path = write(tmp_path / "a.csv", "x;tea, hot\ny;cup, red\n")
    assert names(path, "--no-header", "--column", 2, "--label", 1) == ("cup", "hot", "red", "tea")
    assert cg.Collection.load(tmp_path / "a.cg").items["label"].tolist() == ["x", "y"]


def test_a_codebook_decides_how_words_are_counted(tmp_path):
    path = write(tmp_path / "a.txt", "tea cup\ncup\n")
    bag(path, *ALL)
    (tmp_path / "a.cg").rename(tmp_path / "book.cg")
    refused = bag(path, "--codebook", tmp_path / "book.cg", "--keep", "urls", "--min-df", 1, code=2)
    assert "--min-df, --keep cannot be used with --codebook" in refused.stderr


def test_the_report_cannot_replace_the_collection(tmp_path):
    path = write(tmp_path / "a.txt", "tea cup\ncup\n")
    refused = bag(path, *ALL, "--report", tmp_path / "." / "a.cg", code=2)
    assert "are the same file; use another --report" in refused.stderr
