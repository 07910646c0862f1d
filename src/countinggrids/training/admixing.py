"""One restart of a componential grid: small grids first, pseudocounts chosen by held-out words."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from countinggrids.core import em
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Pool
from countinggrids.core.schedule import Phase, Pseudocounts, Schedule
from countinggrids.data.validation import check_eta
from countinggrids.training import initialization
from countinggrids.training.completion import Completion, best_by_factor
from countinggrids.training.loop import Start, TrainingResult
from countinggrids.training.restart import Restart
from countinggrids.training.stepwise import AnnealingBatches

FIRST_ETA = 0.05
"""Pseudocounts of a cell before data choose them, as a fraction of its tokens."""
SMALL_CELLS = 300
"""Cells, about, of the grid that is trained first."""
LARGE_COLLECTION, N_BATCHES, MOST_BATCH_BAGS = 1000, 10, 1000
"""Number of bags from which `batch_size="auto"` uses batches; how many of them, unless they have so many bags."""
SMALL_GAIN, GAIN = 0.01, 0.003
"""Relative gain of the held-out perplexity in a round below which the small grids, and the last one, are left."""
FEWEST_ROUNDS, ROUND, LONGEST_ROUND = 2, 10, 50
"""Rounds that are made at least; iterations of a round without batches, and with batches at most."""


@dataclass(frozen=True)
class Rounds(Schedule):
    """A schedule without annealing, in which every iteration may use a batch."""

    def phases(self) -> list[Phase]:
        """List a phase for every batch; one phase, which ends when the objective settles, without batches."""
        if not self.has_batches:
            return [Phase(1.0, self.settled, self.tol)]
        return [Phase(1.0, self.settled, np.inf)] * self.max_iter


def batch_size_of(batch_size: Any, n_bags: int) -> int | None:
    """Return the number of bags of a batch that "auto" stands for."""
    if not isinstance(batch_size, str):
        return batch_size if batch_size is None else int(batch_size)
    return min(MOST_BATCH_BAGS, n_bags // N_BATCHES) if n_bags >= LARGE_COLLECTION else None


def stages_of(geometry: Geometry, init: Any = "auto") -> list[Geometry]:
    """List the geometries that are trained one after the other; the last is the one asked for, alone if it is given.

    First the grid is scaled down with its window, at the same capacity. If that still has many cells, a part of the
    capacity comes first, so that the first map is there within seconds.
    """
    if not isinstance(init, str):
        return [geometry]
    smaller = initialization.downsampled(geometry) or geometry
    shrink = (SMALL_CELLS / smaller.n_cells) ** (1 / len(geometry.grid))
    grid = tuple(max(w, round(e * shrink)) for e, w in zip(smaller.grid, smaller.window, strict=True))
    smallest = replace(smaller, grid=grid) if 2 * prod(grid) <= smaller.n_cells else smaller
    return list(dict.fromkeys([smallest, smaller, geometry]))


class DecayingBatches(AnnealingBatches):
    """The E step of one batch after the other; batch b moves the statistics by (b + delay)**exponent of the way."""

    FIRST, LATER = (3.0, -0.6), (10.0, -0.7)
    """Delay and exponent on the first grid, and on grids that start from another."""
    n_batches, is_warm = 0, False

    def start_from(self, grid: Grid, tokens: float, geometry: Geometry) -> None:
        """Start from what a grid that was learned before says about all bags."""
        grid = self.backend.place(grid)
        h = em.histograms(grid.pi, geometry.block(painted=True)) + em.SMALLEST
        h *= tokens / geometry.n_cells
        usage = np.full(geometry.grid, self.whole / geometry.n_cells)
        self.past, self.n_batches, self.is_warm = Statistics(h, usage, 0.0, np.zeros(1)), 1, True

    def pace(self) -> float:
        """Return the step size of the next batch."""
        self.n_batches += 1
        delay, exponent = self.LATER if self.is_warm else self.FIRST
        return float((self.n_batches + delay) ** exponent)


class StoppingRule:
    """Stops a run when a round of iterations gains little on held-out words.

    Parameters
    ----------
    held : Completion or None
        Bags that are kept out; None never stops a run.
    geometry : Geometry
        Grid, window and sections.
    goal : float
        Relative gain of the perplexity in a round below which the run ends.
    every : int
        Iterations of a round.
    """

    def __init__(self, held: Completion | None, geometry: Geometry, goal: float, every: int):
        self.held, self.geometry, self.goal, self.every = held, geometry, goal, every
        self.seen: list[float] = []

    def __call__(self, number: int, grid: Grid) -> bool:
        """Return whether to stop after an iteration."""
        if self.held is None or number % self.every:
            return False
        self.seen.append(self.held.perplexity(grid.fetched(), self.geometry))
        return len(self.seen) > FEWEST_ROUNDS and self.seen[-1] > (1 - self.goal) * self.seen[-2]


@dataclass
class AdmixtureRestart(Restart):
    """One restart of a componential grid."""

    def run(self) -> TrainingResult:
        """Train every stage from the grid of the one before, and choose pseudocounts after each."""
        model, pool = self.model, self.backend.pool
        held = Completion.of(self.table, self.weights, self.rng, pool)
        weights = self.weights.copy()
        weights[[] if held is None else held.rows] = 0
        restart = replace(self, weights=weights, batch_size=batch_size_of(model.batch_size, self.table.shape[0]))
        fraction, stages = FIRST_ETA, stages_of(model._geometry(), model.init)
        grid = initialization.first_grid(model, self.rng, stages[0], self.n_features)
        for number, stage in enumerate(stages):
            if number:
                grid = initialization.upsampled(grid, stage, self.rng, pool)
            is_last, is_warm = stage == stages[-1], bool(number) or not isinstance(model.init, str)
            result = restart._stage(stage, grid, fraction, held, is_last, is_warm)
            grid, fraction = tuned(result.grid, stage, fraction, held, model)
        return result._replace(grid=grid)

    def _stage(
        self, geometry: Geometry, grid: Grid, fraction: float, held: Completion | None, is_last: bool, is_warm: bool
    ) -> TrainingResult:
        """Train one grid until held-out words, or the objective, gain little."""
        n_bags, model = self.table.shape[0], self.model
        eta = Pseudocounts(None, fraction)
        if not isinstance(model.eta, str):
            eta = Pseudocounts(check_eta(model.eta, geometry, self.n_features))
        has_batches = self.batch_size is not None and self.batch_size < n_bags
        how = Rounds(None, eta, eta, "uniform", model.max_iter, model.tol, has_batches)
        every = min(LONGEST_ROUND, -(-n_bags // self.batch_size)) if self.batch_size and has_batches else ROUND
        rule = StoppingRule(held, geometry, GAIN if is_last else SMALL_GAIN, every)
        observe = self._observer("learning" if is_last else "candidates", 0)
        bags = (self.table, self.weights, self.n_features, geometry)
        batches = None
        if has_batches and self.batch_size is not None:
            batches = DecayingBatches(*bags, self.batch_size, self.rng, self.backend)
            if is_warm:
                batches.start_from(grid, float(self.weights @ self.table.tokens), geometry)

        def observer(number: int, beta: float, objective: float, now: Grid) -> Any:
            is_stopped = observe(number, beta, objective, now)
            return rule(number, now) or is_stopped

        chunks = [] if batches else self.backend.prepare(*bags)
        rest = {"geometry": geometry, "schedule": how, "backend": self.backend, "observer": observer}
        result = self.runs.run(chunks, Start.of(grid), **rest, batches=batches)
        return result._replace(has_converged=result.has_converged or len(result.history) < model.max_iter)


def tuned(grid: Grid, geometry: Geometry, fraction: float, held: Completion | None, model: Any) -> tuple[Grid, float]:
    """Choose pseudocounts by held-out words, where the model leaves them open.

    Parameters
    ----------
    grid : Grid
        A grid that was learned with the pseudocounts so far.
    geometry : Geometry
        Grid, window and sections.
    fraction : float
        Pseudocounts of a cell so far, as a fraction of its tokens.
    held : Completion or None
        Bags that are kept out; None changes nothing.
    model : estimator
        The model, whose `alpha` and `eta` may be "auto".

    Returns
    -------
    grid : Grid
        The grid with another alpha, and pi as other pseudocounts would have it, about.
    fraction : float
        The fraction that was chosen.
    """
    if held is None:
        return grid, fraction
    if isinstance(model.alpha, str):
        alpha = best_by_factor(
            float(grid.extra[0]), lambda value: held.perplexity(grid._replace(extra=np.array([value])), geometry)
        )
        grid = grid._replace(extra=np.array([alpha]))
    if isinstance(model.eta, str):
        before = fraction
        fraction = best_by_factor(
            before, lambda value: held.perplexity(_smoothed(grid, before, value, held.pool), geometry)
        )
        grid = _smoothed(grid, before, fraction, held.pool)
    return grid, fraction


def _smoothed(grid: Grid, before: float, fraction: float, pool: Pool) -> Grid:
    """Exchange the pseudocounts in pi, as if all cells had as many tokens; their direction is the mean over cells."""
    if fraction == before:
        return grid
    mean = grid.pi.mean(axis=tuple(range(1, grid.pi.ndim)), keepdims=True, dtype=np.float64).astype(grid.pi.dtype)
    pi = np.maximum((1 + before) * grid.pi - before * mean, 0) + fraction * mean
    return grid._replace(pi=em.normalize(pi.astype(grid.pi.dtype), 1, pool))
