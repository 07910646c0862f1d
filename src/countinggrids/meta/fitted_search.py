"""What a fitted search computes for bags: the predictions and the score of its best candidate, and a plot."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.geometry import Shape
from countinggrids.data import validation
from countinggrids.meta.candidates import Candidate, Tessellations

Array = NDArray[Any]


class FittedSearch(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The methods of a fitted search; `CapacitySearch` adds the parameters and `fit`."""

    cv_results_: dict[str, Any]
    best_params_: dict[str, Any]
    best_estimator_: Any
    scorer_: Any
    x_sections_: Shape

    def plot(self, ax: Any = None) -> Any:
        """Draw score against capacity.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ax : matplotlib Axes
            The plot.
        """
        check_is_fitted(self, "cv_results_")
        from countinggrids import plot

        results = self.cv_results_
        named = {"mean": "mean_test_score", "std": "std_test_score", "folds": "n_folds", "capacity": "capacity"}
        named |= {"grid": "param_grid", "sections": "param_sections"}
        return plot.capacity({name: list(results[key]) for name, key in named.items()}, ax)

    def predict(self, X: Any) -> Array:
        """Return the predictions of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
            Counts, with the sections of the bags given to `fit`.

        Returns
        -------
        predictions : ndarray of shape (n_bags,)
            Labels; without labels, the most likely cells.
        """
        return np.asarray(self._best("predict")(self._at_best_sections(X)))

    def predict_proba(self, X: Any) -> Array:
        """Return p(class | bag) under the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
            Counts, with the sections of the bags given to `fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        return np.asarray(self._best("predict_proba")(self._at_best_sections(X)))

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(class | bag) under the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
            Counts, with the sections of the bags given to `fit`.

        Returns
        -------
        log_probabilities : ndarray of shape (n_bags, n_classes)
            Columns in the order of `classes_`.
        """
        return np.asarray(self._best("predict_log_proba")(self._at_best_sections(X)))

    def decision_function(self, X: Any) -> Array:
        """Return log p(bag, class) under the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
            Counts, with the sections of the bags given to `fit`.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_classes) or (n_bags,)
            Joint log probabilities; of two classes, the second minus the first.
        """
        return np.asarray(self._best("decision_function")(self._at_best_sections(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the score of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_bags, n_sections * n_features)
            Counts, with the sections of the bags given to `fit`.
        y : array-like of shape (n_bags,), default=None
            Labels.

        Returns
        -------
        score : float
            The value of `scorer_`.
        """
        check_is_fitted(self, "best_estimator_")
        return float(self.scorer_(self.best_estimator_, self._at_best_sections(X), y))

    def _best(self, name: str) -> Any:
        """Return a method of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        if not hasattr(self.best_estimator_, name):
            raise AttributeError(f"fit was called without labels, so there is no {name}; use best_estimator_.")
        return getattr(self.best_estimator_, name)

    def _at_best_sections(self, X: Any) -> Any:
        X = validation.check_table(self, X, is_fitting=False)
        return Tessellations(X, self.x_sections_).at(Candidate(**self.best_params_).finest)
