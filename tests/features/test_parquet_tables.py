"""Parquet tables: small files that decode to very much are refused, all others read as they were written."""

import pytest

import sandbox
from countinggrids.features import limits, parquet_tables
from countinggrids.features.notes import Notes

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path, column, **options):
    parquet.write_table(pyarrow.table({"text": column}), path, **options)
    return path


def read(path):
    return [row["text"] for row in parquet_tables.Parquet(path).rows(Notes(), ["text"])]


@pytest.mark.parametrize("store_schema", [True, False])
def test_a_repeated_text_does_not_expand_without_limit(tmp_path, store_schema):
    texts = pyarrow.array(["x" * 10**6]).dictionary_encode().take(pyarrow.array([0] * 20_000))
    path = write(tmp_path / "a.parquet", texts, store_schema=store_schema)
    assert path.stat().st_size < 10**5
    code = (
        "import sys\nfrom countinggrids.features.text import read_documents\n"
        "try:\n    n = sum(1 for _ in read_documents(sys.argv[1]))\nexcept ValueError as error:\n    print(error)\n"
    )
    done = sandbox.run(code, path)
    assert "bytes or more when it is decoded, and the limit is 1,073,741,824; set the environment" in done.stdout


def test_a_table_that_declares_too_much_is_refused_before_the_first_row(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", 3000 * [1000 * "y"], use_dictionary=False, compression="zstd")
    monkeypatch.setenv(limits.BYTES_VARIABLE, "2e6")
    with pytest.raises(limits.TooLargeError, match=r"takes 3,0\d\d,\d\d\d bytes .* limit is 2,000,000"):
        next(parquet_tables.Parquet(path).rows(Notes(), ["text"]))
    monkeypatch.setenv(limits.BYTES_VARIABLE, "4e6")
    assert len(read(path)) == 3000


def test_rows_without_a_text_are_limited_too(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", pyarrow.nulls(10**5, pyarrow.string()))
    monkeypatch.setenv(limits.BYTES_VARIABLE, "1e6")
    with pytest.raises(limits.TooLargeError, match="takes 6,400,000 bytes"):
        read(path)


def test_a_large_file_has_a_limit_in_proportion(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", [f"{i} {i**9}" for i in range(2000)], compression="none")
    monkeypatch.setenv(limits.BYTES_VARIABLE, "1")
    assert read(path)[-1] == f"1999 {1999**9}"


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("batch_bytes", [1, 3000, 2**26])
def test_rows_keep_their_order_over_batches_and_row_groups(tmp_path, monkeypatch, use_dictionary, batch_bytes):
    texts = [None if i % 7 == 0 else f"text {i % 40}" for i in range(500)]
    path = write(tmp_path / "a.parquet", texts, use_dictionary=use_dictionary, row_group_size=120)
    monkeypatch.setattr(parquet_tables, "BATCH_BYTES", batch_bytes)
    assert read(path) == texts


def test_a_nested_column_is_refused(tmp_path):
    path = write(tmp_path / "a.parquet", [["a", "b"]])
    with pytest.raises(ValueError, match=r"a\.parquet, column 'text', is list<.*; expected texts; use another column"):
        read(path)
    write(path, [])
    assert read(path) == []
