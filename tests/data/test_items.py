"""Items and their files: only those below the folder that was given, wherever a path or a link leads."""

from pathlib import Path

import pytest

from countinggrids.data.items import Items


@pytest.fixture
def folder(tmp_path):
    """A folder with an image, beside another that is none of its business."""
    for name in ("own/inner/a.png", "other/b.png", "own-too/c.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"image")
    (tmp_path / "own" / "file-link.png").symlink_to(tmp_path / "other" / "b.png")
    (tmp_path / "own" / "folder-link").symlink_to(tmp_path / "other")
    (tmp_path / "own" / "inner-link.png").symlink_to(tmp_path / "own" / "inner" / "a.png")
    return tmp_path / "own"


def test_files_below_the_folder_are_found(folder):
    items = Items({"path": ["inner/a.png", "inner-link.png", "not/there.png"]}, folder)
    assert [items.file(i) for i in range(3)] == [folder / "inner/a.png"] * 2 + [folder / "not/there.png"]


def test_a_folder_that_is_a_link_is_followed(folder, tmp_path):
    (tmp_path / "way").symlink_to(folder)
    assert Items({"path": ["inner/a.png"]}, tmp_path / "way").file(0) == folder / "inner" / "a.png"


@pytest.mark.parametrize(
    "path",
    [
        "../other/b.png",
        "inner/../../other/b.png",
        "inner/../inner/a.png",
        "../own-too/c.png",
        "file-link.png",
        "folder-link/b.png",
        "/etc/passwd",
        "//etc/passwd",
        "{folder}/inner/a.png",
    ],
)
def test_paths_that_lead_out_are_refused(folder, path):
    items = Items({"path": [path.format(folder=folder)]}, folder)
    with pytest.raises(ValueError, match=r"must be a file below .*own; correct the path"):
        items.file(0)


@pytest.mark.parametrize("path", ["a\0b.png", "lone \ud800.png"])
def test_what_no_file_is_called_is_refused(folder, path):
    with pytest.raises(ValueError, match=r"must be the name of a file \(.*\); correct it"):
        Items({"path": [path]}, folder).file(0)


def test_links_in_a_circle_and_long_names_are_no_files(folder):
    (folder / "circle").symlink_to(folder / "circle")
    for path in ("circle", "x" * 5000):
        try:
            assert not Items({"path": [path]}, folder).file(0).is_file()
        except (ValueError, OSError) as error:
            assert "circle" in str(error) or "too long" in str(error)  # noqa: PT017


@pytest.mark.parametrize("root", ["", "own", "/", "/.", "~", "~/..", "~/../other"])
def test_a_root_that_is_not_trusted_may_not_hold_everything(monkeypatch, tmp_path, root):
    home = tmp_path / "home" / "me"
    monkeypatch.setenv("HOME", str(home))
    untrusted = Items({"path": ["a.png"]}, Path(root).expanduser(), is_root_trusted=False)
    with pytest.raises(ValueError, match=r"root=.* must be (an absolute path|a folder of its own)"):
        untrusted.file(0)
    assert not untrusted.take([0]).is_root_trusted
    assert not untrusted.with_columns(label=["x"]).is_root_trusted


def test_a_root_that_is_not_trusted_may_lie_in_a_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (
        Items({"path": ["a.png"]}, tmp_path / "photos", is_root_trusted=False).file(0) == tmp_path / "photos" / "a.png"
    )


def test_a_folder_that_is_named_by_hand_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Items({"path": ["a.png"]}, tmp_path).file(0) == tmp_path / "a.png"


def test_joined_items_get_the_folder_that_holds_all_theirs(tmp_path):
    first, second = (Items({"path": ["a.png"]}, tmp_path / name) for name in ("one/x", "two"))
    joined = Items.join([first, second, Items({"title": ["no file"]})])
    assert joined.root == tmp_path
    assert joined["path"].tolist() == ["one/x/a.png", "two/a.png", ""]
    assert joined.path(0) == first.path(0)
