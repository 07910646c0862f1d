"""Free-energy scores: how each feature of a bag fares under fitted grids, as vectors for other classifiers."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from countinggrids import em, torus
from countinggrids.bags import coarsen
from countinggrids.checks import n_features_of
from countinggrids.engine import default, one_blas_thread
from countinggrids.geometry import Geometry
from countinggrids.model import GridModel
from countinggrids.uses.classifier import GridClassifier
from countinggrids.uses.fitted import at_the_end, fitted_grid
from countinggrids.uses.kernels import intersections

Array = NDArray[Any]
BLOCK, BLOCK_ENTRIES = 256, 2**24
"""Bags, and bags times columns times grids, that are worked on at a time."""


class ScoreSpace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns bags into vectors of free-energy terms.

    The bound of a bag under a grid is a sum over features: the count of the feature times the logarithm of what the
    grid expects, averaged over where the bag may lie. These terms, of one or several grids, are the scores. They
    are centred over the grids, their square roots are taken (signs kept), and each bag's vector is scaled to length 1:
    ready for a linear SVM. The members and restarts of a `GridClassifier` are each treated so, and put side by side.

    Bags can also be compared with those that were learnt from, by what their terms have in common: for an SVM with
    `kernel="precomputed"`. On scenes this is best with sum_over="nothing", center=False and power=1.

    Parameters
    ----------
    estimator : a `GridClassifier`, or a grid of which one is learnt per class; one that is fitted is used as it is, and
        so is a list of fitted grids. None takes `GridClassifier()`. Without labels one grid is learnt from all bags
    sum_over : what terms are added up over, to keep vectors short: "sections" leaves a term per grid and feature,
        "features" one per grid and section, "nothing" one per grid, section and feature
    center : whether to subtract, for each feature, the mean over the grids: what all of them say tells nothing apart
    power : signed power of the terms; 0.5 evens out frequent and rare features, 1 leaves terms as they are
    normalize : whether vectors are scaled to length 1; of comparisons, whether a bag compared with itself gives 1
    compare : None gives the vectors; "intersection" gives for each bag and each one learnt from the sum of the smaller
        of their two scores, where both have the same sign

    Attributes
    ----------
    models_ : the grids: one per class, then those of the next restart or member

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

    Or compared with the bags learnt from:

    >>> from sklearn.svm import SVC
    >>> space = cg.ScoreSpace(grid, sum_over="nothing", center=False, power=1, compare="intersection")
    >>> make_pipeline(space, SVC(kernel="precomputed")).fit(X, y).score(X, y)
    1.0
    """

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

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn a grid for each class, unless the estimator is fitted."""
        if self.sum_over not in ("sections", "features", "nothing"):
            raise ValueError(f"sum_over is {self.sum_over!r}; wanted 'sections', 'features' or 'nothing'")
        if not self.power > 0:
            raise ValueError(f"power is {self.power}; wanted a number above 0; give for instance power=0.5")
        if self.compare not in (None, "intersection"):
            raise ValueError(f"compare is {self.compare!r}; wanted None or 'intersection'")
        X = validate_data(self, X, accept_sparse="csr", dtype=None)
        self._groups = self._grids(X, y)
        self.models_ = [model for group in self._groups for model in group]
        for model in self.models_:
            last = model[-1] if isinstance(model, Pipeline) else model
            if not isinstance(last, GridModel) or not hasattr(last, "pi_"):
                raise ValueError(
                    f"{type(last).__name__} has no fitted grid; wanted counting grids or other rows of the family"
                )
        self._learnt = [self._parts(group, X) for group in self._groups] if self.compare else []
        self._n_features_out = X.shape[0] if self.compare else self._vectors(X[:1]).shape[1]
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Fit, and give what `transform` gives for the same bags."""
        if self.compare is None:
            return super().fit_transform(X, y, **options)
        self.fit(X, y, **options)
        return self._compared(self._learnt)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Give the score vectors, (bags, terms), or what bags have in common, (bags, bags learnt from)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        if self.compare:
            return self._compared([self._parts(group, X) for group in self._groups])
        return np.concatenate([self._vectors(X[rows]) for rows in _blocks(X, len(self.models_))])

    def _grids(self, X: Any, y: Any) -> list[list[Any]]:
        """Give the grids in groups that are centred together: one grid per class."""
        estimator = GridClassifier() if self.estimator is None else self.estimator
        if isinstance(estimator, list | tuple):
            return [list(estimator)]
        if isinstance(estimator, GridModel):
            if hasattr(estimator, "pi_") or y is None:
                return [[fitted_grid(estimator, X)]]
            estimator = GridClassifier(estimator)
        if not hasattr(estimator, "models_"):
            if y is None:
                raise ValueError("y is missing; wanted labels to learn a grid per class; give y, or a fitted estimator")
            estimator = clone(estimator).fit(X, y)
        return [list(group) for group in zip(*estimator.models_, strict=True)]

    def _vectors(self, X: Any) -> NDArray[np.float32]:
        parts = [self._scores(group, X) for group in self._groups]
        if self.normalize:
            parts = [part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts]
            return np.hstack(parts) / np.float32(len(parts) ** 0.5)
        return np.hstack(parts)

    def _scores(self, group: list[Any], X: Any) -> NDArray[np.float32]:
        """Give the scores of the grids of a group, (bags, terms), not scaled."""
        terms = np.stack([self._summed(expected_terms(*at_the_end(model, X))) for model in group], axis=1)
        if self.center and terms.shape[1] > 1:
            terms -= terms.mean(axis=1, keepdims=True)
        scores = terms.reshape(len(terms), -1)
        if self.power != 1:
            scores = np.sign(scores) * np.abs(scores) ** np.float32(self.power)
        return scores

    def _parts(self, group: list[Any], X: Any) -> list[sp.csr_array]:
        """Give the scores of each grid of a group, those below zero beside those above, all without sign."""
        parts: list[list[sp.csr_array]] = [[] for _ in group]
        for rows in _blocks(X, len(group)):
            for part, scores in zip(parts, np.split(self._scores(group, X[rows]), len(group), axis=1), strict=True):
                part.append(sp.hstack([sp.csr_array(np.maximum(each, 0)) for each in (-scores, scores)], format="csr"))
        return [sp.csr_array(sp.vstack(part)) for part in parts]

    def _compared(self, given: list[list[sp.csr_array]]) -> NDArray[np.float32]:
        pairs = zip(given, self._learnt, strict=True)
        return np.mean([self._in_common(ours, theirs) for ours, theirs in pairs], axis=0)

    def _in_common(self, given: list[sp.csr_array], learnt: list[sp.csr_array]) -> NDArray[np.float32]:
        K = np.zeros((given[0].shape[0], learnt[0].shape[0]), np.float32)
        for ours, theirs in zip(given, learnt, strict=True):
            filled = np.unique(theirs.indices)  # scores that are not centred are never above zero
            kept = theirs[:, filled]
            K += intersections(kept if ours is theirs else ours[:, filled], kept)
        if self.normalize:
            sizes = [np.sqrt(sum(part.sum(axis=1) for part in parts)) for parts in (given, learnt)]
            K /= np.maximum(np.outer(*sizes), 1e-12)
        return K

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _summed(self, terms: Array) -> Array:
        if self.sum_over == "nothing":
            return terms.reshape(len(terms), -1)
        return terms.sum(axis=1 if self.sum_over == "sections" else 2)


def _blocks(X: Any, n_grids: int) -> list[slice]:
    return em.pieces(X.shape[0], min(BLOCK, max(1, BLOCK_ENTRIES // (X.shape[1] * n_grids))))


def expected_terms(model: GridModel, X: Any) -> NDArray[np.float32]:
    """Give counts times the expected log h of every section and feature, (bags, sections, features)."""
    geometry: Geometry = model._geometry()
    n_features = n_features_of(X, geometry)
    counts = coarsen(X, n_features, geometry.painted, geometry.matched)
    counts = np.asarray(counts.toarray() if hasattr(counts, "toarray") else counts, dtype=np.float32)
    q = model.transform(X).astype(np.float32, copy=False)
    # Sections lie at offsets from the window: q moved by an offset is where that section lies.
    q = q.reshape(-1, *geometry.grid)
    moved = np.stack([torus.shift(q, tuple(-o for o in offset)) for offset in geometry.matched_offsets], axis=1)
    with one_blas_thread():
        table = em.windows_of(model._grid(), geometry, 1.0, default())[0].table
        expected = moved.reshape(-1, geometry.n_cells) @ table.reshape(len(table), -1).T
    return counts.reshape(*moved.shape[:2], -1) * expected.reshape(*moved.shape[:2], -1)
