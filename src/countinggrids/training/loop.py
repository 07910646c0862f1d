"""The EM loop: an E step and an M step in every iteration, along an annealing schedule."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from countinggrids.backends import Backend
from countinggrids.core import arrays, em, steps
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import Phase, Schedule

Observer = Callable[[int, float, float, Grid], Any]
"""Called with the number of the iteration, beta, the objective and the grid; a true result stops the run."""


PATIENCE, FIRST_PATIENCE = 5, 10
"""Iterations without a gain on held-out bags after which a run ends, later and at the start.

In the last phase a gain is one of more than `tol`. Right after an upsampled layout, grids may be worse for a while.
"""
Validation = Callable[[Grid], float]
"""Scores a grid on bags that are held out, per token: the higher, the better."""


class Best(NamedTuple):
    """The best grid that was seen, its score on held-out bags, its phase, and the iteration of the last gain."""

    grid: Grid
    score: float
    phase: int
    gained: int


class TrainingState(NamedTuple):
    """Where a run of EM stands between two iterations."""

    grid: Grid
    history: list[float]
    phase: int
    previous: float  # the objective before, within the phase
    best: Best | None = None


class Start:
    """The state that a run of EM takes, so that nobody else holds the memory of its grid when there is a better one.

    Parameters
    ----------
    state : TrainingState
        Where the run starts.
    """

    def __init__(self, state: TrainingState):
        self._states = [state]

    @classmethod
    def of(cls, grid: Grid) -> "Start":
        """Return the state before the first iteration."""
        return cls(TrainingState(grid, [], 0, -np.inf))

    @property
    def grid(self) -> Grid:
        """The first grid, until the run has taken it."""
        return self._states[0].grid

    def take(self) -> TrainingState:
        """Return the state, and let go of it: a second time there is none."""
        return self._states.pop()


class TrainingResult(NamedTuple):
    """What a run of EM ends with: the last grid or, where bags are held out, the best one, its phase and its score.

    Without such bags the score is the last objective.
    """

    grid: Grid
    history: list[float]
    has_converged: bool
    phase: int
    score: float


class Batches(Protocol):
    """The E step of stepwise EM, which replaces that over all bags during annealing."""

    def e_step(self, grid: Grid, geometry: Geometry, beta: float) -> Statistics: ...


def run_em(
    chunks: Any,
    start: Start,
    geometry: Geometry,
    schedule: Schedule,
    backend: Backend,
    observer: Observer,
    keep: Callable[[TrainingState], None] = lambda _: None,
    batches: Batches | None = None,
    validation: Validation | None = None,
) -> TrainingResult:
    """Run EM until the objective settles, the observer stops it, or the iterations are used up.

    Parameters
    ----------
    chunks : object
        The bags, as the backend has prepared them.
    start : Start
        Where to start; it is taken.
    geometry : Geometry
        Grid, window and sections.
    schedule : Schedule
        Inverse temperatures, pseudocounts and stopping rule.
    backend : Backend
        Where the E step runs.
    observer : callable
        Called after every iteration.
    keep : callable, default=no operation
        Called after iterations with the state from which training can resume.
    batches : Batches, default=None
        Stepwise EM: an iteration of the annealing uses one batch of bags, later ones all bags.
    validation : callable, default=None
        Scores grids of the last phase and, if the schedule allows it, of the annealing; the run ends once they
        gain no more.

    Returns
    -------
    result : TrainingResult
        Parameters, objective of every iteration, and whether EM has converged.
    """
    grid, history, phase, previous, best = start.take()
    grid = backend.place(grid)
    phases = schedule.phases()
    last, has_converged = len(phases) - 1, False
    for number in range(len(history) + 1, schedule.max_iter + 1):
        now = phases[phase]
        is_stepwise = batches is not None and now.is_annealing
        if batches is not None and is_stepwise:
            statistics = batches.e_step(grid, geometry, now.beta)
        else:
            statistics = backend.e_step(chunks, grid, geometry, now.beta)
        # Stepwise EM keeps the statistics of a batch for the next one.
        grid, objective = m_step(
            grid, statistics, geometry, now, schedule.location_prior, backend, is_in_place=not is_stepwise
        )
        del statistics  # its memory is free for the next ones
        check_finite(objective, number)
        history = [*history, objective]
        if phase == last or now.beta >= schedule.scored_from:
            best = _better(best, grid, validation, number, phase, schedule.tol if phase == last else 0.0)
        if observer(number, now.beta, objective, grid):
            break
        # Held-out bags that gain no more count as convergence.
        is_late = best is not None and number - best.gained >= (PATIENCE if best.gained > 1 else FIRST_PATIENCE)
        has_settled = now.has_settled(objective, previous)
        has_converged = is_late or (has_settled and phase == last)
        if has_converged:
            break
        phase, previous = (phase + 1, -np.inf) if has_settled else (phase, objective)
        if not is_stepwise:
            keep(TrainingState(grid, history, phase, previous, best))
    if best is not None:
        return TrainingResult(best.grid.fetched(), history, has_converged, best.phase, best.score)
    return TrainingResult(grid.fetched(), history, has_converged, phase, history[-1])


def _better(
    best: Best | None, grid: Grid, validation: Validation | None, number: int, phase: int, tol: float
) -> Best | None:
    """Return the better of the best grid so far and another one, or None without held-out bags."""
    if validation is None:
        return None
    score = validation(grid)
    if best is None:
        return Best(grid, score, phase, number)
    gained = number if score > best.score + tol else best.gained
    return Best(grid, score, phase, gained) if score > best.score else best._replace(gained=gained)


def m_step(
    grid: Grid,
    statistics: Statistics,
    geometry: Geometry,
    phase: Phase,
    location_prior: str,
    backend: Backend,
    is_in_place: bool = False,
) -> tuple[Grid, float]:
    """Re-estimate the parameters; return them, and the objective per token of the grid that came in.

    The objective is that of the inverse temperature and the pseudocounts of the phase, so that it cannot be compared
    across phases. In place, the new pi takes the memory of the statistics.
    """
    totals = arrays.summed(statistics.A.reshape(len(grid.pi), -1), axis=1)
    eta = phase.eta.of(totals, geometry.n_cells)
    objective = statistics.log_likelihood + em.log_density(grid.pi, eta, backend.pool)
    new = em.m_step(grid, statistics, geometry, eta, location_prior, backend.pool, is_in_place)
    extra = steps.of(geometry).extra_step(grid, statistics.extra, geometry)
    return new._replace(extra=extra), objective / totals.sum()


def check_finite(objective: float, number: int) -> None:
    """Raise if an objective is not finite."""
    if not np.isfinite(objective):
        raise ValueError(
            f"the objective is {objective} at iteration {number}; wanted a finite number; "
            "bring the counts, sample_weight, eta and init nearer to 1, or use dtype='float64'"
        )
