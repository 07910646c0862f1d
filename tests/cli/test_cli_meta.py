"""The commands classify, search, track and cluster: from collections to tables and pictures."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.data.items import Items
from countinggrids.features import Vocabulary

RUN = CliRunner()
SMALL = ["--grid", "4x4", "--window", "2x2"]


def run(*arguments, code=0):
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def walks(tmp_path):
    """Six walks of thirty frames through three places; the last two are for testing."""
    rng = np.random.default_rng(0)
    places = rng.dirichlet(np.ones(8), 3)
    order = np.concatenate([np.repeat(rng.permutation(3), 10) for _ in range(6)])
    X = np.array([rng.multinomial(30, places[k]) for k in order], dtype=np.float32)
    items = Items(
        {
            "path": [f"{i}.jpg" for i in range(180)],
            "label": np.array(["hall", "lift", "roof"])[order],
            "sequence": np.repeat([f"walk {i}" for i in range(6)], 30),
            "time": np.tile(np.arange(30), 6),
            "split": ["train"] * 120 + ["test"] * 60,
        }
    )
    collection = cg.Collection(X, Vocabulary("labels", tuple("abcdefgh")), items, 1)
    collection.save(tmp_path / "walks.cg")
    return tmp_path / "walks.cg"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_classify(walks, tmp_path):
    table, plot = tmp_path / "a.csv", tmp_path / "a.png"
    printed = json.loads(run("classify", walks, *SMALL, "-o", table, "--plot", plot, "--tokens", 20, "--json").stdout)
    assert (printed["train_items"], printed["test_items"], printed["classes"]) == (120, 60, 3)
    rows = rows_of(table)
    assert rows[0].keys() == {"path", "label", "predicted", "probability"}
    assert printed["accuracy"] == round(np.mean([row["label"] == row["predicted"] for row in rows]), 4) > 0.8
    assert plot.read_bytes()[:4] == b"\x89PNG"


def test_classify_on_another_collection(walks, tmp_path):
    both = cg.Collection.load(walks)
    train, tried = both.split("split")["train"], both.split("split")["test"]
    for name, part in (("train", train), ("tried", tried)):
        columns = {key: part.items[key] for key in ("path", "label") if (name, key) != ("tried", "label")}
        cg.Collection(part.counts, part.vocabulary, Items(columns), 1).save(tmp_path / f"{name}.cg")
    arguments = [tmp_path / "train.cg", "--test", tmp_path / "tried.cg", *SMALL, "-o", tmp_path / "a.json"]
    assert "accuracy" not in json.loads(run("classify", *arguments, "--json").stdout)
    assert set(json.loads((tmp_path / "a.json").read_text())[0]) == {"path", "predicted", "probability"}


def test_search(walks, tmp_path):
    table, plot = tmp_path / "a.csv", tmp_path / "a.svg"
    arguments = ["--grids", "3,4", "--windows", "2", "--tokens", "20,none", "-o", table, "--plot", plot]
    printed = json.loads(run("search", walks, *arguments, "--json").stdout)
    rows = rows_of(table)
    assert len(rows) == 4
    assert printed["grid"] in {"3x3", "4x4"}
    assert printed["score"] == round(max(float(row["mean_test_score"]) for row in rows if row["n_folds"] == "3"), 4)
    assert "capacity" in plot.read_text()


def test_track(walks, tmp_path):
    table, plot = tmp_path / "a.csv", tmp_path / "a.png"
    printed = json.loads(run("track", walks, *SMALL, "-o", table, "--plot", plot, "--gamma", 0.5, "--json").stdout)
    assert printed["frames"] == 60
    assert printed["gamma"] == 0.5
    assert printed["accuracy_smoothed"] >= printed["accuracy_alone"]
    assert rows_of(table)[0].keys() == {
        "path", "label", "alone", "filtered", "smoothed", "viterbi", "probability",
    }  # fmt: skip
    assert plot.exists()


def test_search_within_limits(walks, tmp_path):
    arguments = [
        "--grids",
        "3,4,6",
        "--windows",
        "2",
        "--capacities",
        "2,5",
        "--max-iters",
        "5,none",
        "--powers",
        "1,0.5",
    ]
    run("search", walks, *arguments, "-o", tmp_path / "a.json")
    rows = json.loads((tmp_path / "a.json").read_text())
    assert {(row["grid"], row["max_iter"], row["power"]) for row in rows} == {
        (grid, n, power) for grid in ("3x3", "4x4") for n in (5, None) for power in (1.0, 0.5)
    }


def test_track_with_other_chains(walks, tmp_path):
    arguments = ["track", walks, *SMALL, "--gamma", 0.5, "--json", "--force", "-o", tmp_path / "a.csv"]
    counted = json.loads(run(*arguments, "--start", "labels", "--power", 0.8).stdout)
    learned = json.loads(run(*arguments, "--transitions", "em").stdout)
    assert min(counted["accuracy_filtered"], learned["accuracy_filtered"]) > 0.9
    np.savetxt(tmp_path / "stay.csv", np.full((3, 3), 0.05) + 0.85 * np.eye(3), delimiter=",")
    given = json.loads(run(*arguments, "--transitions", tmp_path / "stay.csv").stdout)
    assert given["accuracy_filtered"] > 0.9
    assert json.loads(run(*arguments, "--unknown", 0.5).stdout)["places"] == 4


def test_track_takes_a_reference_walk(tmp_path):
    rng = np.random.default_rng(0)
    anchors, part = rng.dirichlet(np.full(8, 0.3), 11), np.linspace(0, 1, 4, endpoint=False)[:, None]
    places = np.vstack([(1 - part) * anchors[i] + part * anchors[i + 1] for i in range(10)])
    X = np.array([rng.multinomial(60, p) for p in (*places, *places)], dtype=np.float32)
    labels = [f"frame {t}" for t in range(40)] * 2
    items = Items({"label": labels, "split": ["train"] * 40 + ["test"] * 40})
    cg.Collection(X, Vocabulary("labels", tuple("abcdefgh")), items, 1).save(tmp_path / "walk.cg")
    arguments = ["--grid", "8x8", "--window", "3x3", "-o", tmp_path / "a.csv", "--json"]
    printed = json.loads(run("track", tmp_path / "walk.cg", *arguments).stdout)
    assert printed["places"] == 40
    found = [int(row["filtered"].split()[1]) for row in rows_of(tmp_path / "a.csv")]
    assert np.mean(np.abs(np.array(found) - np.arange(40)) <= 2) > 0.9


def test_cluster(walks, tmp_path):
    table, plot, model = tmp_path / "a.csv", tmp_path / "a.png", tmp_path / "m.cg"
    run("fit", walks, "--grid", "8x8", "--window", "2x2", "-o", model)
    arguments = ["--model", model, "--clusters", 3, "--words", 2, "-o", table, "--plot", plot]
    printed = json.loads(run("cluster", walks, *arguments, "--json").stdout)
    assert sum(each["size"] for each in printed["clusters"]) == 180
    assert all(len(each["features"]) == 2 for each in printed["clusters"])
    assert {row["cluster"] for row in rows_of(table)} == {"0", "1", "2"}
    assert [int(row["row"]) for row in rows_of(table)] == list(range(180))
    assert {"map_row", "map_column", "posterior", "label"} <= set(rows_of(table)[0])
    lines = run("cluster", walks, "--grid", "6x6", "--window", "2x2", "-o", table, "--force").stdout.splitlines()
    assert "items" in lines[0]


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ["classify", "-o", "a.txt"], "--output=a.txt must end in .csv or .json"),
        ({}, ["classify", "-o", "a.csv", "--plot", "a.gif"], "must end in .png, .pdf or .svg"),
        ({"split": [""] * 180}, ["classify", "-o", "a.csv"], "must have items with split train and test"),
        ({"label": ["hall"] * 180}, ["classify", "-o", "a.csv"], "y has 1 class"),
        ({"label": ["x"] + ["hall", "lift"] * 89 + ["x"]}, ["classify", "-o", "a.csv"], "has n_samples=1 bag"),
        ({"label": [""] * 180}, ["track", "-o", "a.csv"], "the items must have a column label"),
        ({"label": ["a", "b"] * 60 + ["z"] * 60}, ["track", "-o", "a.csv"], "labels that no training item has: z"),
        ({}, ["search", "-o", "a.csv", "--grids", "2", "--windows", "2"], "no grid and window has a capacity"),
        ({}, ["search", "-o", "a.csv", "--grids", "big"], "--grids=big must be"),
        ({}, ["search", "-o", "a.csv", "--tokens", "many"], "--tokens=many must be numbers or none"),
        ({"label": ["", "b", "c"] * 60}, ["classify", "-o", "a.csv"], "40 of 120 items have no label"),
        ({}, ["search", "-o", "a.csv", "--capacities", "2"], "--capacities=2 must be two numbers"),
        ({}, ["track", "-o", "a.csv", "--transitions", "none.csv"], "must be auto, labels, walk, learn or a .csv file"),
        (
            {},
            ["track", "-o", "a.csv", "--gamma", "1", "--start", "here"],
            "start='here' must be",
        ),
        ({}, ["track", "-o", "a.csv", "--gamma", "-1"], "gamma=-1.0 must be"),
        (
            {},
            ["cluster", "-o", "a.csv", "--plot", "a.png", "--grid", "8", "--window", "2"],
            "--plot needs a grid with two axes",
        ),
        ({}, ["cluster", "-o", "missing/a.csv"], "missing must be a folder"),
    ],
)
def test_wrong_use_exits_with_two_and_leaves_nothing(walks, tmp_path, monkeypatch, change, arguments, message):
    monkeypatch.chdir(tmp_path)
    collection = cg.Collection.load(walks)
    items = collection.items.with_columns(**change)
    cg.Collection(collection.counts, collection.vocabulary, items, 1).save("bad.cg")
    result = run(arguments[0], "bad.cg", *arguments[1:], code=2)
    assert message in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.cg", "walks.cg"]
