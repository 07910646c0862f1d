"""Learning: the E and M steps in a loop, warm at first and colder as it goes.

Plain EM ends in a jumble of tiles. Deterministic annealing starts where every bag lies everywhere (beta near zero) and
lets the layout form from its largest features down. The pseudocounts follow: strong while the layout forms, because
a strong pull to the mean lets only the largest features grow, and weaker once it stands.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
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
    log_density,
    log_location_prior,
    m_step,
    normalised,
)
from countinggrids.geometry import Geometry, Shape

RATE, QUICK_RATE = 1.01, 1.05
"""Growth of beta in one iteration: while the layout forms, and after that."""
FORMED = 3.0
"""Where the layout has formed, in critical betas."""
N_SCOUTS, SCOUT_BAGS = 8, 5_000
"""How many layouts are tried on the small grid, and with how many bags at the most."""
PACE = 0.5
"""How far one batch moves what was seen: while beta grows, older batches mislead more than they teach."""
CRITICAL_BAGS = 10_000
"""How many bags, about, tell where annealing starts."""
REFINING = 2.0
"""Where beta starts on the full grid once the layout is known, in critical betas."""
FORMING_SHARE = 0.3
"""Pseudocounts while the layout forms, as a share of the tokens a cell receives."""
SETTLED_SHARE = 0.2
"""The same at the most once the layout stands."""
SETTLED_TOTAL = 4.0
"""And in total at the most this many times the square root of the number of features in real use."""


class Cooling(NamedTuple):
    """The way of beta: from start, times rate in every iteration, to end; from `formed` on times QUICK_RATE."""

    start: float
    rate: float
    end: float
    formed: float = np.inf

    def betas(self) -> list[float]:
        """List beta for every iteration before the end is reached."""
        betas = []
        beta = self.start
        while beta < self.end:
            betas.append(beta)
            beta *= self.rate if beta < self.formed else max(self.rate, QUICK_RATE)
        return betas

    def within(self, n_iterations: int) -> "Cooling":
        """Cool faster where need be, so that the end is reached in so many iterations."""
        if len(self.betas()) <= n_iterations:
            return self
        return self._replace(rate=(self.end / self.start) ** (1 / max(1, n_iterations)), formed=np.inf)


class Iteration(NamedTuple):
    """What a callback sees after every iteration.

    Attributes
    ----------
    stage : "scouting" on a smaller grid for a good layout, or "learning"
    restart : which restart, from 0
    number : which iteration of it, from 1
    planned : iterations at the most
    beta : the inverse temperature of this iteration
    objective : log-likelihood plus log prior of pi per token, before this iteration's M step
    pi : (*grid, features), a view: copy it to keep it; while scouting the grid is smaller
    log_prior : (*grid,)
    """

    stage: str
    restart: int
    number: int
    planned: int
    beta: float
    objective: float
    pi: Array
    log_prior: Array


Callback = Callable[[Iteration], Any]
Watch = Callable[[int, float, float, Grid], Any]
"""Called with number, beta, objective and grid; what is not false stops the learning."""


@dataclass(frozen=True)
class Eta:
    """The pseudocounts of Eq. M1_full, the same in every cell.

    Parameters
    ----------
    fixed : given by the user, a number or (features,); None takes them along the mean histogram of the bags
    share : their total, as a share of the tokens a cell receives
    at_most : their total at the most, in units of sqrt(effective features)
    """

    fixed: Array | float | None
    share: float = 0.0
    at_most: float = np.inf

    def of(self, totals: Array, n_cells: int) -> Array:
        """Give (features,) pseudocounts from the features' totals over all bags."""
        if self.fixed is not None:
            return np.broadcast_to(np.asarray(self.fixed, dtype=np.float64), totals.shape)
        tokens = float(totals.sum()) / n_cells
        seen = totals[totals > 0] / totals.sum()
        effective = float(np.exp(-seen @ np.log(seen)))
        return smoothed(totals) * tokens * min(self.share, self.at_most * effective**0.5 / tokens)


def smoothed(totals: Array) -> Array:
    """Give the histogram of all bags, with something for features that none of them has (Witten and Bell).

    Every feature that was seen counts once more, and these counts are spread over all features: the more different
    features there were, the likelier is one that was not.
    """
    n_seen = np.count_nonzero(totals)
    return (totals + n_seen / totals.size) / (totals.sum() + n_seen)


@dataclass(frozen=True)
class Recipe:
    """How to learn.

    Parameters
    ----------
    cooling : the way of beta; None stays at 1
    forming, settled : pseudocounts while the layout forms, and once it stands
    location_prior : "smoothed", "exact" or "uniform"
    max_iter : iterations at the most
    tol : change of the objective per token below which a phase ends
    """

    cooling: Cooling | None
    forming: Eta
    settled: Eta
    location_prior: str
    max_iter: int
    tol: float

    def scouting(self) -> "Recipe":
        """Stop where the layout stands."""
        return replace(self, settled=self.forming, tol=10 * self.tol)

    def refining(self) -> "Recipe":
        """Start where the layout stands already."""
        assert self.cooling is not None
        start = min(self.cooling.end, REFINING * self.cooling.start)
        return replace(self, cooling=Cooling(start, QUICK_RATE, self.cooling.end).within(self.max_iter // 2))


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
        """Make the E step of `em.e_step`, for all bags, from the next batch."""
        shares, times = next(self.batches)
        now = e_step(shares, grid, geometry, beta, engine).scaled(times)
        if self.past is not None:
            now = now.scaled(PACE).plus(self.past.scaled(1 - PACE))
        self.past = now
        return now


class Progress(NamedTuple):
    """Where a run of EM stands between two iterations."""

    grid: Grid
    history: list[float]
    phase: int
    previous: float  # the objective before, within the phase

    @classmethod
    def at(cls, grid: Grid) -> "Progress":
        """Stand at the beginning."""
        return cls(grid, [], 0, -np.inf)


class Outcome(NamedTuple):
    grid: Grid
    history: list[float]
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
    """Run EM until the objective stands still, `watch` says stop, or the iterations are used up.

    `keep` is called after iterations with what `start` would have to be to go on from there. Where there are batches,
    an iteration of the annealing looks at one of them; what comes after it looks at all bags. The grid that comes in
    and the one that comes out are NumPy's; in between they are where the engine works.
    """
    grid, history, phase, previous = start
    grid, shares = grid.placed(engine), engine.hold(shares)
    has_converged = False
    phases = list(_phases(recipe))
    for number in range(len(history) + 1, recipe.max_iter + 1):
        beta, eta, limit = phases[phase]
        is_stepwise = batches is not None and limit == np.inf
        look = batches.e_step if batches is not None and is_stepwise else partial(e_step, shares)
        statistics = look(grid, geometry, beta, engine)
        totals = arrays.summed(statistics.seen.reshape(len(grid.pi), -1), axis=1)
        pseudocounts = eta.of(totals, geometry.n_cells)
        objective = statistics.log_likelihood + log_density(grid.pi, pseudocounts, engine)
        grid = m_step(grid, statistics, geometry, pseudocounts, recipe.location_prior, engine)
        del statistics  # as large as the grid: not to be held while the next is made
        history = [*history, objective / totals.sum()]
        if watch(number, beta, history[-1], grid):
            break
        has_settled = abs(history[-1] - previous) <= limit
        has_converged = has_settled and phase + 1 == len(phases)
        if has_converged:
            break
        phase, previous = (phase + 1, -np.inf) if has_settled else (phase, history[-1])
        if not is_stepwise:
            keep(Progress(grid, history, phase, previous))
    return Outcome(grid.fetched(), history, has_converged)


def _phases(recipe: Recipe) -> Iterator[tuple[float, Eta, float]]:
    """Give (beta, eta, tolerance) of every phase; a phase ends when the objective changes less than the tolerance."""
    end = 1.0
    if recipe.cooling is not None:
        end = recipe.cooling.end
        for beta in recipe.cooling.betas():
            yield beta, recipe.forming, np.inf
        if recipe.forming != recipe.settled:
            yield end, recipe.forming, 10 * recipe.tol
    yield end, recipe.settled, recipe.tol


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


def critical_beta(counts: Any, weights: Array) -> float:
    """Find the inverse temperature at which a grid without structure begins to form one.

    Around the grid that holds the mean histogram everywhere, a small wave grows by beta times the largest eigenvalue
    of C' C / n (n the features' totals) off the mean: the first inertia of correspondence analysis, in tokens.
    A few steps of power iteration on some thousand bags are plenty.
    """
    weights = weights.astype(np.float64)
    totals = np.asarray(counts.T @ weights, dtype=np.float64)
    scale = np.divide(1, np.sqrt(totals), out=np.zeros_like(totals), where=totals > 0)
    mean = np.sqrt(totals / totals.sum())
    vector = np.random.default_rng(0).standard_normal(totals.size)
    eigenvalue = 0.0
    for _ in range(30):
        vector -= mean * (mean @ vector)
        vector /= np.linalg.norm(vector) or 1.0
        image = scale * (counts.T @ (weights * (counts @ (scale * vector))))
        eigenvalue, vector = float(vector @ image), np.asarray(image, dtype=np.float64)
    return 1 / eigenvalue if eigenvalue > 0 else np.inf


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
