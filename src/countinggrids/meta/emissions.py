"""Scores of frames under places: of models of places, of classifiers, and of comparisons with reference frames."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countinggrids.meta.classifier import GridClassifier
from countinggrids.meta.neighbors import GridNeighbors
from countinggrids.meta.nested import innermost, last_step

Array = NDArray[Any]


class Emission(Protocol):
    """Log-likelihoods of frames under places, up to a constant for each frame."""

    has_likelihoods: bool

    def scores(self, X: Any) -> Array:
        """Return the score of every frame under every place, (frames, places)."""
        ...


class LikelihoodEmission:
    """Log-likelihoods of a density model for each place.

    Parameters
    ----------
    model : estimator
        Fitted, with `log_likelihoods` at its end.
    """

    has_likelihoods = True

    def __init__(self, model: Any):
        self.model = model

    def scores(self, X: Any) -> Array:
        model, X = last_step(self.model, X)
        return np.asarray(model.log_likelihoods(X), dtype=np.float64)


class ProbabilityEmission:
    """Log posterior probabilities of a classifier.

    Parameters
    ----------
    model : estimator
        Fitted, with `predict_log_proba` at its end.
    """

    has_likelihoods = False

    def __init__(self, model: Any):
        self.model = model

    def scores(self, X: Any) -> Array:
        model, X = last_step(self.model, X)
        return np.asarray(model.predict_log_proba(X), dtype=np.float64)


class SimilarityEmission:
    """Similarities with reference frames, standardized for each query; that of a place is its largest one.

    Parameters
    ----------
    model : estimator
        Fitted, with `similarity` at its end.
    places : ndarray of shape (n_references,)
        Number of the place of each reference frame.
    """

    has_likelihoods = False

    def __init__(self, model: Any, places: NDArray[np.int64]):
        self.model, self.places = model, places
        self.order = np.argsort(places, kind="stable")
        self.starts = np.searchsorted(places[self.order], np.arange(int(places.max()) + 1))
        self.is_walk = len(self.starts) == len(places)

    def similarity(self, X: Any) -> Array:
        """Return the similarity of each frame with each reference frame, (frames, references)."""
        model, X = last_step(self.model, X)
        return np.asarray(model.similarity(X), dtype=np.float64)

    def scores(self, X: Any) -> Array:
        return self.scores_of(self.similarity(X))

    def scores_of(self, similarity: Array) -> Array:
        """Return the scores of places, given similarities with reference frames."""
        values = standardized(similarity)[:, self.order]
        return values if self.is_walk else np.maximum.reduceat(values, self.starts, axis=1)


def standardized(similarity: Array) -> Array:
    """Subtract the mean of each row, and divide by its standard deviation; a constant row has zeros."""
    similarity = np.asarray(similarity, dtype=np.float64)
    centered = similarity - similarity.mean(axis=1, keepdims=True)
    spread = similarity.std(axis=1, keepdims=True)
    return np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 1e-12)


def is_matcher(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, compares queries with reference frames."""
    return hasattr(innermost(estimator), "similarity")


def place_model(estimator: Any, is_walk: bool) -> Any:
    """Return the estimator that models places: a grid of each place, or neighbors on one grid of a reference walk.

    Parameters
    ----------
    estimator : estimator or None
        A density model, a classifier or a matcher, also at the end of a pipeline.
    is_walk : bool
        Whether every frame is a place of its own.

    Returns
    -------
    model : estimator
        Not fitted.
    """
    if is_walk:
        if estimator is None or (hasattr(innermost(estimator), "transform") and not is_matcher(estimator)):
            return GridNeighbors(estimator)
        if not is_matcher(estimator):
            raise ValueError(
                f"estimator={type(estimator).__name__} needs several frames of each place, but every place has one "
                "frame; use GridNeighbors, RootBags, or another estimator with similarity."
            )
        return estimator
    last = innermost(estimator)
    is_classifier = hasattr(last, "log_likelihoods") or hasattr(last, "predict_log_proba") or is_matcher(last)
    return estimator if is_classifier else GridClassifier(estimator)


def emission_of(model: Any, places: NDArray[np.int64]) -> Any:
    """Return the scores of a fitted model of places, given the number of the place of each training frame."""
    last = innermost(model)
    if hasattr(last, "log_likelihoods"):
        return LikelihoodEmission(model)
    return SimilarityEmission(model, places) if is_matcher(model) else ProbabilityEmission(model)
