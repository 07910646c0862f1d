"""A fit that is killed goes on from its checkpoint, and ends with the bits of one that was not."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import countinggrids as cg
from countinggrids.cli import app
from countinggrids.data import container, locks
from countinggrids.training import checkpoints

OPTIONS = {"max_iter": 40, "tol": 1e-2, "n_init": 2, "random_state": 3}


class Killed(Exception):  # noqa: N818
    pass


@pytest.fixture
def X(rng):  # noqa: N802
    return rng.poisson(rng.gamma(0.3, 2, (60, 12)))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "TIME_FRACTION", 1.0)
    return tmp_path / "fit.checkpoint"


def fit(X, path=None, dies_at=None, **options):
    """Fit a model with candidates; raise in the callback of some iteration, counted over all runs."""
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
    assert deaths.count("candidates") > 1
    assert deaths.count("learning") > 1
    assert given.pi_.tobytes() == wanted.pi_.tobytes()
    assert given.history_.tobytes() == wanted.history_.tobytes()
    assert given.converged_ == wanted.converged_


def test_a_random_start_is_remembered(X, path):
    with pytest.raises(Killed):
        fit(X, path, dies_at=30, random_state=None)
    seen = container.read(path, "checkpoint", checkpoints.VERSION)[1]["rng.key"].copy()
    fit(X, path, random_state=None)
    np.testing.assert_array_equal(container.read(path, "checkpoint", checkpoints.VERSION)[1]["rng.key"], seen)


def test_a_finished_fit_ends_at_once(X, path):
    wanted = fit(X, path)
    again = fit(X, path)
    assert again.n_seen == []
    assert again.pi_.tobytes() == wanted.pi_.tobytes()


SCRIPT = """
import sys, numpy as np, countinggrids as cg
from countinggrids.training import checkpoints
checkpoints.TIME_FRACTION = 1.0
X = np.random.default_rng(0).poisson(0.3, (900, 300))
model = cg.CountingGrid((24, 24), (6, 6), max_iter=60, tol=1e-2, random_state=0)
model.fit(X, checkpoint=sys.argv[1] or None)
np.save(sys.argv[2], model.pi_)
"""


def test_kill_at_any_moment_changes_no_bit(tmp_path):
    checkpoint, rng = tmp_path / "fit.checkpoint", np.random.default_rng(0)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    subprocess.run([*command, "", tmp_path / "wanted.npy"], check=True)

    def written():
        return checkpoint.stat().st_mtime_ns if checkpoint.exists() else None

    n_kills = 0
    while n_kills < 6:
        before = written()
        process = subprocess.Popen([*command, checkpoint, tmp_path / "given.npy"])
        # Every run writes at least one checkpoint, however slow the machine is, and dies at some moment after it.
        while process.poll() is None and written() == before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
        n_kills += 1
    assert n_kills >= 1
    subprocess.run([*command, checkpoint, tmp_path / "given.npy"], check=True)
    assert (tmp_path / "given.npy").read_bytes() == (tmp_path / "wanted.npy").read_bytes()


def test_a_full_disk_costs_a_warning_and_leaves_the_checkpoint_as_it_was(X, path, monkeypatch):
    with pytest.raises(Killed):
        fit(X, path, dies_at=30)
    before, attempts = path.read_bytes(), []

    def full(*_):
        attempts.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(UserWarning, match="No space left on device") as warned:
            given = fit(X, path)
    assert len(attempts) > 1
    assert len(warned) == 1
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    assert given.pi_.tobytes() == fit(X).pi_.tobytes()


def test_a_disk_that_is_full_for_a_while_gets_the_checkpoint_later(X, path, monkeypatch):
    flush, attempts = os.fsync, []

    def full_at_first(handle):
        attempts.append(1)
        if len(attempts) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(handle)

    monkeypatch.setattr(os, "fsync", full_at_first)
    with pytest.warns(UserWarning, match="checkpoint=.* is out of date"):
        fit(X, path)
    assert fit(X, path).n_seen == []


@pytest.mark.parametrize("reason", [errno.ENOLCK, errno.ENOSPC])
def test_a_checkpoint_that_cannot_be_locked_costs_a_warning(X, path, monkeypatch, reason):
    def refuse(_):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(locks, "_take", refuse)
    with pytest.warns(UserWarning, match="is not locked"):
        fit(X, path)
    assert path.exists()


def leftover_of(path, pid, random="0123456789abcdef"):
    """Write what a process would leave that was killed while it wrote."""
    leftover = path.with_name(f".{path.name}.{pid}-{random}.countinggrids-tmp")
    leftover.write_bytes(b"half")
    return leftover


def pid_of_the_dead():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_half_written_is_cleared_away(X, path):
    dead = pid_of_the_dead()
    leftover = leftover_of(path, dead)
    elsewhere = leftover_of(path.with_name("other.checkpoint"), dead)
    of_the_living = leftover_of(path, os.getppid())
    folder = path.with_name(f".{path.name}.{dead}-0000000000000000.countinggrids-tmp")
    folder.mkdir()
    fit(X, path)
    assert not leftover.exists()
    assert elsewhere.exists()
    assert of_the_living.exists()
    assert folder.exists()


@pytest.mark.parametrize("name", ["env", "*", "[a-z]*", "?", "a.b"])
def test_hidden_files_of_the_user_stay(X, path, name):
    hidden = [".env.local", ".env.", ".*.x", ".a.b.c", ".a.b.tmp1234", ".profile", ".env.12-abc.countinggrids-tmp"]
    for each in hidden:
        path.with_name(each).write_text("precious")
    path.with_name(".env.folder").mkdir()
    fit(X, path.with_name(name))
    assert sorted(os.listdir(path.parent)) == sorted([*hidden, ".env.folder", name])


HOLDING = """
import sys, time, numpy as np, countinggrids as cg
X = np.random.default_rng(0).poisson(0.3, (60, 12))
def hold(_):
    print("held", flush=True)
    time.sleep(60)
cg.CountingGrid((12, 12), (6, 6)).fit(X, checkpoint=sys.argv[1], callback=hold)
"""


@pytest.fixture
def holder(path):
    """Start a process that holds the checkpoint."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_fit_is_told_who_holds_the_checkpoint(X, path, holder):
    message = rf"is in use by process {holder.pid} on .+ since \d{{4}}-\d\d-\d\d .*use another checkpoint"
    with pytest.raises(BlockingIOError, match=message):
        fit(X, path)
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(BlockingIOError, match=message):
        fit(X, link)


def test_the_lock_of_a_killed_process_blocks_nobody(X, path, holder):
    holder.kill()
    holder.wait()
    assert len(os.listdir(path.parent)) == 1  # the lock file
    fit(X, path)
    assert os.listdir(path.parent) == [path.name]


def test_ctrl_c_leaves_no_lock_behind(path, holder):
    holder.send_signal(signal.SIGINT)
    holder.wait(20)
    assert os.listdir(path.parent) == []


def test_an_exception_leaves_no_lock_behind(X, path):
    with pytest.raises(Killed):
        fit(X, path, dies_at=1)
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="damaged"):
        fit(X, path)
    assert os.listdir(path.parent) == [path.name]


def test_fits_that_race_for_a_checkpoint_never_hold_it_together(tmp_path):
    held, most = [], []

    def take_often():
        n_taken = 0
        while n_taken < 30:
            try:
                with locks.Lock(tmp_path / "fit"):
                    held.append(1)
                    time.sleep(1e-4)
                    most.append(len(held))
                    held.pop()
                n_taken += 1
            except BlockingIOError:
                time.sleep(1e-4)

    threads = [threading.Thread(target=take_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_that_would_replace_the_bags_is_refused(X, path):
    bags = path.with_name("bags.npy")
    np.save(bags, X)
    before = bags.read_bytes()
    for name in ("symlink", "hardlink"):
        link = path.with_name(name)
        link.symlink_to(bags) if name == "symlink" else link.hardlink_to(bags)
        for given in (bags, [bags, bags]):
            with pytest.raises(ValueError, match=r"checkpoint='.*' and X='.*' are the same file"):
                fit(given, link)
    assert bags.read_bytes() == before


def test_a_checkpoint_given_as_a_link_leaves_the_link(X, path):
    link = path.with_name("link")
    link.symlink_to(path.name)
    fit(X, link)
    assert link.is_symlink()
    assert fit(X, path).n_seen == []


def test_a_folder_is_no_checkpoint(X, tmp_path):
    with pytest.raises(ValueError, match="must be a plain file"):
        fit(X, tmp_path)


def test_a_grid_that_is_not_finite_is_not_resumed(X, path):
    with pytest.raises(Killed):
        fit(X, path, dies_at=30)
    facts, arrays = container.read(path, "checkpoint", checkpoints.VERSION)
    pi = np.array(arrays["running.pi"])
    pi.flat[5] = np.nan
    container.write(path, facts, dict(arrays) | {"running.pi": pi})
    with pytest.raises(ValueError, match=r"\(running.pi, running.log_prior or running.extra is not finite\)"):
        fit(X, path)


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
    container.write(path, {"format": "checkpoint", "version": 7}, {})
    with pytest.raises(ValueError, match="has version 7; this release reads version 6; upgrade it"):
        fit(X, path)
    container.write(path, {"format": "checkpoint", "version": 3}, {})
    with pytest.raises(ValueError, match="has version 3; this release reads version 6; make the checkpoint again"):
        fit(X, path)
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="is damaged or no file of countinggrids"):
        fit(X, path)


def test_a_folder_that_is_not_there_is_named(X, tmp_path):
    with pytest.raises(FileNotFoundError, match="must be a folder to write fit; make it first"):
        fit(X, tmp_path / "gone" / "fit")


def test_the_command_takes_a_checkpoint_and_clears_it_away(X, path, tmp_path):
    sp.save_npz(tmp_path / "bags.npz", sp.csr_array(X))
    command = ["fit", str(tmp_path / "bags.npz"), "--grid", "12x12", "--window", "6x6", "--json"]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "model"), "--checkpoint", str(path)])
    assert json.loads(result.stdout)["class"] == "CountingGrid"
    assert not path.exists()
