"""`countinggrids map`: from files to a page in one command."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.cli.map import LARGEST_SIDE, model_for

TOPICS = {"kitchen": "tea cup kettle sugar spoon milk", "railway": "train track station engine signal ticket"}


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["map", *map(str, arguments), "--no-open"])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    labels = list(TOPICS) * 30
    rows = [
        f"{' '.join(rng.choice(TOPICS[label].split(), 12))},{label},2024-05-{1 + i % 28}"
        for i, label in enumerate(labels)
    ]
    path = tmp_path / "stories.csv"
    path.write_text("\n".join(["body,kind,day", *rows]))
    return path


def test_a_table_becomes_a_page_a_model_and_a_collection(table, tmp_path):
    page, model, kept = (tmp_path / name for name in ("map.html", "model", "bags"))
    told = run(table, "--label", "kind", "--time", "day", "-o", page, "--model", model, "--collection", kept, "--json")
    facts = json.loads(told.stdout)
    assert facts["items"] == 60
    assert facts["page"] == str(page)
    assert "<html" in page.read_text()
    collection = cg.Collection.load(kept)
    assert collection.items["label"].tolist() == list(TOPICS) * 30
    assert np.isfinite(collection.items["time"]).all()
    assert cg.load(model).locate(collection).shape == (60, 2)
    assert "a place for each item: held-out perplexity" in told.stderr
    assert "counting grid (one place for each item)" in told.stderr
    assert "s to fit" in told.stderr


def test_words_of_an_item_may_lie_in_several_places(table, tmp_path):
    told = run(table, "-o", tmp_path / "map.html", "--model", tmp_path / "model", "--several-places")
    assert "componential counting grid (a place for each word)" in told.stderr
    assert isinstance(cg.load(tmp_path / "model"), cg.ComponentialGrid)
    told = run(table, "-o", tmp_path / "b.html", "--model", tmp_path / "b", "--one-place")
    assert "held-out perplexity" not in told.stderr
    assert isinstance(cg.load(tmp_path / "b"), cg.CountingGrid)


def test_the_cap_of_words_is_said(table, tmp_path):
    told = run(table, "-o", tmp_path / "map.html", "--max-words", 5, "--json")
    assert json.loads(told.stdout)["features"] == 5
    assert "5 words counted, the most frequent; see --max-words" in told.stderr


def test_the_same_seed_gives_the_same_page(table, tmp_path):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        run(table, "-o", page)
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_texts_that_are_much_alike_keep_all_their_words(tmp_path):
    path = tmp_path / "alike.csv"
    path.write_text("\n".join(["text"] + ["tea with milk"] * 60))
    facts = json.loads(run(path, "-o", tmp_path / "map.html", "--json").stdout)
    assert facts["items"] == 60
    assert facts["features"] == 2


def test_titles_are_the_first_words_of_texts(table, tmp_path):
    run(table, "-o", tmp_path / "map.html", "--collection", tmp_path / "bags")
    items = cg.Collection.load(tmp_path / "bags").items
    assert all(
        text.startswith(title.removesuffix("...")) for text, title in zip(items["text"], items["title"], strict=True)
    )


def test_a_folder_of_photos_becomes_a_page(tmp_path):
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(0)
    for label in ("sky", "sand"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for i in range(4):
            image = rng.integers(0, 255, (48, 48, 3), dtype=np.uint8)
            assert cv2.imwrite(str(tmp_path / "photos" / label / f"{i}.png"), image)
    facts = json.loads(run(tmp_path / "photos", "-o", tmp_path / "map.html", "--json").stdout)
    assert facts["items"] == 8
    refused = run(tmp_path / "photos", "-o", tmp_path / "b.html", "--label", "kind", code=2)
    assert "--label needs a table" in refused.stderr


@pytest.mark.parametrize("content", ["", "text,label\n"])
def test_a_file_without_texts_is_named(tmp_path, content):
    path = tmp_path / "empty.csv"
    path.write_text(content)
    result = CliRunner().invoke(app, ["map", str(path), "-o", str(tmp_path / "map.html"), "--no-open"])
    assert result.exit_code == 2
    assert f"SOURCE={path} has no texts" in " ".join(result.stderr.split())
    assert not (tmp_path / "map.html").exists()


def test_wrong_use_is_refused_before_any_work(table, tmp_path):
    assert "does not exist" in run(tmp_path / "no.csv", code=2).stderr
    page = tmp_path / "map.html"
    page.write_text("mine")
    assert "exists; use another name, or --force" in run(table, "-o", page, code=2).stderr
    assert page.read_text() == "mine"
    assert "expected nope" in run(table, "-o", tmp_path / "b.html", "--label", "nope", code=2).stderr
    same = run(table, "-o", tmp_path / "b.html", "--model", tmp_path / "b.html", code=2)
    assert "are the same file" in same.stderr
    assert not (tmp_path / "b.html").exists()


@pytest.mark.parametrize("n", [3, 200, 100_000])
def test_the_grid_suits_the_number_of_items(n):
    class Bags:
        vocabulary = range(5000)

        def __len__(self):
            return n

    model, reason = model_for(Bags(), 0)
    assert 6 <= model.grid[0] <= LARGEST_SIDE
    assert f"for {n} items" in reason
    assert (model.batch_size is not None) == (n > 5000)
