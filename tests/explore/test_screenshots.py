"""Pictures of the explorer on the data sets, to be looked at: results/screenshots. Run with -m slow."""

import tarfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import countinggrids as cg
from countinggrids import datasets
from countinggrids.explore import ItemMap, export
from countinggrids.features import Codebook, DenseSIFT, Textons, Words

pytestmark = pytest.mark.slow
QUICK = {"anneal": (0.02, 1.1, 1.0), "max_iter": 100, "tol": 1e-3, "random_state": 0}
SHOTS = Path("results/screenshots")


@pytest.fixture(scope="module")
def unpacked(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    for name in ("15scenes", "ietower"):
        with tarfile.open(data / f"{name}.tar") as archive:
            archive.extractall(folder, filter="data")
    return folder


def shoot(chromium, item_map, name, tmp_path, act=lambda page: None):
    """Export a map, look at it in a browser, do something there, and take a picture; give how many colors it has."""
    from playwright.sync_api import sync_playwright

    export(item_map, tmp_path / "page.html")
    SHOTS.mkdir(parents=True, exist_ok=True)
    problems = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector("body[data-ready=true]")
        page.wait_for_timeout(2000)
        act(page)
        page.wait_for_timeout(1500)
        page.screenshot(path=SHOTS / f"{name}.png")
        colors = page.evaluate(
            """() => { const map = document.getElementById("map");
            const pixels = map.getContext("2d").getImageData(0, 0, map.width, map.height).data.buffer;
            return new Set(new Uint32Array(pixels)).size; }"""
        )
        browser.close()
    assert problems == []
    return colors


def test_scenes_as_textons_and_thumbnails(chromium, unpacked, tmp_path):
    items = datasets.scenes15(unpacked / "15scenes")
    items = items.take(np.arange(0, len(items), 3))
    textons = Textons(100, random_state=0).fit([items.path(i) for i in range(0, len(items), 10)])
    collection = cg.Collection.from_images(items, [textons], (2, 2))
    model = cg.CountingGrid((32, 32), (8, 8), (2, 2), **QUICK).fit(collection.counts)
    item_map = ItemMap(model, collection, "Scenes in textons")
    assert shoot(chromium, item_map, "scenes", tmp_path) > 5000
    near = lambda page: page.evaluate("location.hash = '#row=10&column=10&scale=90'")  # noqa: E731
    assert shoot(chromium, item_map, "scenes_near", tmp_path, near) > 1000


def test_news_as_a_map_of_words(chromium, data, tmp_path):
    documents = datasets.ap(data / "text" / "ap.txt")
    words = Words(min_df=10, max_df=0.2, stop_words="english", min_length=3)
    collection = cg.Collection.from_texts(documents, words)
    model = cg.CountingGrid((24, 24), (5, 5), **QUICK).fit(collection.counts)

    def search(page):
        page.fill("#query", "soviet troops germany")
        page.keyboard.press("Enter")

    assert shoot(chromium, ItemMap(model, collection, "AP news"), "ap", tmp_path, search) > 500


def test_newsgroups_as_a_map_of_words(chromium, data, tmp_path):
    collection = datasets.newsgroups(data / "text")
    n_documents = np.asarray((collection.counts > 0).sum(axis=0)).ravel()
    names = collection.vocabulary.names
    is_plain = np.array([len(name) > 2 and name not in ENGLISH_STOP_WORDS for name in names])
    kept = is_plain & (n_documents >= 20) & (n_documents < 0.1 * len(collection))
    collection = collection.take_features(kept)
    model = cg.CountingGrid((32, 32), (5, 5), **QUICK).fit(collection.counts)
    assert shoot(chromium, ItemMap(model, collection, "20 Newsgroups"), "newsgroups", tmp_path) > 500


def test_a_walk_as_a_path(chromium, data, unpacked, tmp_path):
    items = datasets.ietower(unpacked, data / "ietower.csv")
    sift, book = DenseSIFT(step=16), Codebook(200, random_state=0)
    book.fit(sift.transform([items.path(i) for i in range(0, len(items), 5)]))
    collection = cg.Collection.from_images(items, [sift, book], (2, 2))
    model = cg.CountingGrid((32, 32), (8, 8), (2, 2), **QUICK).fit(collection.counts)

    def play(page):
        page.select_option("#sequence", index=5)
        page.locator("#moment").focus()
        page.keyboard.press("End")

    assert shoot(chromium, ItemMap(model, collection, "Through the tower"), "walk", tmp_path, play) > 5000
