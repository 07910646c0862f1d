"""Timing, synthetic bags and tables of the benchmark scripts."""

import json
import os
import tarfile
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.backends import ThreadsBackend
from countinggrids.core import em, torus
from countinggrids.core.schedule import Pseudocounts, Schedule
from countinggrids.data.table import Table
from countinggrids.kernels.threads import Threads, one_blas_thread
from countinggrids.training.loop import Start, run_em


def times_of(function, n=9):
    """Run a function several times; return the seconds of each run."""
    times = []
    for _ in range(n):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return times


def best_of(function, n=9):
    """Return the shortest of several run times, in seconds."""
    return min(times_of(function, n))


def peak():
    """Return the peak resident memory of this process, in MB.

    Read from /proc, because the peak of getrusage includes that of the parent process at the time of the fork.
    """
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def dense_bags(seed, n_bags=2500):
    """32x32 cells of Dirichlet(0.1) over 200 features, windows 8x8, bags of 500 tokens; return bags and windows."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(200, 0.1), (32, 32))
    h = windows(pi, 8)
    cells = rng.integers(len(h), size=n_bags)
    return np.array([rng.multinomial(500, h[k]) for k in cells], dtype=np.float32), h


def text_bags(seed, n_bags=5500):
    """Text-like bags: 5000 words, base measure 1/(rank + 2.7), cells Dirichlet(60 base), windows 5x5."""
    rng = np.random.default_rng(seed)
    base = 1 / (np.arange(5000) + 2.7)
    pi = rng.dirichlet(60 * base / base.sum(), (32, 32))
    h = windows(pi, 5)
    cells = rng.integers(len(h), size=n_bags)
    lengths = rng.lognormal(np.log(135), 0.35, n_bags).astype(int)
    rows = [rng.multinomial(n, h[k]) for n, k in zip(lengths, cells, strict=True)]
    return sp.csr_array(np.array(rows, dtype=np.float32)), h


def windows(pi, width):
    """Return the histogram of every window, of shape (n_cells, n_features)."""
    h = np.moveaxis(torus.window_sum(np.moveaxis(pi, -1, 0), (width, width)), 0, -1).reshape(-1, pi.shape[-1])
    return h / h.sum(axis=1, keepdims=True)


@contextmanager
def unpacked(name):
    """Unpack an archive of the data sets into a temporary folder; yield the folder, or None without data sets."""
    data = os.environ.get("COUNTINGGRIDS_DATA")
    if not data:
        print("needs the data sets: set COUNTINGGRIDS_DATA to their folder")
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, tarfile.open(Path(data) / name) as tar:
        tar.extractall(folder, filter="data")
        yield Path(folder)


class Learner:
    """One model that is trained iteration by iteration, without annealing."""

    def __init__(self, X, geometry, n_threads=2, dtype="float32"):
        self.geometry, self.backend = geometry, ThreadsBackend(Threads(n_threads))
        self.n_features = X.shape[1] // geometry.n_column_sections
        weights = np.ones(X.shape[0], dtype)
        self.chunks = self.backend.prepare(Table.of(X), weights, self.n_features, geometry)
        pi = 1 + np.random.default_rng(0).random((self.n_features, *geometry.grid), dtype)
        log_prior = np.full(geometry.grid, -np.log(geometry.n_cells), dtype)
        self.grid = em.Grid(em.normalize(pi, 1, self.backend.pool), log_prior)

    def iterate(self, n=1):
        """Run some iterations; return the objective, and record when each of them ended."""
        how = Schedule(None, Pseudocounts(None), Pseudocounts(None, 0.2, 3.0), "smoothed", n, 0.0)
        with one_blas_thread():
            result = run_em(self.chunks, Start.of(self.grid), self.geometry, how, self.backend, self._watch)
        self.grid = result.grid
        return result.history[-1]

    def _watch(self, number, *_):
        self.ends = [*(self.ends if number > 1 else []), time.perf_counter()]

    def times(self, n):
        """Return the seconds of each of the next iterations."""
        self.iterate(n + 1)
        return np.diff(self.ends)

    def best(self, n=25):
        """Return the shortest time, in seconds, of several runs of the same iteration from this grid."""
        start = self.grid

        def again():
            self.grid = start
            self.iterate()

        return best_of(again, n)


class Clock:
    """Training time, without the time of evaluations."""

    def __init__(self, name):
        self.name, self.points, self.spent, self.began = name, [], 0.0, time.perf_counter()

    def note(self, perplexity):
        """Record the value of `perplexity()` at this time; its own time is not counted."""
        self.spent += time.perf_counter() - self.began
        self.points.append((self.spent, perplexity()))
        print(f"  {self.name}: {self.spent:.1f} s, perplexity {self.points[-1][1]:.0f}", flush=True)
        self.began = time.perf_counter()

    def until(self, perplexity):
        """Return the time at which a perplexity was first reached; None if it never was."""
        return next((seconds for seconds, reached in self.points if reached <= perplexity), None)

    @property
    def best(self):
        return min(reached for _, reached in self.points)


def as_fitted(iteration, window):
    """Return a model of the grid that a callback receives."""
    model = cg.CountingGrid(iteration.log_prior.shape, window)
    model._keep(em.Grid(np.moveaxis(iteration.pi, -1, 0), iteration.log_prior), model._geometry())
    model.n_features_in_ = iteration.pi.shape[-1]
    return model


def table(title, header, rows):
    """Print a table, and add it to the file of tables that `python benchmarks run` reads."""
    cells = [[str(value) for value in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        print("  " + "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
    if "COUNTINGGRIDS_BENCHMARK_TABLES" in os.environ:
        with open(os.environ["COUNTINGGRIDS_BENCHMARK_TABLES"], "a") as file:
            print(json.dumps({"title": title, "header": cells[0], "rows": cells[1:]}), file=file)
