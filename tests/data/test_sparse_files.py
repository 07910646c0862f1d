"""Sparse matrices in .npz files: every format is read, and nothing hostile reaches SciPy's compiled code."""

import io
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

import sandbox
from countinggrids.data import readers, sparse_files
from countinggrids.features import npy_files

FORMATS = ("csr", "csc", "bsr", "coo", "dia")


@pytest.fixture
def counts(rng):
    return sp.csr_array(rng.poisson(0.4, (12, 8)))


def write(path, layout, shape, **parts):
    """Write the members of a sparse matrix as they are given."""
    np.savez_compressed(path, format=np.bytes_(layout), shape=shape, **parts)
    return path


def parts_of(matrix):
    """Return the arrays that save_npz writes of a matrix."""
    return {name: getattr(matrix, name) for name in sparse_files.PARTS[matrix.format]}


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float32", "float64", ">f8"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_every_format_and_type_is_read(tmp_path, counts, layout, dtype, make):
    matrix = make(counts.astype(np.dtype(dtype).newbyteorder("="))).asformat(layout)
    matrix.data = matrix.data.astype(dtype)
    sp.save_npz(tmp_path / "x.npz", matrix)
    found = sparse_files.read(tmp_path / "x.npz")
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), counts.toarray().astype(dtype))


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 4)])
def test_matrices_without_entries_are_read(tmp_path, layout, shape):
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(shape).asformat(layout))
    assert sparse_files.read(tmp_path / "x.npz").shape == shape


def test_half_precision_entries_are_read(tmp_path, counts):
    parts = parts_of(counts) | {"data": counts.data.astype(np.float16)}
    found = sparse_files.read(write(tmp_path / "x.npz", "csr", counts.shape, **parts))
    np.testing.assert_array_equal(found.toarray(), counts.toarray())


def test_duplicates_add_up_and_order_does_not_matter(tmp_path):
    entries = {"data": [1, 2, 3], "row": [1, 1, 0], "col": [2, 2, 0]}
    found = sparse_files.read(write(tmp_path / "x.npz", "coo", (2, 3), **entries))
    np.testing.assert_array_equal(found.toarray(), [[3, 0, 0], [0, 0, 3]])
    entries = {"data": [1, 2, 3], "indices": [2, 0, 2], "indptr": [0, 3]}
    found = sparse_files.read(write(tmp_path / "x.npz", "csr", (1, 3), **entries))
    np.testing.assert_array_equal(found.toarray(), [[2, 0, 4]])


def test_unused_entries_at_the_end_are_left_out(tmp_path, counts):
    parts = parts_of(counts) | {"data": [*counts.data, 9], "indices": [*counts.indices, 10**9]}
    found = sparse_files.read(write(tmp_path / "x.npz", "csr", counts.shape, **parts))
    np.testing.assert_array_equal(found.toarray(), counts.toarray())


def with_change(parts, name, place, value):
    array = parts[name].astype(np.int64 if name != "data" else parts[name].dtype)
    array[place] = value
    return parts | {name: array}


HOSTILE = {
    "an index far outside": lambda parts, name: with_change(parts, name, 1, 500_000_000),
    "a negative index": lambda parts, name: with_change(parts, name, 1, -700),
    "an index that wraps": lambda parts, name: with_change(parts, name, 1, 2**32 + 1),
    "an index that no signed integer holds": lambda parts, name: (
        parts | {name: np.where(np.arange(len(parts[name])) == 1, np.uint64(2**63 + 5), parts[name].astype(np.uint64))}
    ),
    "indices that are no integers": lambda parts, name: parts | {name: parts[name].astype(float)},
    "indices in two axes": lambda parts, name: parts | {name: parts[name][None]},
    "too few indices": lambda parts, name: parts | {name: parts[name][:-1]},
    "too few entries": lambda parts, name: parts | {"data": parts["data"][:-1]},
    "entries without axes": lambda parts, name: parts | {"data": np.float64(1)},
    "entries in four axes": lambda parts, name: parts | {"data": np.zeros((2, 2, 2, 2))},
    "complex entries": lambda parts, name: parts | {"data": parts["data"] + 1j},
    "texts": lambda parts, name: parts | {"data": parts["data"].astype(str)},
    "a missing part": lambda parts, name: {key: value for key, value in parts.items() if key != name},
}
INDICES = {"csr": "indices", "csc": "indices", "bsr": "indices", "coo": "col", "dia": "offsets"}
HARMLESS = {"an index far outside", "an index that wraps", "a negative index"}  # diagonals outside the matrix


READ_ALL = """
import sys
from countinggrids.data import readers
for path in sys.argv[1:]:
    try:
        print("read", readers.load(path).sum() >= 0, flush=True)
    except ValueError as error:
        print("refused", error, flush=True)
"""


@pytest.mark.parametrize("layout", FORMATS)
def test_hostile_parts_are_refused_before_they_are_built(tmp_path, counts, layout):
    paths, wanted = [], []
    for number, (what, change) in enumerate(HOSTILE.items()):
        parts = change(parts_of(counts.asformat(layout)), INDICES[layout])
        paths.append(write(tmp_path / f"{number}.npz", layout, counts.shape, **parts))
        is_read = layout == "dia" and what in HARMLESS
        wanted.append("read True" if is_read else f"refused {paths[-1]} is no table of counts (")
    done = sandbox.run(READ_ALL, *paths)
    found = [line[: len(start)] for line, start in zip(done.stdout.splitlines(), wanted, strict=False)]
    assert (done.returncode, found) == (0, wanted), done.stderr


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    "ends", [[0, 900], [5], [0, 3, 1], [0, 2, 10**9], [0, -1, 2], [1, 2, 2], []], ids=lambda ends: str(ends)
)
def test_rows_that_overlap_or_leave_the_entries_are_refused(tmp_path, layout, ends):
    data = np.ones((2, 1, 1)) if layout == "bsr" else np.ones(2)
    parts = {"data": data, "indices": [0, 1], "indptr": np.array(ends, np.int64)}
    with pytest.raises(ValueError, match=r"is no table of counts .*indptr"):
        sparse_files.read(write(tmp_path / "x.npz", layout, (2, 2), **parts))


@pytest.mark.parametrize("shape", [(-1, 8), (2**63 - 1, 8), (12,), (12, 8, 1), (12.0, 8.0), 12])
def test_impossible_shapes_are_refused(tmp_path, counts, shape):
    for layout in FORMATS:
        with pytest.raises(ValueError, match=r"is no table of counts|takes .* bytes in memory"):
            sparse_files.read(write(tmp_path / "x.npz", layout, shape, **parts_of(counts.asformat(layout))))


@pytest.mark.parametrize("layout", ["lil", "", "csr\0x", "__class__", "é"])
def test_other_formats_are_refused(tmp_path, counts, layout):
    np.savez(tmp_path / "x.npz", format=np.str_(layout), shape=counts.shape, **parts_of(counts))
    with pytest.raises(ValueError, match="its format is"):
        sparse_files.read(tmp_path / "x.npz")


def zeros_archive(path, n_bytes, declared=None):
    """Write an archive whose entries are so many zeros; of another size, where one is declared."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (declared or n_bytes,)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in {"format": np.bytes_("csr"), "shape": [1, 1], "indices": [0], "indptr": [0, 1]}.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())
        with archive.open("data.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(n_bytes // 2**20):
                member.write(bytes(2**20))
    return path


@contextmanager
def little_memory(n_bytes):
    """Check that what is done takes no more memory than that."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()


def test_the_check_of_memory_can_fail():
    with pytest.raises(AssertionError), little_memory(2**20):
        np.ones(2**18)


def test_an_archive_that_inflates_beyond_the_limit_is_refused_before_it_does(tmp_path):
    path = zeros_archive(tmp_path / "bomb.npz", 1200 * 2**20)
    assert path.stat().st_size < 6e6
    with (
        little_memory(2**20),
        pytest.raises(npy_files.TooLargeError, match=r"takes 1,258,291,.* limit is 1,073,741,824; set .*_MAX_BYTES="),
    ):
        readers.load(path)


def test_a_few_bytes_that_stand_for_a_large_matrix_are_refused(tmp_path, counts):
    for layout in ("csc", "coo", "dia"):
        matrix = sp.csr_array(counts[:1, :1]).asformat(layout)
        path = write(tmp_path / "x.npz", layout, (400_000_000, 1), **parts_of(matrix))
        assert path.stat().st_size < 2000
        with little_memory(2**20), pytest.raises(npy_files.TooLargeError, match=r"takes 3,200,000,.* bytes in memory"):
            readers.load(path)


def test_an_archive_that_holds_more_or_less_than_it_says_is_refused(tmp_path):
    for declared in (2**20, 2**22):
        path = zeros_archive(tmp_path / "x.npz", 2**21, declared)
        with pytest.raises(ValueError, match=r"data of shape .* needs \d+ bytes, and \d+ are there"):
            readers.load(path)


def test_a_directory_that_lies_about_sizes_does_not_make_it_inflate_further(tmp_path):
    path = zeros_archive(tmp_path / "x.npz", 64 * 2**20, declared=2**20)
    whole, true = path.read_bytes(), 64 * 2**20 + 128
    place = whole.rindex(true.to_bytes(4, "little"))
    path.write_bytes(whole[:place] + (2**20 + 128).to_bytes(4, "little") + whole[place + 4 :])
    with little_memory(8 * 2**20), pytest.raises(ValueError, match="is no table of counts"):
        readers.load(path)


def test_the_limit_is_an_environment_variable(tmp_path, counts, monkeypatch):
    sp.save_npz(tmp_path / "x.npz", counts)
    monkeypatch.setenv("COUNTINGGRIDS_MAX_BYTES", "100")
    with pytest.raises(npy_files.TooLargeError, match="the limit is 100; set the environment variable"):
        readers.load(tmp_path / "x.npz")
    monkeypatch.setenv("COUNTINGGRIDS_MAX_BYTES", "1e6")
    assert readers.load(tmp_path / "x.npz").shape == counts.shape
    for wrong in ("much", "-1", "inf", "nan"):
        monkeypatch.setenv("COUNTINGGRIDS_MAX_BYTES", wrong)
        with pytest.raises(ValueError, match=r"COUNTINGGRIDS_MAX_BYTES='.*' must be a number of bytes"):
            readers.load(tmp_path / "x.npz")


def test_other_compressions_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        content = io.BytesIO()
        np.save(content, np.bytes_("csr"))
        archive.writestr("format.npy", content.getvalue())
    with pytest.raises(ValueError, match="compressed in another way than by deflating"):
        sparse_files.read(tmp_path / "x.npz")
