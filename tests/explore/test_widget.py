"""The map as a widget: Python's side, and its view in Chromium with a model object in place of Jupyter."""

import json

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.explore import Page
from countinggrids.explore import notebook as notebook_module

pytest.importorskip("anywidget")
from countinggrids.explore.widget import MapWidget


@pytest.fixture(scope="module")
def collection():
    texts = ["tea with milk", "", "trains on tracks"] * 12
    rows = {
        "text": texts,
        "kind": ["drink", "nothing", "rail"] * 12,
        "day": [f"2024-05-{1 + i % 28}" for i in range(36)],
    }
    return cg.Collection.from_frame(rows, label="kind", time="day")


@pytest.fixture(scope="module")
def model(collection):
    return cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(collection)


@pytest.fixture
def widget(model, collection):
    return model.explore(collection, height=500)


def test_a_selection_comes_back_as_rows_of_the_table(widget, collection):
    assert isinstance(widget, MapWidget)
    assert widget.selection.tolist() == []
    widget.items = [0, 1, 5]
    assert widget.selection.tolist() == [0, 2, 8]
    assert collection.items["row"][[0, 1, 5]].tolist() == [0, 2, 8]


def test_items_of_several_tables_come_back_by_their_numbers(model, collection):
    both = cg.Collection.join([collection, collection])
    widget = model.explore(both)
    widget.items = [3, 30]
    assert widget.selection.tolist() == [3, 30]


def test_filters_go_to_the_page_and_unknown_values_are_refused(widget):
    widget.filter(labels=["rail"], time=("2024-05-03", None), query="tracks")
    assert widget.filters == {"labels": ["rail"], "query": "tracks", "time": [1714694400.0, None]}
    widget.filter()
    assert widget.filters == {}
    with pytest.raises(ValueError, match=r"labels: no item has 'train'; use some of 'drink', 'rail'"):
        widget.filter(labels=["train"])
    with pytest.raises(ValueError, match=r"items have no column 'split'"):
        widget.filter(split="test")
    with pytest.raises(ValueError, match=r"time='soon' must be a date"):
        widget.filter(time=("soon", None))


def test_a_notebook_without_a_kernel_has_the_page(widget):
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"].startswith("<iframe srcdoc=")
    assert "height:500px" in data["text/html"]
    assert widget.get_state()["page"] == widget.text


def test_without_anywidget_there_is_a_page_that_says_what_to_install(model, collection, monkeypatch):
    monkeypatch.setattr(notebook_module, "find_spec", lambda name: None)
    page = model.explore(collection)
    assert isinstance(page, Page)
    with pytest.raises(AttributeError, match=r"'selection' needs anywidget.*pip install 'countinggrids\[notebook\]'"):
        _ = page.selection
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = page.nothing


STUB = """
<!doctype html><body><div id="el"></div><script type="module">
  const state = __STATE__;
  const listeners = {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; for (const f of listeners[`change:${name}`] || []) f(); },
    save_changes: () => { window.saved = structuredClone(state); },
    on: (name, f) => (listeners[name] ||= new Set()).add(f),
    off: (name, f) => listeners[name]?.delete(f),
  };
  const { default: widget } = await import(URL.createObjectURL(new Blob([__ESM__], { type: "text/javascript" })));
  window.cleanup = widget.render({ model, el: document.getElementById("el") });
  window.model = model;
</script></body>
"""


@pytest.fixture
def view(widget, browser, tmp_path):
    """The widget's view in Chromium, and the frame of the page in it."""
    state = {"page": widget.page, "height": 500, "items": [], "filters": {"labels": ["rail"]}}
    path = tmp_path / "stub.html"
    text = STUB.replace("__STATE__", json.dumps(state).replace("</", "<\\/"))
    path.write_text(text.replace("__ESM__", json.dumps(widget._esm).replace("</", "<\\/")))
    page = browser.new_page()
    page.goto(path.as_uri())
    frame = page.wait_for_selector("iframe").content_frame()
    frame.wait_for_selector("body[data-ready]")
    yield page, frame
    page.close()


def test_filters_of_python_reach_the_page(view):
    page, frame = view
    frame.wait_for_function("document.getElementById('count').textContent.startsWith('12')")
    page.evaluate("model.set('filters', {labels: ['drink', 'rail']})")
    frame.wait_for_function("document.getElementById('count').textContent === '24'")
    page.evaluate("model.set('filters', {time: [null, 1714608000]})")
    frame.wait_for_function("Number(document.getElementById('count').textContent.split(' ')[0]) < 24")


def test_a_search_on_the_page_is_the_selection_in_python(view, widget, collection):
    page, _ = view
    page.evaluate("model.set('filters', {query: 'milk'})")
    page.wait_for_function("window.saved && window.saved.items.length === 12")
    widget.items = page.evaluate("saved.items")
    assert set(widget.selection % 3) == {0}
    assert np.all(collection.items["label"][widget.items] == "drink")


def test_a_view_that_is_removed_listens_no_more(view):
    page, frame = view
    page.evaluate("cleanup()")
    page.evaluate("window.saved = null")
    frame.evaluate("window.parent.postMessage({countinggrids: 'selection', items: [1]}, '*')")
    page.wait_for_timeout(200)
    assert page.evaluate("window.saved") is None


def test_a_region_that_is_opened_is_the_selection_in_python(view, widget, model, collection):
    page, frame = view
    page.evaluate("model.set('filters', {})")
    frame.wait_for_function("document.getElementById('count').textContent === '24'")
    frame.evaluate("location.hash = 'region=0'")
    page.wait_for_function("window.saved && window.saved.items.length > 1")
    widget.items = page.evaluate("saved.items")
    regions = cg.find_regions(model, collection)
    expected = np.flatnonzero(regions.items[regions.regions[0].level] == 0)
    assert sorted(widget.items) == expected.tolist()
    assert sorted(widget.selection.tolist()) == collection.items["row"][expected].astype(int).tolist()
    frame.evaluate("location.hash = ''")
    page.wait_for_function("window.saved.items.length === 0")
