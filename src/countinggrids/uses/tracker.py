"""Where a camera is, frame by frame: a model a place, and a chain of places (Eq. hmm)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from countinggrids.uses import chain as chains
from countinggrids.uses.classifier import GridClassifier
from countinggrids.uses.fitted import at_the_end

Array = NDArray[Any]
UNKNOWN = "unknown"
GAMMAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


class PlaceTracker(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Follows places along sequences of bags.

    Each place has a model of its bags; a Markov chain says how places follow one another. Likelihoods of images
    are overconfident, so they are weighted by gamma.

    Parameters
    ----------
    estimator : the model of a place, or a classifier with `log_likelihoods` or `predict_log_proba`, also at the end
        of a pipeline; None takes a `GridClassifier` of counting grids
    transitions : "labels" counts moves between places in the training sequences; "em" starts there and goes on by
        EM on the frames; or a matrix (places, places), rows from, columns to
    start : "uniform", "labels" (how training sequences begin), or one probability per place
    gamma : the weight of the log-likelihoods; "cv" chooses among `gammas` by cross-validation over the training
        sequences, with transitions counted from their labels
    gammas : what "cv" tries
    pseudocount : added to every number of moves, so that no move is impossible
    unknown : log-likelihood per token, below the mean of the training frames, from which on a frame is better explained
        by the extra place "unknown"; None has no such place. It needs an estimator with likelihoods
    cv : folds for gamma; sequences stay whole, unless there are fewer of them than folds
    max_iter, tol : of EM for the transitions: iterations at the most, and the gain in the objective per frame below
        which it stops

    Attributes
    ----------
    classes_ : the places
    chain_ : `log_start` and `log_move`
    gamma_ : the weight in use
    classifier_ : the fitted model of the places
    gamma_scores_ : accuracy of each tried gamma in cross-validation, filtered
    n_iter_ : passes over the frames for the transitions: one to count, or those of EM

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
        if y is not None and _num_samples(y) != _num_samples(X):
            raise ValueError(f"y has shape ({_num_samples(y)},); wanted one place per frame, ({_num_samples(X)},)")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None)
        check_classification_targets(y)
        labels = np.asarray(y)
        parts = sequences(X.shape[0], lengths)
        places = np.unique(labels)
        self._check_options(places)
        self.classes_ = places if self.unknown is None else np.append(places.astype(object), UNKNOWN)
        which = np.searchsorted(places, labels)
        counts = chains.counted([which[part] for part in parts], len(self.classes_))
        self.chain_ = self._first_chain(*counts)
        self.classifier_ = self._new_classifier().fit(X, labels)
        self.mean_score_ = 0.0 if self.unknown is None else self._mean_score(X)
        self.n_iter_ = 1  # counting takes one pass
        self.gamma_scores_: dict[float, float] = {}
        self.gamma_ = self._choose_gamma(X, labels, parts) if self.gamma == "cv" else float(self.gamma)
        if isinstance(self.transitions, str) and self.transitions == "em":
            scores = self._scores(X)
            self.chain_ = self._by_em([scores[part] for part in parts])
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
        found, labels = self.predict(X, lengths), np.asarray(y)
        if labels.shape != found.shape:
            raise ValueError(f"y has shape {labels.shape}; wanted one place per frame, {found.shape}")
        return float(np.mean(found == labels))

    def log_likelihood(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """Give log p of the sequences, with the weighted likelihoods of the frames."""
        return float(self._each(X, lengths, lambda scores: chains.forward(self.chain_, scores)[1]).sum())

    def begin(self) -> "Tracking":
        """Start to follow a camera online, one frame at a time."""
        check_is_fitted(self)
        return Tracking(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._new_classifier()).input_tags
        tags.input_tags.sparse, tags.input_tags.positive_only = inner.sparse, inner.positive_only
        # Scikit-learn tries two columns of Gaussian blobs, in no order: no walk at all.
        tags.classifier_tags.poor_score = True
        return tags

    def _each(self, X: Any, lengths: Sequence[int] | None, work: Any) -> Array:
        check_is_fitted(self)
        scores = self._scores(X)
        return np.concatenate([work(scores[part]) for part in sequences(len(scores), lengths)])

    def _scores(self, X: Any) -> Array:
        """Give the weighted log-likelihood of every frame in every place."""
        raw, tokens = self._raw(X)
        if self.unknown is not None:
            raw = np.column_stack([raw, (self.mean_score_ - self.unknown) * tokens])
        return self.gamma_ * raw

    def _raw(self, X: Any) -> tuple[Array, Array]:
        """Give the log-likelihood of every frame in every place, and the tokens of each frame as the model sees it."""
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        model, X = at_the_end(self.classifier_, X)
        tokens = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        if hasattr(model, "log_likelihoods"):
            return np.asarray(model.log_likelihoods(X), dtype=np.float64), tokens
        if self.unknown is not None:
            raise ValueError(
                f"{type(model).__name__} has no likelihoods to tell unknown frames by; "
                "wanted a GridClassifier; leave unknown out"
            )
        return np.asarray(model.predict_log_proba(X), dtype=np.float64), tokens

    def _mean_score(self, X: Any) -> float:
        """Give the mean log-likelihood per token of the training frames in their best places."""
        raw, tokens = self._raw(X)
        return float(raw.max(axis=1).sum() / max(tokens.sum(), 1))

    def _new_classifier(self) -> Any:
        if self.estimator is None:
            return GridClassifier()
        is_classifier = hasattr(self.estimator, "log_likelihoods") or hasattr(self.estimator, "predict_log_proba")
        return clone(self.estimator) if is_classifier else GridClassifier(clone(self.estimator))

    def _check_options(self, places: Array) -> None:
        """Raise about settings that cannot be, before any work."""
        if self.unknown is not None and UNKNOWN in places.tolist():
            raise ValueError(f"a place is called {UNKNOWN!r}; wanted that name for frames of no place; rename it")
        gammas = [self.gamma] if not isinstance(self.gamma, str) else self.gammas if self.gamma == "cv" else ()
        numbers = [gamma for gamma in gammas if isinstance(gamma, float | int | np.number)]
        if not numbers or len(numbers) < len(gammas) or not all(0 < gamma < np.inf for gamma in numbers):
            given = self.gammas if isinstance(self.gamma, str) and self.gamma == "cv" else self.gamma
            raise ValueError(f"gamma is {given!r}; wanted 'cv' or numbers above 0; give for instance gamma=0.1")
        if not 0 <= self.pseudocount < np.inf or (self.unknown is not None and not np.isfinite(self.unknown)):
            raise ValueError(f"pseudocount is {self.pseudocount}, unknown {self.unknown}; wanted finite numbers")
        if self.cv < 2:
            raise ValueError(f"cv is {self.cv}; wanted at least 2 folds; give for instance cv=3")

    def _first_chain(self, first: Array, moves: Array) -> chains.Chain:
        """Make the chain from the labels' counts and from what was given."""
        n = len(self.classes_)
        chain = chains.re_estimate(first, moves, self.pseudocount)
        if not isinstance(self.transitions, str):
            chain = chain._replace(log_move=_log_rows(self.transitions, (n, n), "transitions"))
        elif self.transitions not in ("labels", "em"):
            raise ValueError(f"transitions is {self.transitions!r}; wanted 'labels', 'em' or a matrix ({n}, {n})")
        if not isinstance(self.start, str):
            return chain._replace(log_start=_log_rows(self.start, (n,), "start"))
        if self.start not in ("uniform", "labels"):
            raise ValueError(f"start is {self.start!r}; wanted 'uniform', 'labels' or {n} probabilities")
        return chain if self.start == "labels" else chain._replace(log_start=np.full(n, -np.log(n)))

    def _by_em(self, scores: list[Array]) -> chains.Chain:
        """Re-estimate the moves until the log-likelihood with its prior no longer rises; the start stays."""
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
        """Try each gamma on held-out runs of frames; the models of the places are learnt once per fold."""
        sequence = np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts])
        right, n_tried = dict.fromkeys(self.gammas, 0), 0
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
                n_tried += len(raw)
                for gamma in self.gammas:
                    filtered, _ = chains.forward(inner.chain_, gamma * raw)
                    right[gamma] += int((inner.classes_[filtered.argmax(axis=1)] == labels[part]).sum())
        if not n_tried:
            raise ValueError("no fold leaves two places to learn; wanted some to choose gamma by; give gamma a number")
        self.gamma_scores_ = {gamma: n / n_tried for gamma, n in right.items()}
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
    wanted = [n_frames] if lengths is None else list(lengths)
    if not all(isinstance(n, int | np.integer) and n > 0 for n in wanted) or not wanted:
        raise ValueError(f"lengths is {wanted}; wanted at least one frame in each sequence; leave out empty ones")
    if sum(wanted) != n_frames:
        raise ValueError(f"lengths add up to {sum(wanted)}; wanted {n_frames}, the number of frames")
    ends = np.cumsum([0, *wanted])
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


def _run_lengths(frames: Array, sequence: Array) -> list[int]:
    """Give the lengths of runs of frames that follow one another in the same sequence."""
    breaks = np.flatnonzero((np.diff(frames) != 1) | (np.diff(sequence) != 0)) + 1
    return np.diff(np.r_[0, breaks, len(frames)]).tolist()


def _log_rows(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Read probabilities, each row summing to one."""
    given = np.asarray(values, dtype=np.float64)
    if given.shape != shape or not (given >= 0).all() or not np.allclose(given.sum(axis=-1), 1, atol=1e-6):
        raise ValueError(f"{name} has shape {given.shape}; wanted {shape}, at least 0, each row adding up to 1")
    with np.errstate(divide="ignore"):
        return np.log(given)
