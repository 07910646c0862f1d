"""A fit that is killed goes on from its checkpoint, and ends with the bits of one that was not."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import SafetensorError
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids import checkpoints, files
from countinggrids.cli import app

OPTIONS = {"max_iter": 40, "tol": 1e-2, "n_init": 2, "random_state": 3}


class Killed(Exception):  # noqa: N818
    pass


@pytest.fixture
def X(rng):  # noqa: N802
    return rng.poisson(rng.gamma(0.3, 2, (60, 12)))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SHARE_OF_TIME", 1.0)
    return tmp_path / "fit.checkpoint"


def fit(X, path=None, dies_at=None, **options):
    """Fit a model that scouts; raise in the callback of some iteration, counted over all runs."""
    seen = []

    def callback(now):
        seen.append(now)
        if len(seen) == dies_at:
            raise Killed(now.stage)

    model = cg.CountingGrid((12, 12), (6, 6), **OPTIONS | options)
    model.n_seen = seen
    return model.fit(X, callback=callback, checkpoint=path)


def test_a_fit_that_dies_again_and_again_ends_with_the_same_bits(X, path):
    wanted = fit(X)
    deaths = []
    while True:
        try:
            given = fit(X, path, dies_at=15)
            break
        except Killed as killed:
            deaths.append(str(killed))
    assert deaths.count("scouting") > 1
    assert deaths.count("learning") > 1
    assert given.pi_.tobytes() == wanted.pi_.tobytes()
    assert given.history_.tobytes() == wanted.history_.tobytes()
    assert given.converged_ == wanted.converged_


def test_a_random_start_is_remembered(X, path):
    with pytest.raises(Killed):
        fit(X, path, dies_at=30, random_state=None)
    seen = files.read(path, "checkpoint", 2)[1]["rng.key"].copy()
    fit(X, path, random_state=None)
    np.testing.assert_array_equal(files.read(path, "checkpoint", 2)[1]["rng.key"], seen)


def test_a_finished_fit_ends_at_once(X, path):
    wanted = fit(X, path)
    again = fit(X, path)
    assert again.n_seen == []
    assert again.pi_.tobytes() == wanted.pi_.tobytes()


SCRIPT = """
import sys, numpy as np, countinggrids as cg
from countinggrids import checkpoints
checkpoints.SHARE_OF_TIME = 1.0
X = np.random.default_rng(0).poisson(0.3, (900, 300))
model = cg.CountingGrid((24, 24), (6, 6), max_iter=60, tol=1e-2, random_state=0)
model.fit(X, checkpoint=sys.argv[1] or None)
np.save(sys.argv[2], model.pi_)
"""


def test_kill_at_any_moment_changes_no_bit(tmp_path):
    checkpoint, rng, n_kills = tmp_path / "fit.checkpoint", np.random.default_rng(0), 0
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    began = time.monotonic()
    subprocess.run([*command, "", tmp_path / "wanted.npy"], check=True)
    whole = time.monotonic() - began
    for _ in range(100):
        process = subprocess.Popen([*command, checkpoint, tmp_path / "given.npy"])
        try:
            # So late that most of them get somewhere, and so early that most of them do not end.
            process.wait(whole * rng.uniform(0.4, 0.9))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            n_kills += 1
        if process.wait() == 0:
            break
    assert n_kills >= 1
    assert (tmp_path / "given.npy").read_bytes() == (tmp_path / "wanted.npy").read_bytes()


def test_a_full_disk_leaves_the_checkpoint_as_it_was(X, path, monkeypatch):
    with pytest.raises(Killed):
        fit(X, path, dies_at=30)
    before = path.read_bytes()

    def fail(*_):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(files, "save_file", fail)
        with pytest.raises(OSError, match=r"could not write .* No space left on device"):
            fit(X, path)
    assert path.read_bytes() == before
    assert fit(X, path).pi_.tobytes() == fit(X).pi_.tobytes()


def test_what_a_killed_process_left_half_written_is_cleared_away(X, path):
    leftover = path.with_name(f".{path.name}.abc")
    leftover.write_bytes(b"half")
    fit(X, path)
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": (4, 4)}, "window is [6, 6] there and [4, 4] here"),
        ({"eta": 0.5}, "eta is 'auto' there and 0.5 here"),
        ({"dtype": "float64"}, "dtype is 'float32' there and 'float64' here"),
    ],
)
def test_a_checkpoint_of_other_options_is_refused(X, path, change, message):
    fit(X, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=re.escape(f"{path} is the checkpoint of another fit: {message}")):
        cg.CountingGrid(**{"grid": (12, 12), "window": (6, 6)} | OPTIONS | change).fit(X, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("what", ["an entry", "the order", "the weights", "the number"])
def test_a_checkpoint_of_other_bags_is_refused(X, path, what):
    fit(X, path)
    other, weights = X.copy(), np.ones(60)
    if what == "an entry":
        other[59, 11] += 1
    elif what == "the order":
        other = other[::-1]
    elif what == "the weights":
        weights[5] = 2
    else:
        other, weights = other[:-1], weights[:-1]
    with pytest.raises(ValueError, match=r"checkpoint of another fit: (bags|shape of X) is .* delete this one"):
        cg.CountingGrid((12, 12), (6, 6), **OPTIONS).fit(other, sample_weight=weights, checkpoint=path)


def test_other_versions_and_a_damaged_file_are_refused(X, path):
    files.write(path, {"format": "checkpoint", "version": 3}, {})
    with pytest.raises(ValueError, match="is of version 3; this release reads up to 2; upgrade it"):
        fit(X, path)
    files.write(path, {"format": "checkpoint", "version": 1}, {})
    with pytest.raises(ValueError, match="is a checkpoint of version 1; this release goes on from version 2"):
        fit(X, path)
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="is damaged or no file of countinggrids"):
        fit(X, path)


def test_a_folder_that_is_not_there_is_named(X, tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder; wanted one to write fit into; make it first"):
        fit(X, tmp_path / "gone" / "fit")


def test_the_command_takes_a_checkpoint_and_clears_it_away(X, path, tmp_path):
    sp.save_npz(tmp_path / "bags.npz", sp.csr_array(X))
    command = ["fit", str(tmp_path / "bags.npz"), "--grid", "12x12", "--window", "6x6", "--json"]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "model"), "--checkpoint", str(path)])
    assert json.loads(result.stdout)["class"] == "CountingGrid"
    assert not path.exists()
