"""`bag images` with descriptors of one's own, and words from the training split alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from networks import write_network

RUN = CliRunner()


def run(*arguments, code=0):
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    [line] = run(*arguments, code=2).stderr.strip().splitlines()
    return line


@pytest.fixture
def scenes(tmp_path, monkeypatch):
    """Images of two classes in folders train and test, with descriptors of each; those of test are elsewhere."""
    rng = np.random.default_rng(0)
    for split, offset in (("train", 0.0), ("test", 50.0)):
        for label in ("coast", "forest"):
            for i in range(3):
                name = Path(split, label, f"{i}.png")
                for folder in ("photos", "tokens"):
                    (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(rng.integers(0, 256, (40, 48, 3), dtype=np.uint8)).save(tmp_path / "photos" / name)
                array = rng.normal(offset, 1, (5, 6, 8)).astype(np.float32)
                np.save((tmp_path / "tokens" / name).with_suffix(".npy"), array)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_of_descriptors_becomes_a_collection(scenes):
    facts = run(
        "bag", "images", "photos", "--descriptors", "tokens", "--words", 6, "--soft", 2, "--pca", 4, "--metric",
        "cosine", "--whiten", "--sections", "2x2", "-o", "bags.cg", "--json",
    )  # fmt: skip
    facts = json.loads(facts.stdout)
    assert (facts["bags"], facts["features"], facts["sections"], facts["tokens_per_bag"]) == (12, 6, [2, 2], 30.0)
    collection = cg.Collection.load("bags.cg")
    assert collection.vocabulary.patches.shape == (6, 16, 16, 3)
    assert collection.items["path"][0] == "test/coast/0.png"
    assert vars(collection.steps[0].settings_) == {"metric": "cosine", "soft": 2}
    run("bag", "images", "photos", "--descriptors", "tokens", "--codebook", "bags.cg", "-o", "again.cg")
    again = cg.Collection.load("again.cg")
    assert again.counts.toarray().tobytes() == collection.counts.toarray().tobytes()
    assert again.fingerprint == collection.fingerprint


def test_channels_need_no_words(scenes):
    run("bag", "images", "photos", "--descriptors", "tokens", "--features", "channels", "-o", "bags.cg")
    assert cg.Collection.load("bags.cg").vocabulary.names[:2] == ("channel 0", "channel 1")


def centers(*options):
    run("bag", "images", "photos", "--descriptors", "tokens", "--words", 4, *options, "-o", "bags.cg", "--force")
    return cg.Collection.load("bags.cg").steps[0].centers_


def test_words_come_from_the_training_split_where_there_is_one(scenes):
    assert centers("--layout", "scenes15").max() < 10
    assert centers("--layout", "scenes15", "--words-from", "train").max() < 10
    assert centers("--layout", "scenes15", "--words-from", "all").max() > 40
    assert centers().max() > 40  # a plain folder has labels, and no split
    run("bag", "images", "photos", "--layout", "scenes15", "--words", 4, "-o", "sift.cg")
    assert len(cg.Collection.load("sift.cg")) == 12


def test_frames_have_descriptors_too(scenes):
    facts = run("bag", "frames", "photos", "--descriptors", "tokens", "--words", 4, "-o", "bags.cg", "--json")
    assert json.loads(facts.stdout)["bags"] == 12


def test_a_network_becomes_a_collection(scenes):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    write_network(scenes / "net.onnx")
    run("bag", "images", "photos", "--onnx", "net.onnx", "--patch", 4, "--words", 5, "-o", "bags.cg")
    collection = cg.Collection.load("bags.cg")
    assert (collection.steps[0].name_, collection.counts.sum()) == ("net.onnx", 12 * 10 * 12)
    run("bag", "images", "photos", "--codebook", "bags.cg", "-o", "again.cg")
    assert cg.Collection.load("again.cg").counts.toarray().tobytes() == collection.counts.toarray().tobytes()


BAG = ("bag", "images", "photos", "-o", "bags.cg")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--descriptors", "nowhere"], "nowhere is not a folder; expected one of .npy files"),
        (["--descriptors", "photos"], "photos lacks 12 of 12 files, such as photos/test/coast/0.npy"),
        (["--onnx", "nowhere.onnx"], "'nowhere.onnx' is not a file; expected a network in an ONNX file"),
        (["--onnx", "photos/test/coast/0.png"], "0.png is no network that onnxruntime reads"),
        (["--onnx", "a", "--descriptors", "tokens"], "--descriptors and --onnx exclude each other"),
        (["--descriptors", "tokens", "--features", "colors"], "--features=colors excludes --descriptors and --onnx"),
        (["--features", "channels"], "--features=channels needs --descriptors or --onnx"),
        (["--descriptors", "tokens", "--step", "4"], "--step=4 needs descriptors that are computed here"),
        (["--descriptors", "tokens", "--patch", "4"], "--patch=4 needs images, and --descriptors has arrays"),
        (["--skip", "1"], "--tensor and --skip need --onnx"),
        (["--features", "colors", "--soft", "2"], "--soft need words, and --features=colors has none"),
        (["--words-from", "train"], "--words-from=train needs items with a split, and none is known"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused_in_one_line(scenes, options, message):
    assert message in refused(*BAG, *options)
    assert not Path("bags.cg").exists()


def test_a_codebook_says_whether_it_takes_images_or_descriptors(scenes):
    run("bag", "images", "photos", "--words", 4, "-o", "sift.cg")
    run("bag", "images", "photos", "--descriptors", "tokens", "--words", 4, "-o", "tokens.cg")
    assert "was made from descriptors; add --descriptors" in refused(*BAG, "--codebook", "tokens.cg")
    both = refused(*BAG, "--codebook", "sift.cg", "--descriptors", "tokens")
    assert "was made from images; leave --descriptors out" in both
    both = refused(*BAG, "--codebook", "sift.cg", "--soft", 2, "--words-from", "all")
    assert "--soft, --words-from cannot be used with --codebook" in both
