"""One restart of a fit, as a model's options say: its recipe, its first grid, and its way over a small grid."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from countinggrids import checkpoints, checks, device, em, learn, sources
from countinggrids import recipe as recipes
from countinggrids.arrays import Array
from countinggrids.bags import coarsen
from countinggrids.geometry import Geometry


@dataclass
class Restart:
    """One restart of a fit.

    Parameters
    ----------
    model : the estimator, whose options count
    table, weights, n_features : the bags
    rng : random numbers
    runs : carries out its runs of EM, and may keep them
    watch : is told of every iteration
    batch_size : bags that an iteration of the annealing looks at; None looks at all
    number : which restart, from 0
    """

    model: Any
    table: sources.Table
    weights: Array
    n_features: int
    rng: np.random.RandomState
    runs: checkpoints.Runs
    watch: learn.Callback | None
    batch_size: int | None
    number: int

    def make(self) -> learn.Outcome:
        """Find a layout on a small grid if that pays, then learn on the full one."""
        model, geometry = self.model, self.model._geometry()
        recipe = recipe_of(model, self.table, self.weights, self.n_features, self.batch_size)
        is_automatic = isinstance(model.anneal, str) and isinstance(model.init, str)
        small = learn.coarser(geometry) if is_automatic and recipe.cooling else None
        if small is None:
            grid = first_grid(model, self.rng, geometry, self.n_features)
        else:
            layout = self._layout(small, geometry.n_cells // small.n_cells, recipe)
            grid = learn.finer(layout, geometry.grid, self.rng)
            recipe = recipe.refining()
        return self._run("learning", self.table, self.weights, geometry, recipe, grid)

    def _layout(self, small: Geometry, most: int, recipe: recipes.Recipe) -> em.Grid:
        """Learn several small grids from some of the bags, so many side by side at the most; give the best."""
        n_bags = learn.BATCH_SCOUT_BAGS if recipe.has_batches else learn.SCOUT_BAGS
        some = np.sort(self.rng.permutation(self.table.shape[0])[:n_bags])
        table, weights = sources.Table.of(self.table.take(some)), self.weights[some]
        found: list[tuple[float, em.Grid]] = []
        for scouts in em.pieces(learn.N_SCOUTS, most):
            n = scouts.stop - scouts.start
            first = em.side_by_side([first_grid(self.model, self.rng, small, self.n_features) for _ in range(n)])
            made = self._run("scouting", table, weights, small.side_by_side(n), recipe.scouting(), first)
            found += [(value, made.grid.copy_of(i)) for i, value in enumerate(np.atleast_1d(made.history[-1]))]
        return max(found, key=itemgetter(0))[1]

    def _run(
        self,
        stage: str,
        table: sources.Table,
        weights: Array,
        geometry: Geometry,
        recipe: recipes.Recipe,
        grid: em.Grid,
    ) -> learn.Outcome:
        """Make one run of EM; of grids that are side by side, the best is told of."""

        def see(number: int, beta: float, objective: Any, now: em.Grid) -> Any:
            if self.watch is None:
                return False
            if stage == "scouting":
                now = now.copy_of(int(np.argmax(objective)))
            of_run = stage, self.number, number, self.model.max_iter, beta
            return self.watch(learn.Iteration(*of_run, float(np.max(objective)), now))

        bags = (table, weights, self.n_features, geometry)
        batches = None
        if self.batch_size is not None and self.batch_size < table.shape[0]:
            batches = learn.Batches(sources.batches(*bags, self.batch_size, self.rng))
        runner = device.runner(self.model.device, self.model.dtype)
        how = {"geometry": geometry, "recipe": recipe, "engine": runner, "watch": see, "batches": batches}
        return self.runs.make(sources.shares(*bags), grid, **how)


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
