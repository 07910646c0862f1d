"""The page in a real browser, used as a person would."""

import base64
import io
import json
import os
import re

import numpy as np
import pytest
from maps import HOSTILE, ask, atlas_of, browsing
from PIL import Image

from countinggrids.explore import export, views

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright brings it")

LOUD = ("error", "warning")
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 780}


@pytest.fixture(scope="module")
def browser(chromium):
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
            export(atlas_of(files), folder / f"{name}.html")
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


def settle(page):
    """Wait until the address has been written and the map drawn, by the page's own clock: a busy page takes longer."""
    page.evaluate(
        """() => new Promise((done) => {
            const later = (frames) => (frames ? requestAnimationFrame(() => later(frames - 1)) : setTimeout(done, 350));
            later(2);
        })"""
    )


def until(page, condition):
    """Wait until an expression holds; the page's policy lets nobody, not even a test, evaluate text inside it."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {condition}")


def told(page):
    """Read the view from the address."""
    return dict(part.split("=", 1) for part in page.evaluate("location.hash").lstrip("#").split("&") if "=" in part)


def view(page):
    now = told(page)
    return tuple(float(now[name]) for name in ("row", "column", "scale"))


def box(page):
    return page.locator("#map").bounding_box()


def on_screen(page, place):
    """Where a place of the map (in cells) is on the screen, in the round nearest to the middle."""
    row, column, scale = view(page)
    frame = box(page)
    grid = page.evaluate("fetch('map.json').then((answer) => answer.json()).then((chart) => chart.grid)")
    away = [(to + 0.5 - at + n / 2) % n - n / 2 for to, at, n in zip(place, (row, column), grid, strict=True)]
    return frame["x"] + frame["width"] / 2 + away[1] * scale, frame["y"] + frame["height"] / 2 + away[0] * scale


def picture(page):
    """The pixels of the map."""
    return page.evaluate("document.getElementById('map').toDataURL()")


def pixels(page):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(picture(page).partition(",")[2])))).astype(int)


def drag(page, across, down):
    frame = box(page)
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(x + across * step / 8, y + down * step / 8)
    page.mouse.up()
    settle(page)


@pytest.mark.parametrize("name", ["stories", "walks", "stories.html", "walks.html"])
def test_the_map_is_drawn(visit, name):
    page = visit(name)
    colours = page.evaluate(
        """() => { const map = document.getElementById("map");
        const pixels = new Uint32Array(map.getContext("2d").getImageData(0, 0, map.width, map.height).data.buffer);
        return new Set(pixels).size; }"""
    )
    assert colours > 100
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
    names = set(atlas_names(page))
    assert far
    assert set(far) <= names
    assert any(text not in names for text in near), "titles appear beside their dots"


def atlas_names(page):
    return page.evaluate("fetch('map.json').then((answer) => answer.json()).then((chart) => chart.names)")


def test_hovering_shows_the_features_of_the_window(visit, story_atlas):
    page = visit("stories")
    row, column = (int(n) for n in np.unravel_index(story_atlas.usage.argmax(), (10, 12)))
    x, y = on_screen(page, np.array([row, column]) + story_atlas.middle)
    page.mouse.move(x, y)
    shown = page.locator("#hover").inner_text()
    for feature in views.cell(story_atlas, row, column)["features"][:8]:
        assert feature["name"] in shown
    page.mouse.move(x, 10)
    assert page.locator("#hover").is_hidden()


def test_a_click_opens_the_window_with_the_items_of_its_json_twin(visit, addresses):
    page = visit("stories", "#row=5&column=6&scale=60")
    frame = box(page)
    for x, y in ((300, 200), (420, 333), (510, 517)):
        page.mouse.click(frame["x"] + x, frame["y"] + y)
        settle(page)
        if "cell" in told(page):
            break
    row, column = told(page)["cell"].split("%2C")
    twin = json.loads(ask(port(addresses["stories"]), f"/cell/{row}/{column}.json")[2])
    assert [int(node.get_attribute("data-item")) for node in page.locator("#detail button[data-item]").all()] == [
        each["item"] for each in twin["items"]
    ]
    assert [node.inner_text() for node in page.locator("#detail .features bdi").all()] == [
        each["name"] for each in twin["features"]
    ]


def port(address):
    return int(re.search(r":(\d+)/", address)[1])


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_an_item_opens_with_text_link_date_posterior_and_neighbours(visit, name, story_atlas):
    page = visit(name, "#item=17")
    lit = picture(page)
    detail = page.locator("#detail")
    assert detail.locator("h2").inner_text() == "story 17"
    assert detail.locator(".text").inner_text() == story_atlas.collection.items["text"][17]
    assert detail.locator("a").get_attribute("href") == "https://example.org/17"
    assert "2020-09-30" in detail.locator(".facts").inner_text()
    assert [int(node.get_attribute("data-item")) for node in detail.locator("button[data-item]").all()] == [
        each["item"] for each in views.item(story_atlas, 17)["neighbours"]
    ]
    page.click("#close")
    settle(page)
    assert "item" not in told(page)
    assert picture(page) != lit


def test_a_click_on_a_picture_opens_it_in_full(visit, walk_atlas):
    page = visit("walks")
    page.mouse.click(*nearest_thumb(page, walk_atlas.places[0]))
    settle(page)
    item = int(told(page)["item"])
    image = page.locator("#detail img.own")
    until(page, "document.querySelector('#detail img.own').naturalWidth === 96")
    assert image.get_attribute("alt") == views.title(walk_atlas, item)
    assert page.locator("#detail canvas.thumb").count() == 12


def nearest_thumb(page, place):
    """Move over the map around a place until a picture's name is shown."""
    x, y = on_screen(page, place)
    for reach in range(0, 120, 12):
        for across, down in ((0, 0), (reach, 0), (-reach, 0), (0, reach), (0, -reach)):
            page.mouse.move(x + across, y + down)
            if page.locator("#hover strong").count():
                return x + across, y + down
    raise AssertionError("no picture was found")


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_a_search_lights_the_map_up(visit, name, story_atlas):
    page = visit(name)
    dark = picture(page)
    page.fill("#query", "train ticket zebra")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail .items")
    settle(page)
    assert picture(page) != dark
    assert "Known words: ticket, train" in page.locator("#detail").inner_text().replace(
        "train, ticket", "ticket, train"
    )
    found = [int(node.get_attribute("data-item")) for node in page.locator("#detail button[data-item]").all()]
    labels = story_atlas.collection.items["label"]
    assert {labels[item] for item in found[:10]} == {"station"}
    assert told(page)["q"] == "train+ticket+zebra"
    page.fill("#query", "zebra")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('detail').innerText.includes('Nothing was found')")


@pytest.mark.parametrize("name", ["walks", "walks.html"])
def test_pictures_are_found_by_name(visit, name):
    page = visit(name)
    page.fill("#query", "houses")
    page.click("#search button")
    until(page, "document.getElementById('detail').innerText.includes('Found by name: 16')")


def test_a_dropped_image_and_a_dropped_text_are_located(visit, walk_atlas, tmp_path):
    page = visit("walks")
    page.set_input_files("#file", walk_atlas.collection.items.path(20))
    until(page, "document.getElementById('detail').innerText.includes('would fall here')")
    items = [int(node.get_attribute("data-item")) for node in page.locator("#detail button[data-item]").all()]
    assert 20 in items[:10]
    (tmp_path / "broken.png").write_bytes(b"no image")
    page.set_input_files("#file", tmp_path / "broken.png")
    until(page, "document.getElementById('detail').innerText.includes('wanted an image that Pillow opens')")
    page = visit("stories")
    page.evaluate(
        """() => { const carried = new DataTransfer(); carried.setData("text/plain", "boat sail anchor");
        window.dispatchEvent(new DragEvent("drop", { dataTransfer: carried })); }"""
    )
    until(page, "document.getElementById('detail').innerText.includes('would fall here')")
    first = page.locator("#detail button[data-item]").first.get_attribute("data-item")
    assert json.loads(ask_item(page, first))["label"] == "harbour"


def ask_item(page, item):
    return page.evaluate(f"fetch('item/{item}.json').then((answer) => answer.text())")


def test_an_exported_page_does_not_offer_what_needs_a_server(visit):
    assert visit("stories.html").locator("#drop-tool").is_hidden()


def test_labels_splits_and_times_filter_the_items(visit):
    page = visit("walks")
    page.uncheck("#legend label:has-text('sea') input")
    assert page.locator("#count").inner_text() == "32 of 48"
    page.select_option("#split", "train")
    assert page.locator("#count").inner_text() == "16 of 48"
    page.select_option("#split", "")
    page.click("#no-labels")
    assert page.locator("#count").inner_text() == "0 of 48"
    page.click("#all-labels")
    page.evaluate(
        "document.getElementById('to').value = 500; document.getElementById('to').dispatchEvent(new Event('input'))"
    )
    assert page.locator("#count").inner_text() == "24 of 48"
    settle(page)
    assert told(page)["range"] == "0%2C500"
    for colour in ("split", "time", "sequence", ""):
        before = picture(page)
        page.select_option("#colour", colour)
        settle(page)
        assert picture(page) != before


@pytest.mark.parametrize("name", ["walks", "walks.html"])
def test_a_sequence_plays_as_a_path(visit, name):
    page = visit(name)
    assert page.locator("#play").is_disabled()
    page.select_option("#sequence", index=2)
    assert page.locator("#moment-text").inner_text().startswith("1 of 16")
    still = picture(page)
    page.click("#play")
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    until(page, "Number(document.getElementById('moment').value) >= 3")
    page.click("#play")
    now = page.locator("#moment").input_value()
    settle(page)
    assert page.locator("#moment").input_value() == now
    assert picture(page) != still
    page.locator("#moment").focus()
    page.keyboard.press("End")
    assert page.locator("#moment-text").inner_text().startswith("16 of 16")
    assert page.locator("#detail h2").inner_text() == "frame_015"


def test_the_address_brings_the_view_back(visit):
    page = visit("walks")
    page.uncheck("#legend label:has-text('sea') input")
    page.select_option("#colour", "time")
    page.click("#zoom-in")
    page.click("#theme")
    drag(page, 77, -31)
    page.locator("#detail")
    settle(page)
    again = visit("walks", page.evaluate("location.hash"))
    assert told(again) == told(page)
    # The address is rounded, by less than a pixel.
    assert np.abs(pixels(again) - pixels(page)).mean() < 4


@pytest.mark.parametrize(
    "hash", ["#row=abc&scale=-5&item=999&cell=99,1&colour=x&range=9", "#%%%&&==", "#item=-1&sequence=none&hide=none"]
)
def test_an_address_that_makes_no_sense_does_no_harm(visit, hash):
    page = visit("walks", hash)
    assert page.locator("#count").inner_text() == "48"
    assert page.locator("#detail h2").first.inner_text() == "How to read this map"


@pytest.mark.parametrize("hash", ["#range=10,500", "#sequence=walk 1&at=1.5", "#range=900,100&hide=nothing"])
@pytest.mark.parametrize("name", ["stories", "walks"])
def test_an_address_meant_for_another_map_draws_this_one(visit, name, hash):
    page = visit(name, hash)
    assert page.locator("#detail h2").count() == 1
    assert "hide" not in told(page)


def test_one_can_go_back_to_what_was_open(visit):
    page = visit("stories", "#item=3")
    page.locator("#detail button[data-item]").first.click()
    settle(page)
    assert page.locator("#detail h2").inner_text() != "story 3"
    page.go_back()
    settle(page)
    assert page.locator("#detail h2").inner_text() == "story 3"
    page.evaluate("location.hash = '#row=1&column=1&scale=60'")
    settle(page)
    assert page.locator("#detail h2").inner_text() == "How to read this map"


def test_an_address_with_a_view_and_a_search_keeps_the_view(visit):
    page = visit("stories", "#row=1.000&column=1.000&scale=60.00&q=train")
    page.wait_for_selector("#detail .items")
    settle(page)
    assert view(page) == (1.0, 1.0, 60.0)


def test_a_late_answer_does_not_replace_a_newer_one(visit):
    page = visit("stories")
    page.route("**/search.json?q=train", lambda route: (page.wait_for_timeout(800), route.continue_()))
    page.fill("#query", "train")
    page.keyboard.press("Enter")
    page.fill("#query", "rose")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#detail h2').innerText.includes('rose')")
    page.wait_for_timeout(1200)
    assert "rose" in page.locator("#detail h2").inner_text()


def test_a_filter_changes_what_is_listed(visit, walk_atlas):
    row, column = (int(n) for n in np.unravel_index(walk_atlas.usage.argmax(), (12, 12)))
    page = visit("walks", f"#cell={row},{column}")
    assert page.locator("#detail button[data-item]").count() > 0
    page.click("#no-labels")
    assert page.locator("#detail button[data-item]").count() == 0


def test_the_hint_goes_when_a_file_is_carried_away(visit):
    page = visit("stories")
    page.evaluate("window.dispatchEvent(new DragEvent('dragover'))")
    assert page.locator("#drop-hint").is_visible()
    page.evaluate("window.dispatchEvent(new DragEvent('dragleave', { relatedTarget: null }))")
    assert page.locator("#drop-hint").is_hidden()


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
    page.locator("#close").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "map"


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
    assert re.match(r"Row \d+, column \d+: \w+", page.locator("#live").inner_text())
    page.keyboard.press("Enter")
    settle(page)
    assert {"cell", "item"} & told(page).keys()
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "close"
    page.keyboard.press("Escape")
    settle(page)
    assert not {"cell", "item"} & told(page).keys()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.type("rose bee")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail .items")
    page.locator("#detail button[data-item]").first.focus()
    page.keyboard.press("Enter")
    settle(page)
    assert "item" in told(page)


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
        told = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})

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
    assert told(page)["theme"] == "light"


@pytest.mark.parametrize("name", ["harmful", "harmful.html"])
def test_titles_and_texts_that_mean_harm_are_shown_as_text(visit, name):
    for item, text in enumerate(HOSTILE, start=24):
        page = visit(name, f"#item={item}&scale=130")
        page.wait_for_selector("#detail .text")
        shown = page.locator("#detail h2").inner_text()
        assert re.sub(r"\\u[0-9a-f]{4}|\s|\W", "", shown) == re.sub(r"\\u[0-9a-f]{4}|\s|\W", "", text_of(text))
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u0007\u001b]", page.locator("body").inner_text())
        assert page.locator("#detail a").count() == 0
        assert page.locator("main img, main script, main iframe").count() == 0
        frame = box(page)
        page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
        assert page.evaluate("window.harmed") is None
    page.fill("#query", HOSTILE[0])
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#detail h2').innerText.includes('window.harmed')")
    assert page.evaluate("window.harmed") is None


def text_of(text):
    """What a page can show of a text: controls go, or are spelled out."""
    return re.sub("[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800]", "", text)


def test_a_notebooks_frame_shows_the_map(browser, story_atlas, tmp_path):
    outer = tmp_path / "notebook.html"
    outer.write_text(
        f"<!doctype html><h1>notebook</h1>{story_atlas.model.explore(story_atlas.collection)._repr_html_()}"
    )
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
    inner.get_by_text("Known words").wait_for()
    assert problems == []
    page.close()
