"""The commands spare their inputs, and say what becomes of work that was interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.features.text import Document

RUN = CliRunner()
INPUTS = {
    "bag images": "photos --codebook book.cg",
    "bag frames": "frames --labels labels.csv --codebook book.cg",
    "bag text": "texts.txt more.csv --codebook book.cg --stop-words stop.txt",
    "fit": "bags.cg",
    "classify": "bags.cg --test test.cg",
    "search": "bags.cg",
    "track": "bags.cg --test test.cg --transitions transitions.csv",
    "cluster": "bags.cg --model model",
    "plot": "model bags.cg",
    "movie": "bags.cg",
    "export": "model bags.cg",
    "map": "texts.txt",
    "recognize": "bags.cg test.cg",
}
ENDINGS = {
    "classify": "csv",
    "search": "json",
    "track": "csv",
    "cluster": "csv",
    "plot": "png",
    "movie": "gif",
    "recognize": "csv",
}
FOLDERS = ("photos", "frames")
PAIRS = [
    (name, i)
    for name, given in INPUTS.items()
    for i, part in enumerate(given.split())
    if not part.startswith("--") and part not in FOLDERS
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make every input, in the folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    texts = [Document(f"tea for {i % 3} cups", f"title {i}", label="ab"[i % 2]) for i in range(12)]
    collection = cg.Collection.from_texts(texts)
    for name in ("bags.cg", "test.cg", "book.cg"):
        collection.save(name)
    cg.CountingGrid((4, 4), 2, max_iter=300, random_state=0).fit(collection.counts).save("model")
    for name in ("labels.csv", "texts.txt", "more.csv", "stop.txt", "transitions.csv"):
        Path(name).write_text("precious\n")
    for name in FOLDERS:
        Path(name).mkdir()
        Image.fromarray(np.zeros((32, 32), np.uint8)).save(f"{name}/1.png")
    return tmp_path


def outputs_of(group, prefix=""):
    """List the commands that write a file or a folder."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from outputs_of(command, f"{prefix}{name} ")
        elif any("--output" in option.opts for option in command.params):
            yield prefix + name


def test_every_command_that_writes_is_tried_here():
    assert {*outputs_of(typer.main.get_command(app))} == {*INPUTS, "demo", "reproduce"}


def everything(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def refused(*arguments):
    """Run a command that must not work; give what it says."""
    result = RUN.invoke(app, [*map(str, arguments)])
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize(("command", "number"), PAIRS)
def test_no_output_replaces_an_input(folder, command, number, link):
    given = INPUTS[command].split()
    output = Path(f"linked.{ENDINGS.get(command, 'x')}")
    getattr(output, link)(Path(given[number]).absolute())
    before = everything(folder)
    assert f"--output {output} and " in (said := refused(*command.split(), *given, "-o", output, "--force"))
    assert f"{given[number]} are the same file" in said
    assert everything(folder) == before


def test_the_model_and_the_checkpoint_are_two_files(folder):
    for output, checkpoint in [("x", "x"), ("x", "./x"), ("x", "link"), ("link", "x")]:
        Path("link").unlink(missing_ok=True)
        Path("link").symlink_to("x")
        said = refused("fit", "bags.cg", "-o", output, "--checkpoint", checkpoint)
        assert f"--checkpoint {Path(checkpoint)} and --output {Path(output)} are the same file" in said
    said = refused("fit", "bags.cg", "-o", "x", "--checkpoint", "bags.cg")
    assert "--checkpoint bags.cg and BAGS bags.cg are the same file" in said
    assert not Path("x").exists()


def test_a_table_and_its_picture_are_two_files(folder):
    Path("t.csv").write_text("old")
    Path("t.png").hardlink_to("t.csv")
    said = refused("cluster", "bags.cg", "-o", "t.csv", "--plot", "t.png", "--force")
    assert "--plot t.png and --output t.csv are the same file" in said


def test_reports_and_data_sets_are_not_replaced(folder):
    Path("out").mkdir()
    assert "are the same file" in refused("reproduce", "trees", "-o", "out", "--data", "out", "--quick")
    said = refused("reproduce", "trees", "-o", "out", "--results", "out", "--quick")
    assert "--results out and --output out are the same file" in said
    Path("results.md").write_text("old")
    assert "must be a folder, but it is a file" in refused("reproduce", "trees", "--results", "results.md", "--quick")


@pytest.mark.parametrize("kind", ["images", "frames", "text"])
def test_a_file_of_a_folder_that_is_read_is_not_replaced(folder, kind):
    said = refused("bag", kind, "photos", "-o", "photos/1.png", "--force")
    assert "--output=photos/1.png must not be a file in photos, which is read" in said


def test_a_collection_may_lie_in_the_folder_that_is_read(folder):
    for _ in range(2):
        options = ["--features", "colors", "--words", "1", "--force"]
        result = RUN.invoke(app, ["bag", "images", "photos", "-o", "photos/bags.cg", *options])
        assert result.exit_code == 0, result.output


def test_a_linked_output_is_followed(folder):
    Path("deep").mkdir()
    Path("link").symlink_to("deep/model")
    assert RUN.invoke(app, ["fit", "bags.cg", "-o", "link", "--grid", "4x4", "--window", "2x2"]).exit_code == 0
    assert Path("link").is_symlink()
    cg.load("deep/model")
    Path("lost").symlink_to("nowhere/model")
    assert "nowhere must be a folder" in refused("fit", "bags.cg", "-o", "lost")


def test_info_verifies_what_is_read_lazily(folder):
    result = RUN.invoke(app, ["info", "bags.cg", "--verify", "--json"])
    assert '"verified_arrays"' in result.stdout
    assert '"verified_arrays"' in RUN.invoke(app, ["info", "model", "--verify", "--json"]).stdout
    whole = bytearray(Path("bags.cg").read_bytes())
    whole[bytes(whole).index(b"tea for")] ^= 1
    Path("bags.cg").write_bytes(whole)
    assert RUN.invoke(app, ["info", "bags.cg"]).exit_code == 0
    assert "bags.cg is damaged: array 'item.text.bytes'" in refused("info", "bags.cg", "--verify")


INTERRUPTED = """
import os, signal, sys, time
from countinggrids.models import base
from countinggrids.training import checkpoints
checkpoints.SHARE_OF_TIME = 1.0
class Interrupting:
    n = 0
    def __call__(self, now):
        self.n += 1
        if self.n == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
plain = base.combined
base.combined = lambda *callbacks: plain(Interrupting(), *callbacks[:1])
from countinggrids.cli import app
app(sys.argv[1:])
"""


@pytest.mark.parametrize("options", [[], ["--checkpoint", "fit.checkpoint"]])
def test_ctrl_c_says_what_a_checkpoint_does(folder, options):
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "fit", "bags.cg", "-o", "x", *options],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.returncode == 130, process.stderr
    assert "Traceback" not in process.stderr
    if options:
        assert "the training state is in fit.checkpoint; the same command resumes from it" in process.stderr
    else:
        assert "use --checkpoint FILE to resume a fit with the same command" in process.stderr
    assert not Path("x").exists()
    assert not [name for name in os.listdir() if "countinggrids-" in name]


def test_a_file_of_another_estimator_is_described_and_is_no_model(tmp_path):
    X = np.random.default_rng(0).poisson(1.0, (8, 6))
    np.save(tmp_path / "x.npy", X)
    cg.BagScaler(5).fit(X).save(tmp_path / "scaler.cg")
    result = RUN.invoke(app, ["info", str(tmp_path / "scaler.cg"), "--json"])
    assert result.stdout.strip() == '{"class": "BagScaler", "columns": 6}'
    result = RUN.invoke(app, ["locate", str(tmp_path / "scaler.cg"), str(tmp_path / "x.npy")])
    assert result.exit_code == 2
    assert "holds a BagScaler and must hold a grid; use a model that `fit` wrote." in result.stderr
