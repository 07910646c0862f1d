"""One restart of a fit, as a model's options say: its recipe, its first grid, and its way over a small grid."""

from typing import Any

import numpy as np

from countinggrids import checkpoints, checks, device, em, learn, sources
from countinggrids import recipe as recipes
from countinggrids.arrays import Array
from countinggrids.bags import coarsen
from countinggrids.geometry import Geometry


def make(
    model: Any, table: sources.Table, weights: Array, n_features: int, rng: np.random.RandomState,
    runs: checkpoints.Runs, watch: learn.Callback | None, batch_size: int | None, number: int,
) -> learn.Outcome:  # fmt: skip
    """Find a layout on a small grid if that pays, then learn on the full one."""
    geometry, recipe = model._geometry(), recipe_of(model, table, weights, n_features, batch_size)
    runner = device.runner(model.device, model.dtype)
    is_automatic = isinstance(model.anneal, str) and isinstance(model.init, str)
    small = learn.coarser(geometry) if is_automatic and recipe.cooling else None
    if small is None:
        grid = first_grid(model, rng, geometry, n_features)
    else:
        most = learn.BATCH_SCOUT_BAGS if recipe.has_batches else learn.SCOUT_BAGS
        some = np.sort(rng.permutation(table.shape[0])[:most])
        few = (sources.Table.of(table.take(some)), weights[some], n_features, small)
        how = {"geometry": small, "recipe": recipe.scouting(), "engine": runner}
        see = _told(watch, "scouting", number, model.max_iter)
        scouts = [
            runs.make(shares, first_grid(model, rng, small, n_features), watch=see, batches=batches, **how)
            for shares in [sources.shares(*few)]
            for batches in (_batches(*few, batch_size, rng) for _ in range(learn.N_SCOUTS))
        ]
        best = max(scouts, key=lambda outcome: outcome.history[-1])
        grid = learn.finer(best.grid, geometry.grid, rng)
        recipe = recipe.refining()
    everything = (table, weights, n_features, geometry)
    batches = _batches(*everything, batch_size, rng)
    see = _told(watch, "learning", number, model.max_iter)
    how = {"geometry": geometry, "recipe": recipe, "engine": runner}
    return runs.make(sources.shares(*everything), grid, watch=see, batches=batches, **how)


def recipe_of(
    model: Any, table: sources.Table, weights: Array, n_features: int, batch_size: int | None = None
) -> recipes.Recipe:
    """Write down how a model is to learn these bags."""
    cooling, has_batches = None, batch_size is not None and batch_size < table.shape[0]
    if isinstance(model.anneal, str):
        cooling = automatic_cooling(table, weights, n_features, model.max_iter, has_batches)
    elif model.anneal is not None:
        cooling = recipes.Cooling(*(float(value) for value in model.anneal))
    if isinstance(model.eta, str):
        forming = recipes.Eta(None, recipes.FORMING_SHARE)
        settled = recipes.Eta(None, recipes.SETTLED_SHARE, recipes.SETTLED_TOTAL)
    else:
        forming = settled = recipes.Eta(checks.check_eta(model.eta, model._geometry(), n_features))
    return recipes.Recipe(cooling, forming, settled, model.location_prior, model.max_iter, model.tol, has_batches)


def automatic_cooling(
    table: sources.Table, weights: Array, n_features: int, max_iter: int, has_batches: bool = False
) -> recipes.Cooling:
    """Find a way of beta that suits these bags, from where a layout begins to form."""
    some = np.arange(0, table.shape[0], max(1, table.shape[0] // recipes.CRITICAL_BAGS))
    whole = coarsen(table.take(some), n_features, (table.shape[1] // n_features,), (1,))
    start = min(1.0, recipes.critical_beta(whole, weights[some]))
    rate = recipes.BATCH_RATE if has_batches else recipes.RATE
    return recipes.Cooling(start, rate, 1.0, recipes.FORMED * start).within(max_iter * 3 // 5)


def first_grid(model: Any, rng: np.random.RandomState, geometry: Geometry, n_features: int) -> em.Grid:
    """Make the first grid: near uniform with its symmetry broken, or the one that was given."""
    if isinstance(model.init, str):
        pi = 1 + rng.uniform(size=(n_features, *geometry.grid))
    else:
        pi = checks.check_init(model.init, geometry, n_features)
    log_prior = np.full(geometry.grid, -np.log(geometry.n_cells), dtype=model.dtype)
    return em.Grid(em.normalised(np.array(pi, model.dtype, order="C"), geometry.groups), log_prior)


def _told(watch: learn.Callback | None, stage: str, restart: int, planned: int) -> learn.Watch:
    """Tell a caller's callback about every iteration of one stage."""

    def see(number: int, beta: float, objective: float, grid: em.Grid) -> Any:
        if watch is None:
            return False
        return watch(learn.Iteration(stage, restart, number, planned, beta, objective, grid))

    return see


def _batches(
    table: sources.Table, weights: Array, n_features: int, geometry: Geometry, size: int | None, rng: Any
) -> learn.Batches | None:
    """Make the batches of stepwise EM, unless one would hold all bags."""
    if size is None or size >= table.shape[0]:
        return None
    return learn.Batches(sources.batches(table, weights, n_features, geometry, size, rng))
