"""Stepwise EM: expected sufficient statistics that move a part of the way to those of every batch."""

from collections.abc import Iterator
from itertools import chain, count, cycle
from typing import Any, NamedTuple

import numpy as np

from countinggrids.backends import Backend
from countinggrids.core import arrays, em, steps
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import for_features, pieces
from countinggrids.core.schedule import Schedule
from countinggrids.data.table import Table
from countinggrids.training.loop import check_finite

PACE = 0.5
"""Step size of a batch during annealing: while beta grows, old batches mislead more than they teach."""
FORGETTING = -0.6
"""Exponent of the step size of `partial_fit`: batch b moves the statistics by b**-0.6."""


class AnnealingBatches:
    """The E step of one batch after the other, scaled to all bags, without end.

    Parameters
    ----------
    table : Table
        The bags. Those in memory are drawn at random into batches; those from files follow each other as they are.
    weights : ndarray of shape (n_bags,)
        Weights of the bags.
    n_features : int
        Number of features.
    geometry : Geometry
        Grid, window and sections.
    size : int
        Bags of a batch, about.
    rng : RandomState
        Random numbers.
    backend : Backend
        Where the E step runs.
    """

    def __init__(
        self,
        table: Table,
        weights: Array,
        n_features: int,
        geometry: Geometry,
        size: int,
        rng: np.random.RandomState,
        backend: Backend,
    ):
        self.backend = backend
        self.batches = _batches(table, weights, n_features, geometry, size, rng, backend)
        self.whole = float(weights.sum(dtype=np.float64))
        self.past: Statistics | None = None

    def e_step(self, grid: Grid, geometry: Geometry, beta: float) -> Statistics:
        """Compute the statistics of the next batch, and move those of the batches before toward them."""
        chunks, scale = next(self.batches)
        now = self.backend.e_step(chunks, grid, geometry, beta)
        pace = self.pace()
        now = now.times(scale if self.past is None else pace * scale)
        self.past = now if self.past is None else now.plus(self.past.times(1 - pace))
        return self.past

    def pace(self) -> float:
        """Return the step size of the next batch."""
        return PACE


def _batches(
    table: Table,
    weights: Array,
    n_features: int,
    geometry: Geometry,
    size: int,
    rng: np.random.RandomState,
    backend: Backend,
) -> Iterator[tuple[Any, float]]:
    """Return the chunks of one batch after the other, and how many such batches all bags would make."""
    runs = pieces(table.shape[0], size)
    order = rng.permutation(table.shape[0]) if table.is_held else np.arange(table.shape[0])
    rows = [np.sort(order[run]) for run in runs]
    whole = float(weights.sum(dtype=np.float64))

    def once() -> Iterator[tuple[Any, float]]:
        tables = (Table.of(table.take(some)) for some in rows) if table.is_held else table.parts(runs)
        for some, part in zip(rows, tables, strict=True):
            total = float(weights[some].sum(dtype=np.float64))
            if (weights[some] * table.tokens[some]).any():
                yield backend.prepare(part, weights[some], n_features, geometry), whole / total

    return cycle(list(once())) if table.is_held else chain.from_iterable(once() for _ in count())


class Stream(NamedTuple):
    """What `partial_fit` carries from batch to batch.

    Attributes
    ----------
    counts : ndarray of shape (n_features, *grid)
        Expected counts per unit of weight.
    usage : ndarray of shape (*grid,)
        Usage of the windows per unit of weight.
    totals : ndarray of shape (n_features,)
        Tokens of each feature per unit of weight.
    weight : float
        Weight of all bags so far.
    n_batches : int
        Batches so far.
    extra : ndarray
        `Statistics.extra` per unit of weight.
    is_averaged : bool
        Whether a batch counts by its weight, because the first statistics are those of a fit that has converged.
    """

    counts: Array
    usage: Array
    totals: Array
    weight: float
    n_batches: int
    extra: Array = em.NOTHING
    is_averaged: bool = False

    def moved(self, now: "Stream") -> "Stream":
        """Return the statistics moved toward those of one more batch."""
        pace = now.weight / (self.weight + now.weight) if self.is_averaged else (self.n_batches + 1) ** FORGETTING
        before = arrays.like(now.counts, self.counts)
        return Stream(
            before + pace * (now.counts - before),
            self.usage + pace * (now.usage - self.usage),
            self.totals + pace * (now.totals - self.totals),
            self.weight + now.weight,
            self.n_batches + 1,
            self.extra + pace * (now.extra - self.extra),
            self.is_averaged,
        )


class Fitted(NamedTuple):
    """What `fit` leaves for `partial_fit` to go on from; the expected counts are in the grid already.

    Attributes
    ----------
    tokens : ndarray of shape (n_groups, *grid)
        Expected tokens of each cell per unit of weight.
    usage : ndarray of shape (*grid,)
        Usage of the windows per unit of weight.
    totals : ndarray of shape (n_features,)
        Tokens of each feature per unit of weight.
    weight : float
        Weight of all bags.
    extra : ndarray
        `Statistics.extra` per unit of weight.
    """

    tokens: Array
    usage: Array
    totals: Array
    weight: float
    extra: Array = em.NOTHING

    def stream(self, grid: Grid, geometry: Geometry, schedule: Schedule) -> Stream:
        """Return the statistics of the fit: the expected counts are pi times the tokens, without pseudocounts."""
        eta = schedule.settled.of(self.totals * self.weight, geometry.n_cells) / self.weight
        planes = (geometry.groups, -1, *geometry.grid)
        eta = np.broadcast_to(eta, self.totals.shape).reshape(*planes[:2], *(1,) * len(geometry.grid))
        tokens = self.tokens[:, None] + eta.sum(axis=1, keepdims=True)
        counts = np.maximum(grid.pi.reshape(planes) * tokens - eta, 0).reshape(grid.pi.shape).astype(grid.pi.dtype)
        return Stream(counts, self.usage, self.totals, self.weight, 1, self.extra, True)


def fitted_of(chunks: Any, weight: float, grid: Grid, geometry: Geometry, beta: float, backend: Backend) -> Fitted:
    """Compute what `partial_fit` goes on from, by one more E step.

    Parameters
    ----------
    chunks : object
        All bags, as the backend has prepared them.
    weight : float
        Their weight.
    grid : Grid
        The fitted grid.
    geometry : Geometry
        Grid, window and sections.
    beta : float
        Inverse temperature.
    backend : Backend
        Where the E step runs.

    Returns
    -------
    fitted : Fitted
        Statistics.
    """
    grid = backend.place(grid)
    statistics = backend.e_step(chunks, grid, geometry, beta)
    totals = arrays.summed(statistics.A.reshape(len(grid.pi), -1), axis=1) / weight
    block, A = geometry.block(painted=True), statistics.A

    def distribute(features: slice) -> None:
        A[features] = em.expected_counts(grid.pi[features], A[features], block)

    for_features(distribute, grid.pi, backend.pool)
    tokens = arrays.fetched(A).reshape(geometry.groups, -1, *geometry.grid).sum(axis=1, dtype=np.float64) / weight
    return Fitted(tokens, statistics.usage / weight, totals, weight, statistics.extra / weight)


def stream_step(
    chunks: Any,
    weight: float,
    grid: Grid,
    geometry: Geometry,
    schedule: Schedule,
    previous: Stream | None,
    backend: Backend,
) -> tuple[Grid, Stream]:
    """Learn from one batch (`partial_fit`); the first batch alone is one EM iteration."""
    beta = 1.0 if schedule.annealing is None else schedule.annealing.end
    grid = backend.place(grid)
    statistics = backend.e_step(chunks, grid, geometry, beta)
    check_finite(statistics.log_likelihood, 1 if previous is None else previous.n_batches + 1)
    counts = em.expected_counts(grid.pi, statistics.A, geometry.block(painted=True)) / weight
    totals = arrays.summed(statistics.A.reshape(len(counts), -1), axis=1) / weight
    now = Stream(counts, statistics.usage / weight, totals, weight, 1, statistics.extra / weight)
    if previous is not None:
        now = previous.moved(now)
    eta = schedule.settled.of(now.totals * now.weight, geometry.n_cells).reshape(-1, *(1,) * now.usage.ndim)
    pi = em.normalize(now.counts * now.weight + arrays.like(counts, eta), geometry.groups, backend.pool)
    log_prior = em.log_location_prior(now.usage, geometry, schedule.location_prior)
    extra = steps.of(geometry).extra_step(grid, now.extra * now.weight, geometry)
    return Grid(pi, arrays.like(pi, log_prior), extra).fetched(), now._replace(counts=arrays.fetched(now.counts))
