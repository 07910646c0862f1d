"""What a fitted tracker computes for sequences: filtered and smoothed places, the best path, poses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from countinggrids.data.counts import tokens_of
from countinggrids.data.validation import check_table
from countinggrids.meta import chain as chains
from countinggrids.meta.emissions import is_matcher
from countinggrids.meta.nested import last_step
from countinggrids.meta.reference import NoveltyModel
from countinggrids.meta.tracking import Tracking, sequences

Array = NDArray[Any]
UNKNOWN = "unknown"


def _compares_frames(tracker: Any) -> bool:
    """Return whether a tracker is fitted, with an estimator that compares frames."""
    check_is_fitted(tracker)
    return is_matcher(tracker.classifier_)


class FittedTracker(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The methods of a fitted tracker; `PlaceTracker` adds the parameters and `fit`."""

    tolerance_: float
    classes_: Array
    chain_: Any
    classifier_: Any
    emission_: Any
    poses_: Array | None
    gamma_: float
    unknown_score_: float | None
    novelty_: NoveltyModel | None
    is_walk_: bool
    has_labels_: bool

    def filter(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Return p(place at t | frames up to t) (Eq. hmm).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        probabilities : ndarray of shape (n_frames, n_places)
            Columns in the order of `classes_`.
        """
        return self._each(X, lengths, lambda scores: np.exp(chains.forward(self.chain_, scores)[0]))

    def smooth(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Return p(place at t | all frames of the sequence).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        probabilities : ndarray of shape (n_frames, n_places)
            Columns in the order of `classes_`.
        """
        return self._each(X, lengths, lambda scores: np.exp(chains.smooth(self.chain_, scores)))

    def viterbi(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Return the most likely sequence of places.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        places : ndarray of shape (n_frames,) or (n_frames, n_coordinates)
            Place of each frame, or its pose.
        """
        return self._named(self._each(X, lengths, lambda scores: chains.best_path(self.chain_, scores)[0]))

    def predict_proba(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Return p(place at t | frames up to t), as `filter` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        probabilities : ndarray of shape (n_frames, n_places)
            Columns in the order of `classes_`; the last one is that of a new place if there is one.
        """
        return self.filter(X, lengths)

    def predict(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Return the most probable place of each frame, given the frames up to it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        places : ndarray of shape (n_frames,) or (n_frames, n_coordinates)
            Place of each frame, or its pose, which is NaN at a new place.
        """
        return self._named(self.filter(X, lengths).argmax(axis=1))

    def score(self, X: Any, y: ArrayLike, lengths: Sequence[int] | None = None) -> float:
        """Return the accuracy of `predict`, or minus the mean distance of poses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        y : array-like of shape (n_frames,) or (n_frames, n_coordinates)
            Place of each frame, the number of its reference frame, or its pose.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        score : float
            Fraction of frames whose place is predicted; within the tolerance, if the reference walk has no labels.
            With poses, minus the mean Euclidean distance.
        """
        predicted, wanted = self.predict(X, lengths), np.asarray(y)
        if wanted.shape != predicted.shape:
            raise ValueError(
                f"y has shape {wanted.shape} but X has {len(predicted)} frames; give one place for each frame."
            )
        if self.poses_ is not None:
            return -float(np.linalg.norm(predicted - wanted, axis=1).mean())
        if self.is_walk_ and not self.has_labels_:
            is_known = predicted != UNKNOWN
            away = np.abs(np.where(is_known, predicted, 0).astype(float) - wanted.astype(float))
            return float(np.mean(is_known & (away <= self.tolerance_)))
        return float(np.mean(predicted == wanted))

    def log_likelihood(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """Return log p(sequences), with the weighted likelihoods of the frames.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        log_likelihood : float
            Sum over sequences.
        """
        return float(self._each(X, lengths, lambda scores: chains.forward(self.chain_, scores)[1]).sum())

    def begin(self) -> Tracking:
        """Start online filtering, one frame at a time.

        Returns
        -------
        tracking : Tracking
            Filters one sequence.
        """
        check_is_fitted(self)
        return Tracking(self)

    @available_if(_compares_frames)  # type: ignore[untyped-decorator]
    def similarity(self, X: Any) -> Array:
        """Return the similarity of each frame with each frame of the reference walk, without the chain.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags.

        Returns
        -------
        similarity : ndarray of shape (n_frames, n_references)
            Larger is more alike.
        """
        return np.asarray(self.emission_.similarity(check_table(self, X, is_fitting=False)))

    def _named(self, indices: Array) -> Array:
        """Return places, or poses, by their numbers."""
        if self.poses_ is None:
            return self.classes_[indices]
        poses = np.vstack([self.poses_, np.full((1, self.poses_.shape[1]), np.nan)])
        return poses[np.minimum(indices, len(self.poses_))]

    def _each(self, X: Any, lengths: Sequence[int] | None, work: Any) -> Array:
        check_is_fitted(self)
        n_frames = _num_samples(X)
        parts = sequences(n_frames, lengths)
        scores = self._scores(X)
        return np.concatenate([work(scores[part]) for part in parts])

    def _scores(self, X: Any) -> Array:
        """Return the weighted log-likelihood of every frame under every place."""
        if self.novelty_ is not None:
            return self._scores_with_novelty(X)
        raw, tokens = self._raw(X)
        if self.unknown_score_ is not None:
            raw = np.column_stack([raw, self.unknown_score_ * tokens])
        return self.gamma_ * raw

    def _scores_with_novelty(self, X: Any) -> Array:
        """Return the weighted scores of places, whose likelihoods have mean one, and log odds of a new place."""
        similarity = self.emission_.similarity(check_table(self, X, is_fitting=False))
        scores = self.gamma_ * self.emission_.scores_of(similarity)
        scores -= logsumexp(scores, axis=1, keepdims=True) - np.log(scores.shape[1])
        assert self.novelty_ is not None
        return np.column_stack([scores, self.novelty_.log_odds(similarity)])

    def _raw(self, X: Any) -> tuple[Array, Array]:
        """Return the log-likelihood of every frame under every place, and the tokens of each frame."""
        X = check_table(self, X, is_fitting=False)
        return self.emission_.scores(X), tokens_of(last_step(self.classifier_, X)[1])
