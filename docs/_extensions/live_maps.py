"""Make the live maps of the site before the pages are read: files that `countinggrids.explore.export` writes."""

import inspect
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.utils.discovery import all_estimators, all_functions

import countinggrids as cg
from countinggrids.data.items import Items
from countinggrids.explore import ItemMap, export
from countinggrids.features import Codebook, DenseSIFT, Vocabulary, Words
from countinggrids.reproduce import station


def prose(docstring: str) -> str:
    """Return a docstring without examples, references, names of parameters and code."""
    text = re.split(r"(?:Examples|References)\n---", docstring)[0]
    lines = [line for line in text.splitlines() if not re.match(r"\S.* : |-+$|\.\. ", line)]
    return re.sub(r"`[^`]*`|:\w+:|\b\w+_\w*\b", " ", "\n".join(lines))


def docstrings(page: Path) -> None:
    """Map the docstrings of scikit-learn, labeled by module."""
    texts = []
    for name, thing in [*all_estimators(), *all_functions()]:
        text = prose(inspect.getdoc(thing) or "")
        texts.append({"text": text, "title": name, "label": thing.__module__.split(".")[1]})
    words = Words(min_df=4, max_df=0.15, stop_words="english", min_length=4)
    collection = cg.Collection.from_texts(texts, words)
    model = cg.CountingGrid((24, 24), (4, 4), random_state=0).fit(collection)
    export(ItemMap(model, collection, "Docstrings of scikit-learn"), page)


def photos(page: Path) -> None:
    """Map overlapping crops of two photos, in visual words."""
    rng = np.random.default_rng(0)
    sift, codebook = DenseSIFT(patch=16, step=8), Codebook(150, random_state=0)
    pictures = {name: load_sample_image(f"{name}.jpg") for name in ("china", "flower")}
    codebook.fit(sift.transform(list(pictures.values())))
    with tempfile.TemporaryDirectory() as folder:
        columns: dict[str, list[str]] = {"path": [], "title": [], "label": []}
        for number in range(240):
            name = ("china", "flower")[number % 2]
            row, column = rng.integers(0, 427 - 144), rng.integers(0, 640 - 144)
            columns["path"].append(f"{number:03}.jpg")
            columns["title"].append(f"{name}, {column} pixels from the left, {row} from the top")
            columns["label"].append(name)
            crop = pictures[name][row : row + 144, column : column + 144]
            Image.fromarray(crop).save(Path(folder) / columns["path"][-1], quality=88)
        collection = cg.Collection.from_images(Items(columns, folder), [sift, codebook], (2, 2))
        model = cg.CountingGrid((40, 40), (10, 10), (2, 2), random_state=0).fit(collection)
        export(ItemMap(model, collection, "Crops of two photos"), page)


def drawings(page: Path) -> None:
    """Map views of drawn train stations, in eight labels; no two stations are the same."""
    rng = np.random.default_rng(0)
    colors = np.array(station.COLORS, np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        maps, names = [], []
        for number in range(150):
            row, column = (rng.integers(0, n - w + 1) for n, w in zip(station.SIZE, station.WINDOW, strict=True))
            maps.append(station.scene(rng)[row : row + station.WINDOW[0], column : column + station.WINDOW[1]])
            names.append(f"{number:03}.png")
            Image.fromarray(colors[maps[-1]]).resize((144, 144), Image.Resampling.NEAREST).save(
                Path(folder) / names[-1]
            )
        items = Items({"path": names, "title": [f"view {number}" for number in range(150)]}, folder)
        counts = cg.bag(maps, (2, 2), len(colors))
        collection = cg.Collection(counts, Vocabulary("labels", station.NAMES, colors), items, (2, 2))
        model = cg.CountingGrid((36, 36), (12, 12), (2, 2), random_state=0).fit(collection)
        export(ItemMap(model, collection, "Views of train stations"), page)


def write(app: Any) -> None:
    """Write the maps that do not exist yet."""
    folder = Path(app.srcdir) / "_generated" / "extra" / "maps"
    folder.mkdir(parents=True, exist_ok=True)
    for make in (docstrings, photos, drawings):
        page = folder / f"{make.__name__}.html"
        if not page.exists():
            make(page)


def setup(app: Any) -> dict[str, bool]:
    """Make the maps before sources are read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
