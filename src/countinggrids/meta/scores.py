"""Free-energy scores: the terms of the log-likelihood of a bag under fitted grids, as vectors for other classifiers."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from countinggrids.core import em
from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.core.geometry import Geometry
from countinggrids.core.pieces import pieces
from countinggrids.data.counts import coarsen
from countinggrids.data.validation import check_table, n_features_of
from countinggrids.features.saving import Saveable, check_count
from countinggrids.kernels.threads import default, one_blas_thread
from countinggrids.meta.classifier import GridClassifier
from countinggrids.meta.kernels import intersections
from countinggrids.meta.nested import fitted_grid, last_step
from countinggrids.meta.options import check_choice, check_positive
from countinggrids.models.base import GridModel

Array = NDArray[Any]
BLOCK, BLOCK_ENTRIES = 256, 2**24
"""Largest number of bags, and of bags times columns times grids, that is processed at a time."""


class ScoreSpace(Saveable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transform bags to vectors of free-energy terms.

    The bound on log p(bag) under a grid is a sum over features: the count of the feature times the expected log
    histogram, under the posterior over windows. These terms, of one or several grids, are the scores. They are centered
    over the grids, their signed square roots are taken, and each vector is scaled to length 1, for a linear SVM. Each
    model of the ensembles of a `GridClassifier` is treated alike, and the vectors are concatenated.

    Bags can also be compared with the training bags by the intersection of their scores, for an SVM with
    ``kernel="precomputed"``; sum_over="nothing", center=False and power=1 suit this kernel.

    Parameters
    ----------
    estimator : estimator or list of estimators, default=None
        A `GridClassifier`, or a grid that is fitted to each class; a fitted one is used as it is, as is a list of
        fitted grids. None stands for `GridClassifier()`. Without labels one grid is fitted to all bags.
    sum_over : {"sections", "features", "nothing"}, default="sections"
        What terms are summed over: "sections" leaves a term for each grid and feature, "features" one for each grid and
        section, "nothing" one for each grid, section and feature.
    center : bool, default=True
        Whether to subtract the mean over the grids, which does not separate classes.
    power : float, default=0.5
        Signed power of the terms; 0.5 evens out frequent and rare features, 1 leaves them as they are.
    normalize : bool, default=True
        Whether vectors are scaled to length 1, or the kernel of a bag with itself to 1.
    compare : {None, "intersection"}, default=None
        None returns vectors; "intersection" returns, for each bag and each training bag, the sum of the smaller of
        their two scores where both have the same sign.

    Attributes
    ----------
    models_ : list of estimators
        The grids: one for each class, then those of the next model of the ensemble.
    settings_ : namespace
        Parameters at the time of the fit, which `transform` uses.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.7, .2, .1], [.1, .2, .7])])
    >>> y = np.repeat(["left", "right"], 20)
    >>> grid = cg.CountingGrid((4, 4), (2, 2), random_state=0)
    >>> make_pipeline(cg.ScoreSpace(grid), LinearSVC()).fit(X, y).score(X, y)
    1.0

    With a precomputed kernel:

    >>> from sklearn.svm import SVC
    >>> space = cg.ScoreSpace(grid, sum_over="nothing", center=False, power=1, compare="intersection")
    >>> make_pipeline(space, SVC(kernel="precomputed")).fit(X, y).score(X, y)
    1.0
    """

    _kept = ("sum_over", "center", "power", "normalize", "compare")

    def __init__(
        self,
        estimator: Any = None,
        *,
        sum_over: str = "sections",
        center: bool = True,
        power: float = 0.5,
        normalize: bool = True,
        compare: str | None = None,
    ):
        self.estimator = estimator
        self.sum_over = sum_over
        self.center = center
        self.power = power
        self.normalize = normalize
        self.compare = compare

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit a grid to each class, unless the estimator is fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,), default=None
            Labels.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        check_choice(self, "sum_over", ("sections", "features", "nothing"))
        check_positive(self, "power", example=0.5)
        check_choice(self, "compare", (None, "intersection"))
        X = check_table(self, X, is_fitting=True)
        self.settings_ = settings_of(self, *self._kept)
        self._groups = self._grids(X, y)
        self.models_ = [model for group in self._groups for model in group]
        _check_grids(self.models_)
        self._training = [self._parts(group, X) for group in self._groups] if self.compare else []
        self._n_features_out = X.shape[0] if self.compare else self._vectors(X[:1]).shape[1]
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Fit, and transform the same bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,), default=None
            Labels.
        **options : dict
            Other arguments of `fit`.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_terms) or (n_bags, n_bags)
            Score vectors, or the kernel.
        """
        self.fit(X, y, **options)
        if self.settings_.compare is None:
            return self.transform(X)
        return self._kernel(self._training)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the score vectors, or the kernel with the training bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_terms) or (n_bags, n_training_bags)
            Score vectors, or the kernel.
        """
        check_is_fitted(self)
        X = check_table(self, X, is_fitting=False)
        if self.settings_.compare:
            return self._kernel([self._parts(group, X) for group in self._groups])
        return np.concatenate([self._vectors(X[rows]) for rows in _blocks(X, len(self.models_))])

    def _restored(self) -> None:
        check_choice(self.settings_, "sum_over", ("sections", "features", "nothing"))
        check_positive(self.settings_, "power", example=0.5)
        check_choice(self.settings_, "compare", (None, "intersection"))
        _check_grids(self.models_)
        held = [model for group in self._groups for model in group]
        if [id(model) for model in held] != [id(model) for model in self.models_]:
            raise ValueError("models_ are not those of the groups")
        if not all(model.n_features_in_ == self.n_features_in_ for model in held):
            raise ValueError(f"models have other columns than {self.n_features_in_}")
        self._check_terms(sp.csr_array((1, self.n_features_in_), dtype=np.float32))

    def _check_terms(self, X: sp.csr_array) -> None:
        """Raise unless an empty bag has as many terms as the file says, and as the training bags have."""
        n_terms = check_count(self, "_n_features_out")
        if not self.settings_.compare:
            if self._vectors(X).shape[1] != n_terms:
                raise ValueError(f"there are {n_terms} terms")
            return
        for group, training in zip(self._groups, self._training, strict=True):
            for A, B in zip(self._parts(group, X), training, strict=True):
                if B.shape != (n_terms, A.shape[1]) or not np.isfinite(B.data).all():
                    raise ValueError(f"training bags have scores of shape {B.shape}")

    def _grids(self, X: Any, y: Any) -> list[list[Any]]:
        """Return the grids in groups that are centered together: one grid for each class."""
        estimator = GridClassifier() if self.estimator is None else self.estimator
        if isinstance(estimator, list | tuple):
            return [list(estimator)]
        if isinstance(estimator, GridModel):
            if hasattr(estimator, "pi_") or y is None:
                return [[fitted_grid(estimator, X)]]
            estimator = GridClassifier(estimator)
        if not hasattr(estimator, "models_"):
            if y is None:
                raise ValueError("y=None must be labels to fit a grid to each class; give y, or a fitted estimator.")
            estimator = clone(estimator).fit(X, y)
        return [list(group) for group in zip(*estimator.models_, strict=True)]

    def _vectors(self, X: Any) -> NDArray[np.float32]:
        parts = [self._scores(group, X) for group in self._groups]
        if self.settings_.normalize:
            parts = [part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts]
            return np.hstack(parts) / np.float32(len(parts) ** 0.5)
        return np.hstack(parts)

    def _scores(self, group: list[Any], X: Any) -> NDArray[np.float32]:
        """Return the scores under the grids of a group, (bags, terms), before scaling."""
        terms = np.stack([self._summed(expected_terms(*last_step(model, X))) for model in group], axis=1)
        if self.settings_.center and terms.shape[1] > 1:
            terms -= terms.mean(axis=1, keepdims=True)
        scores = terms.reshape(len(terms), -1)
        power = self.settings_.power
        if power != 1:
            scores = np.sign(scores) * np.abs(scores) ** np.float32(power)
        return scores

    def _parts(self, group: list[Any], X: Any) -> list[sp.csr_array]:
        """Return the absolute scores under each grid of a group, those below zero beside those above."""
        parts: list[list[sp.csr_array]] = [[] for _ in group]
        for rows in _blocks(X, len(group)):
            for part, scores in zip(parts, np.split(self._scores(group, X[rows]), len(group), axis=1), strict=True):
                part.append(sp.hstack([sp.csr_array(np.maximum(each, 0)) for each in (-scores, scores)], format="csr"))
        return [sp.csr_array(sp.vstack(part)) for part in parts]

    def _kernel(self, groups: list[list[sp.csr_array]]) -> NDArray[np.float32]:
        pairs = zip(groups, self._training, strict=True)
        return np.mean([self._group_kernel(given, training) for given, training in pairs], axis=0)

    def _group_kernel(self, given: list[sp.csr_array], training: list[sp.csr_array]) -> NDArray[np.float32]:
        K = np.zeros((given[0].shape[0], training[0].shape[0]), np.float32)
        for A, B in zip(given, training, strict=True):
            filled = np.unique(B.indices)  # scores that are not centered are never above zero
            others = B[:, filled]
            K += intersections(others if A is B else A[:, filled], others)
        if self.settings_.normalize:
            norms = [np.sqrt(sum(part.sum(axis=1) for part in parts)) for parts in (given, training)]
            K /= np.maximum(np.outer(*norms), 1e-12)
        return K

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _summed(self, terms: Array) -> Array:
        if self.settings_.sum_over == "nothing":
            return terms.reshape(len(terms), -1)
        return terms.sum(axis=1 if self.settings_.sum_over == "sections" else 2)


def _check_grids(models: list[Any]) -> None:
    """Raise unless models are fitted grids, or pipelines that end with one."""
    for model in models:
        last = model[-1] if isinstance(model, Pipeline) else model
        if not isinstance(last, GridModel) or not hasattr(last, "pi_"):
            raise ValueError(
                f"estimator is a {type(last).__name__}, which is not a fitted grid; use a CountingGrid or another "
                "model of the family."
            )


def _blocks(X: Any, n_grids: int) -> list[slice]:
    return pieces(X.shape[0], min(BLOCK, max(1, BLOCK_ENTRIES // (X.shape[1] * n_grids))))


def expected_terms(model: GridModel, X: Any) -> NDArray[np.float32]:
    """Return counts times the expected log h of every section and feature.

    Parameters
    ----------
    model : GridModel
        A fitted grid.
    X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
        Counts.

    Returns
    -------
    terms : ndarray of shape (n_bags, n_sections, n_features)
        Terms of the bound on log p(bag).
    """
    geometry: Geometry = model.geometry_
    n_features = n_features_of(X, geometry)
    counts = coarsen(X, n_features, geometry.painted, geometry.matched)
    counts = np.asarray(counts.toarray() if hasattr(counts, "toarray") else counts, dtype=np.float32)
    moved = model.section_posteriors(X).astype(np.float32, copy=False)
    with one_blas_thread():
        log_h = em.windows_of(model.planes(), geometry, 1.0, default()).log_h
        expected = moved.reshape(-1, geometry.n_cells) @ log_h.reshape(len(log_h), -1).T
    return counts.reshape(*moved.shape[:2], -1) * expected.reshape(*moved.shape[:2], -1)
