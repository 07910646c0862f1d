"""A model a class: the class that explains a bag best wins."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from countinggrids import engine
from countinggrids.rows import CountingGrid

Array = NDArray[Any]


class GridClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns a clone of a density model for each class; the class with the lowest free energy wins.

    Parameters
    ----------
    estimator : a counting grid, another row of the family, or any model with `fit` and `score_samples`, also at the
        end of a pipeline; None takes `CountingGrid()`. A list of several, such as grids of different sections or
        capacities, makes each class a committee
    n_init : restarts of each class with different seeds
    combine : what is done with the restarts: "mean" averages their likelihoods of a bag, "best" keeps the one whose
        training bags are most likely
    committee : what is averaged over the members of a committee: "logs" of their likelihoods, which suits members that
        see different sides of a bag, or "likelihoods", which suits models of the same bag, such as several capacities
    class_prior : "uniform", "frequency" (as in training), or one probability per class in the order of `classes_`
    class_params : settings of single classes by label, as for `set_params`: {"coast": {"grid": (20, 20)}}
    n_jobs : classes learnt at a time, on threads; None learns one after the other, each on all threads
    random_state : seed of the restarts

    Attributes
    ----------
    classes_ : the labels
    models_ : the fitted models, a list per class: the restarts, of one estimator after the other
    log_prior_ : log of the class prior

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.multinomial(50, p, 20) for p in ([.7, .2, .1], [.1, .2, .7])])
    >>> y = np.repeat(["left", "right"], 20)
    >>> cg.GridClassifier(cg.CountingGrid((4, 4), (2, 2)), random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_init: int = 1,
        combine: str = "mean",
        committee: str = "logs",
        class_prior: Any = "uniform",
        class_params: Mapping[Any, Mapping[str, Any]] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_init = n_init
        self.combine = combine
        self.committee = committee
        self.class_prior = class_prior
        self.class_params = class_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn a model for each class."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None)
        check_classification_targets(y)
        labels = np.asarray(y)
        self._check_options()
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weights is not None:
            counts = np.isin(labels, np.unique(labels[weights > 0]))  # a class without any weight is not there
            X, labels, weights = X[counts], labels[counts], weights[counts]
        self.classes_, which = np.unique(labels, return_inverse=True)
        sizes = np.bincount(which)
        if len(sizes) < 2:
            raise ValueError(
                f"y has 1 class, {self.classes_.tolist()[0]!r}; wanted at least two to tell apart; give more"
            )
        if sizes.min() < 2:
            lonely = self.classes_.tolist()[sizes.argmin()]
            raise ValueError(
                f"class {lonely!r} has n_samples=1 bag; wanted at least two to learn from; give more or leave it out"
            )
        unknown = set(self.class_params or ()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(f"class_params names {sorted(map(str, unknown))}; wanted labels that y holds")
        self.log_prior_ = self._log_prior(sizes if weights is None else np.bincount(which, weights))
        jobs = [(c, np.flatnonzero(which == c)) for c in range(len(self.classes_))]
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=(len(jobs), self.n_init))
        members = self._members()

        def learn(job: tuple[int, Array]) -> list[Any]:
            c, rows = job
            some = None if weights is None else weights[rows]
            kept = []
            for member in members:
                models = [self._learnt(member, c, X[rows], some, seed) for seed in seeds[c]]
                if self.combine == "best":
                    models = [max(models, key=lambda model: np.average(model.score_samples(X[rows]), weights=some))]
                kept += models
            return kept

        self.models_ = self._map(learn, jobs)
        return self

    def log_likelihoods(self, X: Any) -> Array:
        """Give log p(bag | class), restarts combined, (bags, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        return np.stack(self._map(lambda models: self._combined(models, X), self.models_), axis=1)

    def decision_function(self, X: Any) -> Array:
        """Give log p(bag, class), (bags, classes); for two classes the difference, (bags,)."""
        joint = self.log_likelihoods(X) + self.log_prior_
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict_log_proba(self, X: Any) -> Array:
        """Give log p(class | bag)."""
        joint = self.log_likelihoods(X) + self.log_prior_
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Array:
        """Give p(class | bag)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Give the class that explains each bag best."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(member).input_tags for member in self._members()]
        tags.input_tags.sparse = all(each.sparse for each in inner)
        tags.input_tags.positive_only = any(each.positive_only for each in inner)
        # Scikit-learn tries two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags

    def _members(self) -> list[Any]:
        if isinstance(self.estimator, list | tuple):
            return list(self.estimator)
        return [CountingGrid() if self.estimator is None else self.estimator]

    def _learnt(self, member: Any, c: int, X: Any, weights: Any, seed: int) -> Any:
        model = clone(member)
        model.set_params(**(self.class_params or {}).get(self.classes_.tolist()[c], {}))
        _seed(model, int(seed), self.n_init > 1)
        return model.fit(X) if weights is None else model.fit(X, **{_weight_name(model): weights})

    def _combined(self, models: list[Any], X: Any) -> Array:
        """Average the likelihoods of a bag over restarts, and these or their logarithms over the members."""
        scores = np.stack([model.score_samples(X) for model in models])
        if self.committee == "logs":
            scores = scores.reshape(len(self._members()), -1, X.shape[0])
            return np.asarray((logsumexp(scores, axis=1) - np.log(scores.shape[1])).mean(axis=0))
        return np.asarray(logsumexp(scores, axis=0) - np.log(len(scores)))

    def _check_options(self) -> None:
        if not self._members():
            raise ValueError("estimator is an empty list; wanted at least one model a class; give for instance None")
        if self.combine not in ("mean", "best"):
            raise ValueError(f"combine is {self.combine!r}; wanted 'mean' or 'best'; give for instance combine='mean'")
        if self.committee not in ("logs", "likelihoods"):
            raise ValueError(
                f"committee is {self.committee!r}; wanted 'logs' or 'likelihoods'; give for instance 'logs'"
            )
        if not isinstance(self.n_init, int | np.integer) or isinstance(self.n_init, bool) or self.n_init < 1:
            raise ValueError(f"n_init is {self.n_init!r}; wanted an integer of at least 1; give for instance n_init=3")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, int | np.integer) or self.n_jobs == 0):
            raise ValueError(
                f"n_jobs is {self.n_jobs!r}; wanted None or a number of threads; give for instance n_jobs=2"
            )

    def _log_prior(self, sizes: Array) -> Array:
        if isinstance(self.class_prior, str):
            if self.class_prior not in ("uniform", "frequency"):
                raise ValueError(
                    f"class_prior is {self.class_prior!r}; wanted 'uniform', 'frequency' or one probability per class"
                )
            sizes = sizes if self.class_prior == "frequency" else np.ones_like(sizes)
            return np.log(sizes / sizes.sum())
        prior = np.asarray(self.class_prior, dtype=float)
        if prior.shape != sizes.shape or not ((prior > 0) & np.isfinite(prior)).all():
            raise ValueError(
                f"class_prior is {self.class_prior!r}; wanted {len(sizes)} probabilities above 0, one per class in the "
                "order of the sorted labels"
            )
        return np.log(prior / prior.sum())

    def _map(self, function: Any, jobs: Any) -> list[Any]:
        if self.n_jobs is None or self.n_jobs == 1:
            return [function(job) for job in jobs]
        with ThreadPoolExecutor(engine.default().n_threads if self.n_jobs < 0 else self.n_jobs) as pool:
            return list(pool.map(function, jobs))


def _weight_name(model: Any) -> str:
    """Give the name under which `fit` takes weights: a pipeline hands them to its last step."""
    names = []
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        names.append(name)
    return "__".join([*names, "sample_weight"])


def _seed(model: Any, seed: int, has_restarts: bool) -> None:
    """Give a seed to whatever in a model takes one and has none; with restarts, also to what has one."""
    seeds = {
        name: seed if value is None else (seed + value) % 2**31
        for name, value in model.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state"))
        and (value is None or (has_restarts and isinstance(value, int | np.integer)))
    }
    model.set_params(**seeds)
