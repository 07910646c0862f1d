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
from countinggrids.features import Colours
from countinggrids.features.text import Document
from countinggrids.items import Items

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
    told = json.loads(run("bag", "images", photos, "--words", 20, "--sections", "2x2", "-o", bags, "--json").stdout)
    assert (told["bags"], told["features"], told["sections"], told["skipped"]) == (12, 20, [2, 2], 0)
    fitted = run("fit", bags, "-o", model, "--seed", 0)
    assert "grid 15x15 and window 8x8 chosen for 12 bags; --grid and --window choose others" in fitted.stderr
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
    assert "has other features than the model; wanted the same" in run("locate", model, other, code=2).stderr
    assert json.loads(run("info", bags, "--json").stdout)["class"] == "Collection"
    assert json.loads(run("info", model, "--json").stdout)["class"] == "CountingGrid"


def test_finer_collections_serve_coarser_models(photos, tmp_path):
    bags, model = tmp_path / "bags.cg", tmp_path / "model.cg"
    run("bag", "images", photos, "--features", "colours", "--words", 8, "--sections", "4x4", "-o", bags)
    run("fit", bags, "--grid", "6x6", "--window", "4x4", "--sections", "2x2", "--seed", 0, "-o", model)
    assert len(run("locate", model, bags).stdout.splitlines()) == 12
    run("fit", bags, "--grid", "6x6", "--window", "4x4", "--sections", "1x1", "--paint", "4x4", "-o", model, "--force")
    assert len(run("locate", model, bags).stdout.splitlines()) == 12
    refused = run("fit", bags, "--grid", "6x6", "--window", "6x6", "--sections", "3x3", "-o", tmp_path / "x", code=2)
    assert "sections (3, 3) must divide the collection's (4, 4); bag again for others" in refused.stderr


def test_a_second_run_is_the_same_to_the_bit(photos, tmp_path):
    first, second, third = (tmp_path / name for name in ("a.cg", "b.cg", "c.cg"))
    run("bag", "images", photos, "--words", 10, "-o", first)
    run("bag", "images", photos, "--words", 10, "-o", second)
    run("bag", "images", photos, "--codebook", first, "-o", third)
    assert first.read_bytes() == second.read_bytes()
    one, other = cg.Collection.load(first), cg.Collection.load(third)
    assert one.counts.data.tobytes() == other.counts.data.tobytes()
    assert one.counts.indices.tobytes() == other.counts.indices.tobytes()


@pytest.mark.parametrize("features", ["sift", "colours", "textons"])
def test_every_kind_of_feature(photos, tmp_path, features):
    told = run("bag", "images", photos, "--features", features, "--words", 7, "-o", tmp_path / "a.cg", "--json").stdout
    assert json.loads(told)["features"] == 7


def test_label_images(tmp_path):
    (tmp_path / "maps").mkdir()
    for i in range(3):
        Image.fromarray(np.full((20, 20), i, np.uint8)).save(tmp_path / "maps" / f"{i}.png")
    run("bag", "images", tmp_path / "maps", "--features", "labels", "-o", tmp_path / "a.cg")
    assert cg.Collection.load(tmp_path / "a.cg").vocabulary.names == ("unlabelled", "0", "1", "2")


def test_broken_images_are_named_counted_and_left_out(photos, tmp_path):
    (photos / "house" / "2.png").write_bytes(b"broken")
    (photos / "plant" / "4.png").write_bytes(b"")
    output = tmp_path / "a.cg"
    result = run("bag", "images", photos, "--words", 8, "-o", output)
    assert "skipped: " in result.stderr
    assert "house/2.png cannot be read" in result.stderr
    assert "2 skipped in all, 10 bagged; --strict makes them errors" in result.stderr
    assert len(cg.Collection.load(output)) == 10
    refused = run("bag", "images", photos, "--words", 8, "-o", tmp_path / "b.cg", "--strict", code=2)
    assert "cannot be read" in refused.stderr
    assert not (tmp_path / "b.cg").exists()


def test_frames_keep_their_order_and_places(photos, tmp_path):
    run("bag", "frames", photos, "--features", "colours", "--words", 6, "-o", tmp_path / "a.cg")
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
    assert run("locate", tmp_path / "m.cg", output).stdout.splitlines()[0].endswith("\ttexts 1")


def test_a_second_text_file_with_the_words_of_the_first(texts, tmp_path):
    first, second = tmp_path / "a.cg", tmp_path / "b.cg"
    run("bag", "text", texts, "-o", first, "--max-df", 1)
    (tmp_path / "more.txt").write_text("tea and coffee\ncoffee\n")
    (tmp_path / "stop.txt").write_text("and the")
    told = run("bag", "text", tmp_path / "more.txt", "--codebook", first, "-o", second, "--json").stdout
    assert (json.loads(told)["features"], json.loads(told)["empty_bags"]) == (4, 1)
    run("bag", "text", tmp_path / "more.txt", "--min-df", 1, "--max-df", 1, "--stop-words", tmp_path / "stop.txt",
        "--ngrams", 2, "--no-keep-text", "-o", second, "--force")  # fmt: skip
    made = cg.Collection.load(second)
    assert made.vocabulary.names == ("coffee", "tea", "tea coffee")
    assert "text" not in made.items


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["images", "none", "-o", "a.cg"], "none is no folder"),
        (["images", "photos", "-o", "none/a.cg"], "none is no folder; wanted one to write into"),
        (["images", "photos", "-o", "texts.csv"], "texts.csv exists; wanted a new file"),
        (["images", "photos", "-o", "photos", "--force"], "photos is no plain file"),
        (["images", "photos", "-o", "a.cg", "--sections", "2x2x2"], "sections (2, 2, 2) has 3 axes"),
        (["images", "photos", "-o", "a.cg", "--codebook", "words.cg", "--words", "9"], "--words given with --codebook"),
        (["images", "photos", "-o", "a.cg", "--codebook", "words.cg"], "words.cg was made from words; wanted a coll"),
        (["text", "texts.csv", "-o", "a.cg", "--codebook", "seen.cg"], "seen.cg was made from images; wanted a coll"),
        (["text", "one.txt", "-o", "a.cg"], "no word is left"),
        (["text", "empty.txt", "-o", "a.cg"], "there are no documents; wanted at least one"),
        (["images", "photos", "-o", "a.cg", "--step", "0"], "greater than or equal to 1"),
        (["images", "photos", "-o", "a.cg", "--sections", "two"], "--sections is 'two'"),
        (["images", "photos", "-o", "a.cg", "--words", "99999"], "vectors for 99999 clusters"),
        (
            ["images", "photos", "-o", "a.cg", "--features", "colours", "--patch", "3"],
            "does not go with --features colours",
        ),
        (["images", "photos", "-o", "a.cg", "--codebook", "texts.csv"], "damaged or no file of countinggrids"),
        (["text", "texts.csv", "-o", "a.cg", "--column", "x"], "has columns body, kind, when; wanted x"),
        (["text", "none.csv", "-o", "a.cg"], "none.csv is not there"),
        (["text", "texts.csv", "-o", "a.cg", "--stop-words", "german"], "--stop-words is 'german'"),
        (["frames", "none.mp4", "-o", "a.cg"], "none.mp4 is not there"),
    ],
)
def test_wrong_use_exits_with_two_and_leaves_nothing(photos, texts, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("a single line")
    (tmp_path / "empty.txt").write_text("")
    cg.Collection.from_texts([Document("tea")]).save("words.cg")
    cg.Collection.from_images(
        Items({"title": ["a"]}), [Colours(2, random_state=0).fit([np.eye(4)])], images=[np.eye(4)]
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
