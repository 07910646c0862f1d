"""Where a camera is, frame by frame: a model a place, and a chain of places (Eq. hmm)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from countinggrids.uses import chain as chains
from countinggrids.uses.classifier import GridClassifier

Array = NDArray[Any]
UNKNOWN = "unknown"
GAMMAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


class PlaceTracker(BaseEstimator):  # type: ignore[misc]
    """Follows places along sequences of bags.

    Each place has a model of its bags; a Markov chain says how places follow one another. Likelihoods of images
    are overconfident, so they are weighted by gamma.

    Parameters
    ----------
    estimator : the model of a place, or a classifier with `log_likelihoods` or `predict_log_proba`; None takes a
        `GridClassifier` of counting grids
    transitions : "labels" counts moves between places in the training sequences; "em" starts there and goes on by
        EM on the frames; or a matrix (places, places), rows from, columns to
    start : "uniform", "labels" (how training sequences begin), or one probability per place
    gamma : the weight of the log-likelihoods; "cv" chooses among `gammas` by cross-validation over the training
        sequences
    gammas : what "cv" tries
    pseudocount : added to every number of moves, so that no move is impossible
    unknown : log-likelihood per token, below the mean of the training frames, from which on a frame is better explained
        by the extra place "unknown"; None has no such place
    cv : folds for gamma; sequences stay whole
    max_iter, tol : of EM for the transitions: iterations at the most, and the gain in log-likelihood per frame
        below which it stops

    Attributes
    ----------
    classes_ : the places
    chain_ : `log_start` and `log_move`
    gamma_ : the weight in use
    classifier_ : the fitted model of the places
    gamma_scores_ : accuracy of each tried gamma in cross-validation, filtered

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

    def fit(self, X: Any, y: ArrayLike, lengths: Sequence[int] | None = None) -> Self:
        """Learn the models of the places and how they follow one another.

        Parameters
        ----------
        X : (frames, columns) bags in the order they were taken
        y : the place of each frame
        lengths : frames in each sequence, one after the other; None takes all for one sequence
        """
        labels = np.asarray(y)
        if labels.shape != (X.shape[0],):
            raise ValueError(f"y has shape {labels.shape}; wanted one place per frame, ({X.shape[0]},)")
        parts = sequences(X.shape[0], lengths)
        self.classifier_ = self._new_classifier().fit(X, labels)
        places = self.classifier_.classes_
        self.classes_ = places if self.unknown is None else np.append(places.astype(object), UNKNOWN)
        self.mean_score_ = self._mean_score(X)
        self.gamma_scores_: dict[float, float] = {}
        self.gamma_ = self._choose_gamma(X, labels, parts) if self.gamma == "cv" else float(self.gamma)
        which = np.searchsorted(places, labels)
        self.chain_ = self._learn_chain([which[part] for part in parts], lambda: [self._scores(X[p]) for p in parts])
        return self

    def filter(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Give p(place at t | frames up to t), (frames, places) (Eq. hmm)."""
        return self._each(X, lengths, lambda scores: np.exp(chains.forward(self.chain_, scores)[0]))

    def smooth(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Give p(place at t | all frames), (frames, places)."""
        return self._each(X, lengths, lambda scores: np.exp(chains.smooth(self.chain_, scores)))

    def viterbi(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Give the places of the most likely path, (frames,)."""
        path = self._each(X, lengths, lambda scores: chains.best_path(self.chain_, scores)[0])
        return self.classes_[path]

    def predict(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """Give the most probable place at each frame, given the frames so far."""
        best = self.filter(X, lengths).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: ArrayLike, lengths: Sequence[int] | None = None) -> float:
        """Give the share of frames whose place is right, filtered."""
        return float(np.mean(self.predict(X, lengths) == np.asarray(y)))

    def log_likelihood(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """Give log p of the sequences, with the weighted likelihoods of the frames."""
        return float(self._each(X, lengths, lambda scores: chains.forward(self.chain_, scores)[1]).sum())

    def begin(self) -> "Tracking":
        """Start to follow a camera online, one frame at a time."""
        check_is_fitted(self)
        return Tracking(self)

    def _each(self, X: Any, lengths: Sequence[int] | None, work: Any) -> Array:
        check_is_fitted(self)
        scores = self._scores(X)
        return np.concatenate([work(scores[part]) for part in sequences(len(scores), lengths)])

    def _scores(self, X: Any) -> Array:
        """Give the weighted log-likelihood of every frame in every place."""
        raw = self._raw(X)
        if self.unknown is not None:
            tokens = np.asarray(X.sum(axis=1)).ravel()
            raw = np.column_stack([raw, (self.mean_score_ - self.unknown) * tokens])
        return self.gamma_ * raw

    def _raw(self, X: Any) -> Array:
        model = self.classifier_
        known = model.log_likelihoods(X) if hasattr(model, "log_likelihoods") else model.predict_log_proba(X)
        return np.asarray(known, dtype=np.float64)

    def _mean_score(self, X: Any) -> float:
        """Give the mean log-likelihood per token of the training frames in their best places."""
        tokens = np.asarray(X.sum(axis=1)).ravel()
        return float(self._raw(X).max(axis=1).sum() / max(tokens.sum(), 1))

    def _new_classifier(self) -> Any:
        if self.estimator is None:
            return GridClassifier()
        is_classifier = hasattr(self.estimator, "log_likelihoods") or hasattr(self.estimator, "predict_log_proba")
        return clone(self.estimator) if is_classifier else GridClassifier(clone(self.estimator))

    def _learn_chain(self, paths: list[Array], scores: Any) -> chains.Chain:
        n = len(self.classes_)
        first, moves = chains.counted(paths, n)
        chain = chains.re_estimate(first, moves, self.pseudocount)
        if isinstance(self.transitions, str) and self.transitions == "em":
            chain = self._by_em(chain, scores())
        elif not isinstance(self.transitions, str):
            chain = chain._replace(log_move=_log_rows(self.transitions, (n, n), "transitions"))
        elif self.transitions != "labels":
            raise ValueError(f"transitions is {self.transitions!r}; wanted 'labels', 'em' or a matrix ({n}, {n})")
        if isinstance(self.start, str) and self.start == "uniform":
            return chain._replace(log_start=np.full(n, -np.log(n)))
        if isinstance(self.start, str) and self.start == "labels":
            return chain
        if isinstance(self.start, str):
            raise ValueError(f"start is {self.start!r}; wanted 'uniform', 'labels' or {n} probabilities")
        return chain._replace(log_start=_log_rows(self.start, (n,), "start"))

    def _by_em(self, chain: chains.Chain, scores: list[Array]) -> chains.Chain:
        n_frames = sum(map(len, scores))
        last = -np.inf
        for _ in range(self.max_iter):
            parts = [chains.expected_moves(chain, each) for each in scores]
            first, moves, evidence = (sum(values) for values in zip(*parts, strict=True))
            if evidence - last < self.tol * n_frames:
                break
            last = float(evidence)
            chain = chains.re_estimate(np.asarray(first), np.asarray(moves), self.pseudocount)
        return chain

    def _choose_gamma(self, X: Any, labels: Array, parts: list[slice]) -> float:
        """Try each gamma on held-out runs of frames; the models of the places are learnt once per fold."""
        groups = _folds(parts, self.cv)
        right = dict.fromkeys(self.gammas, 0)
        for held_out in groups:
            train = np.setdiff1d(np.arange(X.shape[0]), np.concatenate([np.r_[part] for part in held_out]))
            if len(np.unique(labels[train])) < 2:
                continue
            inner = clone(self).set_params(gamma=1.0, transitions="labels", unknown=None)
            usable = train[np.isin(labels[train], _frequent(labels[train]))]
            inner.fit(X[usable], labels[usable], _run_lengths(usable))
            for part in held_out:
                raw = inner._raw(X[part])
                for gamma in self.gammas:
                    filtered, _ = chains.forward(inner.chain_, gamma * raw)
                    right[gamma] += int((inner.classes_[filtered.argmax(axis=1)] == labels[part]).sum())
        self.gamma_scores_ = {gamma: n / len(labels) for gamma, n in right.items()}
        return max(self.gammas, key=lambda gamma: (right[gamma], -abs(np.log(gamma))))


class Tracking:
    """Follows one camera online.

    Attributes
    ----------
    log_posterior : (places,) log p(place now | frames so far); None before the first frame
    """

    def __init__(self, tracker: PlaceTracker):
        self.tracker = tracker
        self.log_posterior: Array | None = None

    def step(self, bag: Any) -> Array:
        """Take the next frame, (1, columns), and give p(place now | frames so far), (places,)."""
        scores = self.tracker._scores(bag)
        if len(scores) != 1:
            raise ValueError(f"got {len(scores)} frames; wanted one, as a table of one row; call step for each")
        filtered, _ = chains.forward(self.tracker.chain_, scores, self.log_posterior)
        self.log_posterior = filtered[0]
        return np.exp(filtered[0])


def sequences(n_frames: int, lengths: Sequence[int] | None) -> list[slice]:
    """Cut frames into sequences."""
    lengths = [n_frames] if lengths is None else [int(n) for n in lengths]
    if min(lengths, default=0) < 1:
        raise ValueError(
            f"lengths is {list(lengths)}; wanted at least one frame in each sequence; leave out empty ones"
        )
    if sum(lengths) != n_frames:
        raise ValueError(f"lengths add up to {sum(lengths)}; wanted {n_frames}, the number of frames")
    ends = np.cumsum([0, *lengths])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def _folds(parts: list[slice], n: int) -> list[list[slice]]:
    """Share sequences out among folds; few sequences are first cut into runs."""
    if len(parts) < n:
        parts = [
            slice(part.start + (part.stop - part.start) * i // n, part.start + (part.stop - part.start) * (i + 1) // n)
            for part in parts
            for i in range(n)
        ]
    parts = [part for part in parts if part.stop > part.start]
    return [parts[i::n] for i in range(n) if parts[i::n]]


def _frequent(labels: Array) -> Array:
    """Give the places that have at least two frames."""
    places, times = np.unique(labels, return_counts=True)
    return places[times > 1]


def _run_lengths(places: Array) -> list[int]:
    """Give the lengths of runs of consecutive numbers."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    return np.diff(np.r_[0, breaks, len(places)]).tolist()


def _log_rows(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Read probabilities, each row summing to one."""
    given = np.asarray(values, dtype=np.float64)
    if given.shape != shape or not (given >= 0).all() or not np.allclose(given.sum(axis=-1), 1, atol=1e-6):
        raise ValueError(f"{name} has shape {given.shape}; wanted {shape}, at least 0, each row adding up to 1")
    with np.errstate(divide="ignore"):
        return np.log(given)
