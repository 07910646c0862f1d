"""The map in a real browser: drawing and moving it, its address, keys, fingers and colors."""

import re

import numpy as np
import pytest
from hands import PHONE, WIDE, box, drag, params, picture, pixels, settle, until, view

from countinggrids.explore import Page


@pytest.mark.parametrize("name", ["stories", "walks", "stories.html", "walks.html"])
def test_the_map_is_drawn(visit, name):
    page = visit(name)
    colors = page.evaluate(
        """() => { const map = document.getElementById("map");
        const pixels = new Uint32Array(map.getContext("2d").getImageData(0, 0, map.width, map.height).data.buffer);
        return new Set(pixels).size; }"""
    )
    assert colors > 100
    assert page.title() == name.removesuffix(".html")
    assert page.locator("#count").inner_text() == ("80" if "stories" in name else "48")


@pytest.mark.parametrize("name", ["stories", "walks.html"])
def test_the_plane_has_no_end_and_one_round_looks_like_the_next(visit, name):
    page = visit(name, "#row=1.00&column=2.00&scale=64.00")
    before = picture(page)
    drag(page, 300, 150)
    row, column, _ = view(page)
    assert picture(page) != before
    assert row > 5  # one has come over the seam, where the rows begin
    grid = (10, 12) if name == "stories" else (12, 12)
    for _ in range(3):
        drag(page, 64 * grid[1] / 3, 0)
        drag(page, 0, -64 * grid[0] / 3)
    assert np.allclose(view(page)[:2], (row, column), atol=0.02)
    drag(page, -300, -150)
    assert picture(page) == before


def test_the_wheel_zooms_about_the_pointer(visit):
    page = visit("stories")
    row, column, scale = view(page)
    frame = box(page)
    page.mouse.move(frame["x"] + 200, frame["y"] + 100)
    page.mouse.wheel(0, -300)
    until(page, f"!location.hash.includes('scale={scale:.2f}')")
    settle(page)
    now = view(page)
    assert now[2] == pytest.approx(2 * scale, rel=0.01)
    off = np.array([100 - frame["height"] / 2, 200 - frame["width"] / 2])
    np.testing.assert_allclose(
        (np.array([row, column]) + off / scale) % (10, 12), (now[:2] + off / now[2]) % (10, 12), atol=0.03
    )
    for _ in range(30):
        page.mouse.wheel(0, 300)
    until(page, f"new URLSearchParams(location.hash.slice(1)).get('scale') <= {scale}")
    assert 0 < view(page)[2] <= scale


def test_more_words_appear_as_one_comes_closer(visit):
    page = visit("stories", "#row=5&column=6&scale=40")
    count = """(scale) => {
        const [drawn, pen] = [new Set(), CanvasRenderingContext2D.prototype];
        const draw = pen.fillText;
        pen.fillText = function (text, ...rest) { drawn.add(text); draw.call(this, text, ...rest); };
        location.hash = `#row=5&column=6&scale=${scale}`;
        return new Promise((done) => setTimeout(() => { pen.fillText = draw; done([...drawn]); }, 500));
    }"""
    far, near = page.evaluate(count, 30), page.evaluate(count, 139)
    names = set(map_names(page))
    assert far
    assert {word for text in far for word in text.split(", ")} <= names
    assert any(text not in names for text in near), "titles appear beside their dots"


def map_names(page):
    return page.evaluate("fetch('map.json').then((answer) => answer.json()).then((data) => data.names)")


def test_the_address_brings_the_view_back(visit):
    page = visit("walks")
    page.uncheck("#legend label:has-text('sea') input")
    page.select_option("#color", "time")
    page.click("#zoom-in")
    page.click("#theme")
    drag(page, 77, -31)
    page.locator("#detail")
    settle(page)
    again = visit("walks", page.evaluate("location.hash"))
    assert params(again) == params(page)
    # The address is rounded, by less than a pixel.
    assert np.abs(pixels(again) - pixels(page)).mean() < 4


@pytest.mark.parametrize(
    "hash", ["#row=abc&scale=-5&item=999&cell=99,1&color=x&range=9", "#%%%&&==", "#item=-1&sequence=none&hide=none"]
)
def test_an_address_that_makes_no_sense_does_no_harm(visit, hash):
    page = visit("walks", hash)
    assert page.locator("#count").inner_text() == "48"
    assert page.locator("#detail h2").first.inner_text() == "Contents"


@pytest.mark.parametrize("hash", ["#range=10,500", "#sequence=walk 1&at=1.5", "#range=900,100&hide=nothing"])
@pytest.mark.parametrize("name", ["stories", "walks"])
def test_an_address_meant_for_another_map_draws_this_one(visit, name, hash):
    page = visit(name, hash)
    assert page.locator("#detail h2").count() == 1
    assert "hide" not in params(page)


def test_an_address_with_a_view_and_a_search_keeps_the_view(visit):
    page = visit("stories", "#row=1.000&column=1.000&scale=60.00&q=train")
    page.wait_for_selector("#detail .items")
    settle(page)
    assert view(page) == (1.0, 1.0, 60.0)


def test_a_grid_of_one_axis_is_a_band(visit):
    page = visit("ring.html")
    rows = (pixels(page)[:, :, :3] != pixels(page)[0, 0, :3]).any(axis=2).mean(axis=1)
    drawn = np.flatnonzero(rows > 0.2)
    assert 0 < len(drawn) < len(rows) / 2
    assert (np.diff(drawn) == 1).all()
    before = picture(page)
    drag(page, 0, 200)
    assert 0 <= view(page)[0] <= 1
    drag(page, 60, 0)
    assert picture(page) != before


def test_focus_stays_in_the_panel_and_goes_back_to_the_map(visit):
    page = visit("stories", "#item=3")
    page.locator("#detail button[data-item]").nth(2).focus()
    page.keyboard.press("Enter")
    settle(page)
    assert page.evaluate("document.activeElement.id") == "detail"
    for focused in ("detail", "map"):  # Close goes back to the item before, and from there to the map
        page.locator("#close").focus()
        page.keyboard.press("Enter")
        settle(page)
        assert page.evaluate("document.activeElement.id") == focused


def test_the_keyboard_alone_is_enough(visit):
    page = visit("stories")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "map":
            break
    before = view(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    settle(page)
    now = view(page)
    assert now[0] != before[0]
    assert now[1] != before[1]
    assert now[2] > before[2]
    assert re.match(r"(\w+, )*\w+( \(in .*\))?: \w+", page.locator("#live").inner_text())
    page.keyboard.press("Enter")
    settle(page)
    assert {"cell", "item"} & params(page).keys()
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "close"
    page.keyboard.press("Escape")
    settle(page)
    assert not {"cell", "item"} & params(page).keys()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.type("rose bee")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail .items")
    page.locator("#detail button[data-item]").first.focus()
    page.keyboard.press("Enter")
    settle(page)
    assert "item" in params(page)


def test_every_control_has_a_name(visit):
    for name in ("stories", "walks"):
        page = visit(name, "#item=3")
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, #map, .text")].filter((node) => {
            const labels = node.labels ? [...node.labels].map((label) => label.innerText).join("") : "";
            return !(node.getAttribute("aria-label") || labels.trim() || node.innerText.trim());
            }).map((node) => node.outerHTML)"""
        )
        assert nameless == []


def test_it_works_at_phone_width_and_with_fingers(visit):
    page = visit("walks", size=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    frame, panel = box(page), page.locator("#panel").bounding_box()
    assert frame["height"] > 250
    assert panel["y"] >= frame["y"] + frame["height"] - 1
    before = view(page)
    client = page.context.new_cdp_session(page)

    def touch(kind, *points):
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    x, y = frame["x"] + 190, frame["y"] + 140
    touch("touchStart", (x, y))
    touch("touchMove", (x - 60, y - 40))
    touch("touchEnd")
    settle(page)
    moved = view(page)
    assert moved[:2] != before[:2]
    touch("touchStart", (x - 20, y), (x + 20, y))
    touch("touchMove", (x - 60, y), (x + 60, y))
    touch("touchEnd")
    settle(page)
    assert view(page)[2] > 1.5 * moved[2]
    page.click("#toggle-panel")
    assert page.locator("#panel").is_hidden()
    assert box(page)["height"] > frame["height"]


def test_the_map_fits_when_the_window_changes(visit):
    page = visit("stories")
    page.set_viewport_size(PHONE)
    settle(page)
    assert page.evaluate("document.getElementById('map').width") == box(page)["width"]
    page.set_viewport_size(WIDE)
    settle(page)
    assert page.evaluate("document.getElementById('map').width") == box(page)["width"]


def test_light_and_dark_follow_the_system_and_can_be_changed(visit):
    page = visit("stories", color_scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    night = picture(page)
    page.click("#theme")
    settle(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert picture(page) != night
    assert params(page)["theme"] == "light"


def test_a_notebooks_frame_shows_the_map(browser, story_map, tmp_path):
    outer = tmp_path / "notebook.html"
    outer.write_text(f"<!doctype html><h1>notebook</h1>{Page(story_map)._repr_html_()}")
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(outer.as_uri())
    inner = page.frame_locator("iframe")
    inner.locator("body[data-ready=true]").wait_for()
    inner.locator("#map").click(position={"x": 200, "y": 200})
    inner.locator("#close").wait_for()
    inner.locator("#query").fill("train ticket")
    inner.locator("#query").press("Enter")
    inner.locator("#sentence", has_text="contain all words").wait_for()
    assert problems == []
    page.close()
