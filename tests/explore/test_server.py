"""The server as strangers meet it: over a real socket, with requests that mean well and ill."""

import contextlib
import json
import re
import subprocess
import sys

import pytest
from maps import ask, browsing, claiming

from countinggrids.explore import page
from countinggrids.explore.routes import LARGEST_TEXT, Routes


@pytest.fixture(scope="module")
def stories_port(stories):
    with browsing(stories) as port:
        yield port


@pytest.fixture(scope="module")
def walks_port(walks):
    with browsing(walks) as port:
        yield port


def test_the_page_and_its_data_are_served(stories_port):
    status, headers, content = ask(stories_port, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<canvas" in content
    found = json.loads(ask(stories_port, "/map.json")[2])
    assert (found["items"]["n"], found["grid"], found["can_drop"]) == (80, [10, 12], True)


@pytest.mark.parametrize("path", ["/index.json", "/cell/3/4.json", "/item/17.json", "/search.json?q=tea", "/map.json"])
def test_every_view_is_the_same_from_the_command(stories_port, stories, path):
    command = [sys.executable, "-m", "countinggrids.cli", "browse", *map(str, stories), "--get", path]
    alone = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(alone) == json.loads(ask(stories_port, path)[2])


def test_images_are_served_decoded_and_encoded_anew(walks_port):
    for path, kind in (
        ("/item/3.jpg", "image/jpeg"),
        ("/sheet/0.jpg", "image/jpeg"),
        ("/picture.jpg", "image/jpeg"),
        ("/patches.png", "image/png"),
    ):
        status, headers, content = ask(walks_port, path)
        assert (status, headers["content-type"], headers["x-content-type-options"]) == (200, kind, "nosniff")
        assert content[:3] in (b"\xff\xd8\xff", b"\x89PN")


@pytest.mark.parametrize("root", ["/", ""])
def test_a_collection_that_claims_everything_gets_nothing(walks, tmp_path, root):
    claiming(walks, tmp_path / "a.cg", root)
    with browsing([walks[0], tmp_path / "a.cg"]) as port:
        assert ask(port, "/item/3.jpg")[0] == ask(port, "/sheet/0.jpg")[0] == 404
        assert json.loads(ask(port, "/map.json")[2])["sheets"] is None
        assert ask(port, "/item/3.json")[0] == 200


def test_a_policy_forbids_all_but_our_own_script(stories_port):
    policy = ask(stories_port, "/")[1]["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:80"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8765"}, 403),
        ({"host": ""}, 403),
        ({"host": "LocalHost:65535"}, 200),
        ({"host": "[::1]"}, 200),
        ({"host": "[0:0:0:0:0:0:0:1]:8765"}, 200),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "[::1].evil.example"}, 403),
        ({"host": "[::1]evil.example"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "[::1]:"}, 403),
        ({"host": "[localhost]"}, 403),
        ({"host": "[127.0.0.1]:80@evil.example"}, 403),
        ({"host": "127.0.0.1:80@evil.example"}, 403),
        ({"host": "127.0.0.1:evil.example"}, 403),
        ({"host": "127.0.0.1:65536"}, 403),
        ({"host": "127.0.0.1:-1"}, 403),
        ({"host": "localhost."}, 403),
        ({"host": "localhost:80:80"}, 403),
        ({"host": "localhost, evil.example"}, 403),
        ({"host": "localhost/evil.example"}, 403),
        ({"host": "0x7f.1"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
    ],
)
def test_requests_by_other_names_and_from_other_pages_are_refused(stories_port, headers, status):
    found, _, content = ask(stories_port, "/map.json", **headers)
    assert found == status
    if status == 403:
        assert re.search("expected|must be", json.loads(content)["error"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/cell/99/0.json", 404),
        ("/cell/-1/0.json", 404),
        ("/cell/1/2.json?radius=99", 400),
        ("/cell/%D9%A3/4.json", 404),
        ("/item/80.json", 404),
        ("/item/99999999999999999999.json", 404),
        ("/item/3.jpg", 404),
        ("/picture.jpg", 404),
        ("/patches.png", 404),
        ("/sheet/0.jpg", 404),
        ("/search.json", 400),
        ("/search.json?q=" + "a" * 3000, 400),
        ("/../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/item/..%2f..%2fetc%2fpasswd", 404),
        ("/static/page.js", 404),
        ("/%00", 404),
    ],
)
def test_malformed_requests_are_answered_as_json(stories_port, path, status):
    found, headers, content = ask(stories_port, path)
    assert (found, headers["content-type"]) == (status, "application/json")
    assert json.loads(content)["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "PATCH", "OPTIONS"])
def test_nothing_is_written(stories_port, method):
    status, _, content = ask(stories_port, "/map.json", method)
    assert status == 405
    assert json.loads(content)["error"]


def test_a_text_that_is_sent_is_located(stories_port):
    status, _, content = ask(stories_port, "/locate.json", "POST", b"train ticket platform", content_type="text/plain")
    assert status == 200
    assert {each["label"] for each in json.loads(content)["items"][:5]} == {"station"}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"zzz qqq", "text/plain", 422),
        (b"", "text/plain", 422),
        (b"\xff\xfe\x00", "text/plain", 422),
        (b"tea", "text/html", 415),
        (b"tea", "", 415),
        (b"\x89PNG", "image/png", 415),
        (b"tea " * (LARGEST_TEXT // 4 + 1), "text/plain", 413),
    ],
)
def test_what_cannot_be_located_is_reported(stories_port, body, kind, status):
    found, _, content = ask(stories_port, "/locate.json", "POST", body, content_type=kind)
    assert found == status
    assert re.search("expected|must be", json.loads(content)["error"])


def test_an_image_that_is_sent_is_located(walks_port, walk_map):
    path = walk_map.collection.items.path(20)
    status, _, content = ask(walks_port, "/locate.json", "POST", path.read_bytes(), content_type="image/png")
    assert status == 200
    assert json.loads(content)["posterior"][0][:2] == walk_map.model.locate(walk_map.collection.counts)[20].tolist()
    assert ask(walks_port, "/locate.json", "POST", b"GIF89a broken", content_type="image/gif")[0] == 422
    assert ask(walks_port, "/locate.json", "POST", b"tea", content_type="text/plain")[0] == 415


def test_too_much_is_cut_off_while_it_arrives(walks_port):
    with contextlib.suppress(ConnectionError):
        status, _, _ = ask(walks_port, "/locate.json", "POST", bytes(21_000_000), content_type="image/png")
        assert status == 413


def test_another_page_cannot_post(stories_port):
    found = ask(stories_port, "/locate.json", "POST", b"tea", content_type="text/plain", origin="http://evil.example")
    assert found[0] == 403


def test_a_taken_port_is_reported(stories_port, stories):
    command = [sys.executable, "-m", "countinggrids.cli", "browse", *map(str, stories), "--port", str(stories_port)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert f"port={stories_port} cannot be listened at; expected a free port of this machine" in result.stderr


def test_an_address_other_than_loopback_is_warned_of_and_takes_numbers(stories):
    with browsing(stories, "--host", "0.0.0.0", "--allow-host", "Maps.Example") as port:
        assert ask(port, "/index.json", host="192.0.2.7:8765")[0] == 200
        assert ask(port, "/index.json", host="maps.example")[0] == 200
        assert ask(port, "/index.json", host="evil.example")[0] == 403


def test_get_tells_what_is_wrong(stories):
    command = [sys.executable, "-m", "countinggrids.cli", "browse", *map(str, stories), "--get"]
    for path, message in (("/cell/99/0.json", "row=99 must be from 0 to 9"), ("/", "must end in .json")):
        result = subprocess.run([*command, path], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr


def test_the_policy_knows_the_script_and_the_style(story_map):
    answer = Routes(story_map).get("/", {})
    script, style = page._script(), page._style()
    assert f"<script>{script}</script>" in answer.body.decode()
    assert f"<style>{style}</style>" in answer.body.decode()
    assert page._hash(script) in answer.policy
    assert page._hash(script) != page._hash(style)
