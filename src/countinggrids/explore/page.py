"""The page: one HTML file that includes its script, its style and, when exported, all its data."""

import base64
import gzip
import html
import json
import os
import warnings
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from itertools import chain
from typing import Any

from countinggrids.data import container
from countinggrids.explore import counts_index, pictures, search_index
from countinggrids.explore.item_map import ItemMap
from countinggrids.explore.map_view import map_view
from countinggrids.explore.views import is_text
from countinggrids.explore.word_index import MOST_BYTES, word_index
from countinggrids.features.stream import Progress

SCRIPTS = (
    *("torus", "text", "colors", "tokens", "counts", "search", "regions", "source", "borders", "land", "layout"),
    *("names", "draw", "map", "periods", "panel", "contents", "lasso", "group", "compare", "play", "filters"),
    *("controls", "address", "host", "main"),
)
"""Parts of the script, in the order in which they are concatenated."""
LARGEST = 25.0
"""Default limit for the size of an exported page, in megabytes."""
SIDES = (96, 64, 48, 32, 24)
"""Sizes of thumbnails, tried in order until the page is small enough."""

INDEX_FRACTION = 5
"""The full-text index takes at most one part in so many of an exported page."""

Pack = dict[str, Any]


def served() -> tuple[str, str]:
    """Return the page that fetches its data from a server, and its Content-Security-Policy."""
    return _page("countinggrids", ""), policy("connect-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'")


def policy(more: str) -> str:
    """Return a Content-Security-Policy that allows the script and the style of the page, and what is given."""
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}'; {more}; "
        "base-uri 'none'; form-action 'none'"
    )


def export(
    item_map: ItemMap, path: str | os.PathLike[str], largest: float = LARGEST, callback: Progress | None = None
) -> int:
    """Write a page that includes all its data and opens from disk.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    path : path-like
        File to write. An existing file is replaced whole or not at all.
    largest : float, default=25.0
        Largest size in megabytes. Thumbnails are made smaller, and long texts are cut, until the page fits.
    callback : callable, default=None
        Called with the number of thumbnail sheets done and their total.

    Returns
    -------
    size : int
        Size of the page in bytes.
    """
    text = standalone(item_map, largest, callback)
    if reasons := pictures.left_out(item_map):
        message = f"{len(reasons)} of {len(item_map.collection)} images left out, the first: {reasons[0]}"
        warnings.warn(message, UserWarning, stacklevel=2)
    container.write_text(path, text)
    return len(text.encode())


def standalone(item_map: ItemMap, largest: float = LARGEST, callback: Progress | None = None) -> str:
    """Return a page that includes all its data, with the largest thumbnails and longest texts that fit."""
    if not largest > 0:
        raise ValueError(f"largest={largest} must be a number of megabytes above 0; use for instance largest=25.")
    room = int(largest * 1e6)
    pack = _essentials(item_map, room)
    text = _filled(item_map, pack)
    left = room - len(text.encode())
    if left < 0:
        raise ValueError(
            f"largest={largest:g} is less than the {len(text) / 1e6:.2f} MB of the page without any text or "
            "thumbnail; use a larger limit, or fewer items."
        )
    for richer in chain(_with_sheets(item_map, pack, left, callback), _with_texts(item_map, pack)):
        fuller = _filled(item_map, richer)
        if len(fuller.encode()) <= room:
            return fuller
    if pictures.has_thumbnails(item_map) or "text" in item_map.collection.items:
        message = f"no text and no thumbnail fits into largest={largest:g} MB; use a larger limit."
        warnings.warn(message, UserWarning, stacklevel=2)
    return text


def _essentials(item_map: ItemMap, room: int) -> Pack:
    """Return the data without thumbnails and texts."""
    facts = map_view(item_map) | {"sheets": None}
    pack: Pack = {"map": facts, "images": {}, "known": {}}
    if facts["picture"]:
        pack["images"]["picture.jpg"] = _base64(pictures.painted(item_map))
    if facts["patch"]:
        pack["images"]["patches.png"] = _base64(pictures.patches(item_map))
    index, kept = search_index.encode(item_map.text_search.terms, item_map.text_search.counts, room // INDEX_FRACTION)
    n_left_out = len(item_map.text_search.terms) - len(kept)
    pack["images"]["search.bin"], pack["search"] = _base64(index), {"n_left_out": n_left_out}
    if counts := counts_index.encode(item_map, room // INDEX_FRACTION):
        pack["images"]["counts.bin"], pack["counts"] = _base64(counts.content), counts.facts
        if regions := counts_index.encode_regions(item_map, counts, room // INDEX_FRACTION):
            pack["images"]["word_regions.bin"] = _base64(regions)
    if is_text(item_map):
        words, levels = word_index(item_map, min(MOST_BYTES, room // 5))
        pack["word_index"] = words | {"levels": _base64(levels)}
    items = item_map.collection.items
    pack["known"] = {name: items[name].tolist() for name in ("link", "path") if name in items}
    return pack


def _with_sheets(item_map: ItemMap, pack: Pack, room: int, callback: Progress | None) -> Iterator[Pack]:
    """Add thumbnails, large ones first; the size of all sheets is estimated from the first."""
    for side in SIDES if pictures.has_thumbnails(item_map) else ():
        table = pictures.sheet_table(item_map, side)
        assert table is not None
        if len(pictures.sheet(item_map, 0, side)) * 4 / 3 * table["n"] * 0.8 > room:
            continue
        sheets = {}
        for number in range(table["n"]):
            sheets[f"sheet/{number}.jpg"] = _base64(pictures.sheet(item_map, number, side))
            if callback is not None:
                callback(number + 1, table["n"])
        yield pack | {"map": pack["map"] | {"sheets": table}, "images": pack["images"] | sheets}


def _with_texts(item_map: ItemMap, pack: Pack) -> Iterator[Pack]:
    """Add the texts, whole ones first, then cut to smaller and smaller lengths."""
    texts = item_map.collection.items["text"].tolist() if "text" in item_map.collection.items else []
    longest = max(map(len, texts), default=0)
    while longest > 0:
        cut = [text if len(text) <= longest else text[:longest] + " …" for text in texts]
        yield pack | {"known": pack["known"] | {"text": cut}}
        longest = longest * 2 // 3


def _filled(item_map: ItemMap, pack: Pack) -> str:
    """Insert the data into the page; images, compressed already, are not packed with the rest."""
    images = json.dumps(pack["images"])
    data = f'<script type="text/plain" id="pack">{_packed(pack)}</script>\n'
    data += f'<script type="application/json" id="images">{images}</script>\n'
    meta = html.escape(policy("img-src data: blob:"), quote=True)
    head = f'<meta http-equiv="Content-Security-Policy" content="{meta}">\n'
    return _page(item_map.title, data, head)


def _packed(pack: Pack) -> str:
    plain = json.dumps({name: value for name, value in pack.items() if name != "images"}, separators=(",", ":"))
    return _base64(gzip.compress(plain.encode(), mtime=0))


class Page:
    """A map that a notebook displays.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    height : int, default=640
        Height in pixels.
    largest : float, default=25.0
        Largest size in megabytes, as in `export`.

    Attributes
    ----------
    text : str
        The page, as HTML.

    Notes
    -----
    `selection` and `filter` need a way back from the page to Python, which `pip install 'countinggrids[notebook]'`
    brings.

    Examples
    --------
    >>> import countinggrids as cg
    >>> from countinggrids.explore import ItemMap, Page
    >>> from countinggrids.features.text import Document
    >>> collection = cg.Collection.from_texts([Document("tea with milk"), Document("milk and tea")])
    >>> model = cg.CountingGrid((4, 4), (2, 2), random_state=0).fit(collection)
    >>> Page(ItemMap(model, collection, "Tea")).text[:15]
    '<!doctype html>'
    """

    def __init__(self, item_map: ItemMap, height: int = 640, largest: float = LARGEST):
        self.text = standalone(item_map, largest)
        self.height = height

    def __getattr__(self, name: str) -> Any:
        if name in ("selection", "filter", "filters", "items"):
            raise AttributeError(
                f"{name!r} needs anywidget, which is not installed; pip install 'countinggrids[notebook]'."
            )
        raise AttributeError(f"'Page' object has no attribute {name!r}")

    def _repr_html_(self) -> str:
        return in_frame(self.text, self.height)


def in_frame(text: str, height: int) -> str:
    """Return HTML that shows a page in a frame of its own."""
    source = html.escape(text, quote=True)
    style = f"width:100%;height:{height}px;border:1px solid #8884;border-radius:6px"
    rights = "allow-scripts allow-popups allow-forms allow-downloads"
    return f'<iframe srcdoc="{source}" style="{style}" sandbox="{rights}"></iframe>'


def _page(title: str, data: str, head: str = "") -> str:
    parts = {"title": html.escape(title), "head": head, "style": _style(), "data": data, "script": _script()}
    # In one pass, so that braces in the data are never read as a placeholder.
    pieces = _asset("page.html").split("{{")
    found = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        found += [parts[name], rest]
    return "".join(found)


@cache
def _asset(name: str) -> str:
    return resources("countinggrids.explore").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    parts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


def _style() -> str:
    return _asset("page.css")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
