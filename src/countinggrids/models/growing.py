"""A fitted grid that learns from more bags: the old ones keep their places, the new ones find free land."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from countinggrids import backends
from countinggrids.core import arrays, em
from countinggrids.core.em import Grid, Statistics
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import smoothed
from countinggrids.data import validation
from countinggrids.kernels.threads import one_blas_thread
from countinggrids.training import growing, initialization
from countinggrids.training.callbacks import Callback, Iteration
from countinggrids.training.loop import Start, run_em

Array = NDArray[Any]


class GrownGrid(NamedTuple):
    """A grid that has learned from more bags.

    Attributes
    ----------
    model : estimator
        The new model. Cells of the old grid have the same coordinates.
    was_free : ndarray of bool of shape (*grid,)
        Windows of the new grid that were free before.
    """

    model: Any
    was_free: NDArray[np.bool_]


def grow(model: Any, old: Any, new: Any, strength: float = 1.0, callback: Callback | None = None) -> GrownGrid:
    """Continue the training of a fitted model with new bags; the old expected counts stay as pseudocounts.

    Parameters
    ----------
    model : estimator
        A fitted model.
    old : sparse matrix of shape (n_old, n_columns)
        The bags that it was fitted to; further columns than the model knows are features that it lacked.
    new : sparse matrix of shape (n_new, n_columns)
        New bags.
    strength : float, default=1.0
        Weight of the old bags.
    callback : callable, default=None
        Called after every iteration with an `Iteration`.

    Returns
    -------
    grown : GrownGrid
        The new model, and which of its windows were free.
    """
    rng = check_random_state(model.random_state)
    grown = clone(model)
    with one_blas_thread():
        start, geometry, n_free = _larger(model, old, new, rng)
        kept = _statistics(model, start, geometry, old).times(strength)
        was_free = growing.are_free(growing.tokens_of(start, kept, geometry), geometry.window)
        usage = _statistics(model, start, geometry, new).usage
        is_allowed = growing.allowed_windows(was_free, usage, geometry.window, n_free)
        grown.set_params(grid=geometry.grid)
        result, statistics = _trained(grown, start, geometry, kept, is_allowed, new, callback)
    log_prior = em.log_location_prior(statistics.usage, geometry, model.location_prior)
    grown._keep(result.grid._replace(log_prior=log_prior.astype(start.log_prior.dtype)), geometry)
    grown.history_, grown.n_iter_ = np.array(result.history), len(result.history)
    grown.converged_ = result.has_converged
    return GrownGrid(grown, was_free)


def _larger(model: Any, old: Any, new: Any, rng: np.random.RandomState) -> tuple[Grid, Geometry, int]:
    """Return the old grid with its new features, on a torus with enough free windows, and how many to use."""
    geometry, planes = model.geometry_, model.planes()
    n_features = old.shape[1] // geometry.n_column_sections
    pi = np.zeros((n_features, *geometry.grid), planes.pi.dtype)
    pi[: len(planes.pi)] = planes.pi
    grid = Grid(pi, planes.log_prior, planes.extra)
    tokens = growing.tokens_of(grid, _statistics(model, grid, geometry, old), geometry)
    n_free = growing.n_wanted(tokens, geometry.window, old.shape[0], new.shape[0])
    shape = growing.extended_shape(geometry, tokens, n_free)
    totals = np.asarray(new.sum(axis=0), dtype=np.float64).reshape(-1, n_features).sum(axis=0)
    larger = growing.extended(grid, geometry, shape, smoothed(totals), rng)
    return larger, replace(geometry, grid=shape), n_free


def _statistics(model: Any, grid: Grid, geometry: Geometry, bags: Any) -> Statistics:
    """Return the expected sufficient statistics of some bags under a grid."""
    table, backend = backends.open_bags(clone(model), bags, is_fitting=True)
    n_features, weights = validation.n_features_of(table, geometry), np.ones(table.shape[0], table.dtype)
    statistics = backend.e_step(backend.prepare(table, weights, n_features, geometry), backend.place(grid), geometry, 1)
    return Statistics(arrays.fetched(statistics.A), statistics.usage, 0.0, statistics.extra)


def _trained(
    model: Any,
    start: Grid,
    geometry: Geometry,
    kept: Statistics,
    is_allowed: Array,
    new: Any,
    callback: Callback | None,
) -> tuple[Any, Statistics]:
    """Run EM on the new bags; return its result, and the statistics of all bags under it."""
    table, weights, n_features, plain = model._open(new, None, geometry, is_fitting=True)
    log_prior = np.where(is_allowed, -np.log(is_allowed.sum()), growing.EXCLUDED)
    backend = growing.RememberingBackend(plain, kept, log_prior)
    how = initialization.schedule_of(model, table, weights, n_features)

    def observe(number: int, beta: float, objective: float, grid: Grid) -> Any:
        now = Iteration("growing", 0, 0, number, model.max_iter, beta, objective, grid)
        return callback(now) if callback is not None else None

    chunks = backend.prepare(table, weights, n_features, geometry)
    result = run_em(chunks, Start.of(start), geometry, how, backend, observe)
    return result, backend.e_step(chunks, backend.place(result.grid), geometry, 1)
