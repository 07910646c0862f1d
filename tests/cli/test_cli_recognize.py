"""The command recognize: two walks in, recall and pictures out, and clear errors before any work."""

import csv
import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.data.items import Items
from countinggrids.features import Vocabulary

RUN = CliRunner()
QUICK = ["--grid", "8x8", "--window", "4x4"]
N = 40


def run(*arguments, code=0):
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def make(tmp_path):
    """Write a walk of forty frames, or some of them, as a collection with images."""
    rng = np.random.default_rng(0)
    anchors = rng.dirichlet(np.full(12, 0.2), 11)
    at = np.linspace(0, 9.99, N)
    part = (at % 1)[:, None]
    places = (1 - part) * anchors[at.astype(int)] + part * anchors[at.astype(int) + 1]
    vocabulary = Vocabulary.of_colors(rng.integers(0, 255, (12, 3), dtype=np.uint8))

    def write(name, frames=range(N), seed=0, vocabulary=vocabulary, names="{:03d}.png"):
        frames = list(frames)
        folder = tmp_path / name
        folder.mkdir()
        draw = np.random.default_rng(seed)
        counts = np.array([draw.multinomial(80, places[t]) for t in frames], dtype=np.float32)
        for t in frames:
            Image.new("RGB", (32, 18), (6 * t, 100, 100)).save(folder / f"{t:03d}.png")
        items = Items({"path": [names.format(t) for t in frames]}, folder)
        cg.Collection(counts, vocabulary, items, 1).save(tmp_path / f"{name}.cg")
        return tmp_path / f"{name}.cg"

    return write


def test_frames_agree_by_number(make, tmp_path):
    reference, query = make("first"), make("second", seed=1)
    outputs = ["-o", tmp_path / "a.csv", "--plot", tmp_path / "a.png", "--curve", tmp_path / "b.png"]
    printed = json.loads(run("recognize", reference, query, *QUICK, *outputs, "--json").stdout)
    assert printed["filtered"]["recall_at_1"] >= 0.95
    assert printed["recall_at_1"] <= printed["recall_at_5"] <= printed["recall_at_10"] <= 1
    for each in (printed, printed["filtered"]):
        assert {"precision_recall_area", "recall_at_full_precision"} < set(each)
        assert len(each["precision"]) == len(each["recall"])
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    is_correct = [abs(int(row["filtered"]) - t) <= 2 for t, row in enumerate(rows)]
    assert [row["is_correct"] == "True" for row in rows] == is_correct
    assert round(np.mean(is_correct), 4) == printed["filtered"]["recall_at_1"]
    assert all((tmp_path / name).read_bytes()[:4] == b"\x89PNG" for name in ("a.png", "b.png"))
    lines = run("recognize", reference, query, "--use", "bags").stdout.splitlines()
    assert any(line.startswith("filtered recall at 1") for line in lines)


def test_a_part_of_the_walk_is_known_by_its_numbers(make):
    printed = run("recognize", make("first"), make("later", range(20, 35), seed=1), "--use", "bags", "--json").stdout
    assert json.loads(printed)["filtered"]["recall_at_1"] > 0.8


def test_truth_from_a_file(make, tmp_path):
    reference, query = make("first"), make("back", range(N - 1, -1, -1), seed=1)
    np.save(tmp_path / "truth.npy", np.arange(N)[::-1])
    (tmp_path / "truth.csv").write_text("path,frame\n" + "\n".join(f"x,{t}" for t in range(N - 1, -1, -1)))
    options = ["--use", "bags", "--direction", "backward", "--json"]
    by_npy, by_csv = (
        json.loads(run("recognize", reference, query, "--truth", tmp_path / f"truth.{kind}", *options).stdout)
        for kind in ("npy", "csv")
    )
    assert by_npy == by_csv
    assert by_npy["filtered"]["recall_at_1"] > 0.8


def test_recall_is_null_if_no_query_is_in_the_reference(make, tmp_path):
    reference, query, truth = make("first"), make("second", seed=1), tmp_path / "none.csv"
    truth.write_text("-1\n" * N)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    printed = run("recognize", reference, query, *QUICK, "--truth", truth, "--json").stdout
    found = json.loads(printed, parse_constant=refuse)
    assert found["recall_at_1"] is None
    assert found["filtered"]["recall_at_10"] is None


def test_walks_without_a_common_number_are_refused(make):
    other = make("second", range(20), names="1{:03d}.png")
    said = run("recognize", make("first"), other, *QUICK, code=2).output
    assert "frames 1000 to 1019 of QUERY agree by number with none of REFERENCE, 0 to 39" in " ".join(said.split())


def test_new_places_and_a_film(make, tmp_path):
    reference, query = make("first", range(25)), make("second", seed=1)
    (tmp_path / "truth.csv").write_text("\n".join(str(t if t < 25 else -1) for t in range(N)))
    film, table = tmp_path / "walk.gif", tmp_path / "a.json"
    arguments = ["--truth", tmp_path / "truth.csv", "--new-place", "--film", film, "-o", table, *QUICK]
    run("recognize", reference, query, *arguments)
    rows = json.loads(table.read_text())
    new = np.array([row["new_place"] for row in rows])
    assert new[:23].mean() < new[30:].mean()
    with Image.open(film) as shown:
        assert shown.n_frames == N


def no_truth(n):
    return "\n".join(map(str, range(n)))


@pytest.mark.parametrize(
    ("frames", "options", "files", "message"),
    [
        ([0, 1, 2, 5, 6], [], {}, "QUERY has a gap: frame 2 is followed by frame 5, because frames are missing"),
        (range(N), ["--truth", "t.csv"], {"t.csv": no_truth(7)}, "has shape (7,) but QUERY has 40 frames"),
        (range(N), ["--truth", "t.csv"], {"t.csv": no_truth(39) + "\nx"}, "with the number of a reference frame"),
        (range(N), ["--truth", "t.csv"], {"t.csv": no_truth(39) + "\n3.5"}, "has 3.5 for frame 39"),
        (range(N), ["--truth", "t.csv"], {"t.csv": no_truth(39) + "\n-2"}, "has -2 for frame 39"),
        (
            range(N),
            ["--truth", "t.csv"],
            {"t.csv": no_truth(39) + "\n99"},
            "truth has 99 for query 39 but",
        ),
        (range(N), ["--use", "gist"], {}, "use='gist' must be"),
        (range(N), ["--jump", "0"], {}, "jump=0.0 must be a probability above 0"),
        (range(N), ["--direction", "up"], {}, "direction='up' must be"),
        (range(N), ["--plot", "a.gif"], {}, "must end in .png, .pdf or .svg"),
        (range(N), ["--film", "a.png"], {}, "must end in .gif, .mp4 or .webm"),
        (range(N), ["-o", "a.txt"], {}, "must end in .csv or .json"),
    ],
)
def test_wrong_use_is_refused(make, tmp_path, monkeypatch, frames, options, files, message):
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    result = run("recognize", make("first"), make("second", frames, seed=1), *options, code=2)
    assert message in " ".join(result.output.split())


def test_walks_that_cannot_be_compared_are_refused(make, tmp_path):
    reference = make("first")
    others = Vocabulary.of_colors(np.full((12, 3), 7, np.uint8))
    assert "must have the features" in run("recognize", reference, make("a", vocabulary=others), code=2).output
    assert "has 1 frame but must have at least 2" in run("recognize", make("b", [0]), reference, code=2).output
    unnumbered = make("c", range(10), names="frame.png")
    message = run("recognize", reference, unnumbered, code=2).output
    assert "REFERENCE has 40 frames and QUERY 10" in message
    (tmp_path / "first" / "039.png").write_bytes(b"no image")
    film = tmp_path / "a.gif"
    assert "039.png" in run("recognize", reference, make("d"), "--film", film, code=2).output
    assert not film.exists()
