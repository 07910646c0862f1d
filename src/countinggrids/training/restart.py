"""One restart of a fit: candidates on a small grid where that saves work, then EM on the full grid."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

import numpy as np

from countinggrids.backends import Backend
from countinggrids.core.arrays import Array
from countinggrids.core.em import Grid
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import Schedule
from countinggrids.data.counts import coarsen
from countinggrids.data.table import Table
from countinggrids.training import embedding, initialization
from countinggrids.training.callbacks import Callback, Iteration
from countinggrids.training.embedding import Candidate, Landmarks, Layout
from countinggrids.training.loop import Observer, TrainingResult, TrainingState, run_em
from countinggrids.training.stepwise import AnnealingBatches


class Runs:
    """The runs of EM of a fit without a checkpoint."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def run(self, chunks: Any, start: Grid, **how: Any) -> TrainingResult:
        """Make the next run, with the arguments of `run_em`."""
        return run_em(chunks, TrainingState.start(start), **how)


@dataclass
class Restart:
    """One restart of a fit.

    Parameters
    ----------
    model : estimator
        The model, whose parameters are used.
    table : Table
        The bags.
    weights : ndarray of shape (n_bags,)
        Weights of the bags.
    n_features : int
        Number of features.
    rng : RandomState
        Random numbers.
    runs : Runs
        Makes the runs of EM, and may keep them in a checkpoint.
    callback : callable
        Called after every iteration.
    batch_size : int or None
        Bags of a batch during annealing; None uses all bags.
    backend : Backend
        Where the bags are worked on.
    number : int
        Number of the restart, from 0.
    """

    model: Any
    table: Table
    weights: Array
    n_features: int
    rng: np.random.RandomState
    runs: Runs
    callback: Callback
    batch_size: int | None
    backend: Backend
    number: int

    def run(self) -> TrainingResult:
        """Find a first grid, from the distances of the bags or by annealed candidates, and train it."""
        geometry = self.model._geometry()
        landmarks = self._landmarks(geometry)
        layouts = self._layouts(geometry, landmarks)
        is_scene = any(layout.is_scene for layout in layouts)
        bags = (self.table, self.weights, self.n_features)
        how = initialization.schedule_of(self.model, *bags, self.batch_size, is_scene)
        start = None
        if landmarks is not None and (is_scene or self._is_given("init", "embedding")):
            start = self._embedded(landmarks, layouts, geometry, how)
        if start is None:
            return self._annealed(geometry, how)
        how = how.for_settling(start.beta) if isinstance(self.model.anneal, str) else how
        return self._run("learning", 0, *bags[:2], geometry, how, start.grid, self.backend)

    def _is_given(self, name: str, value: str) -> bool:
        """Return whether a parameter, which may also be an array, has a value."""
        given = getattr(self.model, name)
        return isinstance(given, str) and given == value

    def _landmarks(self, geometry: Geometry) -> Landmarks | None:
        """Draw the bags to be embedded; return None where the parameters do not ask for it, or bags are too few."""
        is_open = self._is_given("init", "auto") and self._is_given("anneal", "auto")
        has_windows = prod(geometry.window) > 1 and geometry.groups == 1
        if not has_windows or not (is_open or self._is_given("init", "embedding")):
            return None
        drawn = embedding.landmarks(self.table, self.weights)
        return drawn if len(drawn.weights) >= embedding.FEWEST_BAGS else None

    def _layouts(self, geometry: Geometry, landmarks: Landmarks | None) -> list[Layout]:
        """Place the landmarks by their distances."""
        if landmarks is None:
            return []
        ones = (1,) * len(geometry.grid)
        whole = coarsen(landmarks.counts, self.n_features, geometry.painted, ones)
        return [embedding.layout_of(whole, len(ones), weighting) for weighting in embedding.WEIGHTINGS]

    def _embedded(
        self, landmarks: Landmarks, layouts: list[Layout], geometry: Geometry, how: Schedule
    ) -> Candidate | None:
        """Return the best grid painted from a layout, or None where an annealed one has the better likelihood."""
        counts, weights = landmarks
        search = embedding.EmbeddingStart(
            counts, weights, self.n_features, geometry, how, self._observer("candidates", 0)
        )
        best = search.best(layouts)
        if self._is_given("init", "embedding"):
            return best
        local = replace(self, runs=Runs(), backend=self.backend.local, batch_size=None)
        annealed = replace(local, table=Table.of(counts), weights=weights)._annealed(geometry, how, "candidates")
        return best if best.log_likelihood >= search.log_likelihood(annealed.grid) else None

    def _annealed(self, geometry: Geometry, how: Schedule, stage: str = "learning") -> TrainingResult:
        """Train candidates if that saves work, then the full grid."""
        model = self.model
        is_automatic = isinstance(model.anneal, str) and isinstance(model.init, str)
        small = initialization.downsampled(geometry) if is_automatic and how.annealing else None
        if small is None:
            grid = initialization.first_grid(model, self.rng, geometry, self.n_features)
        else:
            best = self._best_candidate(small, how)
            grid = initialization.upsampled(best, geometry, self.rng, self.backend.pool)
            how = how.for_refining()
        return self._run(stage, 0, self.table, self.weights, geometry, how, grid, self.backend)

    def _best_candidate(self, small: Geometry, how: Schedule) -> Grid:
        """Train several small grids on some of the bags; return the one with the best objective."""
        most = initialization.BATCH_CANDIDATE_BAGS if how.has_batches else initialization.CANDIDATE_BAGS
        drawn = np.sort(self.rng.permutation(self.table.shape[0])[:most])
        some = initialization.counted(self.table, self.weights, drawn)
        table, weights = Table.of(self.table.take(some)), self.weights[some]
        results = []
        for candidate in range(initialization.N_CANDIDATES):
            first = initialization.first_grid(self.model, self.rng, small, self.n_features)
            what = ("candidates", candidate, table, weights, small, how.for_candidates(), first)
            results.append(self._run(*what, self.backend.local))
        return max(results, key=lambda result: result.history[-1]).grid

    def _run(
        self,
        stage: str,
        candidate: int,
        table: Table,
        weights: Array,
        geometry: Geometry,
        how: Schedule,
        grid: Grid,
        backend: Backend,
    ) -> TrainingResult:
        """Make one run of EM."""
        observe = self._observer(stage, candidate)
        bags = (table, weights, self.n_features, geometry)
        batches = None
        if self.batch_size is not None and self.batch_size < table.shape[0]:
            batches = AnnealingBatches(*bags, self.batch_size, self.rng, backend)
        rest = {"geometry": geometry, "schedule": how, "backend": backend, "observer": observe, "batches": batches}
        return self.runs.run(backend.prepare(*bags), grid, **rest)

    def _observer(self, stage: str, candidate: int) -> Observer:
        """Return what calls the callback after every iteration of a run."""

        def observe(number: int, beta: float, objective: float, now: Grid) -> Any:
            position = (stage, self.number, candidate, number, self.model.max_iter)
            return self.callback(Iteration(*position, beta, objective, now))

        return observe
