"""The choice of grid and window by capacity: the paper's protocol, with candidates dropped early."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, indexable, validate_data

from countinggrids import plot
from countinggrids.geometry import Shape, as_shape
from countinggrids.rows import CountingGrid
from countinggrids.uses.candidates import Candidate, Tessellations, divides
from countinggrids.uses.classifier import GridClassifier
from countinggrids.uses.scaling import BagScaler

GRIDS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 35, 40)
WINDOWS = (2, 4, 6, 8)
Array = NDArray[Any]


class CapacitySearch(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Chooses grid, window, sections, tempering and stopping point by cross-validation.

    Candidates are all combinations whose capacity lies between the limits. They race: each round scores those that are
    left on one more fold, and drops the worse ones, so that most of the work goes into good candidates. Bags of each
    tessellation are made once for all candidates that share it.

    Parameters
    ----------
    estimator : the grid whose other settings are kept; None takes `CountingGrid()`
    grids, windows : sizes to try; a number is a square
    sections : tessellations to try; each must divide the sections of X
    paint : finer tessellations to lay down (hybrid), as in `CountingGrid`; None is the one that is compared
    tokens, powers : what bags are scaled to and what counts are raised to, as in `BagScaler`
    max_iters : stopping points to try; None is the estimator's own
    capacities : limits of the capacity; None takes 1.5 and half the number of training bags (of a class, with labels)
    x_sections : sections that X comes in; None takes the finest of `sections` and `paint`
    cv : folds, shuffled, or a splitter of scikit-learn's
    scoring : a scorer of scikit-learn's; None takes accuracy with labels and held-out log-likelihood per bag without
    keep : the share of candidates that stays after each fold; 1 scores all on every fold
    n_init : restarts a class, averaged
    random_state : seed
    refit : whether to learn the best candidate on everything at the end
    verbose : 1 prints a line a fold

    Attributes
    ----------
    best_candidate_, best_score_ : what won, and its mean score
    best_estimator_ : learnt on everything, if `refit`
    classes_ : the labels, if there are any
    results_ : a dict of columns, one row per candidate: grid, window, sections, paint, tokens, power, max_iter,
        capacity, mean, std, and folds, how many it was scored on

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.7, .2, .1], [.1, .2, .7])])
    >>> y = np.repeat(["left", "right"], 20)
    >>> search = cg.CapacitySearch(grids=(4, 6), windows=(2,), random_state=0).fit(X, y)
    >>> search.best_score_
    1.0
    """

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
        n_init: int = 1,
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
        self.n_init = n_init
        self.random_state = random_state
        self.refit = refit
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, watch: Callable[[int, int | None], None] | None = None
    ) -> Self:
        """Race the candidates, then learn the best on everything.

        Parameters
        ----------
        X : bags
        y : labels; None scores by held-out likelihood
        groups : passed on to the splitter
        watch : told how many fits are done, and of how many, at the most
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=None)
        X, y, groups = indexable(X, y, groups)
        if y is not None:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            self.classes_ = np.unique(y)
        if y is None and max(len(set(self.tokens)), len(set(self.powers))) > 1:
            raise ValueError(
                f"tokens is {list(self.tokens)} and powers {list(self.powers)} without labels; wanted one value each, "
                "for likelihoods of bags of different size cannot be compared; give y, or one of them"
            )
        if not 0 < self.keep <= 1:
            raise ValueError(f"keep is {self.keep}; wanted a share above 0 and at most 1; give for instance keep=0.5")
        candidates = list(self._candidates(X.shape[0], y))
        splitter = check_cv(self.cv, y, classifier=y is not None)
        if isinstance(self.cv, int | np.integer):
            splitter.shuffle, splitter.random_state = True, 0
        folds = list(splitter.split(np.zeros(X.shape[0]), y, groups))
        scores = np.full((len(candidates), len(folds)), np.nan)
        bags = Tessellations(X, self._x_sections())
        racing = np.arange(len(candidates))
        for number, (train, test) in enumerate(folds):
            for c in racing:
                scores[c, number] = self._score(candidates[c], bags.at(candidates[c].finest), y, train, test)
                if watch is not None:
                    watch(int(np.isfinite(scores).sum()), self._n_fits(len(candidates), len(folds)))
            means = np.nanmean(scores[racing, : number + 1], axis=1)
            if not np.isfinite(means).any():
                raise ValueError("no candidate has a finite score; wanted one at least; check X, y and scoring")
            if self.verbose:
                print(f"fold {number + 1}: {len(racing)} candidates, best {means.max():.4f}")
            if number + 1 < len(folds):
                racing = racing[np.argsort(-means, kind="stable")[: self._n_kept(len(racing))]]
        self._report(candidates, scores)
        best = racing[np.nanargmax(np.nanmean(scores[racing], axis=1))]
        self.best_candidate_, self.best_score_ = candidates[best], float(np.nanmean(scores[best]))
        if self.refit:
            self.best_estimator_ = self._learnt(self.best_candidate_, bags.at(self.best_candidate_.finest), y)
        return self

    def plot(self, ax: Any = None) -> Any:
        """Draw score against capacity."""
        check_is_fitted(self, "results_")
        return plot.capacity(self.results_, ax)

    def predict(self, X: Any) -> Array:
        """Give the best estimator's predictions; X has the sections that were given to `fit`."""
        return np.asarray(self._best("predict")(self._ready(X)))

    def predict_proba(self, X: Any) -> Array:
        """Give p(class | bag) by the best estimator, (bags, classes)."""
        return np.asarray(self._best("predict_proba")(self._ready(X)))

    def predict_log_proba(self, X: Any) -> Array:
        """Give log p(class | bag) by the best estimator, (bags, classes)."""
        return np.asarray(self._best("predict_log_proba")(self._ready(X)))

    def decision_function(self, X: Any) -> Array:
        """Give log p(bag, class) by the best estimator, (bags, classes); for two classes the difference, (bags,)."""
        return np.asarray(self._best("decision_function")(self._ready(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Give the best estimator's score."""
        check_is_fitted(self, "best_estimator_")
        return float(check_scoring(self.best_estimator_, self.scoring)(self.best_estimator_, self._ready(X), y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(CountingGrid() if self.estimator is None else self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.positive_only = inner.sparse, inner.positive_only
        tags.target_tags.required = False
        # Scikit-learn tries two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags

    def _n_kept(self, n: int) -> int:
        return max(2, int(np.ceil(self.keep * n)))

    def _n_fits(self, n_candidates: int, n_folds: int) -> int:
        total = 0
        for _ in range(n_folds):
            total += n_candidates
            n_candidates = min(n_candidates, self._n_kept(n_candidates))
        return total

    def _best(self, name: str) -> Any:
        """Give a method of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        if not hasattr(self.best_estimator_, name):
            raise AttributeError(f"no labels were given to fit, so there is no {name}; wanted y; use best_estimator_")
        return getattr(self.best_estimator_, name)

    def _ready(self, X: Any) -> Any:
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        return Tessellations(X, self._x_sections()).at(self.best_candidate_.finest)

    def _x_sections(self) -> Shape:
        n_axes = len(next(self._shapes(self.grids, "grids", 2)))
        given = [*self.sections, *(each for each in self.paint if each is not None)]
        wanted = max(given, key=lambda each: np.prod(np.broadcast_to(each, n_axes)))
        return as_shape(wanted if self.x_sections is None else self.x_sections, "x_sections", n_axes)

    def _shapes(self, values: Sequence[Any], name: str, n_axes: int) -> Iterator[Shape]:
        for value in values:
            yield as_shape(value, name, n_axes if isinstance(value, int | np.integer) else None)

    def _candidates(self, n_bags: int, y: Any) -> Iterator[Candidate]:
        """List combinations within the limits of the capacity whose window can be cut into the sections."""
        per_model = n_bags if y is None else np.unique(y, return_counts=True)[1].mean()
        low, high = (1.5, per_model / 2) if self.capacities is None else self.capacities
        found = False
        for grid in self._shapes(self.grids, "grids", 2):
            for window in self._shapes(self.windows, "windows", len(grid)):
                fits = all(w <= e for w, e in zip(window, grid, strict=True))
                if not (fits and low <= np.prod(grid) / np.prod(window) <= high):
                    continue
                for sections, paint in self._cuts(window):
                    for tokens, power, max_iter in product(self.tokens, self.powers, self.max_iters):
                        found = True
                        yield Candidate(grid, window, sections, paint, tokens, power, max_iter)
        if not found:
            raise ValueError(
                f"no grid and window has a capacity from {low:g} to {high:g}; wanted at least one; "
                "give other grids, windows or capacities"
            )

    def _cuts(self, window: Shape) -> Iterator[tuple[Shape, Shape | None]]:
        """List the sections a window can be cut into, with the finer ones that can be laid down."""
        for sections in self._shapes(self.sections, "sections", len(window)):
            for paint in self.paint:
                finer = None if paint is None else next(self._shapes([paint], "paint", len(window)))
                if divides(sections, window if finer is None else finer) and (finer is None or divides(finer, window)):
                    yield sections, finer

    def _made(self, candidate: Candidate, y: Any) -> Any:
        from sklearn.pipeline import make_pipeline

        grid = CountingGrid() if self.estimator is None else clone(self.estimator)
        is_whole = all(n == 1 for n in candidate.sections)
        grid.set_params(grid=candidate.grid, window=candidate.window, sections=None if is_whole else candidate.sections)
        if candidate.paint is not None:
            grid.set_params(paint=candidate.paint)
        if candidate.max_iter is not None:
            grid.set_params(max_iter=candidate.max_iter)
        if y is None:
            grid.set_params(random_state=self.random_state, n_init=self.n_init)
            return make_pipeline(BagScaler(candidate.tokens, candidate.power), grid)
        classifier = GridClassifier(grid, n_init=self.n_init, random_state=self.random_state)
        return make_pipeline(BagScaler(candidate.tokens, candidate.power), classifier)

    def _learnt(self, candidate: Candidate, X: Any, y: Any) -> Any:
        with warnings.catch_warnings():
            # A stopping point is one of the things that are chosen here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._made(candidate, y).fit(X, y)

    def _score(self, candidate: Candidate, X: Any, y: Any, train: Array, test: Array) -> float:
        labels = None if y is None else np.asarray(y)
        model = self._learnt(candidate, X[train], None if labels is None else labels[train])
        scorer = check_scoring(model, self.scoring)
        return float(scorer(model, X[test], None if labels is None else labels[test]))

    def _report(self, candidates: list[Candidate], scores: Array) -> None:
        columns: dict[str, list[Any]] = {name: [getattr(c, name) for c in candidates] for name in Candidate._fields}
        columns["capacity"] = [candidate.capacity for candidate in candidates]
        columns["folds"] = np.isfinite(scores).sum(axis=1).tolist()
        columns["mean"] = np.nanmean(scores, axis=1).tolist()
        # One fold has no spread to tell.
        columns["std"] = [float(np.nanstd(row)) if np.isfinite(row).sum() > 1 else np.nan for row in scores]
        self.results_ = columns
