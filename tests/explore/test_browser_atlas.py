"""The atlas in a real browser: regions, selections, comparisons and time."""

import csv
import io
import json

import numpy as np
import pytest
from hands import PHONE, WIDE, box, on_screen, params, picture, settle, until, view
from maps import TOPICS, browsing, item_map_of, saved

import countinggrids as cg
from countinggrids.explore import export, groups
from countinggrids.features import Words
from countinggrids.features.text import Document


def listed(page):
    return [int(node.get_attribute("data-item")) for node in page.locator("#detail .items button[data-item]").all()]


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_the_contents_fly_to_a_region_and_name_what_is_inside(visit, name, story_map):
    page = visit(name)
    regions = story_map.regions
    shown = page.locator("#contents > li .go .name").all_inner_texts()
    assert shown == [region.name.replace(", ", " ", 1) for region in regions.level(0)]
    before = view(page)
    page.locator("#contents .toggle:enabled").first.click()
    assert page.locator("#contents .contents .go").count() == len(regions.children(0))
    page.locator("#contents .go").first.click()
    settle(page)
    assert page.locator("#detail h2").inner_text() == regions.regions[0].name
    assert view(page) != before
    assert params(page)["region"] == "0"
    words = [word for word, _ in regions.regions[0].words]
    assert page.locator("#group-words bdi").all_inner_texts() == words[:12]
    assert str(regions.regions[0].n_items) in page.locator("#detail p").first.inner_text()
    page.click("#close")
    assert page.locator("#detail h2").inner_text() == "Contents"


def test_names_are_written_once_and_open_their_region(visit):
    page = visit("stories")
    drawn = page.evaluate(
        """() => new Promise((done) => {
        const pen = CanvasRenderingContext2D.prototype, fill = pen.fillText, found = [];
        pen.fillText = function (text, ...rest) { found.push(text); fill.call(this, text, ...rest); };
        document.getElementById("theme").click();
        setTimeout(() => { pen.fillText = fill; done(found); }, 500);
        })"""
    )
    names = page.evaluate("fetch('map.json').then((a) => a.json()).then((d) => d.regions.list.map((r) => r.name))")
    first = [name.split(", ")[0] for name in names]
    assert [text for text in drawn if text in first]
    lower = [text for text in drawn if ", " in text]
    assert len(lower) == len(set(lower)) > 1, "every name is drawn once, though the map repeats"
    opened = page.evaluate("fetch('map.json').then((a) => a.json()).then((d) => d.regions.list[0].center)")
    frame = box(page)
    for down in range(-120, 121, 12):
        x, y = on_screen(page, opened)
        page.mouse.click(min(max(x, frame["x"] + 5), frame["x"] + frame["width"] - 60), y + down)
        settle(page)
        if "region" in params(page):
            break
    assert "region" in params(page)


def drag_around(page, name, corners):
    page.keyboard.press("Escape")
    page.click("#lasso")
    x, y = corners[0]
    page.mouse.move(x, y)
    page.mouse.down()
    for x, y in [*corners[1:], corners[0]]:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    settle(page)


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_a_lasso_selects_and_the_address_keeps_it(visit, name, story_map):
    page = visit(name)
    frame = box(page)
    left, top = frame["x"] + frame["width"] / 2 - 260, frame["y"] + frame["height"] / 2 - 260
    drag_around(page, name, [(left, top), (left + 520, top), (left + 520, top + 520), (left, top + 520)])
    until(page, "document.querySelectorAll('#group-words li').length > 0")
    items = listed(page)
    title = page.locator("#detail h2").inner_text()
    assert title.startswith("Selection of ")
    n_items = int(title.split()[2])
    assert 0 < n_items < 80
    again = visit(name, page.evaluate("location.hash"))
    until(again, "document.querySelectorAll('#group-words li').length > 0")
    assert listed(again) == items
    with page.expect_download() as saving:
        page.click("#save-csv")
    rows = list(csv.DictReader(io.StringIO(saving.value.path().read_text("utf-8-sig"))))
    chosen = [int(row["item"]) for row in rows]
    assert len(rows) == n_items
    assert {row["region_1"] for row in rows} <= {region.name for region in story_map.regions.level(0)}
    assert rows[0]["time"].startswith("2020-")
    with page.expect_download() as saving:
        page.click("#save-json")
    assert [row["item"] for row in json.loads(saving.value.path().read_text("utf-8"))] == chosen
    twin = groups.selection(story_map, chosen)
    assert page.locator("#group-words bdi").all_inner_texts() == [each["word"] for each in twin["words"]][:12]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy-ids")
    until(page, "document.getElementById('copy-ids').textContent.includes('copied')")
    if not name.endswith(".html"):
        assert page.evaluate("navigator.clipboard.readText()") == "\n".join(map(str, chosen))


def test_an_empty_selection_says_so(visit):
    page = visit("stories")
    page.click("#no-labels")
    page.locator("#map").focus()
    page.keyboard.press("v")
    settle(page)
    assert page.locator("#detail h2").inner_text() == "Selection of 0 items"
    assert "No item is selected" in page.locator("#detail .empty").inner_text()
    page.click("#all-labels")
    until(page, "document.querySelector('#detail h2').innerText !== 'Selection of 0 items'")
    assert page.locator("#save-csv").count() == 1


@pytest.mark.parametrize("name", ["stories", "stories.html"])
def test_two_labels_are_compared_in_words_and_on_the_map(visit, name, story_map):
    page = visit(name)
    plain = picture(page)
    page.click("#compare")
    page.select_option("#group-a", "label:station")
    page.select_option("#group-b", "label:garden")
    until(page, "document.querySelectorAll('#comparison .features li').length > 0")
    settle(page)
    twin = groups.compare(story_map, "label:station", "label:garden")
    lists = page.locator("#comparison .features").all()
    for node, rows in zip(lists, (twin["over"], twin["under"]), strict=True):
        assert node.locator("bdi").all_inner_texts() == [row["word"] for row in rows[:15]]
        assert [float(text.split()[0]) for text in node.locator(".lift").all_inner_texts()] == pytest.approx(
            [row["z"] for row in rows[:15]], abs=0.06
        )
    assert "A has 20 items, B 20" in page.locator("#comparison p").first.inner_text()
    assert page.locator("#key").is_visible()
    assert picture(page) != plain
    assert params(page)["a"] == "label%3Astation"
    again = visit(name, page.evaluate("location.hash"))
    until(again, "document.querySelectorAll('#comparison .features li').length > 0")
    page.click("#close")
    settle(page)
    assert page.locator("#key").is_hidden()


@pytest.mark.parametrize(
    ("hash", "message"),
    [
        ("#a=mood:good&b=rest", "is not in this collection"),
        ("#a=label:zoo&b=rest", "is not in this collection"),
        ("#a=selection&b=rest", "is not in this collection"),
        ("#a=label:garden&b=label:garden", "A and B share 20 items"),
        ("#a=time:0..1&b=rest", "A has no items"),
        ("#a=region:99&b=rest", "is not in this collection"),
    ],
)
def test_groups_that_cannot_be_compared_say_why(visit, hash, message):
    page = visit("stories.html", hash)
    assert message in page.locator("#comparison").inner_text()


def test_time_is_brushed_and_played_and_counts_follow(visit):
    page = visit("stories")
    brush = page.locator("#brush").bounding_box()
    page.mouse.move(brush["x"] + 2, brush["y"] + 20)
    page.mouse.down()
    page.mouse.move(brush["x"] + brush["width"] / 2, brush["y"] + 20, steps=4)
    page.mouse.up()
    settle(page)
    shown = int(page.locator("#count").inner_text().split()[0])
    assert 20 < shown < 60
    counts = [int(text) for text in page.locator("#legend .n").all_inner_texts()]
    assert sum(counts) == shown
    assert sum(int(text) for text in page.locator("#contents > li > .line .n").all_inner_texts()) == shown
    again = visit("stories", page.evaluate("location.hash"))
    assert again.locator("#count").inner_text() == page.locator("#count").inner_text()
    page.click("#all-time")
    page.click("#play-time")
    until(page, "Number(document.getElementById('count').textContent.split(' ')[0]) < 20")
    assert page.locator("#play-time").get_attribute("aria-pressed") == "true"
    page.click("#play-time")
    page.click("#all-time")
    assert page.locator("#count").inner_text() == "80"
    assert page.locator("#contents .trend").count() > 0
    assert page.locator("#timeline").is_hidden(), "stories are no sequence, and have no path"


@pytest.fixture(scope="module")
def odd(folder, addresses):
    """An exported map of odd items: one label with a single item, no time for some, odd titles, a rating."""
    rng = np.random.default_rng(3)
    titles = [
        "\U0001f600\U0001f680",
        "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
        "\u0645\u0631\u062d\u0628\u0627",
        "=1+1",
    ]
    documents = [
        Document(
            " ".join(rng.choice(TOPICS["kitchen" if i % 2 else "harbor"].split(), 15)),
            titles[i % 4],
            label="only" if i == 7 else "many",
            time=float("nan") if i % 5 == 0 else 1.6e9 + 86400.0 * i,
        )
        for i in range(40)
    ]
    long = " ".join(["tea milk boat"] * 720_000)
    documents[11] = documents[11]._replace(text=long)
    collection = cg.Collection.from_texts(documents, Words(min_df=2))
    collection.items = collection.items.with_columns(rating=[str(i % 7) if i % 6 else "" for i in range(40)])
    files = saved(folder / "odd", collection, cg.CountingGrid((8, 8), (3, 3), random_state=0))
    export(item_map_of(files), folder / "odd.html")
    addresses["odd.html"] = (folder / "odd.html").as_uri()
    return addresses["odd.html"]


def test_odd_items_are_shown_selected_and_compared(visit, odd):
    page = visit("odd.html", "#a=label:only&b=rest")
    until(page, "document.querySelectorAll('#comparison .features li').length > 0")
    assert "With so few items" in page.locator("#comparison").inner_text()
    page.click("#close")
    page.select_option("#color", "number rating")
    settle(page)
    assert page.locator("#scale-row").is_visible()
    assert " to " in page.locator("#contents .n").first.inner_text()
    page.locator("#map").focus()
    page.keyboard.press("v")
    settle(page)
    with page.expect_download() as saving:
        page.click("#save-csv")
    rows = {int(row["item"]): row for row in csv.DictReader(io.StringIO(saving.value.path().read_text("utf-8-sig")))}
    assert len(rows) == 40
    assert rows[0]["title"] == "\U0001f600\U0001f680"
    assert rows[1]["title"] == "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"
    assert rows[3]["title"] == "'=1+1", "no spreadsheet takes it for a formula"
    assert (rows[5]["time"], rows[6]["rating"]) == ("", "")


def test_a_text_of_ten_megabytes_is_cut_until_one_asks_for_all_of_it(visit, odd):
    page = visit("odd.html", "#item=11")
    page.wait_for_selector("#detail .text")
    assert page.locator("#detail .text").inner_text().startswith("tea milk boat")
    assert page.get_by_role("button", name="Show all 10,079,999 characters").count() == 1
    assert page.locator("#detail .text").evaluate("node => node.textContent.length") <= 100_000
    page.fill("#query", '"boat tea"')
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#detail button[data-item] mark').length > 0")


@pytest.mark.parametrize(
    ("item", "title"), [(0, "\U0001f600\U0001f680"), (1, "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd")]
)
def test_emoji_and_right_to_left_titles_are_shown_as_they_are(visit, odd, item, title):
    page = visit("odd.html", f"#item={item}&scale=130")
    page.wait_for_selector("#detail .text")
    assert page.locator("#detail h2").inner_text() == title
    assert page.locator("#detail h2 bdi").count() == 1, "its direction must not turn the words around it"
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


def test_a_label_with_one_item_is_listed_filtered_and_selected(visit, odd):
    page = visit("odd.html")
    page.uncheck("#legend label:has-text('many') input")
    assert page.locator("#count").inner_text() == "1 of 40"
    page.locator("#map").focus()
    page.keyboard.press("v")
    settle(page)
    assert page.locator("#detail h2").inner_text() == "Selection of 1 item"
    assert page.locator("#group-words bdi").count() > 0
    page.uncheck("#legend label:has-text('only') input")
    until(page, "document.querySelector('#detail h2').innerText === 'Selection of 0 items'")


def test_the_atlas_fits_a_phone(visit):
    page = visit("stories", size=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#contents .go").first.tap()
    settle(page)
    assert "region" in params(page)


def test_every_new_control_has_a_name_and_can_be_reached(visit):
    page = visit("stories", "#region=0")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, svg:not([aria-hidden])")].filter((node) => {
        const labels = node.labels ? [...node.labels].map((label) => label.innerText).join("") : "";
        return !(node.getAttribute("aria-label") || labels.trim() || node.textContent.trim());
        }).map((node) => node.outerHTML)"""
    )
    assert nameless == []
    reached = set()
    page.locator("#query").focus()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"compare", "lasso", "select-view", "close", "compare-rest", "save-csv", "copy-ids"} <= reached


def test_words_have_the_colors_of_their_places(visit, story_map):
    page = visit("stories")
    text = story_map.collection.items["text"][3]
    known = {
        "known": {"text": text},
        "word_places": {word: [i % 10, i % 12] for i, word in enumerate(set(text.split()))},
    }
    page.route("**/item/3.json", lambda route: route.fulfill(body=json.dumps(known), content_type="application/json"))
    page.evaluate("location.hash = '#item=3'")
    page.wait_for_selector("#detail .placed")
    assert page.locator("#detail .placed").all_inner_texts() == text.split()
    assert len({node.get_attribute("style") for node in page.locator("#detail .placed").all()}) > 1
    key = page.locator("#detail [aria-label='Regions of the words'] button").all()
    colors = [style_of(node.locator(".swatch")) for node in key]
    assert colors
    assert set(colors) <= {style_of(node) for node in page.locator("#detail .placed").all()}
    counts = [int(node.inner_text().split()[-1]) for node in key]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(set(text.split())), "every word is counted in one region"
    key[0].click()
    settle(page)
    assert "region" in params(page)


def style_of(node):
    """Return the color in the style of a node."""
    return node.get_attribute("style").partition(": ")[2]


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_names_lie_inside_the_frame(visit, size):
    page = visit("stories", size=size)
    page.evaluate(
        """() => {
        const pen = CanvasRenderingContext2D.prototype, draw = pen.drawImage;
        window.names = [];
        pen.drawImage = function (image, x, y, wide, tall, ...rest) {
            if (this.canvas.id === "map" && tall < 80 && !rest.length) window.names.push([x, y, x + wide, y + tall]);
            return draw.call(this, image, x, y, wide, tall, ...rest);
        };
        }"""
    )
    page.focus("#map")
    page.keyboard.press("Home")
    grid = np.array([12, 10])  # columns and rows
    frame = page.evaluate("[document.getElementById('map').clientWidth, document.getElementById('map').clientHeight]")
    for step in range(8):
        page.evaluate("window.names = []")
        page.keyboard.press("ArrowRight" if step % 2 else "ArrowDown")
        settle(page)
        boxes = np.array(page.evaluate("window.names")).reshape(-1, 2, 2)
        assert len(boxes)
        margin = (np.array(frame) - grid * view(page)[2]) / 2
        axes = margin > -2
        assert axes.any()
        assert (boxes[:, 0] >= margin - 8)[:, axes].all()
        assert (boxes[:, 1] <= np.array(frame) - margin + 8)[:, axes].all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_exported_page_colors_words_as_the_served_one_does(visit, addresses, folder):
    rng = np.random.default_rng(0)
    documents = [" ".join(rng.choice(TOPICS["kitchen"].split() + TOPICS["harbor"].split(), 12)) for _ in range(80)]
    collection = cg.Collection.from_texts(documents)
    model = cg.ComponentialGrid((8, 8), (2, 2), max_iter=30, random_state=0)
    files = saved(folder / "several", collection, model)
    export(item_map_of(files), folder / "several.html")
    addresses["several.html"] = (folder / "several.html").as_uri()
    with browsing(files) as port:
        addresses["several"] = f"http://127.0.0.1:{port}/"
        colors = []
        for name in ("several", "several.html"):
            page = visit(name, "#item=3")
            page.wait_for_selector("#detail .placed")
            nodes = page.locator("#detail .placed").all()
            colors.append([(node.inner_text(), node.get_attribute("style")) for node in nodes])
    assert [word for word, _ in colors[0]] == documents[3].split()
    assert colors[0] == colors[1]
