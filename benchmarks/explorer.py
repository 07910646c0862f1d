"""The explorer in a real browser: time to the first view, time of a frame while panning, size of an exported page.

python benchmarks/explorer.py                          texts and drawn pictures on 64x64 cells, and 100,000 texts
COUNTINGGRIDS_DATA=... python benchmarks/explorer.py   and the 4485 images of 15-Scenes as an exported page
python benchmarks/explorer.py --only many --visits 1   the 100,000 texts only, with one visit of the browser each

Targets: a first view within 2 s (3 s for 100,000 items), a frame within 33 ms at the median, a page of at most 25 MB.
Needs Chromium and playwright.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import countinggrids as cg
from common import table, unpacked
from countinggrids import datasets
from countinggrids.data.items import Items
from countinggrids.explore import ItemMap, export
from countinggrids.features import Codebook, DenseSIFT, Vocabulary, Words
from countinggrids.features.text import Document

GRID, WINDOW, N_ITEMS, N_MANY = (64, 64), (8, 8), 10_000, 100_000
MAPS = ("texts", "pictures", "many", "scenes")
BUDGET = 25
"""Megabytes of an exported page."""
PAN = """(n) => new Promise((done) => {
    const map = document.getElementById("map"), times = [];
    const at = (x, kind) => map.dispatchEvent(new PointerEvent(kind, { pointerId: 1, clientX: x, clientY: 300 }));
    map.setPointerCapture = () => {};
    at(300, "pointerdown");
    let last = performance.now(), x = 300;
    const step = () => {
        const now = performance.now();
        times.push(now - last);
        last = now;
        if (times.length > n) { at(x, "pointerup"); done(times.slice(1)); return; }
        x += 7;
        at(x, "pointermove");
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


def texts_of_regions(rng, n_items=N_ITEMS):
    """Make texts whose words lie around a place of the torus each, with a grid that fits them."""
    n_words = 5000
    homes = rng.uniform(0, 64, (n_words, 2))
    names = [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "ou", "ai") for c in range(60)][
        :n_words
    ]
    pi = np.full((*GRID, n_words), 1e-4, np.float32)
    rows, columns = np.indices(GRID)
    for word, (row, column) in enumerate(homes):
        far = sum(np.minimum(abs(at - home), 64 - abs(at - home)) ** 2 for at, home in ((rows, row), (columns, column)))
        pi[..., word] += np.exp(-far / 18)
    pi /= pi.sum(-1, keepdims=True)
    near = [nearest_words(homes, cell) for cell in np.ndindex(*GRID)]
    middles = rng.integers(0, 64, (n_items, 2))
    documents = []
    for number, (row, column) in enumerate(middles):
        label = f"topic {row // 16 * 4 + column // 16}"
        words = near[row * 64 + column][rng.integers(0, 60, 80)]
        documents.append(Document(" ".join(names[i] for i in words), f"text {number}", label=label))
    collection = cg.Collection.from_texts(documents, Words())
    order = [names.index(name) for name in collection.vocabulary.names]
    return collection, pi[..., order]


def nearest_words(homes, place):
    """Return the words whose homes on the torus are nearest to a place."""
    away = np.abs(homes - place)
    return np.argsort((np.minimum(away, 64 - away) ** 2).sum(axis=1))[:60]


def drawn_pictures(rng, folder):
    """Draw small pictures of one color and a stripe each, with a grid of colors that fits them."""
    palette = (np.stack(np.meshgrid(*[np.linspace(0, 255, 5)] * 3), -1).reshape(-1, 3)).round().astype(np.uint8)
    rows, columns = np.indices(GRID)
    angle = 2 * np.pi / 64
    field = np.stack(
        [np.sin(rows * angle), np.cos(rows * angle) * np.sin(columns * angle), np.cos(columns * angle)], -1
    )
    far = ((field[..., None, :] * 110 + 128 - palette) ** 2).sum(-1)
    pi = np.exp(-far / 3000).astype(np.float32) + 1e-5
    pi /= pi.sum(-1, keepdims=True)
    corners = rng.integers(0, 64, (N_ITEMS, 2))
    maps = []
    for number, (row, column) in enumerate(corners):
        cells = pi[(row + np.arange(8)) % 64][:, (column + np.arange(8)) % 64].mean((0, 1))
        words = rng.choice(len(palette), (24, 32), p=cells / cells.sum())
        Image.fromarray(palette[words].repeat(4, 0).repeat(4, 1)).save(folder / f"{number:05}.jpg", quality=80)
        maps.append(words)
    items = Items({"path": [f"{i:05}.jpg" for i in range(N_ITEMS)], "height": [96] * N_ITEMS, "width": [128] * N_ITEMS,
                   "label": [f"region {r // 16 * 4 + c // 16}" for r, c in corners]}, folder)  # fmt: skip
    return cg.Collection(cg.bag(maps, (1, 1), len(palette)), Vocabulary.of_colors(palette), items), pi


def model_of(collection, pi):
    """Return a model with this grid; training is not measured here."""
    model = cg.CountingGrid(GRID, WINDOW, init=pi, max_iter=2, anneal=None, tol=1e9, location_prior="uniform")
    return model.fit(collection.counts)


def measured(browser, address, visits):
    """Return seconds to the first view, and milliseconds per frame at the median and the 95th percentile."""
    first, frames = [], []
    for _ in range(visits):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_selector("body[data-ready=true]")
        first.append(page.evaluate("performance.getEntriesByName('ready')[0].startTime") / 1000)
        page.wait_for_timeout(3000)
        for _ in range(2):
            frames.append(page.evaluate(PAN, 60))
            page.mouse.move(500, 400)
            page.mouse.wheel(0, -500)
            page.wait_for_timeout(1500)
        page.close()
    best = min(frames[::2], key=np.median), min(frames[1::2], key=np.median)
    return min(first), *(f"{np.median(each):.0f} ({np.percentile(each, 95):.0f})" for each in best)


def rows_of(browser, folder, wanted, visits):
    """Yield the rows of the table for the maps that are wanted."""
    rng = np.random.default_rng(0)
    makers = {
        "texts": lambda: texts_of_regions(rng),
        "pictures": lambda: drawn_pictures(rng, folder),
        "many": lambda: texts_of_regions(rng, N_MANY),
    }
    for name, make in makers.items():
        if name in wanted:
            yield from drawn(browser, folder, name, *make(), visits)
    if "scenes" in wanted and os.environ.get("COUNTINGGRIDS_DATA"):
        with unpacked("15scenes.tar") as root:
            yield scenes(browser, folder, root, visits)


def drawn(browser, folder, name, collection, pi, visits):
    """Yield the rows of a map: exported, if a page may be that large, and served."""
    model, title = model_of(collection, pi), f"{len(collection):,} {'texts' if name == 'many' else name}"
    model.save(folder / f"{name}.model")
    collection.save(folder / f"{name}.cg")
    page = folder / f"{name}.html"
    try:
        size = f"{export(ItemMap(model, collection), page, BUDGET) / 1e6:.1f} MB"
        yield f"{title}, exported", *cells_of(measured(browser, page.as_uri(), visits)), size
    except ValueError as error:
        yield f"{title}, exported", "", "", "", f"refused: {error}"
    command = [sys.executable, "-m", "countinggrids.cli", "browse", folder / f"{name}.model", folder / f"{name}.cg"]
    with subprocess.Popen([*map(str, command), "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        yield f"{title}, served", *cells_of(measured(browser, server.stdout.readline().split()[0], visits)), ""
        server.send_signal(2)


def scenes(browser, folder, root, visits):
    """Export the 15-Scenes set with a quickly fitted grid; only the page is measured."""
    items = datasets.scenes15(root / "15scenes")
    sift, book = DenseSIFT(step=16), Codebook(200, random_state=0)
    paths = [items.path(i) for i in range(len(items))]
    book.fit(sift.transform(paths[::10]))
    collection = cg.Collection.from_images(items, [sift, book])
    model = cg.CountingGrid((32, 32), (8, 8), anneal=(0.05, 1.2, 1.0), max_iter=60, tol=1e-3, random_state=0)
    item_map = ItemMap(model.fit(collection.counts), collection)
    size = export(item_map, folder / "scenes.html")
    return (
        f"{len(items)} scenes, exported",
        *cells_of(measured(browser, (folder / "scenes.html").as_uri(), visits)),
        f"{size / 1e6:.1f} MB",
    )


def cells_of(figures):
    first, far, near = figures
    return f"{first:.2f} s", far, near


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=MAPS, choices=MAPS, help="the maps that are drawn")
    parser.add_argument("--visits", type=int, default=3, help="visits of the browser, the best of which counts")
    wanted = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("no browser: apt-get install chromium brings one")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=options)
        heads = ("map", "first view", "frame, whole map: ms (95%)", "frame, zoomed in", "size")
        rows = []
        for row in rows_of(browser, Path(folder), wanted.only, wanted.visits):
            print("  ".join(row), flush=True)
            rows.append(row)
        table("The explorer", heads, rows)
        browser.close()


if __name__ == "__main__":
    main()
