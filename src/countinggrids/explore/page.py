"""The page: one HTML file that holds its script, its style and, when exported, all its data."""

import base64
import gzip
import html
import json
import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from itertools import chain
from typing import Any

from countinggrids import files
from countinggrids.explore import pictures
from countinggrids.explore.atlas import Atlas
from countinggrids.explore.chart import chart
from countinggrids.explore.lexicon import MOST_BYTES, lexicon
from countinggrids.explore.views import is_text

SCRIPTS = ("torus", "text", "source", "layout", "draw", "map", "panel", "play", "controls", "main")
"""Parts of the script, in the order in which they are put together."""
LARGEST = 25.0
"""Megabytes an exported page may have."""
SIDES = (96, 64, 48, 32, 24)
"""Sizes of thumbnails that are tried, until the page is small enough."""

Watch = Callable[[int, int], None]
Pack = dict[str, Any]


def served() -> tuple[str, str]:
    """Give the page that asks a server for its data, and the policy it is sent with."""
    return _page("countinggrids", ""), policy("connect-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'")


def policy(more: str) -> str:
    """Give the Content-Security-Policy: our own script and style, nothing else."""
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}'; {more}; "
        "base-uri 'none'; form-action 'none'"
    )


def export(atlas: Atlas, path: str | os.PathLike[str], largest: float = LARGEST, watch: Watch | None = None) -> int:
    """Write a page that holds everything and opens from disk; give its size in bytes.

    Parameters
    ----------
    atlas : what to show
    path : where to write; an existing file is replaced whole or not at all
    largest : megabytes it may have; thumbnails shrink and long texts are cut until it fits
    watch : called with the number of thumbnail sheets done and their total
    """
    text = standalone(atlas, largest, watch)
    files.write_text(path, text)
    return len(text.encode())


def standalone(atlas: Atlas, largest: float = LARGEST, watch: Watch | None = None) -> str:
    """Make the page that holds everything, as richly as fits."""
    if not largest > 0:
        raise ValueError(f"the page may have {largest} MB; wanted more than 0; give for instance 25")
    room = int(largest * 1e6)
    pack = _essentials(atlas, room)
    text = _filled(atlas, pack)
    left = room - len(text.encode())
    if left < 0:
        raise ValueError(
            f"the page would have {len(text) / 1e6:.2f} MB without any text or thumbnail; wanted at most {largest:g}; "
            "allow more, or take fewer items"
        )
    for richer in chain(_with_sheets(atlas, pack, left, watch), _with_texts(atlas, pack)):
        fuller = _filled(atlas, richer)
        if len(fuller.encode()) <= room:
            return fuller
    if pictures.has_thumbnails(atlas) or "text" in atlas.collection.items:
        warnings.warn(f"no text and no thumbnail fits into {largest:g} MB; allow more", UserWarning, stacklevel=2)
    return text


def _essentials(atlas: Atlas, room: int) -> Pack:
    """Give what a page cannot do without."""
    facts = chart(atlas) | {"sheets": None}
    pack: Pack = {"chart": facts, "images": {}, "known": {}}
    if facts["picture"]:
        pack["images"]["picture.jpg"] = _base64(pictures.painted(atlas))
    if facts["patch"]:
        pack["images"]["patches.png"] = _base64(pictures.patches(atlas))
    if is_text(atlas):
        words, levels = lexicon(atlas, min(MOST_BYTES, room // 5))
        pack["lexicon"] = words | {"levels": _base64(levels)}
    items = atlas.collection.items
    pack["known"] = {name: items[name].tolist() for name in ("link", "path") if name in items}
    return pack


def _with_sheets(atlas: Atlas, pack: Pack, room: int, watch: Watch | None) -> Iterator[Pack]:
    """Add thumbnails, large ones first; the first sheet tells how much all will take."""
    for side in SIDES if pictures.has_thumbnails(atlas) else ():
        table = pictures.sheet_table(atlas, side)
        assert table is not None
        if len(pictures.sheet(atlas, 0, side)) * 4 / 3 * table["n"] * 0.8 > room:
            continue
        sheets = {}
        for number in range(table["n"]):
            sheets[f"sheet/{number}.jpg"] = _base64(pictures.sheet(atlas, number, side))
            if watch is not None:
                watch(number + 1, table["n"])
        yield pack | {"chart": pack["chart"] | {"sheets": table}, "images": pack["images"] | sheets}


def _with_texts(atlas: Atlas, pack: Pack) -> Iterator[Pack]:
    """Add the texts, whole ones first, then cut to shorter and shorter lengths."""
    texts = atlas.collection.items["text"].tolist() if "text" in atlas.collection.items else []
    longest = max(map(len, texts), default=0)
    while longest > 0:
        cut = [text if len(text) <= longest else text[:longest] + " …" for text in texts]
        yield pack | {"known": pack["known"] | {"text": cut}}
        longest = longest * 2 // 3


def _filled(atlas: Atlas, pack: Pack) -> str:
    """Put the data into the page; images are compressed already and stand beside what is packed."""
    images = json.dumps(pack["images"])
    data = f'<script type="text/plain" id="pack">{_packed(pack)}</script>\n'
    data += f'<script type="application/json" id="images">{images}</script>\n'
    meta = html.escape(policy("img-src data: blob:"), quote=True)
    head = f'<meta http-equiv="Content-Security-Policy" content="{meta}">\n'
    return _page(atlas.title, data, head)


def _packed(pack: Pack) -> str:
    plain = json.dumps({name: value for name, value in pack.items() if name != "images"}, separators=(",", ":"))
    return _base64(gzip.compress(plain.encode(), mtime=0))


class Page:
    """A page to be shown in a notebook, where its last value is displayed.

    Parameters
    ----------
    atlas : what to show
    height : pixels
    largest : megabytes, as in `export`
    """

    def __init__(self, atlas: Atlas, height: int = 640, largest: float = LARGEST):
        self.text = standalone(atlas, largest)
        self.height = height

    def _repr_html_(self) -> str:
        source = html.escape(self.text, quote=True)
        style = f"width:100%;height:{self.height}px;border:1px solid #8884;border-radius:6px"
        return f'<iframe srcdoc="{source}" style="{style}" sandbox="allow-scripts allow-popups allow-forms"></iframe>'


def _page(title: str, data: str, head: str = "") -> str:
    parts = {"title": html.escape(title), "head": head, "style": _style(), "data": data, "script": _script()}
    # Every part is put in once; what it holds is never looked at again.
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
