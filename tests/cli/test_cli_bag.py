"""The commands from raw files to a model."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.data.items import Items
from countinggrids.features import Colors
from countinggrids.features.text import Document

RUN = CliRunner()


def run(*arguments, code=0):
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def photos(tmp_path):
    """A folder of two class folders with six crops each."""
    for name, photo in zip(("house", "plant"), load_sample_images().images, strict=True):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(6):
            Image.fromarray(photo[40 * i : 40 * i + 120, :160]).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    rows = [f'"{word} {word}s and the {word}","{word}",2020-01-0{i + 1}' for i, word in enumerate(["tea", "cup"] * 4)]
    path.write_text("body,kind,when\n" + "\n".join(rows))
    return path


def test_from_photos_to_places(photos, tmp_path):
    bags, model = tmp_path / "bags.cg", tmp_path / "model.cg"
    printed = json.loads(run("bag", "images", photos, "--words", 20, "--sections", "2x2", "-o", bags, "--json").stdout)
    assert (printed["bags"], printed["features"], printed["sections"], printed["skipped"]) == (12, 20, [2, 2], 0)
    fitted = run("fit", bags, "-o", model, "--seed", 0)
    assert "grid 15x15 and window 8x8 chosen for 12 bags; use --grid and --window for others" in fitted.stderr
    assert cg.load(model).sections == (2, 2)
    lines = run("locate", model, bags).stdout.splitlines()
    assert len(lines) == 12
    assert lines[0].endswith("\thouse/0.png")
    assert len(json.loads(run("score", model, bags, "--json").stdout)) == 12
    assert json.loads(run("locate", model, bags, "--json").stdout)[0].keys() == {"item", "place"}
    new, other = tmp_path / "new.cg", tmp_path / "other.cg"
    run("bag", "images", photos, "--codebook", bags, "-o", new)
    assert run("locate", model, new).stdout.splitlines() == lines
    run("bag", "images", photos, "--words", 20, "--sections", "2x2", "--seed", 1, "-o", other)
    assert "must have the features of the model" in run("locate", model, other, code=2).stderr
    assert json.loads(run("info", bags, "--json").stdout)["class"] == "Collection"
    assert json.loads(run("info", model, "--json").stdout)["class"] == "CountingGrid"


def test_finer_collections_serve_coarser_models(photos, tmp_path):
    bags, model = tmp_path / "bags.cg", tmp_path / "model.cg"
    run("bag", "images", photos, "--features", "colors", "--words", 8, "--sections", "4x4", "-o", bags)
    run("fit", bags, "--grid", "6x6", "--window", "4x4", "--sections", "2x2", "--seed", 0, "-o", model)
    assert len(run("locate", model, bags).stdout.splitlines()) == 12
    run("fit", bags, "--grid", "6x6", "--window", "4x4", "--sections", "1x1", "--paint", "4x4", "-o", model, "--force")
    assert len(run("locate", model, bags).stdout.splitlines()) == 12
    refused = run("fit", bags, "--grid", "6x6", "--window", "6x6", "--sections", "3x3", "-o", tmp_path / "x", code=2)
    assert "sections=(3, 3) must divide the collection's (4, 4); bag the items again." in refused.stderr


def test_a_second_run_is_the_same_to_the_bit(photos, tmp_path):
    first, second, third = (tmp_path / name for name in ("a.cg", "b.cg", "c.cg"))
    run("bag", "images", photos, "--words", 10, "-o", first)
    run("bag", "images", photos, "--words", 10, "-o", second)
    run("bag", "images", photos, "--codebook", first, "-o", third)
    assert first.read_bytes() == second.read_bytes()
    one, other = cg.Collection.load(first), cg.Collection.load(third)
    assert one.counts.data.tobytes() == other.counts.data.tobytes()
    assert one.counts.indices.tobytes() == other.counts.indices.tobytes()


@pytest.mark.parametrize("features", ["sift", "colors", "textons"])
def test_every_kind_of_feature(photos, tmp_path, features):
    printed = run(
        "bag", "images", photos, "--features", features, "--words", 7, "-o", tmp_path / "a.cg", "--json"
    ).stdout
    assert json.loads(printed)["features"] == 7


def test_label_images(tmp_path):
    (tmp_path / "maps").mkdir()
    for i in range(3):
        Image.fromarray(np.full((20, 20), i, np.uint8)).save(tmp_path / "maps" / f"{i}.png")
    run("bag", "images", tmp_path / "maps", "--features", "labels", "-o", tmp_path / "a.cg")
    assert cg.Collection.load(tmp_path / "a.cg").vocabulary.names == ("unlabeled", "0", "1", "2")


def test_broken_images_are_named_counted_and_left_out(photos, tmp_path):
    (photos / "house" / "2.png").write_bytes(b"broken")
    (photos / "plant" / "4.png").write_bytes(b"")
    output = tmp_path / "a.cg"
    result = run("bag", "images", photos, "--words", 8, "-o", output)
    assert "skipped: " in result.stderr
    assert "house/2.png cannot be read" in result.stderr
    assert "2 skipped, 10 bagged; use --strict to make these errors" in result.stderr
    assert len(cg.Collection.load(output)) == 10
    refused = run("bag", "images", photos, "--words", 8, "-o", tmp_path / "b.cg", "--strict", code=2)
    assert "cannot be read" in refused.stderr
    assert not (tmp_path / "b.cg").exists()


def test_frames_keep_their_order_and_places(photos, tmp_path):
    run("bag", "frames", photos, "--features", "colors", "--words", 6, "-o", tmp_path / "a.cg")
    made = cg.Collection.load(tmp_path / "a.cg")
    assert made.items["sequence"].tolist() == ["house"] * 6 + ["plant"] * 6
    assert made.items["time"].tolist() == list(range(6)) * 2


def test_frames_of_a_video(tmp_path):
    cv2 = pytest.importorskip("cv2")
    writer = cv2.VideoWriter(str(tmp_path / "a.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 5, (64, 48))
    for frame in np.random.default_rng(0).integers(255, size=(10, 48, 64, 3), dtype=np.uint8):
        writer.write(frame)
    writer.release()
    run("bag", "frames", tmp_path / "a.avi", "--words", 4, "--every", 0.4, "-o", tmp_path / "a.cg")
    assert cg.Collection.load(tmp_path / "a.cg").items["time"].tolist() == [0, 0.4, 0.8, 1.2, 1.6]


def test_texts_from_a_table(texts, tmp_path):
    output = tmp_path / "a.cg"
    run("bag", "text", texts, "--label", "kind", "--date", "when", "--max-df", 1.0, "-o", output)
    made = cg.Collection.load(output)
    assert made.vocabulary.names == ("cup", "cups", "tea", "teas")
    assert made.items["label"].tolist() == ["tea", "cup"] * 4
    assert np.diff(made.items["time"]).tolist() == [86400.0] * 7
    run("fit", output, "-o", tmp_path / "m.cg", "--seed", 0, "--grid", "4x4", "--window", "2x2")
    assert run("locate", tmp_path / "m.cg", output).stdout.splitlines()[0].endswith("\ttea teas and the tea")


def test_a_second_text_file_with_the_words_of_the_first(texts, tmp_path):
    first, second = tmp_path / "a.cg", tmp_path / "b.cg"
    run("bag", "text", texts, "-o", first, "--max-df", 1)
    (tmp_path / "more.txt").write_text("tea and coffee\ncoffee\n")
    (tmp_path / "stop.txt").write_text("and the")
    printed = run("bag", "text", tmp_path / "more.txt", "--codebook", first, "-o", second, "--json").stdout
    assert (json.loads(printed)["features"], json.loads(printed)["bags"]) == (4, 1)
    run("bag", "text", tmp_path / "more.txt", "--min-df", 1, "--max-df", 1, "--stop-words", tmp_path / "stop.txt",
        "--ngrams", 2, "--no-keep-text", "-o", second, "--force")  # fmt: skip
    made = cg.Collection.load(second)
    assert made.vocabulary.names == ("coffee", "tea", "tea coffee")
    assert "text" not in made.items


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["images", "none", "-o", "a.cg"], "none is not a folder"),
        (["images", "photos", "-o", "none/a.cg"], "none must be a folder; make it first"),
        (["images", "photos", "-o", "texts.csv"], "texts.csv exists; use another name"),
        (["images", "photos", "-o", "photos", "--force"], "--output=photos must be a plain file"),
        (["images", "photos", "-o", "a.cg", "--sections", "2x2x2"], "sections=(2, 2, 2) has 3 axes"),
        (
            ["images", "photos", "-o", "a.cg", "--codebook", "words.cg", "--words", "9"],
            "--words cannot be used with --codebook",
        ),
        (
            ["images", "photos", "-o", "a.cg", "--codebook", "words.cg"],
            "words.cg was made from words; use a collection",
        ),
        (
            ["text", "texts.csv", "-o", "a.cg", "--codebook", "seen.cg"],
            "seen.cg was made from images; use a collection",
        ),
        (["text", "one.txt", "-o", "a.cg"], "leave no word"),
        (["text", "empty.txt", "-o", "a.cg"], "has no texts (0 read); expected at least one"),
        (["images", "photos", "-o", "a.cg", "--step", "0"], "greater than or equal to 1"),
        (["images", "photos", "-o", "a.cg", "--sections", "two"], "--sections=two must be integers"),
        (
            ["images", "photos", "-o", "a.cg", "--words", "99999"],
            "n_clusters=99999 must be at most the number of vectors",
        ),
        (
            ["images", "photos", "-o", "a.cg", "--features", "colors", "--patch", "3"],
            "needs --features=sift or textons, not colors",
        ),
        (["images", "photos", "-o", "a.cg", "--codebook", "texts.csv"], "damaged or no file of countinggrids"),
        (["text", "texts.csv", "-o", "a.cg", "--column", "x"], "has columns body, kind, when; expected x"),
        (["text", "none.csv", "-o", "a.cg"], "none.csv does not exist"),
        (["text", "texts.csv", "-o", "a.cg", "--stop-words", "german"], "--stop-words=german must be"),
        (["frames", "none.mp4", "-o", "a.cg"], "none.mp4 does not exist"),
    ],
)
def test_wrong_use_exits_with_two_and_leaves_nothing(photos, texts, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("a single line")
    (tmp_path / "empty.txt").write_text("")
    cg.Collection.from_texts([Document("tea")]).save("words.cg")
    cg.Collection.from_images(
        Items({"title": ["a"]}), [Colors(2, random_state=0).fit([np.eye(4)])], images=[np.eye(4)]
    ).save("seen.cg")
    before = sorted(os.listdir(tmp_path))
    assert message in run("bag", *arguments, code=2).stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_ctrl_c_leaves_nothing_half_written(photos, tmp_path):
    for i in range(400):
        Image.fromarray(np.random.default_rng(i).integers(255, size=(512, 512), dtype=np.uint8)).save(
            photos / f"{i}.png", compress_level=0
        )
    command = [sys.executable, "-c", "from countinggrids.cli import app; app()", "bag", "images", str(photos)]
    process = subprocess.Popen(
        [*command, "-o", str(tmp_path / "a.cg")],
        stderr=subprocess.PIPE,
        # A shell that runs the tests in the background has them ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(4)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert b"Traceback" not in process.stderr.read()
    assert sorted(os.listdir(tmp_path)) == ["photos"]


def test_a_report_with_a_number_that_no_float_holds_is_refused(tmp_path):
    collection = cg.Collection.from_texts([Document("tea for two"), Document("two cups of tea")])
    collection.report["longest"][0]["fraction"] = 10**400
    collection.save(tmp_path / "a.cg")
    assert "the report on the texts is damaged" in run("info", tmp_path / "a.cg", code=2).stderr


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path):
    collection = cg.Collection.from_texts([Document("tea for two"), Document("two cups of tea")])
    collection.report["longest"][0]["title"] = "a\x9b2J"
    collection.report["largest_words"] = {"\x1b[2Jtea": 2, "a\tb": 1}
    collection.save(tmp_path / "a.cg")
    printed = run("info", tmp_path / "a.cg").stdout
    assert r"\x1b[2Jtea" in printed
    assert not set("\x1b\x9b\t") & set(printed)
