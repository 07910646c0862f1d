"""The exported page: one file, small enough, the same every time, and deaf to what its data say."""

import base64
import gzip
import json
import os
import re

import numpy as np
import pytest
from maps import claiming
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.explore import ItemMap, Page, export, pictures
from countinggrids.explore.page import standalone

RUN = CliRunner()


def packed(text):
    """Unpack the data of a page."""
    found = re.search(r'<script type="text/plain" id="pack">([^<]*)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def images(text):
    return json.loads(re.search(r'<script type="application/json" id="images">([^<]*)</script>', text)[1])


def test_the_page_holds_everything_and_asks_for_nothing(story_map):
    text = standalone(story_map)
    pack = packed(text)
    assert pack["known"]["text"] == story_map.collection.items["text"].tolist()
    assert pack["word_index"]["n_left_out"] == 0
    outside = re.sub(r"<script type=[^>]*>[^<]*</script>", "", text)
    assert not re.search(
        r"(src|href)=(?!\"data:,\")|@import|url\(",
        outside.replace("{ src: this.image", "").replace("{ href: address", ""),
    )
    assert "connect-src" not in text.split("</head>")[0]


def test_the_same_map_gives_the_same_page(walk_map):
    assert standalone(walk_map) == standalone(walk_map)


def test_thumbnails_shrink_until_the_page_fits(walk_map, tmp_path):
    large = standalone(walk_map)
    room = len(large) - len(images(large)["sheet/0.jpg"]) // 2
    small = standalone(walk_map, room / 1e6)
    assert packed(large)["map"]["sheets"]["side"] == 96
    assert packed(small)["map"]["sheets"]["side"] < 96
    assert len(small.encode()) <= room
    assert export(walk_map, tmp_path / "page.html", room / 1e6) == (tmp_path / "page.html").stat().st_size
    assert set(images(small)) == {"picture.jpg", "patches.png", "sheet/0.jpg", "search.bin", "counts.bin"}


def test_texts_are_cut_until_the_page_fits(story_map):
    whole = len(standalone(story_map).encode())
    bare = story_map.collection.items["text"].tolist()
    text = standalone(story_map, largest=(whole - 2_000) / 1e6)
    cut = packed(text)["known"]["text"]
    assert len(text.encode()) <= whole - 2_000
    assert all(full.startswith(part.removesuffix(" …")) for part, full in zip(cut, bare, strict=True))
    assert sum(map(len, cut)) < sum(map(len, bare))


def test_a_page_that_cannot_fit_is_refused_and_nothing_is_written(story_map, tmp_path):
    with pytest.raises(
        ValueError, match=r"largest=0\.02 is less than the 0\.\d+ MB of the page without any text or thumbnail"
    ):
        export(story_map, tmp_path / "page.html", 0.02)
    assert list(tmp_path.iterdir()) == []


def test_what_the_data_say_stays_data(harmful):
    item_map = ItemMap(
        cg.load(harmful[0]), cg.Collection.load(harmful[1]), "</title><script>window.harmed = 9</script>"
    )
    text = standalone(item_map)
    assert text.count("<script") == 3
    assert not re.search(r"[<>\"']\s*window.harmed", text)
    assert text.count("&lt;script&gt;window.harmed = 9&lt;/script&gt;") == 2


def test_a_page_too_small_for_any_thumbnail_says_so(walk_map):
    bare = len(standalone(walk_map)) - sum(map(len, images(standalone(walk_map)).values()))
    rest = sum(len(images(standalone(walk_map))[name]) for name in ("picture.jpg", "patches.png"))
    with pytest.warns(UserWarning, match="no text and no thumbnail fits into"):
        text = standalone(walk_map, (bare + rest + 2_000) / 1e6)
    assert packed(text)["map"]["sheets"] is None


def test_the_command_writes_the_page(walks, tmp_path):
    out = tmp_path / "map.html"
    files = [str(file) for file in walks]
    result = RUN.invoke(app, ["export", *files, "-o", str(out), "--title", "Walks & talks", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == {"items": 48, "megabytes": round(out.stat().st_size / 1e6, 2), "page": str(out)}
    assert "<title>Walks &amp; talks</title>" in out.read_text()
    again = RUN.invoke(app, ["export", *files, "-o", str(out)])
    assert again.exit_code == 2
    assert "exists; use another name" in again.stderr


def test_the_command_says_when_images_have_moved(walks, tmp_path):
    files = [str(file) for file in walks]
    result = RUN.invoke(app, ["export", *files, "-o", str(tmp_path / "map.html"), "--root", str(tmp_path)])
    assert result.exit_code == 0
    assert f"left out: item 0: {tmp_path / 'walk 0' / 'frame_000.png'} does not exist or is not a file" in result.stderr
    assert "48 of 48 images left out; use --root for the folder that has them" in result.stderr


NO_FILES = [
    "a\0b.png",
    "x" * 5000,
    "lone \ud800.png",
    "\x1b[2J\x9b2J",
    "walk 1",
    "walk 0/frame_000.png/x",
    "../frames/walk 0/frame_000.png",
]


@pytest.fixture
def misnamed(walks, tmp_path):
    """Items of which seven have paths that no image has: files of the model and of the collection."""
    collection = cg.Collection.load(walks[1])
    paths = [*NO_FILES, *collection.items["path"][len(NO_FILES) :]]
    items = collection.items.with_columns(path=paths)
    cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps).save(tmp_path / "a.cg")
    return walks[0], tmp_path / "a.cg"


def test_a_path_that_no_file_has_leaves_its_image_out_and_is_reported(misnamed, tmp_path):
    result = RUN.invoke(app, ["export", *map(str, misnamed), "-o", str(tmp_path / "map.html")])
    assert result.exit_code == 0, result.output
    assert "showing 41 images below" in result.stderr
    assert "left out: item 0: " in result.stderr
    assert re.search(r"must be the name of a file \(.*embedded null", result.stderr)
    assert "7 of 48 images left out" in result.stderr
    assert not re.search("[\0\x1b\x9b]", result.stderr)
    assert len(images((tmp_path / "map.html").read_text())) > 2


def test_export_warns_of_images_that_are_left_out(misnamed, tmp_path):
    item_map = ItemMap(cg.load(misnamed[0]), cg.Collection.load(misnamed[1]))
    with pytest.warns(UserWarning, match="7 of 48 images left out, the first: item 0: .* must be the name of a file"):
        export(item_map, tmp_path / "map.html")


@pytest.mark.parametrize("root", ["/", "", "frames", "~", "~/.."])
def test_a_folder_that_a_file_claims_is_not_taken_where_it_holds_everything(walks, tmp_path, root):
    claiming(walks, tmp_path / "a.cg", os.path.expanduser(root))
    result = RUN.invoke(app, ["export", str(walks[0]), str(tmp_path / "a.cg"), "-o", str(tmp_path / "map.html")])
    assert result.exit_code == 0, result.output
    assert "the collection's root=" in result.stderr
    assert "48 of 48 images left out; use --root for the folder that has them" in result.stderr
    text = (tmp_path / "map.html").read_text()
    assert packed(text)["map"]["sheets"] is None
    assert not [name for name in images(text) if name.startswith("sheet/")]


def test_images_without_a_size_have_thumbnails(walks):
    collection = cg.Collection.load(walks[1])
    items = collection.items.with_columns(height=[np.nan, 0, np.inf, -3] * 12)
    sized = cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps)
    item_map = ItemMap(cg.load(walks[0]), sized)
    assert pictures.sheet_table(item_map)["height"] == [64] * 48


def test_a_model_of_other_features_is_refused(stories, walks, tmp_path):
    result = RUN.invoke(app, ["export", str(stories[0]), str(walks[1]), "-o", str(tmp_path / "map.html")])
    assert result.exit_code == 2
    assert "must have the features of the model" in result.stderr


def test_a_notebook_shows_the_page_in_a_frame(story_map):
    shown = Page(story_map, height=500)
    code = shown._repr_html_()
    assert code.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "height:500px" in code
    assert 'sandbox="allow-scripts allow-popups allow-forms allow-downloads"' in code
