"""What a fit has done so far, kept in a file: killed at any moment, it goes on from there to the same bits.

A fit is a row of runs of EM: the scouts on the small grid, then the learning on the full one, for every restart. The
file holds the outcomes of the runs that are finished, the last iteration of the one under way, and the state of the
random numbers before the first. The same fit, started again, draws the same numbers and skips what is done.
"""

import json
import os
import time
from hashlib import sha256
from operator import matmul
from pathlib import Path
from typing import Any

import numpy as np

from countinggrids import files, learn
from countinggrids.em import Grid
from countinggrids.sources import Table, runs_of

FORMAT, VERSION = "checkpoint", 2
SHARE_OF_TIME = 0.1
"""Writing takes at most this share of the time, or else iterations go by unwritten."""


class Runs:
    """The runs of a fit that keeps nothing."""

    def make(self, shares: Any, start: Grid, **how: Any) -> learn.Outcome:
        """Make the next run: as `learn.learn`."""
        return learn.learn(shares, learn.Progress.at(start), **how)


class Checkpoint(Runs):
    """The runs of a fit that keeps what it has done in a file.

    Parameters
    ----------
    path : the file; one that is there already is gone on from
    identity : what model, data and options it is for; that of an existing file must be the same
    rng : the random numbers of the fit; an existing file sets their state
    """

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any], rng: np.random.RandomState):
        self.path, self.identity = Path(path), json.loads(json.dumps(identity, default=str))
        self.finished: list[learn.Outcome] = []
        self.running: learn.Progress | None = None
        self.n_runs = 0
        self.rng_state: Any = rng.get_state(legacy=False)
        if self.path.exists():
            self._read()
            rng.set_state(self.rng_state)
        for leftover in self.path.parent.glob(f".{self.path.name}.*"):
            leftover.unlink(missing_ok=True)  # of a process that was killed while it wrote
        self.next_write = 0.0

    def make(self, shares: Any, start: Grid, **how: Any) -> learn.Outcome:
        """Make the next run, go on with it, or give its outcome if it is finished."""
        self.n_runs += 1
        if self.n_runs > len(self.finished):
            progress = self.running or learn.Progress.at(start)
            self.finished.append(learn.learn(shares, progress, **how, keep=self._keep))
            self.running = None
            self._write()
        return self.finished[self.n_runs - 1]

    def _keep(self, progress: learn.Progress) -> None:
        self.running = progress
        if time.monotonic() >= self.next_write:
            self._write()

    def _write(self) -> None:
        began = time.monotonic()
        arrays = {"rng.key": self.rng_state["state"]["key"]}
        for number, outcome in enumerate(self.finished):
            arrays |= _arrays(f"finished.{number}", outcome.grid, outcome.history)
        if self.running is not None:
            arrays |= _arrays("running", self.running.grid, self.running.history)
            arrays["running.place"] = np.hstack([self.running.phase, self.running.previous]).astype(np.float64)
        facts = {"format": FORMAT, "version": VERSION, "identity": self.identity}
        facts["converged"] = [outcome.has_converged for outcome in self.finished]
        facts["rng"] = [self.rng_state[name] for name in ("has_gauss", "gauss")] + [self.rng_state["state"]["pos"]]
        files.write(self.path, facts, arrays)
        self.next_write = time.monotonic() + (time.monotonic() - began) * (1 / SHARE_OF_TIME - 1)

    def _read(self) -> None:
        facts, arrays = files.read(self.path, FORMAT, VERSION)
        if facts["version"] < VERSION:
            raise ValueError(
                f"{self.path} is a checkpoint of version {facts['version']}; this release goes on from version "
                f"{VERSION}; delete it to start anew"
            )
        _check_same(self.path, facts.get("identity"), self.identity)
        try:
            for number, has_converged in enumerate(facts["converged"]):
                self.finished.append(learn.Outcome(*_grid(f"finished.{number}", arrays), bool(has_converged)))
            if "running.place" in arrays:
                phase, *previous = np.array(arrays["running.place"])
                self.running = learn.Progress(*_grid("running", arrays), int(phase), np.squeeze(previous))
            has_gauss, gauss, position = facts["rng"]
            key = {"key": np.array(arrays["rng.key"]), "pos": position}
            self.rng_state |= {"state": key, "has_gauss": has_gauss, "gauss": gauss}
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} does not fit together ({error}); delete it to start anew") from error


def identity_of(model: Any, table: Table, weights: Any, n_features: int) -> dict[str, Any]:
    """Tell a fit from all others: by its model, its options and its bags."""
    options = {name: value for name, value in model.get_params().items() if name != "verbose"}
    for name, value in options.items():
        if isinstance(value, np.ndarray | list):
            options[name] = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        elif isinstance(value, np.random.RandomState):
            options[name] = "RandomState"
    bags = _digest(table, weights, n_features)
    return {"model": type(model).__name__} | options | {"shape of X": list(table.shape), "bags": bags}


def _digest(table: Table, weights: Any, n_features: int) -> str:
    """Digest one random projection of every bag: another bag, or another order, gives another digest."""
    direction = np.random.default_rng(0).standard_normal(table.shape[1])
    digest = sha256(np.ascontiguousarray(weights).tobytes())
    for projection in table.each(runs_of(table.shape[0], n_features), matmul, direction):
        digest.update(np.ascontiguousarray(projection).tobytes())
    return digest.hexdigest()[:16]


def _check_same(path: Path, found: Any, wanted: dict[str, Any]) -> None:
    """Raise about a checkpoint of another fit, and say where it differs."""
    found = found if isinstance(found, dict) else {}
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ValueError(
                f"{path} is the checkpoint of another fit: {name} is {found.get(name)!r} there and {value!r} here; "
                "wanted the same model, options and bags; give another file, or delete this one to start anew"
            )


def _arrays(name: str, grid: Grid, history: list[Any]) -> files.Arrays:
    grid = grid.fetched()
    return {f"{name}.pi": grid.pi, f"{name}.log_prior": grid.log_prior, f"{name}.history": np.array(history, float)}


def _grid(name: str, arrays: files.Arrays) -> tuple[Grid, list[Any]]:
    pi, log_prior, history = (np.array(arrays[f"{name}.{part}"]) for part in ("pi", "log_prior", "history"))
    return Grid(pi, log_prior), list(history)
