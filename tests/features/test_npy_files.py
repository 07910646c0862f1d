"""Arrays in .npy and .npz files: what NumPy writes is read, what no array of numbers says is refused."""

import re
import struct

import numpy as np
import pytest

from countinggrids.data import container, readers
from countinggrids.features import npy_files


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float16", "float32", ">f8"])
def test_arrays_of_numbers_are_mapped(tmp_path, rng, order, dtype):
    wanted = np.array(rng.poisson(1, (6, 4)), dtype, order=order)
    np.save(tmp_path / "x.npy", wanted)
    found = readers.load(tmp_path / "x.npy")
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype
    assert container.is_mapped(found)


def test_arrays_without_values_are_read(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((0, 4)))
    assert readers.load(tmp_path / "x.npy").shape == (0, 4)


def with_header(path, header, version=(1, 0), values=b"\0" * 64):
    text = header.encode("latin1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    path.write_bytes(b"\x93NUMPY" + bytes(version) + size + text + values)
    return path


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4)}"
HEADERS = {
    "an open bracket": (PLAIN.replace("(2, 4)}", "(2, 4"), "its header makes no sense"),
    "an open string": (PLAIN.replace("'<f8'", "'''<f8"), "its header makes no sense"),
    "a call": (PLAIN.replace("(2, 4)", "exit(2)"), "its header makes no sense"),
    "no dictionary": ("[1, 2]", "its header makes no sense"),
    "a missing key": ("{'descr': '<f8', 'shape': (2, 4)}", "its header makes no sense"),
    "deep brackets": (PLAIN.replace("(2, 4)", "(" * 2000 + ")" * 2000), "its header makes no sense"),
    "deep minuses": (PLAIN.replace("(2, 4)", "-" * 9000 + "1"), "its header makes no sense"),
    "a negative length": (PLAIN.replace("(2, 4)", "(-2, 4)"), r"its shape is \(-2, 4\)"),
    "both lengths negative": (PLAIN.replace("(2, 4)", "(-2, -4)"), r"its shape is \(-2, -4\)"),
    "a calculation": (PLAIN.replace("(2, 4)", "(2**9, 4)"), "its header makes no sense"),
    "a length of many digits": (PLAIN.replace("2, 4", "9" * 4000 + ", 1"), "its shape is"),
    "more values than there are": (
        PLAIN.replace("(2, 4)", "(100000, 4)"),
        "needs 3200000 bytes",
    ),
    "fractions of bags": (PLAIN.replace("(2, 4)", "(2.0, 4.0)"), "its shape is"),
    "a list as shape": (PLAIN.replace("(2, 4)", "[2, 4]"), "its shape is"),
    "structured values": (PLAIN.replace("'<f8'", "[('a', '<f4'), ('b', '<f4')]"), r"its values are \[\('a'"),
    "values that are arrays": (PLAIN.replace("'<f8'", "('<f4', (2,))"), "its values are"),
    "objects": (PLAIN.replace("<f8", "|O"), "its values are |O"),
    "dates": (PLAIN.replace("<f8", "<M8[s]"), "its values are <M8"),
    "complex numbers": (PLAIN.replace("<f8", "<c8"), "its values are <c8"),
    "texts": (PLAIN.replace("<f8", "<U2"), "its values are <U2"),
    "one axis": (PLAIN.replace("(2, 4)", "(8,)"), "with 1 axes must be counts of shape"),
    "seventy axes": (PLAIN.replace("(2, 4)", "(" + "1, " * 70 + ")"), "is no array of numbers"),
}


@pytest.mark.parametrize("what", HEADERS)
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_hostile_headers_are_refused_and_named(tmp_path, what, version):
    header, message = HEADERS[what]
    path = with_header(tmp_path / "x.npy", header, version)
    with pytest.raises(ValueError, match=message) as raised:
        readers.load(path)
    assert str(path) in str(raised.value)


def test_a_plain_header_is_read(tmp_path):
    assert readers.load(with_header(tmp_path / "x.npy", PLAIN)).shape == (2, 4)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUM",
        b"\x93NUMPY\1\0",
        b"\x93NUMPY\3\0ab",
        b"\x93NUMPY\2\0\xff\xff\xff\xff{}",
        b"\x93NUMPY\1\0\xff\0{}",
    ],
)
def test_broken_beginnings_are_refused(tmp_path, content):
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{path} is no array of numbers (")):
        readers.load(path)


def test_archives_are_read_by_name_and_within_the_limit(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(3), b=np.zeros((40, 2)))
    assert npy_files.read_archive(tmp_path / "x.npz", ["a"])["a"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"is no archive of arrays \(it holds no c\); write it with numpy\.savez"):
        npy_files.read_archive(tmp_path / "x.npz", ["c"])
    monkeypatch.setenv("COUNTINGGRIDS_MAX_BYTES", "100")
    with pytest.raises(npy_files.TooLargeError, match="takes 640 bytes"):
        npy_files.read_archive(tmp_path / "x.npz", ["b"])


def test_a_missing_file_stays_a_missing_file(tmp_path):
    for name in ("x.npy", "x.npz"):
        with pytest.raises(FileNotFoundError):
            readers.load(tmp_path / name)
