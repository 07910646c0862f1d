"""Documents out of files and tables, and words out of documents."""

import json
from datetime import UTC, datetime
from math import isnan

import pytest
from sklearn.feature_extraction.text import CountVectorizer

from countinggrids.features import BadItemError, Words
from countinggrids.features.documents import title_of
from countinggrids.features.text import Columns, Document, read_documents

ROWS = [
    {"text": "tea for two", "name": "One", "url": "a/1", "class": "tea", "when": "2020-01-02"},
    {"text": "cups, two cups", "name": "Two", "url": "a/2", "class": "cups", "when": "2020-01-03T12:00:00Z"},
    {"text": "naïve café ☕", "name": "Three", "url": "a/3", "class": "tea", "when": "soon"},
]
COLUMNS = Columns("text", "name", "url", "class", "when")


def write(path, rows=ROWS):
    """Write rows as the file's ending says."""
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
    elif path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        mark, quote = (",", '"') if path.suffix == ".csv" else ("\t", "")
        lines = [mark.join(rows[0])] + [mark.join(f"{quote}{v}{quote}" for v in row.values()) for row in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_give_the_same_documents(tmp_path, suffix):
    documents = list(read_documents(write(tmp_path / f"table.{suffix}"), COLUMNS))
    assert [document.text for document in documents] == [row["text"] for row in ROWS]
    assert documents[1][1:4] == ("Two", "a/2", "cups")
    assert documents[0].time == datetime(2020, 1, 2, tzinfo=UTC).timestamp()
    assert documents[1].time == datetime(2020, 1, 3, 12, tzinfo=UTC).timestamp()
    assert isnan(documents[2].time)


def test_the_column_of_text_is_found_by_its_usual_names(tmp_path):
    path = write(tmp_path / "table.csv")
    assert [document.title for document in read_documents(path)] == [title_of(row["text"]) for row in ROWS]
    write(path, [{"a": "x", "b": "y"}])
    with pytest.raises(ValueError, match="has columns a, b; expected the name of that of the text"):
        list(read_documents(path))
    with pytest.raises(ValueError, match="has columns a, b; expected c, d; check the names"):
        list(read_documents(path, Columns("c", title="d")))


def test_lines_of_a_file_are_documents(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffone\n\n two \n".encode() + b"caf\xe9\n")
    documents = list(read_documents(path))
    assert [(document.text, document.row) for document in documents] == [("one", 1), ("two", 3), ("caf\ufffd", 4)]
    assert [document.title for document in documents] == ["one", "two", "caf\ufffd"]


def test_files_of_a_folder_are_documents(tmp_path):
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "b.txt").write_text("in the\nnews")
    (tmp_path / "a.txt").write_text("top")
    (tmp_path / ".hidden").write_text("no")
    assert list(read_documents(tmp_path))[1][:5] == ("in the\nnews", "b", "", "news", "news/b.txt")
    assert [document.path for document in read_documents(tmp_path)] == ["a.txt", "news/b.txt"]


def test_what_cannot_be_read_is_named_and_the_rest_is_kept(tmp_path):
    path = tmp_path / "table.jsonl"
    path.write_text('{"text": "one"}\n{"text": \n[1]\n{"title": "no text"}\n{"text": "two"}\n')
    with pytest.raises(BadItemError, match=r"table\.jsonl, line 2, is not JSON"):
        list(read_documents(path))
    errors = []
    documents = list(read_documents(path, on_error=lambda error: errors.append(str(error))))
    assert [document.text for document in documents] == ["one", "", "two"]
    assert len(errors) == 2
    assert "line 3, is a list; expected an object" in errors[1]
    (tmp_path / "binary.txt").write_bytes(b"\0\1\2")
    errors.clear()
    list(read_documents(tmp_path, on_error=lambda error: errors.append(str(error))))
    assert len(errors) == 1
    assert "binary.txt has zero bytes" in errors[0]


def test_a_stray_quote_does_not_swallow_rows(tmp_path):
    (tmp_path / "a.tsv").write_text('text\n"one\ntwo\nthree\n')
    assert [document.text for document in read_documents(tmp_path / "a.tsv")] == ['"one', "two", "three"]
    (tmp_path / "a.csv").write_text('text\none\n"two\nthree\n')
    documents = read_documents(tmp_path / "a.csv")
    assert [document.text for document in documents] == ["one", '"two', "three"]
    assert documents.report[0]["stray_quotes"] == {"n": 1, "examples": ["line 3"]}


def test_columns_that_only_later_rows_have(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "two", "kind": "x"}\n')
    documents = list(read_documents(tmp_path / "a.jsonl", Columns(label="kind")))
    assert [document.label for document in documents] == ["", "x"]
    with pytest.raises(ValueError, match="has columns text, kind; expected sort; check the names"):
        list(read_documents(tmp_path / "a.jsonl", Columns(label="sort")))


def test_a_header_alone_has_its_columns_checked(tmp_path):
    (tmp_path / "a.csv").write_text("body,kind\n")
    assert list(read_documents(tmp_path / "a.csv")) == []
    with pytest.raises(ValueError, match="has columns body, kind; expected nope"):
        list(read_documents(tmp_path / "a.csv", Columns("nope")))


def test_hidden_folders_and_binaries_are_left_alone(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    (tmp_path / "a.txt").write_text("open")
    assert [document.text for document in read_documents(tmp_path)] == ["open"]
    (tmp_path / "b.jpg").write_bytes(b"\xff\0\1")
    with pytest.raises(BadItemError, match=r"b\.jpg has zero bytes"):
        list(read_documents(tmp_path / "b.jpg"))


def test_missing_and_broken_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.txt does not exist; expected a file or a folder of texts"):
        read_documents(tmp_path / "none.txt")
    (tmp_path / "a.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read .*; expected a Parquet table"):
        list(read_documents(tmp_path / "a.parquet"))


def test_words_are_counted_as_scikit_learn_counts_them():
    texts = ["tea for two, two!", "a cup of TEA", "cups"]
    ours = Words(ngram_range=(1, 2), min_df=1)
    theirs = CountVectorizer(ngram_range=(1, 2))
    assert (ours.fit_transform(iter(texts)).toarray() == theirs.fit_transform(texts).toarray()).all()
    assert ours.names_ == theirs.get_feature_names_out().tolist()
    assert (ours.transform(["two cups"]).toarray() == theirs.transform(["two cups"]).toarray()).all()


def test_rare_frequent_and_stop_words_are_left_out():
    texts = ["the tea", "the cup", "the tea cup spoon"]
    assert Words(min_df=2, max_df=0.9).fit(texts).names_ == ["cup", "tea"]
    assert "the" not in Words(stop_words="english").fit(texts).names_
    assert Words(stop_words=["tea", "spoon"], max_features=1).fit(texts).names_ == ["the"]


@pytest.mark.parametrize("texts", [[], ["the the"], [""]])
def test_no_words_at_all_is_an_error(texts):
    with pytest.raises(
        ValueError, match=r"min_df=1, .* leave no word; expected at least one; use more texts, a smaller min_df"
    ):
        Words(stop_words="english").fit(texts)


def test_a_document_knows_little_by_default():
    assert Document("x")[1:5] == ("", "", "", "")
