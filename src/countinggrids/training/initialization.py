"""Where EM starts: a first grid, or the best of several candidates trained on a small grid and upsampled."""

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from countinggrids.core import em, schedule, steps
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import PLANE_ENTRIES, pieces
from countinggrids.core.protocols import Pool
from countinggrids.core.schedule import Annealing, Pseudocounts, Schedule
from countinggrids.data.counts import coarsen
from countinggrids.data.table import Table
from countinggrids.data.validation import check_eta, check_init
from countinggrids.kernels.threads import default

N_CANDIDATES, N_LARGE_CANDIDATES, N_GRADUAL_CANDIDATES = 8, 4, 1
"""Number of candidates on the small grid; fewer where it is large, one where layouts form gradually and end alike."""
LARGE_CANDIDATE = 2**18
"""Entries of a small grid that is large."""
CANDIDATE_BAGS, BATCH_CANDIDATE_BAGS = 5_000, 20_000
"""Largest number of bags that candidates are trained on, without and with batches."""
VALIDATION_FRACTION, MOST_VALIDATION_BAGS, FEWEST_VALIDATED = 0.02, 500, 1000
"""Fraction of the bags that are held out to tell when to stop, their largest number, and from how many bags on."""
CANDIDATE_BATCH, FEWEST_BATCHES = 500, 4
"""Bags of a batch that candidates are trained on, and from how many such batches on; fewer bags are used at once."""
FINISHING = 3
"""Iterations over all bags, held-out ones included, at the end."""
UPSAMPLING_NOISE = 0.1
"""Relative noise that makes the copies of an upsampled cell differ."""


class Candidates(NamedTuple):
    """How candidates on a small grid are trained.

    Attributes
    ----------
    number : int
        How many there are.
    n_bags : int
        The bags that they are trained on, at most.
    batch_size : int or None
        Bags of a batch (stepwise EM); None uses all bags in every iteration.
    schedule : Schedule
        Inverse temperatures and pseudocounts.
    """

    number: int
    n_bags: int
    batch_size: int | None
    schedule: Schedule


def candidates(small: Geometry, n_bags: int, n_features: int, how: Schedule, batch_size: int | None) -> Candidates:
    """Plan the candidates of a fit: from batches where there are many bags, which finds better layouts, and sooner."""
    number = N_LARGE_CANDIDATES if n_features * small.n_cells > LARGE_CANDIDATE else N_CANDIDATES
    most = BATCH_CANDIDATE_BAGS if how.has_batches else CANDIDATE_BAGS
    if how.is_gradual:
        number = N_GRADUAL_CANDIDATES
    elif batch_size is None and min(n_bags, most) >= FEWEST_BATCHES * CANDIDATE_BATCH:
        batch_size, how = CANDIDATE_BATCH, how.in_batches()
    return Candidates(number, most, batch_size, replace(how, is_validated=False).for_candidates())


def first_grid(model: Any, rng: np.random.RandomState, geometry: Geometry, n_features: int) -> Grid:
    """Return the first grid: near uniform, with noise that breaks the symmetry, or the one given as `init`."""
    if isinstance(model.init, str):
        pi = np.empty((n_features, *geometry.grid), model.dtype)
        for features in pieces(n_features, max(1, PLANE_ENTRIES // geometry.n_cells)):
            pi[features] = 1 + rng.uniform(size=pi[features].shape)
    else:
        pi = np.array(check_init(model.init, geometry, n_features), model.dtype, order="C")
    log_prior = np.full(geometry.grid, -np.log(geometry.n_cells), dtype=model.dtype)
    pi = em.normalize(pi, geometry.groups, default())
    return Grid(pi, log_prior, model._first_extra(geometry))


def downsampled(geometry: Geometry, narrowest: int = 1) -> Geometry | None:
    """Scale a geometry down until a section is two cells wide, or the window `narrowest`; None where that saves little.

    What a grid can represent depends on its capacity, not on its resolution. So the small grid finds the layout of
    the large one, at a fraction of the cost.
    """
    window = tuple(min(w, max(2, narrowest // s) * s) for w, s in zip(geometry.window, geometry.painted, strict=True))
    grid = tuple(
        max(small, round(e * small / w)) for e, small, w in zip(geometry.grid, window, geometry.window, strict=True)
    )
    if 2 * prod(grid) > geometry.n_cells:
        return None
    return geometry.resized(grid, window)


def upsampled(grid: Grid, geometry: Geometry, rng: np.random.RandomState, pool: Pool) -> Grid:
    """Return a grid with more cells, each a slightly different copy of the cell it comes from.

    Extra parameters are kept, or start anew where the larger grid has others.
    """
    cells = geometry.grid
    source = np.ix_(*(np.arange(new) * old // new for new, old in zip(cells, grid.log_prior.shape, strict=True)))
    pi = np.empty((len(grid.pi), *cells), grid.pi.dtype)
    for features in pieces(len(pi), max(1, PLANE_ENTRIES // geometry.n_cells)):
        noise = rng.uniform(size=pi[features].shape).astype(pi.dtype)
        pi[features] = grid.pi[(features, *source)] * (1 + UPSAMPLING_NOISE * noise)
    log_prior = grid.log_prior[source]
    log_prior = log_prior - np.log(np.exp(log_prior).sum())
    first = steps.of(geometry).first_extra(geometry)
    extra = grid.extra if grid.extra.shape == first.shape else first
    return Grid(em.normalize(pi, 1, pool), log_prior, extra)


def schedule_of(
    model: Any, table: Table, weights: Array, n_features: int, batch_size: int | None = None, is_scene: bool = False
) -> Schedule:
    """Return the schedule that the parameters of a model ask for; a scene has pseudocounts of its own."""
    annealing, has_batches = None, batch_size is not None and batch_size < table.shape[0]
    if isinstance(model.anneal, str):
        annealing = automatic_annealing(table, weights, n_features, model.max_iter, has_batches)
    elif model.anneal is not None:
        annealing = Annealing(*(float(value) for value in model.anneal))
    if isinstance(model.eta, str) and is_scene:
        forming = settled = Pseudocounts(None, schedule.SCENE_FRACTION, schedule.SETTLED_TOTAL, is_even=True)
    elif isinstance(model.eta, str):
        is_gradual = isinstance(model.anneal, str) and forms_gradually(annealing, table, has_batches)
        forming = Pseudocounts(None, schedule.GRADUAL_FRACTION if is_gradual else schedule.FORMING_FRACTION)
        settled = Pseudocounts(None, schedule.SETTLED_FRACTION, schedule.SETTLED_TOTAL)
    else:
        forming = settled = Pseudocounts(check_eta(model.eta, model._geometry(), n_features))
    return Schedule(annealing, forming, settled, model.location_prior, model.max_iter, model.tol, has_batches)


def automatic_annealing(
    table: Table, weights: Array, n_features: int, max_iter: int, has_batches: bool = False
) -> Annealing:
    """Return an annealing schedule for these bags, which starts at their critical inverse temperature."""
    some = counted(table, weights, np.arange(0, table.shape[0], max(1, table.shape[0] // schedule.CRITICAL_BAGS)))
    whole = coarsen(table.take(some), n_features, (table.shape[1] // n_features,), (1,))
    start = min(1.0, schedule.critical_beta(whole, weights[some]))
    rate = schedule.BATCH_RATE if has_batches else schedule.RATE
    annealing = Annealing(start, rate, 1.0, schedule.FORMED * start)
    if forms_gradually(annealing, table, has_batches):
        annealing = Annealing(start, schedule.GRADUAL_RATE, 1.0)
    return annealing.within(max_iter * 3 // 5)


def forms_gradually(annealing: Annealing | None, table: Table, has_batches: bool) -> bool:
    """Return whether the layout forms gradually, as that of real texts does, and held-out bags tell when to stop."""
    is_validated = not has_batches and table.shape[0] >= FEWEST_VALIDATED
    return annealing is not None and annealing.start < schedule.GRADUAL and is_validated


def counted(table: Table, weights: Array, rows: Array) -> Array:
    """Return rows of a table, or, where all of these are empty or without weight, rows that are not."""
    if (weights[rows] * table.tokens[rows]).any():
        return rows
    return np.flatnonzero(weights * table.tokens)[: len(rows)]


def held_out(table: Table, weights: Array) -> Array:
    """Draw the bags that tell when to stop, always the same ones, among those with tokens and weight."""
    counted = np.flatnonzero(weights * table.tokens)
    if len(counted) < FEWEST_VALIDATED:
        return counted[:0]
    n_bags = min(MOST_VALIDATION_BAGS, int(VALIDATION_FRACTION * len(counted)))
    return np.sort(np.random.default_rng(1).permutation(counted)[:n_bags])
