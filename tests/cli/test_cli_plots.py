"""The command plot: from a model and its collection to a picture."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.data.items import Items
from countinggrids.features import Vocabulary
from countinggrids.features.text import Document

RUN = CliRunner()


def run(*arguments, code=0):
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A collection of colors and one of words, with a model of each."""
    folder = tmp_path_factory.mktemp("plots")
    rng = np.random.default_rng(0)
    colors = Vocabulary.of_colors(rng.integers(0, 256, (6, 3), dtype=np.uint8))
    items = Items({"title": [f"bag {i}" for i in range(20)]})
    collections = {
        "colors": cg.Collection(rng.integers(0, 9, (20, 4 * 6)), colors, items, (2, 2)),
        "words": cg.Collection.from_texts(
            [Document(" ".join(rng.choice(["tea", "two", "cups", "more"], 9))) for _ in range(20)]
        ),
    }
    for name, collection in collections.items():
        sections = collection.sections if len(collection.sections) > 1 else None
        model = cg.CountingGrid((6, 8), (2, 4), sections, random_state=0).fit(collection.counts)
        model.save(folder / f"{name}.model")
        collection.save(folder / f"{name}.cg")
    np.save(folder / "counts.npy", collections["words"].counts.toarray())
    return folder


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("colors", "grid"),
        ("words", "words"),
        ("colors", "usage"),
        ("colors", "prior"),
        ("colors", "posterior"),
        ("words", "posterior"),
        ("colors", "history"),
    ],
)
def test_every_kind_of_picture(files, tmp_path, name, what):
    picture = tmp_path / "a.png"
    options = ["--roll", "--tiles", "1x2", "--windows", 3, "--bag", 2, "--json"]
    result = run("plot", files / f"{name}.model", files / f"{name}.cg", "-o", picture, "--what", what, *options)
    assert json.loads(result.stdout) == {"what": what, "picture": str(picture)}
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["colors.model", "colors.cg"], "grid"),
        (["words.model", "words.cg"], "words"),
        (["colors.model"], "prior"),
        (["words.model", "counts.npy"], "prior"),
    ],
)
def test_what_suits_is_drawn_if_nothing_is_said(files, tmp_path, arguments, what):
    printed = run("plot", *(files / name for name in arguments), "-o", tmp_path / "a.svg", "--json").stdout
    assert json.loads(printed)["what"] == what
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


MESSAGES = {
    "grid without a collection": (
        ["words.model", "counts.npy", "--what", "grid"],
        "Error: --what=grid needs a collection; pass one after the model.",
    ),
    "usage without bags": (
        ["words.model", "--what", "usage"],
        "Error: --what=usage needs bags; pass a collection or counts after the model.",
    ),
    "windows without bags": (
        ["words.model", "--windows", "2"],
        "Error: --windows needs bags; pass a collection or counts after the model.",
    ),
    "no such bag": (
        ["words.model", "words.cg", "--what", "posterior", "--bag", "20"],
        "Error: --bag=20 must be from 0 to 19; use another number.",
    ),
    "a grid of words": (
        ["words.model", "words.cg", "--what", "grid"],
        "Error: vocabulary of words has no colors; expected colors, labels, or patches with images; "
        "plot the words of the grid.",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_mistakes_exit_with_two_and_leave_no_file(files, tmp_path, case):
    arguments, message = MESSAGES[case]
    known = [files / part if "." in part else part for part in arguments]
    assert run("plot", *known, "-o", tmp_path / "a.png", code=2).stderr.strip() == message
    assert not list(tmp_path.iterdir())


def test_an_existing_picture_and_an_unknown_format_are_refused(files, tmp_path):
    old = tmp_path / "a.png"
    old.write_bytes(b"old")
    assert "exists; use another name" in run("plot", files / "words.model", "-o", old, code=2).stderr
    assert old.read_bytes() == b"old"
    run("plot", files / "words.model", "-o", old, "--force")
    assert old.read_bytes()[:4] == b"\x89PNG"
    printed = run("plot", files / "words.model", "-o", tmp_path / "a.txt", code=2).stderr
    assert "must end in .png, .pdf or .svg" in printed


def test_a_film_of_a_collection(files, tmp_path):
    film = tmp_path / "a.mp4"
    options = ["--grid", "6x8", "--window", "2x4", "--every", 20, "--size", 80, "--seed", 3, "--json"]
    printed = json.loads(run("movie", files / "colors.cg", "-o", film, *options).stdout)
    assert printed["frames"] == printed["iterations"] // 20
    assert printed["bytes"] == film.stat().st_size
    import av

    with av.open(film) as container:
        assert len(list(container.decode(video=0))) == printed["frames"] + 24
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_a_film_of_words(files, tmp_path):
    film = tmp_path / "a.gif"
    run("movie", files / "words.cg", "-o", film, "--grid", "6x8", "--window", "2x4", "--windows", 0, "--size", 80)
    assert film.read_bytes()[:6] == b"GIF89a"


def test_thumbnails_are_shown_where_the_files_are(tmp_path):
    from PIL import Image

    from countinggrids.cli.plots import _thumbnails

    Image.new("RGB", (40, 20), (1, 2, 3)).save(tmp_path / "a.png")
    colors = Vocabulary.of_colors(np.zeros((2, 3), np.uint8))
    for name, is_there in (("a.png", True), ("b.png", False)):
        collection = cg.Collection(np.eye(2), colors, Items({"path": [name, name]}, tmp_path), 1)
        assert (_thumbnails(collection, [0, 1]) is not None) == is_there


def test_films_are_checked_before_any_work(files, tmp_path):
    printed = run("movie", files / "words.cg", "-o", tmp_path / "a.avi", code=2).stderr
    assert printed.strip().endswith("a.avi' must end in .gif, .mp4 or .webm; use for instance film.gif.")
    printed = run("movie", "--grid", "6x8", "-o", tmp_path / "a.gif", code=2).stderr
    assert "--grid, --window and --sections need a collection; pass one as BAGS" in printed
    printed = run("movie", "--scene", "trees", "-o", tmp_path / "a.gif", "--data", tmp_path, code=2).stderr
    assert "trees.npz does not exist" in printed
    old = tmp_path / "old.gif"
    old.write_bytes(b"old")
    assert "exists; use another name" in run("movie", "-o", old, code=2).stderr
    assert old.read_bytes() == b"old"


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["photo", "trees"])
def test_scenes_assemble_themselves(data, tmp_path, scene):
    film = tmp_path / "a.gif"
    printed = json.loads(run("movie", "--scene", scene, "--data", data, "-o", film, "--json").stdout)
    assert printed["frames"] > 60
    assert printed["bytes"] < 5e6
