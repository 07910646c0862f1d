"""Small collections with a map each: texts, drawn pictures in sequences, and texts that mean harm."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import countinggrids as cg
from countinggrids import datasets
from countinggrids.explore import Atlas
from countinggrids.features import Codebook, DenseSIFT, Words
from countinggrids.features.text import Document

TOPICS = {
    "kitchen": "tea cup milk spoon kettle sugar bread butter oven plate",
    "station": "train track ticket platform signal whistle guard wagon tunnel bridge",
    "garden": "rose tulip spade hedge bee soil seed rain lawn frog",
    "harbour": "boat sail anchor gull tide rope crane dock salt wave",
}
HOSTILE = (
    "<script>window.harmed = 1</script>",
    "\"><img src=x onerror='window.harmed = 2'>",
    "../../../etc/passwd",
    "\u202egnp.exe\u202c and \u0007 bells \u001b[31m",
    "</script><script>window.harmed = 3</script>",
    "{{script}} {{data}} ]]> <!-- &amp; &#60;",
    "\u05e9\u05dc\u05d5\u05dd \u2067\u0639\u0627\u0644\u0645\u2069 lone \ud800 half",
)


def texts(n=80):
    """Make texts that mix two topics each, with labels, dates and links."""
    rng = np.random.default_rng(0)
    names = list(TOPICS)
    for i in range(n):
        first, second = i % 4, (i + 1) % 4
        words = (
            rng.choice(TOPICS[names[first]].split(), 25).tolist()
            + rng.choice(TOPICS[names[second]].split(), 6).tolist()
        )
        rng.shuffle(words)
        yield Document(
            " ".join(words), f"story {i}", f"https://example.org/{i}", names[first], time=1.6e9 + 86400.0 * i
        )


def draw(kind, shift, rng):
    """Draw a little landscape: hills, a sea or houses, moved sideways by some pixels."""
    image = Image.new("RGB", (96, 64), (150, 200, 240))
    pen = ImageDraw.Draw(image)
    if kind == "hills":
        for k in range(-1, 4):
            left = k * 40 - shift % 40
            pen.polygon([(left, 64), (left + 25, 18 + 4 * (k % 2)), (left + 50, 64)], fill=(60, 120 + 20 * (k % 3), 60))
    elif kind == "sea":
        pen.rectangle([0, 30, 96, 64], fill=(30, 80, 160))
        for k in range(12):
            x, y = (k * 17 - shift) % 96, 34 + (k * 7) % 28
            pen.line([(x, y), (x + 9, y)], fill=(200, 220, 255), width=2)
    else:
        pen.rectangle([0, 52, 96, 64], fill=(90, 90, 90))
        for k in range(-1, 5):
            left = k * 24 - shift % 24
            pen.rectangle([left, 24, left + 18, 52], fill=(170, 90, 70))
            pen.rectangle([left + 5, 30, left + 12, 38], fill=(250, 240, 160))
    pixels = np.asarray(image).astype(int) + rng.integers(-12, 12, (64, 96, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


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
    words = Words(token_pattern=r"\S+", lowercase=False)
    collection = cg.Collection.from_texts([*plain, *bad], words)
    return saved(folder / "harmful", collection, cg.CountingGrid((8, 8), (3, 3), random_state=0))


def saved(stem, collection, model):
    """Fit a model and save both; return where they are."""
    model.fit(collection.counts)
    model.fingerprint_ = collection.fingerprint
    files = stem.with_suffix(".model"), stem.with_suffix(".cg")
    model.save(files[0])
    collection.save(files[1])
    return files


@pytest.fixture(scope="session")
def story_atlas(stories):
    return atlas_of(stories)


@pytest.fixture(scope="session")
def walk_atlas(walks):
    return atlas_of(walks)


def atlas_of(files):
    return Atlas(cg.load(files[0]), cg.Collection.load(files[1]), files[1].stem)


@pytest.fixture(scope="session")
def chromium():
    """Where a browser is, or a skip."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs a browser: apt-get install chromium brings one")
    return Path(found)
