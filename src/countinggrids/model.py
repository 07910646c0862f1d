"""The models as scikit-learn estimators: what every row of the family shares."""

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids import arrays, checkpoints, checks, cluster, device, em, engine, learn, restarts, sampling, sources
from countinggrids.blockwise import by_blocks
from countinggrids.geometry import Geometry
from countinggrids.progress import Told, both

Array = NDArray[Any]


class GridModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the rows of the family have in common; a row says its geometry and its parameters."""

    location_prior: str
    eta: str | float | ArrayLike
    anneal: str | tuple[float, float, float] | None
    init: str | ArrayLike
    max_iter: int
    tol: float
    n_init: int
    dtype: str
    device: str | None
    random_state: int | np.random.RandomState | None
    verbose: int
    _stream: learn.Stream | None = None
    fingerprint_: str | None = None  # the fingerprint of the collection's features, where there is one

    def _geometry(self) -> Geometry:
        """Give the row's geometry, or raise about shapes that do not fit."""
        raise NotImplementedError

    def _set_options(
        self,
        location_prior: str,
        eta: Any,
        anneal: Any,
        init: Any,
        max_iter: int,
        tol: float,
        n_init: int,
        dtype: str,
        device: str | None,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.location_prior = location_prior
        self.eta = eta
        self.anneal = anneal
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def capacity(self) -> float:
        """How many windows fit on the grid side by side, kappa."""
        return self._geometry().capacity

    def fit(
        self,
        X: Any,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        callback: learn.Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        batch_size: int | None = None,
    ) -> Self:
        """Learn the grid.

        Parameters
        ----------
        X : (bags, sections * features) counts, dense or sparse; column = section * features + feature. What does not
            fit into memory comes in blocks of bags, which are read again in every iteration: a file (.npy, .npz or
            a collection), a list of files, a list of tables, or any object that can be iterated over again. A Dask
            array, or a list of delayed blocks, is worked on where the workers of the cluster keep it
        y : ignored
        sample_weight : (bags,) how often each bag counts; None counts each once
        callback : called after every iteration with an `Iteration`; what is not false stops the learning there, or
            while scouting that of the small grids side by side
        checkpoint : a file that keeps what was done, written after iterations, so often that it takes at most a tenth
            of the time. Killed at any moment, the same fit goes on from it and ends with the same bits. It stays
            when the fit has ended: delete it once the model is saved
        batch_size : bags that an iteration of the annealing looks at (stepwise EM); None looks at all. Every such
            iteration moves what was seen before half of the way to what its batch shows; once beta is at its end,
            iterations look at all bags, until they converge. Where annealing is automatic, beta grows faster, and the
            layout is looked for among up to 20,000 bags instead of 5000. On 5000 texts, batches of 500 reach the
            held-out perplexity of all bags in a third of the time. Bags that are not in memory should be in random
            order

        Returns
        -------
        self
        """
        geometry = self._geometry()
        checks.check_options(self)
        table = cluster.read(self, X, is_fitting=True)
        n_features = checks.n_features_of(table, geometry)
        weights = checks.check_weights(sample_weight, table)
        checks.check_batch_size(batch_size, self.anneal)
        rng = check_random_state(self.random_state)
        runs = checkpoints.Runs()
        if checkpoint is not None:
            identity = checkpoints.identity_of(self, table, weights, n_features) | {"batch_size": batch_size}
            runs = checkpoints.Checkpoint(checkpoint, identity, rng)
        watch = both(callback, Told(self.verbose) if self.verbose else None)
        with engine.one_blas_thread():
            outcomes = [
                restarts.Restart(self, table, weights, n_features, rng, runs, watch, batch_size, number).make()
                for number in range(self.n_init)
            ]
        best = max(outcomes, key=lambda outcome: outcome.history[-1])
        self._keep(best.grid, geometry)
        self._stream = None
        self.history_ = np.array(best.history)
        self.n_iter_ = len(best.history)
        self.converged_ = best.has_converged
        if not best.has_converged and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations; "
                "raise max_iter or tol, or check the data",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of bags (stepwise EM).

        The first batch makes one EM iteration. Batch number b then moves the expected counts by b**-0.6 of the way to
        what it sees itself. Nothing is annealed: for a good layout start from a fitted model, whose grid then
        says where the bags of the first batch lie, or from `init`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        """
        geometry = self._geometry()
        checks.check_options(self)
        table = cluster.read(self, X, is_fitting=not hasattr(self, "pi_"))
        n_features = checks.n_features_of(table, geometry)
        weights = checks.check_weights(sample_weight, table)
        if not hasattr(self, "pi_"):
            rng = check_random_state(self.random_state)
            self._keep(restarts.first_grid(self, rng, geometry, n_features), geometry)
        shares = sources.shares(table, weights, n_features, geometry)
        recipe = restarts.recipe_of(self, table, weights, n_features)
        runner = device.runner(self.device, self.dtype)
        with engine.one_blas_thread():
            grid, self._stream = learn.stream(
                shares, float(weights.sum(dtype=float)), self._grid(), geometry, recipe, self._stream, runner
            )
        self._keep(grid, geometry)
        self.n_iter_ = self._stream.n_batches
        return self

    @by_blocks(lambda model: model._geometry().n_cells, None)
    def transform(self, X: Any) -> Array:
        """Give the posterior over windows, (bags, cells); rows sum to one."""
        return np.concatenate([q.toarray() if sp.issparse(q) else q for q, _ in self._posteriors(X)])

    @by_blocks(None, "int64")
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Give the most likely cell of each bag as a flat index, (bags,)."""
        return np.concatenate([np.asarray(q.argmax(axis=1), np.int64).ravel() for q, _ in self._posteriors(X)])

    @by_blocks(lambda model: len(model._geometry().grid), "int64")
    def locate(self, X: Any) -> NDArray[np.int64]:
        """Give the coordinates of the most likely cell of each bag, (bags, axes)."""
        return np.stack(np.unravel_index(self.predict(X), self._geometry().grid), axis=-1)

    @by_blocks(None, "float64")
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Give log p(bag) without the multinomial coefficient, (bags,).

        Where `anneal` ends below one, the bags' counts are taken times that end here too.
        """
        return np.concatenate([log_likelihood for _, log_likelihood in self._posteriors(X)])

    def free_energy(self, X: Any) -> NDArray[np.float64]:
        """Give -log p(bag), (bags,): with the exact posterior the free energy is nothing else."""
        return -self.score_samples(X)

    def score(self, X: Any, y: object = None) -> float:
        """Give the mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def perplexity(self, X: Any) -> float:
        """Give exp(-log-likelihood per token): how many equally likely features would be as hard to guess."""
        log_likelihood = float(self.score_samples(X).sum())
        table = cluster.read(self, X, is_fitting=False)
        runs = em.pieces(table.shape[0], sources.SURVEY_BAGS)
        tokens = sum(float(total) for total in table.each(runs, partial(np.sum, dtype=np.float64)))
        return float(np.exp(-log_likelihood / (tokens * self._beta())))

    def sample(
        self, n_bags: int = 1, n_tokens: int = 100, random_state: int | np.random.RandomState | None = None
    ) -> tuple[sp.csr_array, NDArray[np.int64]]:
        """Draw bags from the model.

        Parameters
        ----------
        n_bags : how many
        n_tokens : features in each bag, spread evenly over its sections
        random_state : None takes the model's own

        Returns
        -------
        X : (n_bags, sections * features) sparse counts
        cells : (n_bags,) the window each bag was drawn from, a flat index
        """
        check_is_fitted(self)
        geometry = self._geometry()
        rng = check_random_state(self.random_state if random_state is None else random_state)
        return sampling.draw(self._grid(), geometry, n_bags, n_tokens, rng)

    def save(self, path: Any) -> None:
        """Write the fitted model to one safetensors file; an existing file is replaced whole or not at all."""
        from countinggrids import storage

        storage.save(self, path)

    def explore(self, collection: Any, height: int = 640, title: str = "") -> Any:
        """Show a collection on this grid as a map to walk through, where a notebook displays its last value.

        Parameters
        ----------
        collection : the `Collection` that the grid was learnt from, or one with the same features
        height : pixels
        title : a heading
        """
        from countinggrids.explore import Atlas, Page

        return Page(Atlas(self, collection, title), height)

    def _keep(self, grid: em.Grid, geometry: Geometry) -> None:
        by_group = grid.pi.reshape(geometry.groups, -1, *geometry.grid)
        public = np.ascontiguousarray(np.moveaxis(by_group, (0, 1), (-2, -1)))
        self.pi_ = public if geometry.groups > 1 else public[..., 0, :]
        self.log_prior_ = grid.log_prior

    def _grid(self) -> em.Grid:
        n_axes = self.log_prior_.ndim
        planes = self.pi_.reshape(*self.log_prior_.shape, -1)
        return em.Grid(np.ascontiguousarray(np.moveaxis(planes, n_axes, 0)), self.log_prior_)

    def _beta(self) -> float:
        return float(self.anneal[2]) if isinstance(self.anneal, Sequence) and not isinstance(self.anneal, str) else 1.0

    def _posteriors(self, X: Any) -> Iterator[tuple[Any, NDArray[np.float64]]]:
        """Give q and log p(bag) of one block of bags after the other."""
        check_is_fitted(self)
        geometry = self._geometry()
        table = cluster.read(self, X, is_fitting=False)
        weights = np.ones(table.shape[0], self.dtype)
        runner = device.runner(self.device, self.dtype)
        grid = self._grid().placed(runner)
        with engine.one_blas_thread():
            windows, _ = em.windows_of(grid, geometry, self._beta(), runner)
            for bags in sources.Shares(table, weights, checks.n_features_of(table, geometry), geometry):
                bags = runner.ready(bags)
                for rows in em.blocks(bags, geometry, runner):
                    q, log_likelihood = em.locate(bags.rows(rows).matched, windows, runner)
                    yield q if sp.issparse(q) else arrays.fetched(q), log_likelihood

    @property
    def _n_features_out(self) -> int:
        return self._geometry().n_cells

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags
