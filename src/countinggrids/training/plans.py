"""What a fit is expected to take, estimated before its first iteration: work, time and memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from countinggrids.core.arrays import Array
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import Schedule
from countinggrids.data.table import Table
from countinggrids.training import admixing, initialization
from countinggrids.training.callbacks import Iteration

RATE = 4.0e9
"""Entries of bags times cells that two threads process in a second, as on 20 Newsgroups with 64x64 cells."""
PEAK_ARRAYS, ADMIXED_ARRAYS = 6, 8
"""Arrays of the size of the grid that a fit holds at its peak, of an annealed grid and of a componential one.

Those of an annealed grid are pi, log h, the expected counts of two chunks, the best grid on held-out bags, and about
one more for posteriors and pieces.
"""
GRID_ENTRIES = 10
"""What the operations on one cell of a feature cost, in entries of bags."""
SETTLING = 20
"""Iterations after the annealing, about, until the objective settles."""
N_ROUNDS = 5
"""Rounds, about, until held-out words gain little."""


@dataclass(frozen=True)
class Plan:
    """What a fit is expected to take.

    Parameters
    ----------
    candidates : float
        Work before the full grid is trained, in entries of bags times cells.
    per_cell : float
        Work of one iteration of a candidate, for each of its cells.
    n_iterations : int
        Iterations on the full grid.
    iteration : float
        Work of one of them.
    n_restarts : int
        Number of restarts.
    n_bytes : int
        Memory beyond the bags.
    n_model_bytes : int
        Size of the model.
    """

    candidates: float
    per_cell: float
    n_iterations: int
    iteration: float
    n_restarts: int
    n_bytes: int
    n_model_bytes: int

    @property
    def seconds(self) -> float:
        """Time of the fit."""
        return self.n_restarts * (self.candidates + self.n_iterations * self.iteration) / RATE

    def __str__(self) -> str:
        memory, model = (f"{size / 2**20:.0f} MB" for size in (self.n_bytes, self.n_model_bytes))
        return f"about {spelled(self.seconds)} to fit, {memory} of memory, and a model of {model}"


def spelled(seconds: float) -> str:
    """Spell a time out, such as 40 s, 5 min or 2.5 h."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def annealed(model: Any, geometry: Geometry, table: Table, weights: Array, n_features: int) -> Plan:
    """Plan the fit of a grid that is annealed, on small grids first where that saves work."""
    n_bags, entries = table.shape[0], _entries(table)
    how = initialization.schedule_of(model, table, weights, n_features, model.batch_size)
    is_open = isinstance(model.anneal, str) and isinstance(model.init, str) and how.annealing is not None
    is_validated = is_open and not how.has_batches and n_bags >= initialization.FEWEST_VALIDATED
    how = replace(how, is_validated=is_validated)
    small = initialization.downsampled(geometry) if is_open else None
    per_cell = GRID_ENTRIES * n_features + entries * min(1, initialization.CANDIDATE_BAGS / n_bags)
    candidates = 0.0
    if small is not None:
        plan = initialization.candidates(small, n_bags, n_features, how, model.batch_size)
        n_used = plan.batch_size or min(n_bags, plan.n_bags)
        per_cell = GRID_ENTRIES * n_features + entries * n_used / n_bags
        candidates = plan.number * _iterations(plan.schedule) * small.n_cells * per_cell
        middle = initialization.downsampled(geometry, max(geometry.window) // 2) if how.is_gradual else None
        is_formed = middle is not None and middle.n_cells > small.n_cells
        if middle is not None and is_formed:
            candidates += len(how.for_forming().phases()) * middle.n_cells * per_cell
        how = how.for_refining(is_formed, plan.schedule.has_batches)
    fraction = model.batch_size / n_bags if how.has_batches else 1.0
    iteration = geometry.n_cells * (GRID_ENTRIES * n_features + fraction * entries)
    n_bytes = _grid_bytes(model, geometry, n_features)
    return Plan(candidates, per_cell, _iterations(how), iteration, model.n_init, PEAK_ARRAYS * n_bytes, n_bytes)


def admixed(model: Any, geometry: Geometry, table: Table, weights: Array, n_features: int) -> Plan:
    """Plan the fit of a componential grid, in rounds over grids of growing size."""
    n_bags = table.shape[0]
    batch = admixing.batch_size_of(model.batch_size, n_bags)
    has_batches = batch is not None and batch < n_bags
    length = min(admixing.LONGEST_ROUND, -(-n_bags // batch)) if batch is not None and has_batches else admixing.ROUND
    n_iterations = min(model.max_iter, N_ROUNDS * length)
    fraction = batch / n_bags if batch is not None and has_batches else 1.0
    per_cell = GRID_ENTRIES * n_features + fraction * _entries(table)
    *before, _ = admixing.stages_of(geometry, model.init)
    candidates = n_iterations * per_cell * sum(stage.n_cells for stage in before)
    n_bytes, iteration = _grid_bytes(model, geometry, n_features), per_cell * geometry.n_cells
    return Plan(candidates, per_cell, n_iterations, iteration, model.n_init, ADMIXED_ARRAYS * n_bytes, n_bytes)


def _grid_bytes(model: Any, geometry: Geometry, n_features: int) -> int:
    return n_features * geometry.n_cells * np.dtype(model.dtype).itemsize


def _iterations(how: Schedule) -> int:
    return min(how.max_iter, len(how.phases()) + SETTLING)


def _entries(table: Table) -> float:
    """Return the number of counts that are not zero; where bags are not in memory, their tokens at most."""
    most = float(prod(table.shape))
    if table.is_held:
        return sum(float(getattr(block, "nnz", block.size)) for block in table.blocks)
    return min(most, float(np.sum(table.tokens)))


class ProgressTracker:
    """Measures how much of a plan is done, and how long the rest takes.

    Parameters
    ----------
    plan : Plan
        What is expected.
    clock : callable, default=time.monotonic
        Returns the time in seconds.
    """

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic):
        self.plan, self.clock = plan, clock
        self.begin = clock()
        self.restart, self.done = 0, 0.0
        self.first: tuple[int, float] | None = None

    def update(self, now: Iteration) -> tuple[float, float]:
        """Return the fraction that is done after an iteration, and the seconds that are left."""
        if now.restart != self.restart:
            self.restart, self.done, self.first = now.restart, 0.0, None
        plan, time_now = self.plan, self.clock()
        n_iterations = max(plan.n_iterations, now.number + 1) if now.stage != "candidates" else plan.n_iterations
        whole = plan.candidates + n_iterations * plan.iteration
        if now.stage == "candidates":
            self.done = min(self.done + now.n_cells * plan.per_cell, 0.99 * plan.candidates or 0.99 * whole)
        else:
            self.done = plan.candidates + now.number * plan.iteration
        fraction = (self.restart + self.done / whole) / plan.n_restarts
        left = (time_now - self.begin) * (1 / fraction - 1)
        if now.stage != "candidates":
            left = self._left_on_full_grid(now.number, n_iterations, time_now)
            left += (plan.n_restarts - 1 - self.restart) * (time_now - self.begin + left) / (self.restart + 1)
        return fraction, left

    def _left_on_full_grid(self, number: int, n_iterations: int, time_now: float) -> float:
        """Return the seconds that are left for this grid, by the pace of its iterations so far."""
        if self.first is None:
            self.first = number, time_now
            return self.plan.iteration * (n_iterations - number) / RATE
        n_before, begin = self.first
        return (n_iterations - number) * (time_now - begin) / max(1, number - n_before)
