"""Place recognition along sequences: a density model for each place, and a Markov chain of places (Eq. hmm)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.data.counts import tokens_of
from countinggrids.data.validation import check_table
from countinggrids.features.saving import Saveable, check_array, check_labels
from countinggrids.meta import chain as chains
from countinggrids.meta.classifier import GridClassifier
from countinggrids.meta.nested import last_step
from countinggrids.meta.options import is_integer, is_number

Array = NDArray[Any]
UNKNOWN = "unknown"
LARGEST_LOG = 1e-6
"""Largest log probability, with rounding."""
GAMMAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


class PlaceTracker(Saveable, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Recognize places along sequences of bags with a hidden Markov model.

    Each place has a density model of its bags, and a Markov chain models the transitions between places. Likelihoods of
    images are overconfident, so they are raised to the power gamma.

    Parameters
    ----------
    estimator : estimator, default=None
        The model of a place, or a classifier with `log_likelihoods` or `predict_log_proba`, also at the end of a
        pipeline; None stands for `GridClassifier()`.
    transitions : {"labels", "em"} or array-like of shape (n_places, n_places), default="labels"
        Transition probabilities from rows to columns. "labels" counts transitions in the training sequences, "em"
        continues from there by EM on the frames.
    start : {"uniform", "labels"} or array-like of shape (n_places,), default="uniform"
        Probabilities of the first place; "labels" counts the first places of the training sequences.
    gamma : {"cv"} or float, default="cv"
        Weight of the log-likelihoods; "cv" chooses among `gammas` by cross-validation over the training sequences, with
        transitions counted from their labels.
    gammas : sequence of float
        Candidates for gamma.
    pseudocount : float, default=0.1
        Added to the number of each transition.
    unknown : float, default=None
        Difference in log-likelihood per token below the mean of the training frames, from which on a frame is assigned
        to the additional place "unknown"; None has no such place. It needs an estimator with likelihoods.
    cv : int, default=3
        Number of folds for gamma; sequences stay whole, unless there are fewer of them than folds.
    max_iter : int, default=50
        Largest number of EM iterations for the transitions.
    tol : float, default=1e-4
        Gain of the objective per frame below which EM stops.

    Attributes
    ----------
    classes_ : ndarray of shape (n_places,)
        The places.
    chain_ : Chain
        Log probabilities `log_start` and `log_move`.
    gamma_ : float
        Weight of the log-likelihoods.
    classifier_ : estimator
        The fitted model of the places.
    unknown_score_ : float or None
        Log-likelihood per token of every frame under the place "unknown".
    gamma_scores_ : dict
        Accuracy of filtering for each candidate for gamma in cross-validation.
    n_iter_ : int
        Number of EM iterations for the transitions; 1 where they are counted or given.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> rng = np.random.default_rng(0)
    >>> hall, stairs = [.6, .3, .1], [.1, .3, .6]
    >>> walk = np.vstack([rng.multinomial(30, p, 10) for p in (hall, stairs, hall)])
    >>> places = np.repeat(["hall", "stairs", "hall"], 10)
    >>> tracker = cg.PlaceTracker(cg.CountingGrid((4, 4), (2, 2), random_state=0), gamma=0.5).fit(walk, places)
    >>> tracker.classes_[tracker.filter(walk).argmax(axis=1)].tolist() == places.tolist()
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        transitions: Any = "labels",
        start: Any = "uniform",
        gamma: Any = "cv",
        gammas: Sequence[float] = GAMMAS,
        pseudocount: float = 0.1,
        unknown: float | None = None,
        cv: int = 3,
        max_iter: int = 50,
        tol: float = 1e-4,
    ):
        self.estimator = estimator
        self.transitions = transitions
        self.start = start
        self.gamma = gamma
        self.gammas = gammas
        self.pseudocount = pseudocount
        self.unknown = unknown
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike, lengths: Sequence[int] | None = None) -> Self:
        """Fit the models of the places and the transitions between them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        y : array-like of shape (n_frames,)
            Place of each frame.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        self : object
            The fitted tracker.
        """
        if y is not None and _num_samples(y) != _num_samples(X):
            raise ValueError(
                f"y has shape ({_num_samples(y)},) but X has {_num_samples(X)} frames; give one place for each frame."
            )
        X, y = check_table(self, X, is_fitting=True, y=y)
        check_classification_targets(y)
        labels = np.asarray(y)
        parts = sequences(X.shape[0], lengths)
        places = np.unique(labels)
        self._check_options(places)
        self.classes_ = places if self.unknown is None else np.append(places.astype(object), UNKNOWN)
        which = np.searchsorted(places, labels)
        counts = chains.count_moves([which[part] for part in parts], len(self.classes_))
        self.chain_ = self._first_chain(*counts)
        self.classifier_ = self._new_classifier().fit(X, labels)
        self.unknown_score_ = None if self.unknown is None else self._mean_score(X) - self.unknown
        self.n_iter_ = 1
        self.gamma_scores_: dict[float, float] = {}
        self.gamma_ = self._choose_gamma(X, labels, parts) if self.gamma == "cv" else float(self.gamma)
        if isinstance(self.transitions, str) and self.transitions == "em":
            scores = self._scores(X)
            self.chain_ = self._by_em([scores[part] for part in parts])
        return self

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
        places : ndarray of shape (n_frames,)
            Place of each frame.
        """
        path = self._each(X, lengths, lambda scores: chains.best_path(self.chain_, scores)[0])
        return self.classes_[path]

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
        places : ndarray of shape (n_frames,)
            Place of each frame.
        """
        best = self.filter(X, lengths).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: ArrayLike, lengths: Sequence[int] | None = None) -> float:
        """Return the accuracy of `predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        y : array-like of shape (n_frames,)
            Place of each frame.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        accuracy : float
            Fraction of frames whose place is predicted.
        """
        predicted, labels = self.predict(X, lengths), np.asarray(y)
        if labels.shape != predicted.shape:
            raise ValueError(
                f"y has shape {labels.shape} but X has {len(predicted)} frames; give one place for each frame."
            )
        return float(np.mean(predicted == labels))

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

    def begin(self) -> "Tracking":
        """Start online filtering, one frame at a time.

        Returns
        -------
        tracking : Tracking
            Filters one sequence.
        """
        check_is_fitted(self)
        return Tracking(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._new_classifier()).input_tags
        tags.input_tags.sparse, tags.input_tags.positive_only = inner.sparse, inner.positive_only
        # Scikit-learn checks accuracy on two columns of Gaussian blobs in random order, which are no sequence.
        tags.classifier_tags.poor_score = True
        return tags

    def _restored(self) -> None:
        n = check_labels(self)
        for name, shape in (("log_start", (n,)), ("log_move", (n, n))):
            if not (check_array(self.chain_, name, "f", shape, is_finite=False) <= LARGEST_LOG).all():
                raise ValueError(f"{name} holds numbers above 0")
        if not is_number(self.gamma_) or not 0 < self.gamma_ < np.inf:
            raise ValueError(f"gamma_ is {self.gamma_!r}")
        if self.unknown_score_ is not None and not np.isfinite(float(self.unknown_score_)):
            raise ValueError(f"unknown_score_ is {self.unknown_score_}")
        if len(self.classifier_.classes_) + (self.unknown_score_ is not None) != n:
            raise ValueError(f"{n} places have a model of {len(self.classifier_.classes_)}")

    def _each(self, X: Any, lengths: Sequence[int] | None, work: Any) -> Array:
        check_is_fitted(self)
        scores = self._scores(X)
        return np.concatenate([work(scores[part]) for part in sequences(len(scores), lengths)])

    def _scores(self, X: Any) -> Array:
        """Return the weighted log-likelihood of every frame under every place."""
        raw, tokens = self._raw(X)
        if self.unknown_score_ is not None:
            raw = np.column_stack([raw, self.unknown_score_ * tokens])
        return self.gamma_ * raw

    def _raw(self, X: Any) -> tuple[Array, Array]:
        """Return the log-likelihood of every frame under every place, and the tokens of each frame."""
        X = check_table(self, X, is_fitting=False)
        model, X = last_step(self.classifier_, X)
        tokens = tokens_of(X)
        if hasattr(model, "log_likelihoods"):
            return np.asarray(model.log_likelihoods(X), dtype=np.float64), tokens
        return np.asarray(model.predict_log_proba(X), dtype=np.float64), tokens

    def _mean_score(self, X: Any) -> float:
        """Return the mean log-likelihood per token of the training frames under their best places."""
        model, _ = last_step(self.classifier_, X)
        if not hasattr(model, "log_likelihoods"):
            raise ValueError(
                f"unknown={self.unknown} needs an estimator with likelihoods, which {type(model).__name__} does not "
                "have; use a GridClassifier or unknown=None."
            )
        raw, tokens = self._raw(X)
        return float(raw.max(axis=1).sum() / max(tokens.sum(), 1))

    def _new_classifier(self) -> Any:
        if self.estimator is None:
            return GridClassifier()
        is_classifier = hasattr(self.estimator, "log_likelihoods") or hasattr(self.estimator, "predict_log_proba")
        return clone(self.estimator) if is_classifier else GridClassifier(clone(self.estimator))

    def _check_options(self, places: Array) -> None:
        """Raise about parameters that cannot be used."""
        if self.unknown is not None and UNKNOWN in places.tolist():
            raise ValueError(f"y holds the place {UNKNOWN!r}, which unknown={self.unknown} reserves; rename the place.")
        is_searched = isinstance(self.gamma, str) and self.gamma == "cv"
        gammas = list(self.gammas) if is_searched else [self.gamma]
        if not gammas or not all(is_number(gamma) and 0 < gamma < np.inf for gamma in gammas):
            given = f"gammas={self.gammas!r}" if is_searched else f"gamma={self.gamma!r}"
            expected = (
                "numbers above 0; use gammas=(1.0, 0.1)" if is_searched else "'cv' or a number above 0; use gamma='cv'"
            )
            raise ValueError(f"{given} must be {expected}.")
        if not 0 <= self.pseudocount < np.inf:
            raise ValueError(f"pseudocount={self.pseudocount} must be finite and at least 0; use pseudocount=0.1.")
        if self.unknown is not None and not np.isfinite(self.unknown):
            raise ValueError(f"unknown={self.unknown} must be None or a finite number; use for instance unknown=1.0.")
        if self.cv < 2:
            raise ValueError(f"cv={self.cv} must be at least 2 folds; use cv=3.")

    def _first_chain(self, first: Array, moves: Array) -> chains.Chain:
        """Return the chain before EM, from the counts of the labels or from the parameters."""
        n = len(self.classes_)
        chain = chains.re_estimate(first, moves, self.pseudocount)
        if not isinstance(self.transitions, str):
            chain = chain._replace(log_move=_log_rows(self.transitions, (n, n), "transitions"))
        elif self.transitions not in ("labels", "em"):
            raise ValueError(
                f"transitions={self.transitions!r} must be 'labels', 'em' or an array of shape ({n}, {n}); "
                "use transitions='labels'."
            )
        if not isinstance(self.start, str):
            return chain._replace(log_start=_log_rows(self.start, (n,), "start"))
        if self.start not in ("uniform", "labels"):
            raise ValueError(
                f"start={self.start!r} must be 'uniform', 'labels' or an array of shape ({n},); use start='uniform'."
            )
        return chain if self.start == "labels" else chain._replace(log_start=np.full(n, -np.log(n)))

    def _by_em(self, scores: list[Array]) -> chains.Chain:
        """Re-estimate the transitions until the log-likelihood plus log prior no longer rises; the start is kept."""
        chain, n_frames, last = self.chain_, sum(map(len, scores)), -np.inf
        for number in range(1, self.max_iter + 1):
            self.n_iter_ = number
            parts = [chains.expected_moves(chain, each) for each in scores]
            prior = self.pseudocount * chain.log_move.sum() if self.pseudocount else 0.0
            objective = sum(evidence for _, _, evidence in parts) + prior
            if objective - last < self.tol * n_frames:
                break
            last = objective
            moves = np.sum([each for _, each, _ in parts], axis=0)
            chain = chains.re_estimate(np.zeros(len(moves)), moves, self.pseudocount)._replace(
                log_start=chain.log_start
            )
        return chain

    def _choose_gamma(self, X: Any, labels: Array, parts: list[slice]) -> float:
        """Evaluate each gamma on held-out runs of frames; the models of the places are fitted once for each fold."""
        sequence = np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts])
        n_correct, n_frames = dict.fromkeys(self.gammas, 0), 0
        for held_out in _folds(parts, self.cv):
            is_out = np.zeros(X.shape[0], bool)
            for part in held_out:
                is_out[part] = True
            train = np.flatnonzero(~is_out & np.isin(labels, _frequent(labels[~is_out])))
            if len(np.unique(labels[train])) < 2:
                continue
            settings = {"gamma": 1.0, "transitions": "labels", "start": "uniform", "unknown": None}
            inner = clone(self).set_params(**settings)
            inner.fit(X[train], labels[train], _run_lengths(train, sequence[train]))
            for part in held_out:
                raw, _ = inner._raw(X[part])
                n_frames += len(raw)
                for gamma in self.gammas:
                    filtered, _ = chains.forward(inner.chain_, gamma * raw)
                    n_correct[gamma] += int((inner.classes_[filtered.argmax(axis=1)] == labels[part]).sum())
        if not n_frames:
            raise ValueError("gamma='cv' needs folds that leave two places to fit; use a number, such as gamma=0.1.")
        self.gamma_scores_ = {gamma: n / n_frames for gamma, n in n_correct.items()}
        return max(self.gammas, key=lambda gamma: (n_correct[gamma], -abs(np.log(gamma))))


class Tracking:
    """Online filtering of one sequence.

    Parameters
    ----------
    tracker : PlaceTracker
        A fitted tracker.

    Attributes
    ----------
    log_posterior : ndarray of shape (n_places,) or None
        The current log p(place | frames so far); None before the first frame.
    """

    def __init__(self, tracker: PlaceTracker):
        self.tracker = tracker
        self.log_posterior: Array | None = None

    def step(self, bag: Any) -> Array:
        """Filter the next frame.

        Parameters
        ----------
        bag : array-like or sparse matrix of shape (1, n_columns)
            The frame.

        Returns
        -------
        probabilities : ndarray of shape (n_places,)
            The filtered p(place | frames so far).
        """
        scores = self.tracker._scores(bag)
        if len(scores) != 1:
            raise ValueError(f"bag has {len(scores)} rows but must be one frame; call step for each frame.")
        filtered, _ = chains.forward(self.tracker.chain_, scores, self.log_posterior)
        self.log_posterior = filtered[0]
        return np.exp(filtered[0])


def sequences(n_frames: int, lengths: Sequence[int] | None) -> list[slice]:
    """Cut frames into sequences."""
    sizes = [n_frames] if lengths is None else list(lengths)
    if not sizes or not all(is_integer(n) for n in sizes):
        raise ValueError(f"lengths={sizes} must be integers of at least 1; leave out empty sequences.")
    if sum(sizes) != n_frames:
        raise ValueError(f"lengths={sizes} sums to {sum(sizes)} but X has {n_frames} frames; count every frame once.")
    ends = np.cumsum([0, *sizes])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def _folds(parts: list[slice], n: int) -> list[list[slice]]:
    """Distribute sequences over folds; fewer sequences than folds are first cut into runs."""
    if len(parts) < n:
        parts = [
            slice(part.start + (part.stop - part.start) * i // n, part.start + (part.stop - part.start) * (i + 1) // n)
            for part in parts
            for i in range(n)
        ]
    parts = [part for part in parts if part.stop > part.start]
    return [parts[i::n] for i in range(n) if parts[i::n]]


def _frequent(labels: Array) -> Array:
    """Return the places that have at least two frames."""
    places, times = np.unique(labels, return_counts=True)
    return places[times > 1]


def _run_lengths(frames: Array, sequence: Array) -> list[int]:
    """Return the lengths of runs of consecutive frames of the same sequence."""
    breaks = np.flatnonzero((np.diff(frames) != 1) | (np.diff(sequence) != 0)) + 1
    return np.diff(np.r_[0, breaks, len(frames)]).tolist()


def _log_rows(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return the logarithm of probabilities, each row of which must sum to one."""
    given = np.asarray(values, dtype=np.float64)
    if given.shape != shape or not (given >= 0).all() or not np.allclose(given.sum(axis=-1), 1, atol=1e-6):
        raise ValueError(
            f"{name} of shape {given.shape} must be probabilities of shape {shape} whose rows sum to 1; normalize them."
        )
    with np.errstate(divide="ignore"):
        return np.log(given)
