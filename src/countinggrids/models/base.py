"""What all models of the family share: their parameters, `fit`, `partial_fit` and `save`."""

import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from countinggrids import backends
from countinggrids.core import em, steps
from countinggrids.core.fitting import whole_or_nothing
from countinggrids.core.geometry import Geometry
from countinggrids.data import validation
from countinggrids.data.constraints import (
    Annealing,
    Boolean,
    Choice,
    Constraints,
    Instance,
    Integer,
    Numbers,
    RandomSeed,
    Real,
    check_parameters,
)
from countinggrids.data.table import Table
from countinggrids.kernels.threads import one_blas_thread
from countinggrids.models.fitted import Array, FittedGrid, Seed
from countinggrids.models.maps import MapMethods
from countinggrids.training import initialization, plans, progress, stepwise
from countinggrids.training.callbacks import Callback, combined
from countinggrids.training.restart import Restart, Runs
from countinggrids.training.sklearn_callbacks import CallbackSupportMixin, FitTask, with_callbacks

Anneal = str | tuple[float, float, float] | None
Lengths = int | Sequence[int]


class GridModel(CallbackSupportMixin, MapMethods, FittedGrid):  # type: ignore[misc]
    """Base class of the models; a model defines its parameters and its geometry."""

    _parameter_constraints: ClassVar[Constraints] = {
        "location_prior": [Choice(*validation.LOCATION_PRIORS)],
        "eta": [Choice("auto"), Real(at_least=0, at_most=validation.LARGEST_TOTAL), Numbers("one number per feature")],
        "anneal": [Choice("auto"), None, Annealing()],
        "init": [Choice("auto", "embedding", "uniform"), Numbers("an array of the shape of pi_")],
        "max_iter": [Integer(at_least=1)],
        "tol": [Real(at_least=0)],
        "n_init": [Integer(at_least=1)],
        "batch_size": [None, Integer(at_least=1)],
        "sparse_output": [Boolean()],
        "dtype": [Choice(*validation.DTYPES)],
        "device": [None, Instance(str, "the name of a torch device")],
        "random_state": [None, RandomSeed()],
        "verbose": [Integer(at_least=0), Boolean()],
    }
    _stream: stepwise.Stream | None = None
    _from_fit: stepwise.Fitted | None = None
    _is_scene: bool | None = None  # whether the bags of `fit` were taken for windows of a scene
    _restart: ClassVar[type[Restart]] = Restart
    _plan = staticmethod(plans.annealed)

    def __init__(
        self,
        *,
        location_prior: str,
        eta: str | float | ArrayLike,
        anneal: Anneal,
        init: str | ArrayLike,
        max_iter: int,
        tol: float,
        n_init: int,
        batch_size: int | None,
        sparse_output: bool,
        dtype: str,
        device: str | None,
        random_state: Seed,
        verbose: int,
    ):
        self.location_prior = location_prior
        self.eta = eta
        self.anneal = anneal
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.batch_size = batch_size
        self.sparse_output = sparse_output
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _first_extra(self, geometry: Geometry) -> Array:
        """Return the first value of what the model learns beside pi and P."""
        return steps.of(geometry).first_extra(geometry)

    def _geometry(self) -> Geometry:
        """Return the geometry that the parameters describe, or raise about shapes that do not fit."""
        raise NotImplementedError

    @property
    def capacity(self) -> float:
        """Number of windows that fit side by side, kappa: of the fitted grid, or of the parameters before a fit."""
        return (self.geometry_ if hasattr(self, "geometry_") else self._geometry()).capacity

    @whole_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn the grid.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts; column = section * n_features + feature. Bags that do not fit into memory come in blocks, which
            are read again in every iteration: a file (.npy, .npz or a collection), a list of files, a list of
            tables, or any object that can be iterated over again. A Dask array, or a list of delayed blocks, stays on
            the workers of the cluster.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_bags,), default=None
            Weights of the bags; None weighs all alike.
        callback : callable, default=None
            Called after every iteration with an `Iteration`; a true result stops the current run of EM.
        checkpoint : path-like, default=None
            File to which the training state is written, at most a tenth of the time. If it exists, training resumes
            from it and ends with the same result. It is not deleted at the end. Only one fit at a time can use it.

        Returns
        -------
        self : object
            The fitted model.
        """
        check_parameters(self)
        validation.check_batches(self.batch_size, self.anneal)
        geometry = self._geometry()
        X, fingerprint = self._counts_of(X, geometry)
        rng = check_random_state(self.random_state)
        if checkpoint is not None:
            from countinggrids.training import checkpoints

            checkpoints.check_path(checkpoint, X)
        table, weights, n_features, backend = self._open(X, sample_weight, geometry, is_fitting=True)
        runs = Runs()
        if checkpoint is not None:
            runs = checkpoints.Checkpoint(checkpoint, checkpoints.identity_of(self, table, weights, n_features), rng)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        task = FitTask(self, data, lambda now: {**self._fitted(now.fetched(), geometry), "fingerprint_": fingerprint})
        bags = (table, weights, n_features)
        shown = progress.shown(self.verbose, lambda: self._plan(self, geometry, *bags))
        with shown as show, runs, one_blas_thread():
            watch = combined(callback, task, show)
            restarts = [
                self._restart(self, *bags, rng, runs, watch, self.batch_size, backend, number)
                for number in range(self.n_init)
            ]
            best = max((restart.run() for restart in restarts), key=lambda result: result.score)
            chunks, total = backend.prepare(*bags, geometry), float(weights.sum(dtype=float))
            self._from_fit = stepwise.fitted_of(chunks, total, best.grid, geometry, self._beta(), backend)
        self._keep(best.grid, geometry)
        self._stream, self.fingerprint_ = None, fingerprint
        self._is_scene = restarts[0].is_scene
        self.history_ = np.array(best.history)
        self.n_iter_ = len(best.history)
        self.converged_ = best.has_converged
        task.end()
        self._warn_unless_converged()
        return self

    @whole_or_nothing
    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of bags (stepwise EM).

        After `fit` it goes on from the fit: a batch moves the expected counts toward its own by its share of the weight
        of all bags so far. Without a fit the first batch is one EM iteration, and batch b then moves the expected
        counts by b**-0.6 of the way. Nothing is annealed: for a good layout start from a fitted model, or from `init`.
        Shapes and dtype must be those of the first batch; other parameters may change between batches.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_bags,), default=None
            Weights of the bags.

        Returns
        -------
        self : object
            The model.
        """
        check_parameters(self)
        geometry = self._geometry()
        validation.check_unchanged(self, geometry)
        is_first = not hasattr(self, "pi_")
        X, fingerprint = self._counts_of(X, geometry)
        table, weights, n_features, backend = self._open(X, sample_weight, geometry, is_fitting=is_first)
        if is_first:
            rng = check_random_state(self.random_state)
            self._keep(initialization.first_grid(self, rng, geometry, n_features), geometry)
            self.fingerprint_ = fingerprint
        chunks = backend.prepare(table, weights, n_features, geometry)
        how = initialization.schedule_of(self, table, weights, n_features, is_scene=bool(self._is_scene))
        total = float(weights.sum(dtype=float))
        before = self._stream
        if before is None and self._from_fit is not None:
            before = self._from_fit.stream(self.planes(), geometry, how)
        with one_blas_thread():
            grid, self._stream = stepwise.stream_step(chunks, total, self.planes(), geometry, how, before, backend)
        self._from_fit = None
        self._keep(grid, geometry)
        self.n_iter_ = self._stream.n_batches
        return self

    def save(self, path: Any, compact: bool = False) -> None:
        """Write the fitted model to one safetensors file; an existing file is replaced whole or not at all.

        Parameters
        ----------
        path : path-like
            Where to write.
        compact : bool, default=False
            Whether to round probabilities to one byte each, on a logarithmic scale for each feature: a quarter of the
            size in float32. A model read from such a file predicts nearly, but not exactly, the same.
        """
        from countinggrids.models import storage

        storage.save(self, path, compact)

    def _restored(self) -> None:
        from countinggrids.models import storage

        storage.check_fitted(self)

    def _open(
        self, X: Any, sample_weight: Any, geometry: Geometry, is_fitting: bool
    ) -> tuple[Table, Array, int, backends.Backend]:
        """Open and check bags to learn from, with their weights, number of features and backend."""
        table, backend = backends.open_bags(self, X, is_fitting=is_fitting)
        n_features = validation.n_features_of(table, geometry)
        validation.check_numbers(self, geometry, n_features)
        validation.check_memory(geometry, n_features, self.dtype)
        weights = validation.check_weights(sample_weight, table.shape[0])
        validation.check_total(weights, table.tokens)
        return table, weights.astype(table.dtype), n_features, backend

    def _warn_unless_converged(self) -> None:
        if not self.converged_ and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations; "
                "increase max_iter or tol, or check the data",
                ConvergenceWarning,
                stacklevel=4,  # past `fit` and its wrapper
            )

    def _keep(self, grid: em.Grid, geometry: Geometry) -> None:
        for name, value in self._fitted(grid, geometry).items():
            setattr(self, name, value)

    def _fitted(self, grid: em.Grid, geometry: Geometry) -> dict[str, Any]:
        """Return the attributes that predictions need."""
        by_group = grid.pi.reshape(geometry.groups, -1, *geometry.grid)
        public = np.ascontiguousarray(np.moveaxis(by_group, (0, 1), (-2, -1)))
        return {
            "pi_": public if geometry.groups > 1 else public[..., 0, :],
            "log_prior_": grid.log_prior,
            "_extra": grid.extra,
            "geometry_": geometry,
            "inverse_temperature_": self._beta(),
            "location_prior_": self.location_prior,
        }

    def _beta(self) -> float:
        """Return the inverse temperature at which annealing ends."""
        return float(self.anneal[2]) if isinstance(self.anneal, Sequence) and not isinstance(self.anneal, str) else 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags
