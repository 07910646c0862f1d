"""One restart of a fit: candidates on a small grid where that saves work, then EM on the full grid."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

import numpy as np

from countinggrids.backends import Backend
from countinggrids.core import em, steps
from countinggrids.core.arrays import Array, fetched
from countinggrids.core.em import Grid
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import Schedule
from countinggrids.data.counts import coarsen
from countinggrids.data.table import Table
from countinggrids.training import completion, embedding, initialization
from countinggrids.training.callbacks import Callback, Iteration
from countinggrids.training.embedding import Candidate, Landmarks, Layout
from countinggrids.training.loop import Observer, Start, TrainingResult, Validation, run_em
from countinggrids.training.stepwise import AnnealingBatches


class Runs:
    """The runs of EM of a fit without a checkpoint."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def run(self, chunks: Any, start: Start, **how: Any) -> TrainingResult:
        """Make the next run, with the arguments of `run_em`."""
        return run_em(chunks, start, **how)


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
    is_stopped : bool, default=False
        Whether the callback ended it.
    is_scene : bool, default=False
        Whether the bags turned out to have the geometry of overlapping windows.
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
    is_stopped: bool = False
    is_scene: bool = False

    def run(self) -> TrainingResult:
        """Find a first grid, from the distances of the bags or by annealed candidates, and train it."""
        geometry = self.model._geometry()
        landmarks = self._landmarks(geometry)
        layouts = self._layouts(geometry, landmarks)
        self.is_scene = any(layout.is_scene for layout in layouts)
        bags = (self.table, self.weights, self.n_features)
        how = initialization.schedule_of(self.model, *bags, self.batch_size, self.is_scene)
        start = None
        if landmarks is not None and (self.is_scene or self._is_given("init", "embedding")):
            start = self._embedded(landmarks, layouts, geometry, how)
        if start is None:
            return self._annealed(geometry, how)
        how = how.for_settling(start.beta) if isinstance(self.model.anneal, str) else how
        return self._run("learning", 0, *bags[:2], geometry, how, Start.of(start.grid), self.backend)

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
        rows = self._held_out(how) if is_automatic and stage == "learning" else np.zeros(0, np.int64)
        weights = self.weights.copy()
        weights[rows] = 0
        rest = replace(self, weights=weights)
        how = replace(how, is_validated=len(rows) > 0)
        is_gradual = how.is_gradual
        small = initialization.downsampled(geometry) if is_automatic and how.annealing else None
        if small is None:
            start = Start.of(initialization.first_grid(model, self.rng, geometry, self.n_features))
        else:
            # Where the annealing is not cut short, the scores that count come long after the candidates.
            source = rest if is_gradual else self
            plan = initialization.candidates(small, self.table.shape[0], self.n_features, how, self.batch_size)
            grid, is_formed = source._formed(geometry, source._best_candidate(small, plan), how)
            start = Start.of(initialization.upsampled(grid, geometry, self.rng, self.backend.pool))
            how = how.for_refining(is_formed, plan.schedule.has_batches)
        if len(rows):
            score = self._validation(rows, geometry, by_tokens=is_gradual and steps.of(geometry) is em)
            return self._validated(score, rest, geometry, how, start)
        return self._run(stage, 0, self.table, self.weights, geometry, how, start, self.backend)

    def _held_out(self, how: Schedule) -> Array:
        """Draw the bags that tell when to stop, none where there are few bags or iterations, or batches."""
        if how.annealing is None or how.has_batches or how.max_iter <= 10 * initialization.FINISHING:
            return np.zeros(0, np.int64)
        return initialization.held_out(self.table, self.weights)

    def _formed(self, geometry: Geometry, grid: Grid, how: Schedule) -> tuple[Grid, bool]:
        """Let a layout that forms gradually do so on a grid between the smallest and the full one, if there is one."""
        middle = initialization.downsampled(geometry, max(geometry.window) // 2) if how.is_gradual else None
        if middle is None or middle.n_cells <= prod(grid.log_prior.shape):
            return grid, False
        some = self._drawn(initialization.BATCH_CANDIDATE_BAGS)
        start = Start.of(initialization.upsampled(grid, middle, self.rng, self.backend.pool))
        what = ("candidates", 0, Table.of(self.table.take(some)), self.weights[some], middle, how.for_forming(), start)
        return self._run(*what, self.backend.local).grid, True

    def _validated(
        self, score: Validation, rest: "Restart", geometry: Geometry, how: Schedule, start: Start
    ) -> TrainingResult:
        """Train the full grid on the rest as long as bags that are held out gain by it, then shortly on all bags."""
        finishing = initialization.FINISHING
        how = replace(how, max_iter=how.max_iter - finishing)
        result = rest._run("learning", 0, rest.table, rest.weights, geometry, how, start, rest.backend, score)
        if rest.is_stopped:
            return result
        grid, history, has_converged, phase, score_reached = result
        start = Start.of(grid)
        del grid, result  # the last run takes the grid, whose memory is free then
        last = how.for_phases([how.phases()[phase]._replace(tol=np.inf)] * finishing)
        done = len(history)
        after = self._run("learning", 0, self.table, self.weights, geometry, last, start, self.backend, n_before=done)
        return TrainingResult(after.grid, history + after.history, has_converged, phase, score_reached)

    def _validation(self, rows: Array, geometry: Geometry, by_tokens: bool) -> Validation:
        """Return what scores a grid on bags that are held out: by their likelihood, or by hidden tokens."""
        local, step = self.backend.local, steps.of(geometry)
        counts, weights, hidden = self.table.take(rows), self.weights[rows], None
        if by_tokens:
            counts, hidden = completion.split(counts, np.random.RandomState(0))
            hidden = hidden.multiply(weights[:, None]).tocsr()
        chunks = list(local.iter_chunks(Table.of(counts), weights, self.n_features, geometry))
        n_tokens = weights @ self.table.tokens[rows] if hidden is None else max(1.0, hidden.sum(dtype=np.float64))

        def score(now: Grid) -> float:
            windows = step.windows_of(now, geometry, 1.0, local.pool)
            found = (step.posterior(bags.matched, windows, local.pool) for bags in chunks)
            if hidden is not None:
                posteriors = (fetched(q) for q, _ in found)
                return completion.log_completed(posteriors, hidden, now.fetched(), geometry, local.pool) / n_tokens
            return sum(float(bags.weights @ each) for bags, (_, each) in zip(chunks, found, strict=True)) / n_tokens

        return score

    def _drawn(self, most: int) -> Array:
        """Draw some of the bags."""
        drawn = np.sort(self.rng.permutation(self.table.shape[0])[:most])
        return initialization.counted(self.table, self.weights, drawn)

    def _best_candidate(self, small: Geometry, plan: initialization.Candidates) -> Grid:
        """Train several small grids on some of the bags; return the one with the best objective."""
        some = self._drawn(plan.n_bags)
        bags = (Table.of(self.table.take(some)), self.weights[some])
        local = replace(self, batch_size=plan.batch_size)
        results = []
        for candidate in range(plan.number):
            first = Start.of(initialization.first_grid(self.model, self.rng, small, self.n_features))
            results.append(local._run("candidates", candidate, *bags, small, plan.schedule, first, self.backend.local))
        return max(results, key=lambda result: result.history[-1]).grid

    def _run(
        self,
        stage: str,
        candidate: int,
        table: Table,
        weights: Array,
        geometry: Geometry,
        how: Schedule,
        start: Start,
        backend: Backend,
        validation: Validation | None = None,
        n_before: int = 0,
    ) -> TrainingResult:
        """Make one run of EM."""
        observe = self._observer(stage, candidate, n_before)
        bags = (table, weights, self.n_features, geometry)
        batches = None
        if self.batch_size is not None and self.batch_size < table.shape[0]:
            batches = AnnealingBatches(*bags, self.batch_size, self.rng, backend)
        rest = {"geometry": geometry, "schedule": how, "backend": backend, "observer": observe, "batches": batches}
        rest["validation"] = validation
        return self.runs.run(backend.prepare(*bags), start, **rest)

    def _observer(self, stage: str, candidate: int, n_before: int = 0) -> Observer:
        """Return what calls the callback after every iteration of a run that follows some others."""

        def observe(number: int, beta: float, objective: float, now: Grid) -> Any:
            position = (stage, self.number, candidate, n_before + number, self.model.max_iter)
            self.is_stopped = bool(self.callback(Iteration(*position, beta, objective, now)))
            return self.is_stopped

        return observe
