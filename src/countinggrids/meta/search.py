"""Model selection by capacity: the protocol of the paper, with successive halving of the candidates."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.pipeline import make_pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import indexable

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.core.geometry import as_shape
from countinggrids.data import validation
from countinggrids.features.saving import Saveable
from countinggrids.meta.candidates import Candidate, Tessellations, divides
from countinggrids.meta.classifier import GridClassifier
from countinggrids.meta.fitted_search import FittedSearch
from countinggrids.meta.halving import Callback, halve, mean_scores
from countinggrids.meta.options import check_integer
from countinggrids.meta.scaling import BagScaler
from countinggrids.meta.search_space import SearchSpace
from countinggrids.models import CountingGrid

GRIDS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 35, 40)
WINDOWS = (2, 4, 6, 8)
Array = NDArray[Any]


class CapacitySearch(Saveable, FittedSearch):
    """Choose grid, window, sections, scaling of the counts and number of iterations by cross-validation.

    Candidates are all combinations whose capacity lies between limits. After each fold the candidates with lower scores
    are dropped, so that most of the work goes into good ones. Bags of each tessellation are computed once.

    Parameters
    ----------
    estimator : estimator, default=None
        The grid, whose other parameters are kept; None stands for `CountingGrid()`.
    grids : sequence of int or tuple of int
        Grids; an integer is a square.
    windows : sequence of int or tuple of int
        Windows; an integer is a square.
    sections : sequence of int or tuple of int, default=(1,)
        Tessellations; each must divide `x_sections`.
    paint : sequence of int, tuple of int or None, default=(None,)
        Finer tessellations that are painted, as in `CountingGrid`; None for those that are matched.
    tokens : sequence of float or None, default=(None,)
        Tokens that bags are scaled to, as in `BagScaler`.
    powers : sequence of float, default=(1.0,)
        Powers of the counts, as in `BagScaler`.
    max_iters : sequence of int or None, default=(None,)
        Numbers of EM iterations; None for that of the estimator.
    capacities : tuple of float, default=None
        Smallest and largest capacity; None takes 1.5 and half the number of training bags (of a class, with labels).
    x_sections : int or tuple of int, default=None
        Sections of X; None takes the finest of `sections` and `paint`.
    cv : int, cross-validation splitter or iterable, default=3
        Folds; an integer shuffles the bags.
    scoring : str or callable, default=None
        Scorer of scikit-learn; None takes accuracy with labels and held-out log-likelihood without.
    keep : float, default=0.5
        Fraction of the candidates that stays after each fold; 1 scores all on every fold.
    n_estimators : int, default=1
        Models of each class that are averaged; without labels, restarts of which the best is kept.
    random_state : int, RandomState or None, default=None
        Seed of the models.
    refit : bool, default=True
        Whether to fit the best candidate to all bags at the end.
    verbose : int, default=0
        1 writes a line to stderr after each fold.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        One entry for each candidate, as in scikit-learn's `GridSearchCV`: `params`, `param_grid`, ...,
        `split0_test_score`, ..., `mean_test_score`, `std_test_score` and `rank_test_score`; also `capacity`, and
        `n_folds`, the number of folds that the candidate was scored on. Scores of folds after it was dropped are NaN.
    best_params_ : dict
        Parameters of the best candidate: grid, window, sections, paint, tokens, power and max_iter.
    best_index_ : int
        Its index in `cv_results_`.
    best_score_ : float
        Its mean score.
    best_estimator_ : Pipeline
        The best candidate fitted to all bags, if `refit`.
    scorer_ : callable
        What `score` evaluates it with, if `refit`.
    n_splits_ : int
        Number of folds.
    x_sections_ : tuple of int
        Sections of X.
    classes_ : ndarray of shape (n_classes,)
        The labels, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.7, .2, .1], [.1, .2, .7])])
    >>> y = np.repeat(["left", "right"], 20)
    >>> search = cg.CapacitySearch(grids=(4, 6), windows=(2,), random_state=0).fit(X, y)
    >>> search.best_score_, search.best_params_["window"]
    (1.0, (2, 2))
    """

    _rebuilt = frozenset({"scorer_"})

    def __init__(
        self,
        estimator: Any = None,
        *,
        grids: Sequence[Any] = GRIDS,
        windows: Sequence[Any] = WINDOWS,
        sections: Sequence[Any] = (1,),
        paint: Sequence[Any] = (None,),
        tokens: Sequence[float | None] = (None,),
        powers: Sequence[float] = (1.0,),
        max_iters: Sequence[int | None] = (None,),
        capacities: tuple[float, float] | None = None,
        x_sections: Any = None,
        cv: Any = 3,
        scoring: Any = None,
        keep: float = 0.5,
        n_estimators: int = 1,
        random_state: Any = None,
        refit: bool = True,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.grids = grids
        self.windows = windows
        self.sections = sections
        self.paint = paint
        self.tokens = tokens
        self.powers = powers
        self.max_iters = max_iters
        self.capacities = capacities
        self.x_sections = x_sections
        self.cv = cv
        self.scoring = scoring
        self.keep = keep
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.refit = refit
        self.verbose = verbose

    @whole_or_nothing
    def fit(self, X: Any, y: Any = None, groups: Any = None, callback: Callback | None = None) -> Self:
        """Score the candidates by cross-validation, then fit the best to all bags.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
            Counts.
        y : array-like of shape (n_bags,), default=None
            Labels; None scores candidates by held-out likelihood.
        groups : array-like of shape (n_bags,), default=None
            Groups for the cross-validation splitter.
        callback : callable, default=None
            Called after every fit with the number of fits so far and the largest number there can be.

        Returns
        -------
        self : object
            The fitted search.
        """
        X = validation.check_table(self, X, is_fitting=True)
        X, y, groups = indexable(X, y, groups)
        if y is not None:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            self.classes_ = np.unique(y)
        self._check_options(has_labels=y is not None)
        space = SearchSpace(
            self.grids, self.windows, self.sections, self.paint, self.tokens, self.powers, self.max_iters
        )
        candidates = list(space.candidates(*self._limits(X.shape[0], y)))
        folds = self._folds(X.shape[0], y, groups)
        self.n_splits_, self.x_sections_ = len(folds), space.x_sections(self.x_sections)
        bags = Tessellations(X, self.x_sections_)

        def score(c: int, fold: int) -> float:
            return self._score(candidates[c], bags.at(candidates[c].finest), y, *folds[fold])

        scores, finalists = halve(score, len(candidates), len(folds), self.keep, callback, bool(self.verbose))
        self.cv_results_ = _results(candidates, scores)
        means = self.cv_results_["mean_test_score"]
        self.best_index_ = int(finalists[np.nanargmax(means[finalists])])
        best = candidates[self.best_index_]
        self.best_params_, self.best_score_ = best._asdict(), float(means[self.best_index_])
        if self.refit:
            self.best_estimator_ = self._fit_candidate(best, bags.at(best.finest), y)
            self.scorer_ = check_scoring(self.best_estimator_, self.scoring)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(CountingGrid() if self.estimator is None else self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.positive_only = inner.sparse, inner.positive_only
        tags.target_tags.required = False
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags

    def _restored(self) -> None:
        best = Candidate(**self.best_params_)
        for name in ("finest", "sections"):
            if not divides(as_shape(getattr(best, name), name), as_shape(self.x_sections_, "x_sections")):
                raise ValueError(f"{name} {getattr(best, name)} do not divide {self.x_sections_}")
        if hasattr(self, "best_estimator_"):
            self.scorer_ = check_scoring(self.best_estimator_, self.scoring)

    def _check_options(self, has_labels: bool) -> None:
        if not has_labels and max(len(set(self.tokens)), len(set(self.powers))) > 1:
            raise ValueError(
                f"tokens={list(self.tokens)} and powers={list(self.powers)} must have one value each without labels, "
                "because likelihoods of bags of different size cannot be compared; give y, or one value of each."
            )
        if not 0 < self.keep <= 1:
            raise ValueError(f"keep={self.keep} must be a fraction above 0 and at most 1; use keep=0.5.")
        check_integer(self, "n_estimators", example=3)

    def _folds(self, n_bags: int, y: Any, groups: Any) -> list[tuple[Array, Array]]:
        splitter = check_cv(self.cv, y, classifier=y is not None)
        if isinstance(self.cv, int | np.integer):
            splitter.shuffle, splitter.random_state = True, 0
        return list(splitter.split(np.zeros(n_bags), y, groups))

    def _limits(self, n_bags: int, y: Any) -> tuple[float, float]:
        """Return the smallest and the largest capacity."""
        if self.capacities is not None:
            low, high = self.capacities
            return low, high
        bags_per_model = n_bags if y is None else np.unique(y, return_counts=True)[1].mean()
        return 1.5, bags_per_model / 2

    def _model_of(self, candidate: Candidate, y: Any) -> Any:
        grid = CountingGrid() if self.estimator is None else clone(self.estimator)
        is_whole = all(n == 1 for n in candidate.sections)
        grid.set_params(grid=candidate.grid, window=candidate.window, sections=None if is_whole else candidate.sections)
        if candidate.paint is not None:
            grid.set_params(paint=candidate.paint)
        if candidate.max_iter is not None:
            grid.set_params(max_iter=candidate.max_iter)
        if y is None:
            model = grid.set_params(random_state=self.random_state, n_init=self.n_estimators)
        else:
            model = GridClassifier(grid, n_estimators=self.n_estimators, random_state=self.random_state)
        return make_pipeline(BagScaler(candidate.tokens, candidate.power), model)

    def _fit_candidate(self, candidate: Candidate, X: Any, y: Any) -> Any:
        with warnings.catch_warnings():
            # The number of iterations is one of the parameters to choose.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._model_of(candidate, y).fit(X, y)

    def _score(self, candidate: Candidate, X: Any, y: Any, train: Array, test: Array) -> float:
        labels = None if y is None else np.asarray(y)
        model = self._fit_candidate(candidate, X[train], None if labels is None else labels[train])
        scorer = check_scoring(model, self.scoring)
        return float(scorer(model, X[test], None if labels is None else labels[test]))


def _results(candidates: list[Candidate], scores: Array) -> dict[str, Any]:
    """Arrange candidates, (n_candidates,), and scores, (n_candidates, n_folds), as in `GridSearchCV`."""
    results: dict[str, Any] = {"params": [candidate._asdict() for candidate in candidates]}
    for name in Candidate._fields:
        column = np.empty(len(candidates), dtype=object)
        column[:] = [getattr(candidate, name) for candidate in candidates]
        results[f"param_{name}"] = column
    results["capacity"] = np.array([candidate.capacity for candidate in candidates])
    n_folds, mean = np.isfinite(scores).sum(axis=1), mean_scores(scores)
    deviations = np.where(np.isfinite(scores), scores - mean[:, None], 0)
    std = np.sqrt((deviations**2).sum(axis=1) / np.maximum(n_folds, 1))
    # Candidates that were scored on fewer folds rank behind the others, as do those without a score.
    order = np.lexsort((-np.nan_to_num(mean, nan=-np.inf), -n_folds))
    rank = np.empty(len(candidates), dtype=np.int32)
    rank[order] = np.arange(1, len(candidates) + 1)
    results |= {f"split{i}_test_score": column for i, column in enumerate(scores.T)}
    results |= {"mean_test_score": mean, "std_test_score": np.where(n_folds > 1, std, np.nan)}
    return results | {"rank_test_score": rank, "n_folds": n_folds}
