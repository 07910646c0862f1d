"""Generative classification: one density model, or an ensemble of them, for each class."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.data import validation
from countinggrids.features.saving import Saveable, check_array, check_count, check_labels
from countinggrids.kernels import threads
from countinggrids.meta.nested import set_seeds, weight_parameter
from countinggrids.meta.options import check_choice, check_integer, is_integer
from countinggrids.models import CountingGrid

Array = NDArray[Any]


class GridClassifier(Saveable, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a density model to each class, and predict the class with the lowest free energy.

    Parameters
    ----------
    estimator : estimator or list of estimators, default=None
        A counting grid, another model of the family, or any model with `fit` and `score_samples`, also at the end of a
        pipeline. None stands for `CountingGrid()`. With a list, for instance of grids with different sections or
        capacities, each class has an ensemble of models.
    n_estimators : int, default=1
        Number of models that are fitted to each class with different seeds, for each estimator.
    combine : {"mean", "best"}, default="mean"
        How models that differ in the seed are combined: "mean" averages their likelihoods of a bag, "best" keeps the
        one with the largest likelihood of the training bags.
    average : {"log_likelihoods", "likelihoods"}, default="log_likelihoods"
        What is averaged over a list of estimators. Log-likelihoods suit models of different views of a bag,
        likelihoods suit models of the same view, such as several capacities.
    class_prior : {"uniform", "frequency"} or array-like of shape (n_classes,), default="uniform"
        Prior probabilities of the classes, in the order of `classes_`; "frequency" takes those of the training bags.
    class_params : dict, default=None
        Parameters of the models of single classes by label, such as ``{"coast": {"grid": (20, 20)}}``.
    n_jobs : int, default=None
        Number of classes that are fitted or scored at a time, on threads; -1 uses all threads. None takes one class
        after the other, each on all threads.
    random_state : int, RandomState or None, default=None
        Seed of the models.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    models_ : list of list of estimators
        Fitted models of each class, for one estimator after the other.
    log_prior_ : ndarray of shape (n_classes,)
        Log of the class prior.
    n_members_ : int
        Number of estimators of each ensemble.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.

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

    _kept = ("average",)

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 1,
        combine: str = "mean",
        average: str = "log_likelihoods",
        class_prior: Any = "uniform",
        class_params: Mapping[Any, Mapping[str, Any]] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.combine = combine
        self.average = average
        self.class_prior = class_prior
        self.class_params = class_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the models of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.
        y : array-like of shape (n_bags,)
            Labels.
        sample_weight : array-like of shape (n_bags,), default=None
            Weights of the bags. A class without weight is left out.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y = validation.check_table(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        self._check_options()
        labels = np.asarray(y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weights is not None:
            has_weight = np.isin(labels, np.unique(labels[weights > 0]))
            X, labels, weights = X[has_weight], labels[has_weight], weights[has_weight]
        self.classes_, which = np.unique(labels, return_inverse=True)
        self._check_classes(np.bincount(which))
        self.log_prior_ = self._log_prior(np.bincount(which, weights))
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=(len(self.classes_), self.n_estimators))

        def fit_class(c: int) -> list[Any]:
            rows = np.flatnonzero(which == c)
            return self._fit_class(c, X[rows], None if weights is None else weights[rows], seeds[c])

        self.models_ = self._map(fit_class, range(len(self.classes_)))
        self.settings_ = settings_of(self, *self._kept)
        self.n_members_ = len(self._members())
        return self

    def log_likelihoods(self, X: Any) -> Array:
        """Return log p(bag | class), averaged over the models of the class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_bags, n_classes)
            Log-likelihood of each bag under each class.
        """
        check_is_fitted(self)
        X = validation.check_table(self, X, is_fitting=False)
        return np.stack(self._map(lambda models: self._averaged(models, X), self.models_), axis=1)

    def decision_function(self, X: Any) -> Array:
        """Return log p(bag, class).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_classes) or (n_bags,)
            Joint log probabilities; of two classes, the second minus the first.
        """
        joint = self.log_likelihoods(X) + self.log_prior_
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(class | bag).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        log_probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        joint = self.log_likelihoods(X) + self.log_prior_
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Array:
        """Return p(class | bag).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each bag.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_columns)
            Counts.

        Returns
        -------
        labels : ndarray of shape (n_bags,)
            Predicted labels.
        """
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(member).input_tags for member in self._members()]
        tags.input_tags.sparse = all(each.sparse for each in inner)
        tags.input_tags.positive_only = any(each.positive_only for each in inner)
        # Scikit-learn checks accuracy on two columns of Gaussian blobs, which are not bags of anything.
        tags.classifier_tags.poor_score = True
        return tags

    def _restored(self) -> None:
        n = check_labels(self, least=2)
        check_array(self, "log_prior_", "f", (n,))
        sizes = [len(models) for models in self.models_]
        if len(sizes) != n or set(sizes) != {sizes[0]} or sizes[0] % check_count(self, "n_members_"):
            raise ValueError(f"there are {sizes} models for {n} labels and {self.n_members_} estimators")
        if not sizes[0] or not all(hasattr(model, "score_samples") for models in self.models_ for model in models):
            raise ValueError("a model has no likelihoods")
        check_choice(self.settings_, "average", ("log_likelihoods", "likelihoods"))

    def _members(self) -> list[Any]:
        if isinstance(self.estimator, list | tuple):
            return list(self.estimator)
        return [CountingGrid() if self.estimator is None else self.estimator]

    def _fit_class(self, c: int, X: Any, weights: Any, seeds: Array) -> list[Any]:
        """Fit the models of one class; return those that are kept."""
        kept = []
        for member in self._members():
            models = [self._fit_one(member, c, X, weights, int(seed)) for seed in seeds]
            if self.combine == "best":
                models = [max(models, key=lambda model: np.average(model.score_samples(X), weights=weights))]
            kept += models
        return kept

    def _fit_one(self, member: Any, c: int, X: Any, weights: Any, seed: int) -> Any:
        model = clone(member)
        model.set_params(**(self.class_params or {}).get(self.classes_.tolist()[c], {}))
        set_seeds(model, seed, shift_given=self.n_estimators > 1)
        return model.fit(X) if weights is None else model.fit(X, **{weight_parameter(model): weights})

    def _averaged(self, models: list[Any], X: Any) -> Array:
        """Average likelihoods over seeds, and these or their logarithms over estimators."""
        scores = np.stack([model.score_samples(X) for model in models])
        if self.settings_.average == "log_likelihoods":
            scores = scores.reshape(self.n_members_, -1, X.shape[0])
            return np.asarray((logsumexp(scores, axis=1) - np.log(scores.shape[1])).mean(axis=0))
        return np.asarray(logsumexp(scores, axis=0) - np.log(len(scores)))

    def _check_options(self) -> None:
        if not self._members():
            raise ValueError("estimator=[] must hold at least one model; use estimator=None for a CountingGrid.")
        check_choice(self, "combine", ("mean", "best"))
        check_choice(self, "average", ("log_likelihoods", "likelihoods"))
        check_integer(self, "n_estimators", example=3)
        if self.n_jobs is not None and self.n_jobs != -1 and not is_integer(self.n_jobs):
            raise ValueError(f"n_jobs={self.n_jobs!r} must be None, -1 or a number of threads; use n_jobs=2.")

    def _check_classes(self, sizes: Array) -> None:
        names = self.classes_.tolist()
        if len(sizes) < 2:
            raise ValueError(f"y has 1 class, {names[0]!r}, but must have at least two; add bags of another class.")
        if sizes.min() < 2:
            raise ValueError(
                f"class {names[sizes.argmin()]!r} has n_samples=1 bag but must have at least two; add bags or leave it "
                "out."
            )
        unknown = set(self.class_params or ()) - set(names)
        if unknown:
            raise ValueError(f"class_params names {sorted(map(str, unknown))}, which are not in y; use labels of y.")

    def _log_prior(self, sizes: Array) -> Array:
        if isinstance(self.class_prior, str):
            check_choice(self, "class_prior", ("uniform", "frequency"))
            sizes = sizes if self.class_prior == "frequency" else np.ones_like(sizes)
            return np.log(sizes / sizes.sum())
        prior = np.asarray(self.class_prior, dtype=float)
        if prior.shape != sizes.shape or not ((prior > 0) & np.isfinite(prior)).all():
            raise ValueError(
                f"class_prior={self.class_prior!r} must be {len(sizes)} probabilities above 0, one for each of the "
                "sorted labels; use class_prior='uniform' or 'frequency'."
            )
        return np.log(prior / prior.sum())

    def _map(self, function: Any, items: Any) -> list[Any]:
        if self.n_jobs is None or self.n_jobs == 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(threads.default().n_threads if self.n_jobs < 0 else self.n_jobs) as pool:
            return list(pool.map(function, items))
