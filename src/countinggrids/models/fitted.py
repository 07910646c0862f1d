"""What a fitted model computes for bags: posteriors, windows, likelihoods, samples."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countinggrids import backends
from countinggrids.core import arrays, em, sampling, steps, torus
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import blocks
from countinggrids.core.protocols import Counts, Pool
from countinggrids.data import validation
from countinggrids.data.collection import Collection
from countinggrids.data.readers import collection_paths, is_lazy
from countinggrids.features.saving import Saveable
from countinggrids.kernels.threads import one_blas_thread

Array = NDArray[Any]
Seed = int | np.random.RandomState | None
Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(n_columns: Callable[[Any], int] | None, dtype: str | None) -> Callable[[Method], Method]:
    """Let a method that predicts return a Dask array for a Dask array.

    Parameters
    ----------
    n_columns : callable or None
        Returns the number of columns of the result, given the model; None for one value for each bag.
    dtype : str or None
        dtype of the result; None for that of the model.
    """

    def wrap(method: Method) -> Method:
        @wraps(method)
        def predict(model: Any, X: Any) -> Any:
            if not is_lazy(X):
                return method(model, X)
            check_is_fitted(model)
            from countinggrids.backends.dask.arrays import predict_lazily

            width = n_columns and n_columns(model)
            return predict_lazily(model, method.__name__, X, width, dtype or model.pi_.dtype.name)

        return predict  # type: ignore[return-value]

    return wrap


class FittedGrid(Saveable, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The methods of a fitted model; `GridModel` adds the parameters and `fit`."""

    pi_: Array
    log_prior_: Array
    geometry_: Geometry
    inverse_temperature_: float
    sparse_output: bool
    device: str | None
    random_state: Seed
    fingerprint_: str | None = None
    _extra: Array = em.NOTHING
    _geometry_type: ClassVar[type[Geometry]] = Geometry

    @lazily(lambda model: model.geometry_.n_cells, None)
    def transform(self, X: Any) -> Any:
        """Return the posterior over windows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        q : ndarray or csr_array of shape (n_bags, n_cells)
            Rows sum to one. With `sparse_output`, entries below 1e-6 of the largest one of a bag are dropped.
        """
        parts = [q for q, _ in self.iter_posteriors(X)]
        return sp.vstack([_sparse(q) for q in parts], format="csr") if self.sparse_output else np.concatenate(parts)

    @lazily(None, "int64")
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most likely cell of each bag as a flat index.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        cells : ndarray of shape (n_bags,)
            Flat indices.
        """
        return np.concatenate([q.argmax(axis=1) for q, _ in self.iter_posteriors(X)])

    @lazily(lambda model: len(model.geometry_.grid), "int64")
    def locate(self, X: Any) -> NDArray[np.int64]:
        """Return the coordinates of the most likely cell of each bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        places : ndarray of shape (n_bags, n_axes)
            Coordinates.
        """
        return np.stack(np.unravel_index(self.predict(X), self.geometry_.grid), axis=-1)

    @lazily(None, "float64")
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return log p(bag), without the multinomial coefficient.

        Where `anneal` ends below one, counts are multiplied by that inverse temperature here too.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        log_likelihood : ndarray of shape (n_bags,)
            Log-likelihood of each bag.
        """
        return np.concatenate([log_likelihood for _, log_likelihood in self.iter_posteriors(X)])

    def free_energy(self, X: Any) -> NDArray[np.float64]:
        """Return -log p(bag), which is the free energy, because the posterior is exact.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        free_energy : ndarray of shape (n_bags,)
            Free energy of each bag.
        """
        return -self.score_samples(X)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean of `score_samples`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log-likelihood of a bag.
        """
        return float(np.mean(self.score_samples(X)))

    def perplexity(self, X: Any) -> float:
        """Return exp(-log-likelihood per token).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        perplexity : float
            The number of equally likely features that would be as hard to predict.
        """
        log_likelihood = float(self.score_samples(X).sum())
        table, _ = backends.open_bags(self, self._counts_of(X, self.geometry_)[0], is_fitting=False)
        tokens = float(table.tokens.sum())
        if not tokens:
            raise ValueError("X holds no counts at all; wanted at least one bag with a feature; check how X was made")
        return float(np.exp(-log_likelihood / (tokens * self.inverse_temperature_)))

    def usage(self, X: Any) -> NDArray[np.float64]:
        """Return how much each window is used: the posterior summed over bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        usage : ndarray of shape (*grid,)
            Expected number of bags of each window.
        """
        total = np.sum([q.sum(axis=0, dtype=np.float64) for q, _ in self.iter_posteriors(X)], axis=0)
        return np.asarray(total).reshape(self.geometry_.grid)

    def iter_posteriors(self, X: Any) -> Iterator[tuple[Array, NDArray[np.float64]]]:
        """Iterate over blocks of bags; memory is bounded whatever their number.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Yields
        ------
        q : ndarray of shape (n_block_bags, n_cells)
            Posterior over windows of some consecutive bags.
        log_likelihood : ndarray of shape (n_block_bags,)
            log p(bag).
        """
        for counts, windows, pool in self._iter_blocks(X):
            q, log_likelihood = steps.of(self.geometry_).posterior(counts, windows, pool)
            yield arrays.fetched(q), log_likelihood

    def _iter_blocks(self, X: Any) -> Iterator[tuple[Counts, Any, Pool]]:
        """Iterate over blocks of bags as they are matched, with what they are matched with, and the pool to use."""
        check_is_fitted(self)
        geometry = self.geometry_
        X, _ = self._counts_of(X, geometry)
        table, _ = backends.open_bags(self, X, is_fitting=False)
        backend = backends.backend_of(self.device, table.dtype.name)
        weights, n_features = np.ones(table.shape[0], table.dtype), validation.n_features_of(table, geometry)
        with one_blas_thread():
            grid = backend.place(self.planes())
            windows = steps.of(geometry).windows_of(grid, geometry, self.inverse_temperature_, backend.pool)
            for bags in backend.iter_chunks(table, weights, n_features, geometry):
                for rows in blocks(bags, geometry, backend.pool):
                    yield bags.rows(rows).matched, windows, backend.pool

    def section_posteriors(self, X: Any) -> Array:
        """Return the posterior over the location of every matched section.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features), Collection, path, or blocks
            Counts, as for `fit`.

        Returns
        -------
        q : ndarray of shape (n_bags, n_matched_sections, n_cells)
            A section lies at an offset from its window, and so does its posterior.
        """
        check_is_fitted(self)
        grid, offsets = self.geometry_.grid, self.geometry_.matched_offsets
        q = np.concatenate([part for part, _ in self.iter_posteriors(X)]).reshape(-1, *grid)
        moved = [torus.shift(q, tuple(-d for d in offset)) for offset in offsets]
        return np.stack(moved, axis=1).reshape(len(q), len(offsets), -1)

    def sample(
        self, n_bags: int = 1, n_tokens: int = 100, random_state: Seed = None
    ) -> tuple[sp.csr_array, NDArray[np.int64]]:
        """Draw bags from the model.

        Parameters
        ----------
        n_bags : int, default=1
            Number of bags.
        n_tokens : int, default=100
            Tokens of each bag, spread evenly over its sections.
        random_state : int, RandomState or None, default=None
            Random numbers; None takes those of the model.

        Returns
        -------
        X : csr_array of shape (n_bags, n_sections * n_features)
            Counts.
        cells : ndarray of shape (n_bags,)
            Window of each bag, as a flat index.
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        return sampling.draw(self.planes(), self.geometry_, n_bags, n_tokens, rng)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`: the class and the coordinates of the cell.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            For instance "countinggrid3_4" for the cell in row 3, column 4.
        """
        check_is_fitted(self)
        name = type(self).__name__.lower()
        cells = np.ndindex(*self.geometry_.grid)
        return np.array([name + "_".join(map(str, cell)) for cell in cells], dtype=object)

    def planes(self) -> em.Grid:
        """Return the parameters as the mathematics in `countinggrids.core` takes them: features first, then grid."""
        n_axes = self.log_prior_.ndim
        planes = self.pi_.reshape(*self.log_prior_.shape, -1)
        return em.Grid(np.ascontiguousarray(np.moveaxis(planes, n_axes, 0)), self.log_prior_, self._extra)

    def _counts_of(self, X: Any, geometry: Geometry) -> tuple[Any, str | None]:
        """Return the counts of a collection at the sections of the model, or X, and the fingerprint of its features.

        Where X is files of collections, they stay in their files.
        """
        expected = self.fingerprint_ if hasattr(self, "pi_") else None
        if isinstance(X, Collection):
            return X.for_sections(geometry.painted, expected)
        for path in collection_paths(X):
            collection = Collection.load(path)
            collection.check_features(expected)
            expected = collection.fingerprint
        return X, expected if collection_paths(X) else None

    @property
    def _n_features_out(self) -> int:
        return self.geometry_.n_cells


def _sparse(q: Array) -> sp.csr_array:
    """Return q without entries that are small against the largest one of their bag; rows still sum to one."""
    q = np.where(q > 1e-6 * q.max(axis=1, keepdims=True), q, 0)
    return sp.csr_array(q / q.sum(axis=1, keepdims=True))
