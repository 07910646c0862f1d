"""From an address to an answer; the server and `browse --get` both ask here."""

import json
import re
from functools import cached_property
from typing import Any, NamedTuple

from countinggrids.explore import page, pictures, views
from countinggrids.explore.atlas import Atlas
from countinggrids.explore.chart import chart
from countinggrids.features.pictures import read_bytes
from countinggrids.features.stream import BadItemError

LARGEST_IMAGE, LARGEST_TEXT = 20_000_000, 1_000_000
"""Bytes of what may be dropped."""
LONGEST_QUERY = 2_000
LARGEST_RADIUS = 8


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    kind: str
    body: bytes
    policy: str = "default-src 'none'"


class Routes:
    """Answers requests about an atlas; costly answers are kept.

    Parameters
    ----------
    atlas : what is asked about
    """

    def __init__(self, atlas: Atlas):
        self.atlas = atlas
        self._sheets: dict[int, bytes] = {}

    def get(self, path: str, query: dict[str, str]) -> Answer:
        """Answer a request; what is wrong with it is said as JSON with a status from 400 on."""
        try:
            return self._found(path, query)
        except LookupError as error:
            return problem(404, str(error.args[0]))
        except ValueError as error:
            return problem(400, str(error))

    def drop(self, kind: str, body: bytes) -> Answer:
        """Tell where an image or a text would fall."""
        is_image = kind.startswith("image/")
        if not is_image and not kind.startswith("text/plain"):
            return problem(415, f"the content is {kind!r}; wanted image/... or text/plain")
        largest = LARGEST_IMAGE if is_image else LARGEST_TEXT
        if len(body) > largest:
            return problem(413, f"the content has {len(body)} bytes; wanted at most {largest}")
        if is_image == views.is_text(self.atlas):
            wanted = "a text" if views.is_text(self.atlas) else "an image"
            return problem(415, f"the content is {kind!r}; wanted {wanted}, as this collection holds")
        try:
            return as_json(views.dropped(self.atlas, read_bytes(body) if is_image else body.decode("utf-8", "replace")))
        except (BadItemError, ValueError) as error:
            return problem(422, str(error))

    def _found(self, path: str, query: dict[str, str]) -> Answer:
        if path in ("/", "/index.html"):
            text, policy = page.served()
            return Answer(200, "text/html; charset=utf-8", text.encode(), policy)
        if path == "/map.json":
            return Answer(200, "application/json", self.chart)
        if path == "/index.json":
            return as_json(views.whole(self.atlas))
        if path == "/search.json":
            return as_json(views.search(self.atlas, _query(query)))
        if path == "/picture.jpg":
            return Answer(200, "image/jpeg", self.painted)
        if path == "/patches.png":
            return Answer(200, "image/png", pictures.patches(self.atlas))
        if found := re.fullmatch(r"/cell/(\d{1,6})/(\d{1,6})\.json", path, re.ASCII):
            return as_json(views.cell(self.atlas, int(found[1]), int(found[2]), _radius(query)))
        if found := re.fullmatch(r"/item/(\d{1,9})\.json", path, re.ASCII):
            return as_json(views.item(self.atlas, int(found[1])))
        if found := re.fullmatch(r"/item/(\d{1,9})\.jpg", path, re.ASCII):
            return Answer(200, "image/jpeg", pictures.full(self.atlas, int(found[1])))
        if found := re.fullmatch(r"/sheet/(\d{1,6})\.jpg", path, re.ASCII):
            return Answer(200, "image/jpeg", self._sheet(int(found[1])))
        raise LookupError(f"there is nothing at {path[:200]!r}; wanted /, /index.json or a view that it names")

    @cached_property
    def chart(self) -> bytes:
        """The map's data, encoded once."""
        can_drop = bool(self.atlas.collection.steps) or views.is_text(self.atlas)
        return json.dumps(chart(self.atlas) | {"can_drop": can_drop}, separators=(",", ":")).encode()

    @cached_property
    def painted(self) -> bytes:
        """The painted grid, encoded once."""
        if not pictures.has_picture(self.atlas):
            raise LookupError("the grid has no picture; wanted features with colours or patches")
        return pictures.painted(self.atlas)

    def _sheet(self, number: int) -> bytes:
        if number not in self._sheets:
            self._sheets[number] = pictures.sheet(self.atlas, number)
        return self._sheets[number]


def as_json(view: dict[str, Any]) -> Answer:
    """Answer with a view."""
    return Answer(200, "application/json", json.dumps(view).encode())


def problem(status: int, message: str) -> Answer:
    """Answer with what is wrong."""
    return Answer(status, "application/json", json.dumps({"error": message}).encode())


def _query(query: dict[str, str]) -> str:
    text = query.get("q", "")
    if not text.strip() or len(text) > LONGEST_QUERY:
        raise ValueError(
            f"q has {len(text)} characters; wanted 1 to {LONGEST_QUERY}; ask for instance /search.json?q=tea"
        )
    return text


def _radius(query: dict[str, str]) -> int:
    text = query.get("radius", "1")
    if not re.fullmatch(r"\d", text, re.ASCII) or int(text) > LARGEST_RADIUS:
        raise ValueError(f"radius is {text[:20]!r}; wanted 0 to {LARGEST_RADIUS}")
    return int(text)
