"""From an address to its response; used by the server and by `browse --get`."""

import json
import re
from functools import cached_property
from typing import Any, NamedTuple

from countinggrids.explore import groups, page, pictures, region_view, views
from countinggrids.explore.item_map import ItemMap
from countinggrids.explore.map_view import map_view
from countinggrids.features.image_files import read_bytes
from countinggrids.features.stream import BadItemError

LARGEST_IMAGE, LARGEST_TEXT = 20_000_000, 1_000_000
"""Bytes of an uploaded image or text."""
LARGEST_SIDE, MOST_PLACES = 2048, 512
"""Pixels, and places of features, along the longer side of an uploaded image; larger ones are downsampled."""
LONGEST_QUERY = 2_000
LARGEST_RADIUS = 8


class Answer(NamedTuple):
    """The response to a request.

    Attributes
    ----------
    status : int
        HTTP status.
    kind : str
        Content type.
    body : bytes
        Content.
    policy : str
        Content-Security-Policy.
    """

    status: int
    kind: str
    body: bytes
    policy: str = "default-src 'none'"


class Routes:
    """Answers requests about a map; costly responses are cached.

    Parameters
    ----------
    item_map : ItemMap
        The map.
    """

    def __init__(self, item_map: ItemMap):
        self.item_map = item_map
        self._sheets: dict[int, bytes] = {}

    def get(self, path: str, query: dict[str, str]) -> Answer:
        """Return the response to a GET request; errors are JSON with a status from 400 on.

        Parameters
        ----------
        path : str
            Path of the address.
        query : dict of str to str
            Query of the address.

        Returns
        -------
        answer : Answer
            The response.
        """
        try:
            return self._found(path, query)
        except LookupError as error:
            return problem(404, str(error.args[0]))
        except (ValueError, ImportError) as error:
            return problem(400, str(error))

    def locate(self, kind: str, body: bytes) -> Answer:
        """Return where an uploaded image or text would lie.

        Parameters
        ----------
        kind : str
            Content type.
        body : bytes
            Content.

        Returns
        -------
        answer : Answer
            The response.
        """
        is_image = kind.startswith("image/")
        if not is_image and not kind.startswith("text/plain"):
            return problem(415, f"the content is {kind!r}; expected image/... or text/plain.")
        largest = LARGEST_IMAGE if is_image else LARGEST_TEXT
        if len(body) > largest:
            return problem(413, f"the content has {len(body)} bytes; expected at most {largest}.")
        if is_image == views.is_text(self.item_map):
            expected = "a text" if views.is_text(self.item_map) else "an image"
            return problem(415, f"the content is {kind!r}; expected {expected}, as in this collection.")
        try:
            source = read_bytes(body, max_side=self._side()) if is_image else body.decode("utf-8", "replace")
            return as_json(views.locate(self.item_map, source))
        except (BadItemError, ValueError, ImportError) as error:
            return problem(422, str(error))

    def post(self, path: str, body: bytes) -> Answer:
        """Return the response to a POST request with the numbers of items, as JSON: {"items": [...]} or {"a", "b"}.

        Parameters
        ----------
        path : str
            /selection.json or /compare.json.
        body : bytes
            The content.

        Returns
        -------
        answer : Answer
            The response.
        """
        try:
            given = json.loads(body)
            if not isinstance(given, dict):
                raise ValueError('the content must be a JSON object; use for instance {"items": [0, 1]}.')
            if path == "/selection.json":
                return as_json(groups.selection(self.item_map, given.get("items", [])))
            return as_json(groups.compare(self.item_map, given.get("a", []), given.get("b")))
        except (ValueError, RecursionError) as error:
            return problem(400, str(error))

    def _side(self) -> int:
        """Return the pixels along an image's longer side that its features are taken from: what memory allows."""
        parameters = self.item_map.collection.steps[0].get_params() if self.item_map.collection.steps else {}
        own, step = parameters.get("max_side") or LARGEST_SIDE, parameters.get("step", 1)
        return min(own, LARGEST_SIDE, MOST_PLACES * step)

    def _found(self, path: str, query: dict[str, str]) -> Answer:
        if path in ("/", "/index.html"):
            text, policy = page.served()
            return Answer(200, "text/html; charset=utf-8", text.encode(), policy)
        if path == "/map.json":
            return Answer(200, "application/json", self.map_view)
        if path == "/index.json":
            return as_json(views.index(self.item_map))
        if path == "/search.json":
            return as_json(views.search(self.item_map, _query(query), query.get("all") == "1"))
        if path == "/snippets.json":
            return as_json(views.snippets(self.item_map, _query(query), _numbers(query)))
        if path == "/regions.json":
            return as_json(region_view.regions(self.item_map))
        if path == "/selection.json":
            return as_json(groups.selection(self.item_map, query.get("items", "")))
        if path == "/compare.json":
            return as_json(groups.compare(self.item_map, query.get("a", ""), query.get("b"), _permutations(query)))
        if path == "/means.json":
            return as_json(groups.means(self.item_map, query.get("column", "")))
        if found := re.fullmatch(r"/region/(\d{1,6})\.json", path, re.ASCII):
            return as_json(region_view.region(self.item_map, int(found[1])))
        if path == "/picture.jpg":
            return Answer(200, "image/jpeg", self.painted)
        if path == "/patches.png":
            return Answer(200, "image/png", pictures.patches(self.item_map))
        if found := re.fullmatch(r"/cell/(\d{1,6})/(\d{1,6})\.json", path, re.ASCII):
            return as_json(views.cell(self.item_map, int(found[1]), int(found[2]), _radius(query)))
        if found := re.fullmatch(r"/item/(\d{1,9})\.json", path, re.ASCII):
            return as_json(views.item(self.item_map, int(found[1])))
        if found := re.fullmatch(r"/item/(\d{1,9})\.jpg", path, re.ASCII):
            return Answer(200, "image/jpeg", pictures.full(self.item_map, int(found[1])))
        if found := re.fullmatch(r"/sheet/(\d{1,6})\.jpg", path, re.ASCII):
            return Answer(200, "image/jpeg", self._sheet(int(found[1])))
        raise LookupError(f"path={path[:200]!r} does not exist; expected /, /index.json or a view that it lists.")

    @cached_property
    def map_view(self) -> bytes:
        """The data of the map, encoded once."""
        can_drop = bool(self.item_map.collection.steps) or views.is_text(self.item_map)
        return json.dumps(map_view(self.item_map) | {"can_drop": can_drop}, separators=(",", ":")).encode()

    @cached_property
    def painted(self) -> bytes:
        """The painted grid, encoded once."""
        if not pictures.has_picture(self.item_map):
            raise LookupError("the grid has no picture; expected features with colors or patches.")
        return pictures.painted(self.item_map)

    def _sheet(self, number: int) -> bytes:
        if number not in self._sheets:
            self._sheets[number] = pictures.sheet(self.item_map, number)
        return self._sheets[number]


def as_json(view: dict[str, Any]) -> Answer:
    """Return a view as a response."""
    return Answer(200, "application/json", json.dumps(view).encode())


def problem(status: int, message: str) -> Answer:
    """Return an error as a response."""
    return Answer(status, "application/json", json.dumps({"error": message}).encode())


def _query(query: dict[str, str]) -> str:
    text = query.get("q", "")
    if not text.strip() or len(text) > LONGEST_QUERY:
        raise ValueError(
            f"q has {len(text)} characters; expected 1 to {LONGEST_QUERY}; use for instance /search.json?q=tea."
        )
    return text


def _numbers(query: dict[str, str]) -> list[int]:
    text = query.get("items", "")
    if not re.fullmatch(r"\d{1,9}(,\d{1,9}){0,99}", text, re.ASCII):
        raise ValueError(f"items={text[:20]!r} must be up to 100 numbers of items; use for instance items=3,17.")
    return [int(number) for number in text.split(",")]


def _permutations(query: dict[str, str]) -> int:
    text = query.get("permutations", str(groups.N_PERMUTATIONS))
    if not re.fullmatch(r"\d{1,4}", text, re.ASCII):
        raise ValueError(f"permutations={text[:20]!r} must be from 0 to {groups.MOST_PERMUTATIONS}.")
    return int(text)


def _radius(query: dict[str, str]) -> int:
    text = query.get("radius", "1")
    if not re.fullmatch(r"\d", text, re.ASCII) or int(text) > LARGEST_RADIUS:
        raise ValueError(f"radius={text[:20]!r} must be from 0 to {LARGEST_RADIUS}.")
    return int(text)
