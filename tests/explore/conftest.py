"""Small collections with a map each: texts, drawn pictures in sequences, and texts that mean harm."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hands import WIDE, settle
from maps import HOSTILE, browsing, draw, item_map_of, saved, texts

import countinggrids as cg
from countinggrids import datasets
from countinggrids.explore import export
from countinggrids.features import Codebook, DenseSIFT, Words
from countinggrids.features.text import Document


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explore")


@pytest.fixture(scope="session")
def stories(folder):
    """Texts: files of the collection and of its model."""
    collection = cg.Collection.from_texts(texts(), Words(min_df=2))
    return saved(folder / "stories", collection, cg.CountingGrid((10, 12), (3, 4), random_state=0))


@pytest.fixture(scope="session")
def walks(folder):
    """Pictures in three walks: files of the collection and of its model."""
    rng = np.random.default_rng(0)
    for number, kind in enumerate(("hills", "sea", "houses")):
        for frame in range(16):
            path = folder / "frames" / f"walk {number}" / f"frame_{frame:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(kind, 3 * frame, rng).save(path)
    items = datasets.frames(folder / "frames")
    labels = np.repeat(["hills", "sea", "houses"], 16)
    items = items.with_columns(label=labels, split=["train", "test"] * 24)
    sift, book = DenseSIFT(patch=16, step=8), Codebook(24, random_state=0)
    book.fit(sift.transform([items.path(i) for i in range(len(items))]))
    collection = cg.Collection.from_images(items, [sift, book], (2, 2))
    return saved(folder / "walks", collection, cg.CountingGrid((12, 12), (4, 4), (2, 2), random_state=0))


@pytest.fixture(scope="session")
def harmful(folder):
    """Texts whose titles, labels, links and words mean harm."""
    plain = list(texts(24))
    bad = [
        Document(f"{text} tea cup milk", text, "javascript:window.harmed=4", text, path=text, time=float(i))
        for i, text in enumerate(HOSTILE)
    ]
    words = Words(tokenizer="whitespace", lowercase=False, min_length=1, keep=("html", "numbers"))
    collection = cg.Collection.from_texts([*plain, *bad], words)
    return saved(folder / "harmful", collection, cg.CountingGrid((8, 8), (3, 3), random_state=0))


@pytest.fixture(scope="session")
def ring(folder):
    """The same texts on a grid of one axis."""
    collection = cg.Collection.from_texts(texts(), Words(min_df=2))
    return saved(folder / "ring", collection, cg.CountingGrid((24,), (4,), random_state=0))


@pytest.fixture(scope="session")
def story_map(stories):
    return item_map_of(stories)


@pytest.fixture(scope="session")
def walk_map(walks):
    return item_map_of(walks)


@pytest.fixture(scope="session")
def chromium():
    """Where a browser is, or a skip."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs a browser: apt-get install chromium brings one")
    return Path(found)


@pytest.fixture(scope="module")
def browser(chromium):
    """A real browser. It ends with its module, for asyncio cannot be used beside it."""
    reason = "needs playwright: pip install playwright brings it"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(chromium), args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def addresses(stories, walks, harmful, ring, folder):
    """The three maps, each served and as a file."""
    with browsing(stories) as first, browsing(walks) as second, browsing(harmful) as third:
        ports = {"stories": first, "walks": second, "harmful": third}
        found = {name: f"http://127.0.0.1:{port}/" for name, port in ports.items()}
        for name, files in (("stories", stories), ("walks", walks), ("harmful", harmful), ("ring", ring)):
            export(item_map_of(files), folder / f"{name}.html")
            found[f"{name}.html"] = (folder / f"{name}.html").as_uri()
        yield found


@pytest.fixture
def visit(browser, addresses):
    """Open a map; at the end nothing may have gone wrong in the page, and nothing may have been asked of strangers."""
    pages, problems = [], []

    def visit(name, hash="", size=WIDE, **options):
        page = browser.new_context(viewport=size, **options).new_page()
        page.on(
            "console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        own = addresses[name].rpartition("/")[0]
        page.on(
            "request",
            lambda request: None if request.url.startswith((own, "data:", "blob:")) else problems.append(request.url),
        )
        page.goto(addresses[name] + hash)
        page.wait_for_selector("body[data-ready=true]")
        settle(page)
        pages.append(page)
        return page

    yield visit
    for page in pages:
        page.context.close()
    expected = re.compile("Failed to load resource: the server responded with a status of 4")
    assert [problem for problem in problems if not expected.match(problem)] == []
