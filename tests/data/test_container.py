"""Files are written whole or not at all, where and as the user wants them, and every bit of them is checked."""

import os
import pickle
import stat

import numpy as np
import pytest
from safetensors import safe_open

import countinggrids as cg
from countinggrids.data import container, digests, paths
from countinggrids.features import Words
from countinggrids.features.text import Document

FACTS = {"format": "table", "version": 1}
ARRAYS = {
    "long": np.arange(5),
    "flags": np.array([True, False]),
    "bytes": np.arange(7, dtype=np.uint8),
    "empty": np.zeros((0, 3), np.float32),
    "table": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "swapped": np.arange(3, dtype=">i4"),
}
X = np.random.default_rng(0).poisson(0.5, (40, 12))


def model_file(path):
    cg.CountingGrid((8, 8), (4, 4), max_iter=300, tol=1e-2, random_state=0).fit(X).save(path)
    return cg.load


def checkpoint_file(path):
    def fit(path):
        return cg.CountingGrid((8, 8), (4, 4), tol=1e-2, random_state=0).fit(X, checkpoint=path)

    fit(path)
    return fit


def collection_file(path):
    words = ["tea", "for", "two", "cups", "\x1f\xe9"]
    texts = [Document(" ".join(np.random.default_rng(i).choice(words, 9)), f"title {i}", time=i) for i in range(20)]
    cg.Collection.from_texts(texts, Words()).save(path)

    def use(path):
        collection = cg.Collection.load(path)
        collection.counts  # noqa: B018
        return [collection.items.row(i) for i in range(len(collection))]

    return use


@pytest.mark.parametrize("make", [model_file, checkpoint_file, collection_file])
def test_every_flipped_bit_is_found(tmp_path, make):
    path, flipped = tmp_path / "whole", tmp_path / "flipped"
    use = make(path)
    use(path)
    whole = path.read_bytes()
    header = 8 * (8 + int.from_bytes(whole[:8], "little"))
    rng = np.random.default_rng(0)
    places = [*range(64 + 8 * 100), *rng.integers(header, size=300), *rng.integers(header, 8 * len(whole), size=400)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        flipped.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|no digest|not one of countinggrids"):
            use(flipped)


def test_what_is_written_is_read_by_us_and_by_safetensors(tmp_path):
    container.write(tmp_path / "x", FACTS | {"zeros": "0" * 64}, ARRAYS)
    facts, arrays = container.read(tmp_path / "x", "table", 1)
    assert facts == FACTS | {"zeros": "0" * 64}
    assert set(arrays) == set(ARRAYS)
    with safe_open(tmp_path / "x", framework="numpy") as theirs:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)
            np.testing.assert_array_equal(theirs.get_tensor(name), array)
            assert arrays[name].flags.aligned


def test_the_same_content_gives_the_same_bytes(tmp_path):
    container.write(tmp_path / "x", FACTS, ARRAYS)
    container.write(tmp_path / "y", FACTS, dict(reversed(ARRAYS.items())))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_arrays_that_cannot_be_kept_are_named(tmp_path):
    with pytest.raises(ValueError, match="array 'x' of dtype complex128 must be one of float64"):
        container.write(tmp_path / "x", FACTS, {"x": np.ones(2, complex)})
    assert os.listdir(tmp_path) == []


def test_bytes_behind_the_arrays_are_found(tmp_path):
    container.write(tmp_path / "x", FACTS, ARRAYS)
    with open(tmp_path / "x", "ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match="damaged"):
        container.read(tmp_path / "x", "table", 1)


def test_a_large_array_is_verified_when_it_is_used_and_not_before(tmp_path):
    path = tmp_path / "bags.cg"
    use = collection_file(path)
    whole = bytearray(path.read_bytes())
    header = 8 + int.from_bytes(whole[:8], "little")
    whole[bytes(whole).index(b"tea", header)] ^= 1
    path.write_bytes(whole)
    collection = cg.Collection.load(path)
    assert collection.counts.shape[0] == 20
    with pytest.raises(ValueError, match=r"is damaged: array 'item.text.bytes' does not match its digest"):
        collection.items["text"]
    with pytest.raises(ValueError, match=r"bags.cg is damaged"):
        use(path)
    with pytest.raises(ValueError, match=r"bags.cg is damaged"):
        container.verify(path)


def test_damaged_counts_are_not_learnt_from_where_they_are_streamed(tmp_path):
    path = tmp_path / "bags.cg"
    collection_file(path)
    data = cg.Collection.load(path).counts.data
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[whole.index(data.tobytes()) + 2] ^= 64
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match=r"array 'counts.data' does not match its digest"):
        cg.CountingGrid((4, 4), 2).fit(path)


def test_streamed_counts_are_verified_once(tmp_path, monkeypatch):
    path, seen = tmp_path / "bags.cg", []
    collection_file(path)
    hashed = digests.digest_of

    def digest_of(array, *release):
        seen.append(array.dtype)
        return hashed(array, *release)

    monkeypatch.setattr(digests, "digest_of", digest_of)
    cg.CountingGrid((4, 4), 2, max_iter=200, tol=1e-2).fit(path)
    assert seen.count(np.float32) == 1  # counts.data


def test_arrays_are_hashed_in_chunks_that_are_let_go(monkeypatch):
    monkeypatch.setattr(digests, "CHUNK", 16)
    released = []
    whole, part = np.arange(9.0), np.arange(9.0)
    assert digests.digest_of(whole, released.append) == digests.digest_of(part)
    assert len(released) == 5


def test_a_lazily_read_collection_can_be_pickled(tmp_path):
    path = tmp_path / "bags.cg"
    collection_file(path)
    collection = cg.Collection.load(path)
    again = pickle.loads(pickle.dumps(collection))
    assert (again.counts != collection.counts).nnz == 0
    assert again.items.row(3) == collection.items.row(3)


def test_new_files_get_the_permissions_of_the_moment(tmp_path):
    before = os.umask(0o027)
    try:
        container.write_text(tmp_path / "x", "x")
        os.umask(0o077)
        container.write_text(tmp_path / "y", "y")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "y").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(mode)
    container.write_text(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "target"
    link.symlink_to(target)
    for text in ("first", "second"):
        container.write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert os.listdir(tmp_path / "folder") == ["target"]


def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match="must be a plain file to be replaced"):
            container.write_text(path, "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_an_error_names_the_file_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"x could not be written \(No space left on device\)") as raised:
        container.write_text(tmp_path / "x", "x")
    assert raised.value.errno == 28
    assert os.listdir(tmp_path) == []


def test_an_unfinished_file_has_an_unmistakable_name(tmp_path):
    names = []
    container.write_whole(tmp_path / "x", lambda _: names.extend(os.listdir(tmp_path)))
    [name] = names
    assert name.startswith(f".x.{os.getpid()}-")
    assert name.endswith(".countinggrids-tmp")


def test_paths_are_the_same_through_links_and_before_they_exist(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "way").symlink_to("folder")
    assert paths.is_same(tmp_path / "folder" / "new", tmp_path / "way" / "new")
    assert paths.is_same(tmp_path / "folder" / ".." / "new", tmp_path / "new")
    assert not paths.is_same(tmp_path / "folder" / "new", tmp_path / "new")
    (tmp_path / "one").write_text("")
    (tmp_path / "other").hardlink_to(tmp_path / "one")
    (tmp_path / "dangling").symlink_to("new")
    assert paths.is_same(tmp_path / "one", tmp_path / "other")
    assert paths.is_same(tmp_path / "dangling", tmp_path / "new")
    assert not paths.is_same(tmp_path / "dangling", tmp_path / "one")
