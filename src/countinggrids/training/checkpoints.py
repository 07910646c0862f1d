"""Checkpoints: the training state of a fit in a file, from which it resumes to the same bits if it is killed.

A fit is a sequence of runs of EM: candidates on the small grid, then the full grid, for every restart. The file holds
the results of finished runs, the last iteration of the current one, and the state of the random numbers before the
first. The same fit, started again, draws the same numbers and skips what is finished.
"""

import json
import os
import time
import warnings
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np

from countinggrids.core.em import NOTHING, Grid
from countinggrids.core.schedule import Schedule
from countinggrids.data import container, paths
from countinggrids.data.chunks import chunk_rows
from countinggrids.data.locks import Lock
from countinggrids.data.readers import paths_of
from countinggrids.data.table import Table
from countinggrids.kernels.threads import one_blas_thread
from countinggrids.training.loop import Best, Start, TrainingResult, TrainingState, run_em
from countinggrids.training.restart import Runs

FORMAT, VERSION = "checkpoint", 6
TIME_FRACTION = 0.1
"""Largest fraction of the time that is spent on writing; iterations in between are not written."""
TOLERANCE = 1e-3
"""How far probabilities of a stored grid may be from sum one."""
N_KEYS = 624
"""Length of the state of the Mersenne Twister."""


class Checkpoint(Runs):
    """The runs of EM of a fit, with a checkpoint file that is locked inside a `with` statement.

    Parameters
    ----------
    path : path-like
        The file; if it exists, the fit resumes from it.
    identity : dict
        Model, options and bags of the fit; those of an existing file must be the same.
    rng : RandomState
        Random numbers of the fit; an existing file sets their state.
    """

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any], rng: np.random.RandomState):
        self.path, self.identity = Path(os.path.realpath(path)), json.loads(json.dumps(identity, default=str))
        self.finished: list[TrainingResult] = []
        self.running: TrainingState | None = None
        self.n_runs = 0
        self.rng, self.rng_state = rng, dict(rng.get_state(legacy=False))
        self.next_write = 0.0
        self.has_warned = False
        self.held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(Lock(self.path))
            paths.clear_leftovers(self.path)
            if self.path.exists():
                self._read()
                self.rng.set_state(self.rng_state)
            self.held = stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        self.held.close()

    def run(self, chunks: Any, start: Start, **how: Any) -> TrainingResult:
        """Make the next run of EM, resume it, or return its stored result."""
        self.n_runs += 1
        is_finished = self.n_runs <= len(self.finished)
        stored = self.finished[self.n_runs - 1] if is_finished else self.running
        if stored is not None:
            self._check_fits(stored, start.grid, how["schedule"])
            if not _is_normalized(stored.grid, how["geometry"].groups):
                raise ValueError(f"{self.path} holds a grid that is no distribution; delete it to start anew.")
        if not is_finished:
            start = start if self.running is None else Start(self.running)
            self.running = None
            self.finished.append(run_em(chunks, start, **how, keep=self._keep))
            self.running = None
            self._write()
        return self.finished[self.n_runs - 1]

    def _check_fits(self, stored: TrainingResult | TrainingState, start: Grid, schedule: Schedule) -> None:
        """Raise unless a stored grid could have come from this start."""
        both = (stored.grid, start)
        shapes = [(each.pi.shape, each.pi.dtype, each.log_prior.shape, each.extra.shape) for each in both]
        if shapes[0] != shapes[1]:
            raise ValueError(f"{self.path} holds a grid of {shapes[0]}, expected {shapes[1]}; delete it to start anew.")
        phase = stored.phase
        if not 1 <= len(stored.history) <= schedule.max_iter or not 0 <= phase < len(schedule.phases()):
            raise ValueError(
                f"{self.path} stopped in phase {phase} after {len(stored.history)} iterations, expected at most "
                f"{len(schedule.phases())} phases and {schedule.max_iter} iterations; delete it to start anew."
            )

    def _keep(self, state: TrainingState) -> None:
        self.running = state
        if time.monotonic() >= self.next_write:
            self._write()

    def _write(self) -> None:
        began = time.monotonic()
        arrays = {"rng.key": self.rng_state["state"]["key"]}
        for number, result in enumerate(self.finished):
            arrays |= _arrays(f"finished.{number}", result.grid, result.history)
        if self.running is not None:
            arrays |= _arrays("running", self.running.grid, self.running.history)
            arrays["running.place"] = np.array([self.running.phase, self.running.previous], np.float64)
            if self.running.best is not None:
                grid, *place = self.running.best
                arrays |= _arrays("best", grid, place)
        facts = {"format": FORMAT, "version": VERSION, "identity": self.identity}
        facts["converged"] = [result.has_converged for result in self.finished]
        facts["ends"] = [[result.phase, result.score] for result in self.finished]
        facts["rng"] = [self.rng_state[name] for name in ("has_gauss", "gauss")] + [self.rng_state["state"]["pos"]]
        try:
            container.write(self.path, facts, arrays)
        except OSError as error:
            self._warn(error)
        self.next_write = time.monotonic() + (time.monotonic() - began) * (1 / TIME_FRACTION - 1)

    def _warn(self, error: OSError) -> None:
        if not self.has_warned:
            warnings.warn(
                f"checkpoint={str(self.path)!r} is out of date: {error.strerror}; the fit continues, and tries to "
                "write it again after later iterations.",
                stacklevel=2,
            )
        self.has_warned = True

    def _read(self) -> None:
        facts, stored = container.read(self.path, FORMAT, VERSION)
        arrays = {name: np.array(array) for name, array in stored.items()}
        _check_same(self.path, facts.get("identity"), self.identity)
        try:
            for number, (has_converged, end) in enumerate(zip(facts["converged"], facts["ends"], strict=True)):
                result = (*_grid(f"finished.{number}", arrays), bool(has_converged), int(end[0]), float(end[1]))
                self.finished.append(TrainingResult(*result))
            if "running.place" in arrays:
                phase, previous = arrays["running.place"].tolist()
                best = _best(arrays) if "best.pi" in arrays else None
                self.running = TrainingState(*_grid("running", arrays), int(phase), previous, best)
            has_gauss, gauss, position = _checked_rng(arrays["rng.key"], *facts["rng"])
            key = {"key": arrays["rng.key"], "pos": position}
            self.rng_state |= {"state": key, "has_gauss": has_gauss, "gauss": gauss}
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(f"{self.path} does not fit together ({error}); delete it to start anew.") from error


def check_path(path: str | os.PathLike[str], X: Any) -> None:
    """Raise, before any work, if a checkpoint cannot be written or would replace the bags."""
    paths.target_of(path)
    for table in paths_of(X):
        if paths.is_same(table, path):
            raise ValueError(
                f"checkpoint={str(path)!r} and X={str(table)!r} are the same file; use another checkpoint."
            )


def _checked_rng(key: Any, has_gauss: Any, gauss: Any, position: Any) -> tuple[int, float, int]:
    """Return the state of random numbers without its key; raise if NumPy would read out of bounds with it."""
    if key.dtype != np.uint32 or key.shape != (N_KEYS,) or not np.isfinite(float(gauss)):
        raise ValueError(f"rng.key is {key.dtype} of shape {key.shape}, the last normal number {gauss!r}")
    if not (type(has_gauss) is type(position) is int and has_gauss in (0, 1) and 0 <= position <= N_KEYS):
        raise ValueError(f"the random numbers are at {position!r}")
    return has_gauss, float(gauss), position


def identity_of(model: Any, table: Table, weights: Any, n_features: int) -> dict[str, Any]:
    """Return what identifies a fit: its model, its options and its bags."""
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
    for projection in table.each(chunk_rows(table.shape[0], n_features), _projection, direction):
        digest.update(np.ascontiguousarray(projection).tobytes())
    return digest.hexdigest()[:16]


def _projection(counts: Any, direction: Any) -> Any:
    # The number of BLAS threads may change the last bits, and is not the same in every process.
    with one_blas_thread():
        return counts @ direction


def _check_same(path: Path, found: Any, expected: dict[str, Any]) -> None:
    """Raise if a checkpoint is that of another fit, and name the first difference."""
    found = found if isinstance(found, dict) else {}
    for name, value in expected.items():
        if found.get(name) != value:
            raise ValueError(
                f"{path} is the checkpoint of another fit: {name} is {found.get(name)!r} there and {value!r} here; "
                "use another file, or delete this one to start anew."
            )


def _arrays(name: str, grid: Grid, history: list[Any]) -> container.Arrays:
    grid = grid.fetched()
    parts = {"pi": grid.pi, "log_prior": grid.log_prior, "history": np.array(history, float)}
    if grid.extra.size:
        parts["extra"] = grid.extra
    return {f"{name}.{part}": array for part, array in parts.items()}


def _is_normalized(grid: Grid, n_groups: int) -> bool:
    """Return whether pi is a distribution over features for each group and cell, and the prior one over cells."""
    sums = grid.pi.sum(axis=0, dtype=np.float64) / n_groups
    total = np.exp(grid.log_prior.astype(np.float64)).sum()
    return bool(grid.pi.min() >= 0 and np.abs(sums - 1).max() <= TOLERANCE and abs(total - 1) <= TOLERANCE)


def _best(arrays: container.Arrays) -> Best:
    grid, (score, phase, gained) = _grid("best", arrays)
    return Best(grid, score, int(phase), int(gained))


def _grid(name: str, arrays: container.Arrays) -> tuple[Grid, list[Any]]:
    pi, log_prior, history = (arrays[f"{name}.{part}"] for part in ("pi", "log_prior", "history"))
    if not {pi.dtype.kind, log_prior.dtype.kind, history.dtype.kind} == {"f"} or history.ndim != 1:
        raise ValueError(f"{name} is {pi.dtype}, {log_prior.dtype} and {history.dtype} of shape {history.shape}")
    extra = arrays.get(f"{name}.extra", NOTHING)
    if not all(np.isfinite(part).all() for part in (pi, log_prior, extra)):
        raise ValueError(f"{name}.pi, {name}.log_prior or {name}.extra is not finite")
    return Grid(pi, log_prior, extra), history.tolist()
