"""What the map holds, in a real browser: windows, items, searches, filters and walks."""

import json
import re
from importlib.resources import files as resources

import numpy as np
import pytest
from hands import box, on_screen, params, picture, settle, until
from maps import HOSTILE, ask, claiming, item_map_of

from bombs import png
from countinggrids.explore import export, views


def test_hovering_shows_the_features_of_the_window(visit, story_map):
    page = visit("stories")
    row, column = (int(n) for n in np.unravel_index(story_map.usage.argmax(), (10, 12)))
    x, y = on_screen(page, np.array([row, column]) + story_map.middle)
    page.mouse.move(x, y)
    shown = page.locator("#hover").inner_text()
    for feature in views.cell(story_map, row, column)["features"][:8]:
        assert feature["name"] in shown
    page.mouse.move(x, 10)
    assert page.locator("#hover").is_hidden()


def test_a_click_opens_the_window_with_the_items_of_its_json_twin(visit, addresses):
    page = visit("stories", "#row=5&column=6&scale=60")
    frame = box(page)
    for x, y in ((300, 200), (420, 333), (510, 517)):
        page.mouse.click(frame["x"] + x, frame["y"] + y)
        settle(page)
        if "cell" in params(page):
            break
    row, column = params(page)["cell"].split("%2C")
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
def test_an_item_opens_with_text_link_date_posterior_and_neighbors(visit, name, story_map):
    page = visit(name, "#item=17")
    lit = picture(page)
    detail = page.locator("#detail")
    assert detail.locator("h2").inner_text() == "story 17"
    assert detail.locator(".text").inner_text() == story_map.collection.items["text"][17]
    assert detail.locator("a").get_attribute("href") == "https://example.org/17"
    assert "2020-09-30" in detail.locator(".facts").inner_text()
    assert [int(node.get_attribute("data-item")) for node in detail.locator("button[data-item]").all()] == [
        each["item"] for each in views.item(story_map, 17)["neighbors"]
    ]
    page.click("#close")
    settle(page)
    assert "item" not in params(page)
    assert picture(page) != lit


def test_a_click_on_a_picture_opens_it_in_full(visit, walk_map):
    page = visit("walks")
    page.mouse.click(*nearest_thumb(page, walk_map.places[0]))
    settle(page)
    item = int(params(page)["item"])
    image = page.locator("#detail img.own")
    until(page, "document.querySelector('#detail img.own').naturalWidth === 96")
    assert image.get_attribute("alt") == views.title(walk_map, item)
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
def test_a_search_lists_and_marks_the_items_with_the_words(visit, name, story_map):
    page = visit(name)
    dark = picture(page)
    page.fill("#query", "train ticket")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail mark")
    settle(page)
    assert picture(page) != dark
    hits = story_map.text_search.find("train ticket")
    assert f"{hits.n_all} items contain all words" in page.locator("#detail").inner_text()
    assert listed_items(page)[: len(hits.items)] == hits.items[:60].tolist()
    assert set(page.locator("#detail mark").all_inner_texts()) == {"train", "ticket"}
    assert params(page)["q"] == "train+ticket"
    marked = picture(page)
    page.click("#would-fall")
    settle(page)
    assert picture(page) != marked
    page.click("#no-labels")
    assert "No item contains it. " in page.locator("#detail").inner_text()
    page.click("#all-labels")
    page.fill("#query", "zebra")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('detail').innerText.includes('No item contains it')")


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_words_are_found_while_they_are_typed(visit, name, story_map):
    page = visit(name)
    page.locator("#query").press_sequentially("whis")
    page.wait_for_selector("#detail mark")
    assert listed_items(page)[:60] == story_map.text_search.find("whis*").items[:60].tolist()
    page.fill("#query", '"tea cup" -milk')
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#detail h2').innerText.includes('milk')")
    found = story_map.text_search.find('"tea cup" -milk').items.tolist()
    assert listed_items(page)[: len(found)] == found


def listed_items(page):
    return [int(node.get_attribute("data-item")) for node in page.locator("#detail button[data-item]").all()]


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_close_goes_back_to_the_search(visit, name):
    page = visit(name, "#q=train")
    page.wait_for_selector("#detail mark")
    page.locator("#detail button[data-item]").first.click()
    page.wait_for_selector("#detail .text mark")
    page.click("#close")
    until(page, "document.querySelector('#detail h2').innerText.includes('train')")
    page.click("#close")
    until(page, "document.querySelector('#detail h2').innerText === 'Contents'")


@pytest.mark.parametrize("name", ["walks", "walks.html"])
def test_pictures_are_found_by_name(visit, name):
    page = visit(name)
    page.fill("#query", "houses")
    page.click("#search button")
    until(page, "document.getElementById('detail').innerText.includes('16 items contain it')")


def test_a_dropped_image_and_a_dropped_text_are_located(visit, walk_map, tmp_path):
    page = visit("walks")
    page.set_input_files("#file", walk_map.collection.items.path(20))
    until(page, "document.getElementById('detail').innerText.includes('Most likely place of')")
    items = [int(node.get_attribute("data-item")) for node in page.locator("#detail button[data-item]").all()]
    assert 20 in items[:10]
    (tmp_path / "broken.png").write_bytes(b"no image")
    page.set_input_files("#file", tmp_path / "broken.png")
    until(page, "document.getElementById('detail').innerText.includes('expected an image that Pillow opens')")
    (tmp_path / "bomb.png").write_bytes(png(8191, 8191))
    page.set_input_files("#file", tmp_path / "bomb.png")
    until(
        page, "document.getElementById('detail').innerText.includes('has 8191x8191 pixels; expected at most 33554432')"
    )
    page = visit("stories")
    page.evaluate(
        """() => { const carried = new DataTransfer(); carried.setData("text/plain", "boat sail anchor");
        window.dispatchEvent(new DragEvent("drop", { dataTransfer: carried })); }"""
    )
    until(page, "document.getElementById('detail').innerText.includes('Most likely place of')")
    first = page.locator("#detail button[data-item]").first.get_attribute("data-item")
    assert json.loads(ask_item(page, first))["label"] == "harbor"


def test_a_map_whose_images_are_refused_shows_its_items_without(visit, addresses, walks, tmp_path):
    claiming(walks, tmp_path / "a.cg", "/")
    with pytest.warns(UserWarning, match="48 of 48 images left out"):
        export(item_map_of([walks[0], tmp_path / "a.cg"]), tmp_path / "map.html")
    addresses["refused.html"] = (tmp_path / "map.html").as_uri()
    page = visit("refused.html", "#item=3")
    until(page, "document.getElementById('detail').innerText.includes('frame_003')")
    assert page.locator("#detail img").count() == 0


def test_thumbnails_are_asked_for_again_when_the_server_is_busy(browser, addresses):
    page = browser.new_context().new_page()
    answers = [503, 200]

    def answer(route):
        route.fulfill(status=503) if answers.pop(0) == 503 else route.continue_()

    page.route("**/sheet/0.jpg", answer)
    page.goto(addresses["walks"])
    with page.expect_response(lambda answer: "sheet/0.jpg" in answer.url and answer.status == 200):
        pass
    page.context.close()
    assert answers == []


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
    assert params(page)["range"] == "0%2C500"
    for color in ("split", "time", "sequence", ""):
        before = picture(page)
        page.select_option("#color", color)
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
    assert page.locator("#detail h2").inner_text() == "Contents"


def test_a_late_answer_does_not_replace_a_newer_one(visit):
    page = visit("stories")
    page.route("**/search.json?all=1&q=train", lambda route: (page.wait_for_timeout(800), route.continue_()))
    page.fill("#query", "train")
    page.keyboard.press("Enter")
    page.fill("#query", "rose")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#detail h2').innerText.includes('rose')")
    page.wait_for_timeout(1200)
    assert "rose" in page.locator("#detail h2").inner_text()


def test_a_filter_changes_what_is_listed(visit, walk_map):
    row, column = (int(n) for n in np.unravel_index(walk_map.usage.argmax(), (12, 12)))
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


@pytest.fixture
def layout(browser):
    """An empty page with the functions that lay out a map."""
    page = browser.new_page()
    for name in ("torus.js", "layout.js"):
        page.add_script_tag(content=resources("countinggrids.explore").joinpath("assets", name).read_text("utf-8"))
    yield page
    page.close()


def test_chance_decides_whose_thumbnails_are_shown_among_items_that_are_alike(layout):
    first = layout.evaluate(
        """() => {
          const all = [...Array(1000).keys()];
          const items = { n: 1000, row: all.map((i) => Math.floor((i % 100) / 10)), column: all.map((i) => i % 10) };
          Object.assign(items, { posterior: all.map(() => 1), start: all });
          return spread(items, [10, 10], [0.5, 0.5], true).order.slice(0, 100);
        }"""
    )
    assert len({item % 100 for item in first}) == 100  # one of every cell
    assert 30 < sum(item < 500 for item in first) < 70


def test_thumbnails_of_what_a_search_finds_come_first(layout):
    chosen = layout.evaluate(
        """() => [null, new Set([7])].map((emphasized) => {
          const all = [...Array(10).keys()];
          const [places, isShown] = [all.map(() => [1, 1]), all.map(() => true)];
          return chooseThumbs({ places, order: all, isShown, grid: [4, 4], emphasized }, 100).chosen;
        })"""
    )
    assert chosen == [[0], [7]]
