"""Learning: the E and M steps in a loop, warm at first and colder as it goes.

How warm, how long and with which pseudocounts is in `recipe.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from countinggrids import arrays
from countinggrids.arrays import Array
from countinggrids.em import (
    Bags,
    Engine,
    Grid,
    Statistics,
    e_step,
    expected_counts,
    log_location_prior,
    m_step,
    normalised,
)
from countinggrids.geometry import Geometry, Shape
from countinggrids.recipe import Eta, Recipe

N_SCOUTS = 8
"""How many layouts are tried on the small grid."""
SCOUT_BAGS, BATCH_SCOUT_BAGS = 5_000, 20_000
"""With how many bags at the most: batches take no longer where there are more to draw from."""
PACE = 0.5
"""How far one batch moves what was seen: while beta grows, older batches mislead more than they teach."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """What a callback sees after every iteration.

    Keep `pi` and `log_prior`, not the iteration: on a cluster these are fetched when they are looked at, and an
    iteration that is kept keeps its grid on the workers.

    Attributes
    ----------
    stage : "scouting" on a smaller grid for a good layout, or "learning"
    restart : which restart, from 0
    number : which iteration of it, from 1
    planned : iterations at the most
    beta : the inverse temperature of this iteration
    objective : log-likelihood plus log prior of pi per token, before this iteration's M step; while scouting that of
        the best of the small grids that learn side by side
    pi : the grid, (*grid, features), a view: copy it to keep it; while scouting that best one, which may be another in
        the next iteration
    log_prior : log P, (*grid,)
    """

    stage: str
    restart: int
    number: int
    planned: int
    beta: float
    objective: float
    _grid: Any = field(repr=False)  # of em.Grid's kind, here or elsewhere

    @cached_property
    def pi(self) -> Array:
        return np.moveaxis(self._fetched.pi, 0, -1)

    @cached_property
    def log_prior(self) -> Array:
        return self._fetched.log_prior

    @cached_property
    def _fetched(self) -> Grid:
        grid: Grid = self._grid.fetched()
        return grid


Callback = Callable[[Iteration], Any]
Watch = Callable[[int, float, Any, Grid], Any]
"""Called with number, beta, objective and grid; what is not false stops the learning."""


class Batches:
    """Stepwise EM: an E step looks at one batch, and moves what was seen before part of the way to what it sees.

    Parameters
    ----------
    batches : the shares of a batch, and how many such batches all bags would make; without end
    """

    def __init__(self, batches: Iterator[tuple[Iterable[Bags], float]]):
        self.batches = batches
        self.past: Statistics | None = None

    def e_step(self, grid: Grid, geometry: Geometry, beta: float, engine: Engine) -> Statistics:
        """Make the E step of `em.e_step`, for all bags, from the next batch; what the one before gave is used up."""
        shares, times = next(self.batches)
        now = e_step(shares, grid, geometry, beta, engine)
        pace = 1.0 if self.past is None else PACE
        now = now.scaled(pace * times)
        if self.past is not None:
            now = now.plus(self.past.scaled(1 - pace))
        self.past = now
        return now


class Step(NamedTuple):
    """What one iteration is told, and the change of the objective from which on it is not made again."""

    geometry: Geometry
    beta: float
    eta: Eta
    location_prior: str
    limit: float

    def has_settled(self, objective: Any, previous: Any) -> bool:
        """Tell whether the objective, of every copy, has changed so little that this step is not made again."""
        return bool(np.all(np.abs(objective - previous) <= self.limit))


def iterate(shares: Iterable[Bags], grid: Grid, steps: Iterator[Step], engine: Engine) -> tuple[Grid, Any]:
    """Make an E step and an M step; give the new grid, and the objective per token of the old one, or of each copy.

    Of the steps only the first is to be made; those behind it come next if nothing settles. Shares that lie elsewhere
    have an `iterate` of their own: the grid stays there, and they may make some of these ahead.
    """
    if hasattr(shares, "iterate"):
        found: tuple[Grid, Any] = shares.iterate(grid, steps, engine)
        return found
    step = next(steps)
    return conclude(grid, e_step(shares, grid, step.geometry, step.beta, engine), step, engine)


def likely(steps: Sequence[Step], phase: int, n: int) -> Iterator[Step]:
    """Give the next n steps if nothing settles: of the annealing one after the other, and then the same again."""
    for _ in range(n):
        yield steps[phase]
        phase = min(phase + (steps[phase].limit == np.inf), len(steps) - 1)


def conclude(grid: Grid, statistics: Statistics, step: Step, engine: Engine) -> tuple[Grid, Any]:
    """Make the M step, and work out the objective per token that the E step began with."""
    copies = step.geometry.copies
    totals = arrays.summed(statistics.seen.reshape(len(grid.pi), -1), axis=1) / copies
    eta = step.eta.of(totals, step.geometry.n_cells // copies)
    new, log_density = m_step(grid, statistics, step.geometry, eta, step.location_prior, engine)
    return new, (statistics.log_likelihood + log_density) / totals.sum()


class Progress(NamedTuple):
    """Where a run of EM stands between two iterations."""

    grid: Grid
    history: list[Any]
    phase: int
    previous: Any  # the objective before, within the phase

    @classmethod
    def at(cls, grid: Grid) -> "Progress":
        """Stand at the beginning."""
        return cls(grid, [], 0, -np.inf)


class Outcome(NamedTuple):
    """What a run of EM comes to; where the grid has copies, history holds an objective for each."""

    grid: Grid
    history: list[Any]
    has_converged: bool


def learn(
    shares: Iterable[Bags],
    start: Progress,
    geometry: Geometry,
    recipe: Recipe,
    engine: Engine,
    watch: Watch,
    keep: Callable[[Progress], None] = lambda _: None,
    batches: Batches | None = None,
) -> Outcome:
    """Run EM until the objective, of all copies, stands still, `watch` says stop, or the iterations are used up.

    `keep` is called after iterations with what `start` would have to be to go on from there. Where there are batches,
    an iteration of the annealing looks at one of them; what comes after it looks at all bags. The grid that comes in
    and the one that comes out are NumPy's; in between they are where the engine works.
    """
    grid, history, phase, previous = start
    grid, shares = grid.placed(engine), engine.hold(shares)
    has_converged = False
    steps = [Step(geometry, beta, eta, recipe.location_prior, limit) for beta, eta, limit in recipe.phases()]
    for number in range(len(history) + 1, recipe.max_iter + 1):
        step = steps[phase]
        is_stepwise = batches is not None and step.limit == np.inf
        if batches is not None and is_stepwise:
            grid, objective = conclude(grid, batches.e_step(grid, geometry, step.beta, engine), step, engine)
        else:
            grid, objective = iterate(shares, grid, likely(steps, phase, recipe.max_iter + 1 - number), engine)
        history = [*history, objective]
        if watch(number, step.beta, history[-1], grid):
            break
        has_settled = step.has_settled(objective, previous)
        has_converged = has_settled and phase + 1 == len(steps)
        if has_converged:
            break
        phase, previous = (phase + 1, -np.inf) if has_settled else (phase, history[-1])
        if not is_stepwise:
            keep(Progress(grid, history, phase, previous))
    return Outcome(grid.fetched(), history, has_converged)


def coarser(geometry: Geometry) -> Geometry | None:
    """Scale a geometry down until a section is two cells wide; None where that saves next to nothing.

    What a grid can tell apart depends on its capacity, not on its resolution, so the small grid finds the layout of the
    large one, at a fraction of the cost.
    """
    window = tuple(min(w, 2 * s) for w, s in zip(geometry.window, geometry.painted, strict=True))
    grid = tuple(
        max(small, round(e * small / w)) for e, small, w in zip(geometry.grid, window, geometry.window, strict=True)
    )
    if 2 * prod(grid) > geometry.n_cells:
        return None
    return replace(geometry, grid=grid, window=window)


def finer(grid: Grid, cells: Shape, rng: np.random.RandomState) -> Grid:
    """Blow a grid up to more cells, each a slightly different copy of the cell it comes from."""
    source = np.ix_(*(np.arange(new) * old // new for new, old in zip(cells, grid.log_prior.shape, strict=True)))
    pi = grid.pi[(slice(None), *source)]
    pi = pi * (1 + 0.1 * rng.uniform(size=pi.shape).astype(pi.dtype))
    log_prior = grid.log_prior[source]
    log_prior = log_prior - np.log(np.exp(log_prior).sum())
    return Grid(pi / pi.sum(axis=0), log_prior)


class Stream(NamedTuple):
    """What stepwise EM carries from batch to batch.

    Attributes
    ----------
    counts : expected counts per unit of weight, (features, *grid)
    usage : usage of the windows per unit of weight, (*grid,)
    totals : tokens of each feature per unit of weight, (features,)
    weight : of all bags so far
    n_batches : so far
    """

    counts: Array
    usage: Array
    totals: Array
    weight: float
    n_batches: int


def stream(
    shares: Iterable[Bags],
    weight: float,
    grid: Grid,
    geometry: Geometry,
    recipe: Recipe,
    previous: Stream | None,
    engine: Engine,
) -> tuple[Grid, Stream]:
    """Make one step of stepwise EM; the first batch alone makes one EM iteration."""
    beta = 1.0 if recipe.cooling is None else recipe.cooling.end
    grid = grid.placed(engine)
    statistics = e_step(shares, grid, geometry, beta, engine)
    counts = expected_counts(grid.pi, statistics.seen, geometry.block(painted=True)) / weight
    totals = arrays.summed(statistics.seen.reshape(len(counts), -1), axis=1) / weight
    now = Stream(counts, statistics.usage / weight, totals, weight, 1)
    if previous is not None:
        pace = (previous.n_batches + 1) ** -0.6
        before = arrays.like(counts, previous.counts)
        now = Stream(
            before + pace * (now.counts - before),
            previous.usage + pace * (now.usage - previous.usage),
            previous.totals + pace * (now.totals - previous.totals),
            previous.weight + weight,
            previous.n_batches + 1,
        )
    eta = recipe.settled.of(now.totals * now.weight, geometry.n_cells).reshape(-1, *(1,) * now.usage.ndim)
    pi = normalised(now.counts * now.weight + arrays.like(counts, eta), geometry.groups)
    log_prior = log_location_prior(now.usage, geometry, recipe.location_prior)
    return Grid(pi, arrays.like(pi, log_prior)).fetched(), now._replace(counts=arrays.fetched(now.counts))
