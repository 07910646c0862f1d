"""The exported page: one file, small enough, the same every time, and deaf to what its data say."""

import base64
import gzip
import json
import re

import pytest
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.explore import Atlas, Page, export
from countinggrids.explore.page import standalone

RUN = CliRunner()


def packed(text):
    """Unpack the data of a page."""
    found = re.search(r'<script type="text/plain" id="pack">([^<]*)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def images(text):
    return json.loads(re.search(r'<script type="application/json" id="images">([^<]*)</script>', text)[1])


def test_the_page_holds_everything_and_asks_for_nothing(story_atlas):
    text = standalone(story_atlas)
    pack = packed(text)
    assert pack["known"]["text"] == story_atlas.collection.items["text"].tolist()
    assert pack["lexicon"]["n_left_out"] == 0
    outside = re.sub(r"<script type=[^>]*>[^<]*</script>", "", text)
    assert not re.search(
        r"(src|href)=(?!\"data:,\")|@import|url\(",
        outside.replace("{ src: this.image", "").replace("{ href: address", ""),
    )
    assert "connect-src" not in text.split("</head>")[0]


def test_the_same_atlas_gives_the_same_page(walk_atlas):
    assert standalone(walk_atlas) == standalone(walk_atlas)


def test_thumbnails_shrink_until_the_page_fits(walk_atlas, tmp_path):
    large = standalone(walk_atlas)
    room = len(large) - len(images(large)["sheet/0.jpg"]) // 2
    small = standalone(walk_atlas, room / 1e6)
    assert packed(large)["chart"]["sheets"]["side"] == 96
    assert packed(small)["chart"]["sheets"]["side"] < 96
    assert len(small.encode()) <= room
    assert export(walk_atlas, tmp_path / "page.html", room / 1e6) == (tmp_path / "page.html").stat().st_size
    assert set(images(small)) == {"picture.jpg", "patches.png", "sheet/0.jpg"}


def test_texts_are_cut_until_the_page_fits(story_atlas):
    whole = len(standalone(story_atlas).encode())
    bare = story_atlas.collection.items["text"].tolist()
    text = standalone(story_atlas, largest=(whole - 2_000) / 1e6)
    cut = packed(text)["known"]["text"]
    assert len(text.encode()) <= whole - 2_000
    assert all(full.startswith(part.removesuffix(" …")) for part, full in zip(cut, bare, strict=True))
    assert sum(map(len, cut)) < sum(map(len, bare))


def test_a_page_that_cannot_fit_is_refused_and_nothing_is_written(story_atlas, tmp_path):
    with pytest.raises(ValueError, match=r"would have 0\.\d+ MB without any text or thumbnail; wanted at most 0\.02"):
        export(story_atlas, tmp_path / "page.html", 0.02)
    assert list(tmp_path.iterdir()) == []


def test_what_the_data_say_stays_data(harmful):
    atlas = Atlas(cg.load(harmful[0]), cg.Collection.load(harmful[1]), "</title><script>window.harmed = 9</script>")
    text = standalone(atlas)
    assert text.count("<script") == 3
    assert not re.search(r"[<>\"']\s*window.harmed", text)
    assert text.count("&lt;script&gt;window.harmed = 9&lt;/script&gt;") == 2


def test_a_page_too_small_for_any_thumbnail_says_so(walk_atlas):
    bare = len(standalone(walk_atlas)) - sum(map(len, images(standalone(walk_atlas)).values()))
    rest = sum(len(images(standalone(walk_atlas))[name]) for name in ("picture.jpg", "patches.png"))
    with pytest.warns(UserWarning, match="no text and no thumbnail fits into"):
        text = standalone(walk_atlas, (bare + rest + 2_000) / 1e6)
    assert packed(text)["chart"]["sheets"] is None


def test_the_command_writes_the_page(walks, tmp_path):
    out = tmp_path / "map.html"
    files = [str(file) for file in walks]
    result = RUN.invoke(app, ["export", *files, "-o", str(out), "--title", "Walks & talks", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == {"items": 48, "megabytes": round(out.stat().st_size / 1e6, 2), "page": str(out)}
    assert "<title>Walks &amp; talks</title>" in out.read_text()
    again = RUN.invoke(app, ["export", *files, "-o", str(out)])
    assert again.exit_code == 2
    assert "exists; wanted a new file" in again.stderr


def test_the_command_says_when_images_have_moved(walks, tmp_path):
    files = [str(file) for file in walks]
    result = RUN.invoke(app, ["export", *files, "-o", str(tmp_path / "map.html"), "--root", str(tmp_path)])
    assert result.exit_code == 0
    assert f"48 of 48 images are not under {tmp_path}; --root says where they are now" in result.stderr


def test_a_model_of_other_features_is_refused(stories, walks, tmp_path):
    result = RUN.invoke(app, ["export", str(stories[0]), str(walks[1]), "-o", str(tmp_path / "map.html")])
    assert result.exit_code == 2
    assert "has other features than the model" in result.stderr


def test_a_notebook_shows_the_page_in_a_frame(story_atlas):
    shown = story_atlas.model.explore(story_atlas.collection, height=500)
    assert isinstance(shown, Page)
    code = shown._repr_html_()
    assert code.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "height:500px" in code
    assert 'sandbox="allow-scripts allow-popups allow-forms"' in code
