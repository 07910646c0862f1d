"""Rows out of CSV, TSV, JSON lines and Parquet: every row one document, and what is odd is noted."""

import json
import subprocess
import sys

import pytest

from countinggrids.features.text import Columns, read_documents

UNNAMED = Columns()


def read(path, columns=UNNAMED, **options):
    """Read a file; return texts, and how it was read."""
    documents = read_documents(path, columns, lambda error: None, **options)
    texts = [document.text for document in documents]
    return texts, documents.report[0]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(("suffix", "mark"), [("tsv", "\t"), ("csv", ","), ("csv", ";"), ("csv", "|"), ("tsv", ",")])
def test_quoted_line_breaks_belong_to_their_row(tmp_path, suffix, mark):
    rows = [f'"first line {i}\nsecond{mark} ""line"""{mark}x' for i in range(93)]
    texts, report = read(write(tmp_path / f"a.{suffix}", "\n".join([f"text{mark}label", *rows])))
    assert len(texts) == report["rows"] == 93
    assert texts[5] == f'first line 5\nsecond{mark} "line"'


def test_decimal_commas_do_not_look_like_delimiters(tmp_path):
    texts, report = read(write(tmp_path / "a.csv", "text;price\ntea, hot;1,5\ncup, red, small;2,5\nspoon;3,0\n"))
    assert texts == ["tea, hot", "cup, red, small", "spoon"]
    assert report["delimiter"] == "semicolon"


def test_one_column_has_no_delimiter(tmp_path):
    texts, report = read(write(tmp_path / "a.csv", 'text\nHello, my friend; hello\nfoo | bar\n"quoted, ""yes"""\n'))
    assert texts == ["Hello, my friend; hello", "foo | bar", 'quoted, "yes"']
    assert report["delimiter"] == "none"
    texts, report = read(write(tmp_path / "b.csv", "hello, you\nfoo\nbar\nsee, this, too\n"), has_header=False)
    assert len(texts) == 4
    assert report["column"] == {"name": "1", "reason": "only column"}


def test_a_delimiter_can_be_given(tmp_path):
    path = write(tmp_path / "a.csv", "text:label\ntea, hot:x\n")
    assert read(path, delimiter=":")[0] == ["tea, hot"]
    path = write(tmp_path / "b.csv", "text\tlabel\ntea\tx\n")
    assert read(path, delimiter="tab")[0] == read(path, delimiter="\\t")[0] == ["tea"]
    for bad in ("::", "", '"', "\n"):
        with pytest.raises(ValueError, match=r"delimiter=.* must be one character, or one of comma, tab, semicolon"):
            read(path, delimiter=bad)


def test_columns_by_number_are_counted_from_one(tmp_path):
    path = write(tmp_path / "a.csv", "tea,x\ncups,y\n")
    documents = list(read_documents(path, Columns("1", label="2"), has_header=False))
    assert [(document.text, document.label) for document in documents] == [("tea", "x"), ("cups", "y")]
    path = write(tmp_path / "b.csv", "when,what\n2020,tea\n")
    assert read(path, Columns("2"))[0] == ["tea"]
    for bad in ("0", "3", "-1", "²"):
        with pytest.raises(ValueError, match=f"has columns when, what; expected {bad}; check the names, and the delim"):
            read(path, Columns(bad))
    with pytest.raises(ValueError, match="has columns 1, 2; expected the name of that of the text"):
        read(tmp_path / "a.csv", has_header=False)


def test_ragged_rows_zero_bytes_and_blank_lines_are_noted(tmp_path):
    texts, report = read(write(tmp_path / "a.csv", b"text,label\nhello, world,x\nfoo,y\n\nb\0ar\n"))
    assert texts == ["hello", "foo", "bar"]
    assert (report["rows"], report["zero_bytes"], report["blank_lines"]) == (3, 1, 1)
    lines = ["line 2: 3 fields for 2 columns", "line 5: 1 fields for 2 columns"]
    assert report["ragged_rows"] == {"n": 2, "examples": lines}


@pytest.mark.parametrize(
    ("content", "wanted", "n_stray"),
    [
        ('text\tlabel\n"stray\tx\nplain\ty\n"other\tz\nend "q"\tw\n', ['"stray', "plain", '"other', 'end "q"'], 2),
        ('text\tlabel\nplain\ty\n"last\tz\n', ["plain", '"last'], 1),
        ('text\tlabel\n"said "hi" to\nme"\ty\n', ['said hi" to', 'me"'], 0),
    ],
)
def test_stray_quotes_do_not_swallow_rows(tmp_path, content, wanted, n_stray):
    texts, report = read(write(tmp_path / "a.tsv", content))
    assert texts == wanted
    assert report.get("stray_quotes", {"n": 0})["n"] == n_stray


def test_missing_texts_are_empty_in_every_format(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"text": "tea", "n": 1}, {"text": None, "n": 2}, {"text": "", "n": 3}, {"text": " ", "n": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    write(tmp_path / "a.jsonl", "\n".join(json.dumps(row) for row in [*rows, {"n": 5}]))
    write(tmp_path / "a.csv", 'text,n\ntea,1\n,2\n"",3\n" ",\n')
    for suffix, n in (("parquet", 4), ("jsonl", 5), ("csv", 4)):
        texts, report = read(tmp_path / f"a.{suffix}")
        assert [text.strip() for text in texts] == ["tea"] + [""] * (n - 1)
        assert report["rows"] == n


def test_numbers_are_texts_and_lists_are_not(tmp_path):
    texts, report = read(
        write(tmp_path / "a.jsonl", '{"text": 5}\n{"text": ["x"]}\n{"text": {"a": 1}}\n{"text": 1.5}\n')
    )
    assert texts == ["5", "1.5"]
    assert report["unreadable"]["n"] == 2
    assert "row 2, column 'text', is a list; expected text" in report["unreadable"]["examples"][0]


def test_headers_are_trimmed_and_told_apart(tmp_path):
    path = write(tmp_path / "a.csv", "\ufeff text , text,,Body\na,b,c,d\n")
    assert read(path)[1]["column"] == {"name": "text", "reason": "usual name; Body not used"}
    assert read(path, Columns("text (2)"))[0] == ["b"]
    assert read(path, Columns("3"))[0] == ["c"]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_empty_files_have_no_rows(tmp_path, content):
    for suffix in ("csv", "tsv", "jsonl", "txt"):
        texts, report = read(write(tmp_path / f"a.{suffix}", content))
        assert (texts, report["rows"]) == ([], 0)


def test_other_encodings_in_tables(tmp_path):
    for encoding in ("latin-1", "utf-16", "utf-16-le", "utf-8-sig", "utf-32"):
        path = write(tmp_path / "a.csv", "text,label\ncafé façade,x\nnaïve,y\n".encode(encoding))
        assert read(path)[0] == ["café façade", "naïve"]
    path = write(tmp_path / "a.jsonl", json.dumps({"text": "お茶を飲む"}, ensure_ascii=False).encode("shift_jis"))
    assert read(path, encoding="shift_jis")[0] == read(path)[0] == ["お茶を飲む"]


def test_every_file_of_a_folder_has_its_own_encoding(tmp_path):
    for name, encoding in (("a", "utf-8"), ("b", "utf-16"), ("c", "cp1252")):
        write(tmp_path / f"{name}.txt", "Die Straße über den Fluss ist schön und groß".encode(encoding))
    texts, report = read(tmp_path)
    assert len(set(texts)) == 1
    assert report["encodings"] == {"utf-8": 1, "utf-16": 1, "cp1252": 1}


def test_a_quote_that_opens_a_large_file_takes_bounded_memory(tmp_path):
    path = tmp_path / "a.csv"
    with open(path, "w") as file:
        file.write('text,label\n"never closed,x\n')
        for i in range(400_000):
            file.write(f"some words of a row number {i} that goes on for a while,{i}\n")
    code = (
        "import resource, sys\n"
        "from countinggrids.features import delimited\n"
        "from countinggrids.features.text import read_documents\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "print(sum(1 for _ in read_documents(sys.argv[1])))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "400001", done.stderr
