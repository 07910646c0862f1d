"""Place recognition along sequences: models of places or frames of a reference walk, and a Markov chain (Eq. hmm)."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, has_fit_parameter

from countinggrids.core.fitting import whole_or_nothing
from countinggrids.data.validation import check_table
from countinggrids.features.saving import Saveable, check_array, check_labels
from countinggrids.meta import reference
from countinggrids.meta.emissions import SimilarityEmission, emission_of, place_model
from countinggrids.meta.fitted_tracker import UNKNOWN, FittedTracker
from countinggrids.meta.nested import innermost
from countinggrids.meta.options import is_number
from countinggrids.meta.targets import read_targets
from countinggrids.meta.tempering import gamma_by_folds
from countinggrids.meta.tracking import sequences
from countinggrids.meta.transitions import LEARNED, check_transitions, first_chain, learn_chain, learn_walk
from countinggrids.meta.walk import Walk

Array = NDArray[Any]
GAMMAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


class PlaceTracker(Saveable, FittedTracker):
    """Recognize places along sequences of bags with a hidden Markov model.

    Places have several frames each, or every frame of a reference walk is a place. With several frames, each place has
    a density model of its bags. With one, frames are compared with those of the reference walk. A Markov chain models
    the transitions between places. Likelihoods of images are overconfident, so they are raised to the power gamma.

    Parameters
    ----------
    estimator : estimator, default=None
        The model of a place, a classifier with `log_likelihoods` or `predict_log_proba`, or a matcher with
        `similarity`, such as `GridNeighbors` or `RootBags`, also at the end of a pipeline. None stands for
        `GridClassifier()`, or for `GridNeighbors()` if every place has one frame.
    transitions : {"auto", "labels", "walk", "learn"} or array-like of shape (n_places, n_places), default="auto"
        Transition probabilities from rows to columns. "labels" counts transitions in the training sequences; "walk" has
        steps along the order of the frames, and jumps; "learn", or "em", continues from there by EM on the training
        frames. "auto" is "walk" if every place has one frame, and "labels" otherwise.
    direction : {"forward", "backward", "both"}, default="forward"
        Direction of the steps of a walk.
    width : int, default=2
        Largest step of a walk, in frames; all up to it, and none, are equally probable.
    jump : float, default=0.01
        Probability of a jump to any place. Steps beyond the end of a walk are jumps too.
    start : {"uniform", "labels"} or array-like of shape (n_places,), default="uniform"
        Probabilities of the first place; "labels" counts the first places of the training sequences.
    gamma : {"cv"} or float, default="cv"
        Weight of the log-likelihoods, or of similarities standardized for each frame. "cv" chooses among `gammas` by
        cross-validation over the training sequences, with transitions counted from their labels; if every place has
        one frame, by tracking the reference walk as it is seen from a few frames away.
    gammas : sequence of float, default=None
        Candidates for gamma; None takes numbers from 0.01 to 1, or from 0.06 to 2 for similarities.
    tolerance : float, default=2
        Frames up to which a frame of a reference walk counts as recognized, for the choice of gamma and for `score`.
    new_place : bool, default=False
        Whether there is the additional place "unknown" for frames that are like none of a reference walk. It needs an
        estimator with `similarity`, and transitions of a walk.
    pseudocount : float, default=0.1
        Added to the number of each transition; for the steps of a walk, as a fraction of the number of frames.
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
        The places; frames of a reference walk in their order.
    poses_ : ndarray of shape (n_frames, n_coordinates) or None
        Poses of the frames of a reference walk.
    chain_ : Chain or Walk
        Log probabilities `log_start` and `log_move`.
    gamma_ : float
        Weight of the log-likelihoods.
    classifier_ : estimator
        The fitted model of the places.
    unknown_score_ : float or None
        Log-likelihood per token of every frame under the place "unknown".
    novelty_ : NoveltyModel or None
        Log odds of a new place, given the largest similarity of a frame.
    gamma_scores_ : dict
        Score of each candidate for gamma: the accuracy of filtering in cross-validation, or minus the mean log loss on
        the reference walk.
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

    Every frame of a walk can be a place, here with a pose:

    >>> from countinggrids.baselines import RootBags
    >>> along = np.linspace(0, 1, 25)[:, None]
    >>> walk = np.round(100 * np.hstack([1 - along, along, np.sin(7 * along) + 1]))
    >>> tracker = cg.PlaceTracker(RootBags()).fit(walk, np.hstack([along, 0 * along]))
    >>> tracker.predict(walk)[-1].tolist()
    [1.0, 0.0]
    """

    _rebuilt = frozenset({"emission_"})

    def __init__(
        self,
        estimator: Any = None,
        *,
        transitions: Any = "auto",
        direction: str = "forward",
        width: int = 2,
        jump: float = 0.01,
        start: Any = "uniform",
        gamma: Any = "cv",
        gammas: Sequence[float] | None = None,
        tolerance: float = 2,
        new_place: bool = False,
        pseudocount: float = 0.1,
        unknown: float | None = None,
        cv: int = 3,
        max_iter: int = 50,
        tol: float = 1e-4,
    ):
        self.estimator = estimator
        self.transitions = transitions
        self.direction = direction
        self.width = width
        self.jump = jump
        self.start = start
        self.gamma = gamma
        self.gammas = gammas
        self.tolerance = tolerance
        self.new_place = new_place
        self.pseudocount = pseudocount
        self.unknown = unknown
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol

    @whole_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None, lengths: Sequence[int] | None = None) -> Self:
        """Fit the models of the places and the transitions between them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_frames, n_columns)
            Bags in temporal order.
        y : array-like of shape (n_frames,) or (n_frames, n_coordinates), default=None
            Place of each frame, or its pose. None makes every frame a place; so do poses, and labels that differ.
        lengths : sequence of int, default=None
            Numbers of frames of consecutive sequences; None takes all frames as one sequence.

        Returns
        -------
        self : object
            The fitted tracker.
        """
        targets = read_targets(y, _num_samples(X))
        X = check_table(self, X, is_fitting=True)
        parts = sequences(X.shape[0], lengths)
        sizes = [part.stop - part.start for part in parts]
        places = targets.labels if targets.is_walk else np.unique(targets.labels)
        has_more = self.unknown is not None or self.new_place
        self._check_options(places, targets.is_walk)
        self.classes_ = np.append(places.astype(object), UNKNOWN) if has_more else places
        check_transitions(self, len(self.classes_))
        self.poses_, self.is_walk_, self.has_labels_ = targets.poses, targets.is_walk, y is not None
        self.tolerance_ = float(self.tolerance)
        which = np.arange(len(places)) if targets.is_walk else np.searchsorted(places, targets.labels)
        self.chain_ = first_chain(self, [which[part] for part in parts], len(self.classes_), targets.is_walk)
        matcher = clone(place_model(self.estimator, targets.is_walk))
        known = {"lengths": sizes} if has_fit_parameter(matcher, "lengths") else {}
        self.classifier_ = matcher.fit(X, targets.labels, **known)
        self.frame_places_ = which
        self.emission_ = emission_of(self.classifier_, which)
        self.unknown_score_ = None if self.unknown is None else self._mean_score(X) - self.unknown
        self.n_iter_ = 1
        self.novelty_: reference.NoveltyModel | None = None
        self.gamma_scores_: dict[float, float] = {}
        self.gamma_ = self._choose_gamma(X, targets.labels, parts) if self.gamma == "cv" else float(self.gamma)
        if self.new_place:
            self.novelty_ = self._learn_novelty(X, sizes)
        if isinstance(self.transitions, str) and self.transitions in LEARNED:
            self._learn_transitions(X, parts)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(place_model(self.estimator, is_walk=False)).input_tags
        tags.input_tags.sparse, tags.input_tags.positive_only = inner.sparse, inner.positive_only
        # Scikit-learn checks accuracy on two columns of Gaussian blobs in random order, which are no sequence.
        tags.classifier_tags.poor_score = True
        return tags

    def _restored(self) -> None:
        n = check_labels(self)
        if not self.chain_.is_possible(n):
            raise ValueError("chain_ holds no probabilities of transitions")
        if not is_number(self.gamma_) or not 0 < self.gamma_ < np.inf:
            raise ValueError(f"gamma_ is {self.gamma_!r}")
        if self.unknown_score_ is not None and not np.isfinite(float(self.unknown_score_)):
            raise ValueError(f"unknown_score_ is {self.unknown_score_}")
        n_known = n - (self.unknown_score_ is not None or self.novelty_ is not None)
        places = check_array(self, "frame_places_", "iu", (None,))
        if places.min() < 0 or places.max() + 1 != n_known:
            raise ValueError(f"{n_known} places have frames of places up to {places.max()}")
        if self.poses_ is not None:
            check_array(self, "poses_", "f", (n_known, None))
        self.emission_ = emission_of(self.classifier_, places)
        compares_frames = isinstance(self.emission_, SimilarityEmission)
        if self.novelty_ is not None and not (compares_frames and isinstance(self.novelty_, reference.NoveltyModel)):
            raise ValueError("novelty_ needs frames that are compared")

    def _mean_score(self, X: Any) -> float:
        """Return the mean log-likelihood per token of the training frames under their best places."""
        if not self.emission_.has_likelihoods:
            name = type(innermost(self.classifier_)).__name__
            raise ValueError(
                f"unknown={self.unknown} needs an estimator with likelihoods, which {name} does not have; use a "
                "GridClassifier, or new_place=True for a reference walk."
            )
        raw, tokens = self._raw(X)
        return float(raw.max(axis=1).sum() / max(tokens.sum(), 1))

    def _check_options(self, places: Array, is_walk: bool) -> None:
        """Raise about parameters that cannot be used."""
        if is_walk and len(places) < 2:
            raise ValueError(f"X has n_samples={len(places)} frame but a walk must have at least 2; add frames.")
        if self.unknown is not None and UNKNOWN in places.tolist():
            raise ValueError(f"y holds the place {UNKNOWN!r}, which unknown={self.unknown} reserves; rename the place.")
        is_searched = isinstance(self.gamma, str) and self.gamma == "cv"
        gammas = self._gammas(is_walk) if is_searched else [self.gamma]
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
        if not is_number(self.tolerance) or not 0 <= self.tolerance < np.inf:
            raise ValueError(f"tolerance={self.tolerance!r} must be a number of frames of at least 0; use tolerance=2.")
        if self.new_place and (self.unknown is not None or not is_walk or not _is_walk_name(self.transitions)):
            raise ValueError(
                f"new_place={self.new_place} needs one frame a place, transitions of a walk and unknown=None; use "
                "unknown=1.0 for places of several frames, and transitions='walk' for a reference walk."
            )
        if self.cv < 2:
            raise ValueError(f"cv={self.cv} must be at least 2 folds; use cv=3.")

    def _gammas(self, is_walk: bool) -> list[float]:
        """Return the candidates for gamma."""
        if self.gammas is None:
            return list(reference.GAMMAS if is_walk else GAMMAS)
        return list(self.gammas)

    def _choose_gamma(self, X: Any, labels: Array, parts: list[slice]) -> float:
        """Choose gamma on the reference walk, or by cross-validation over labeled sequences."""
        if not self.is_walk_:
            gamma, self.gamma_scores_ = gamma_by_folds(self, X, labels, parts)
            return gamma
        lengths = [part.stop - part.start for part in parts]
        chain = first_chain(clone(self).set_params(new_place=False, start="uniform"),
                            [np.arange(part.start, part.stop) for part in parts], X.shape[0], is_walk=True)  # fmt: skip
        gammas = self._gammas(is_walk=True)
        compare = lambda rows: self.emission_.similarity(X[rows])  # noqa: E731
        gamma, losses = reference.choose_gamma(compare, lengths, chain, gammas, self.tolerance)
        self.gamma_scores_ = {each: -loss for each, loss in losses.items()}
        return gamma

    def _learn_novelty(self, X: Any, lengths: list[int]) -> reference.NoveltyModel:
        gaps = reference.usable_gaps(self.tolerance, lengths)
        if not gaps:
            raise ValueError(
                f"new_place=True needs a reference walk of at least {8 * max(1, int(self.tolerance))} frames but the "
                f"longest has {max(lengths)}; use new_place=False."
            )
        runs = reference.select_runs(lengths)
        similarity = self.emission_.similarity(X[runs.queries])
        return reference.learn_novelty(similarity, runs.distance, gaps, self.tolerance)

    def _learn_transitions(self, X: Any, parts: list[slice]) -> None:
        scores = self._scores(X)
        learn = learn_walk if isinstance(self.chain_, Walk) else learn_chain
        given = [scores[part] for part in parts]
        self.chain_, self.n_iter_ = learn(self.chain_, given, self.pseudocount, self.max_iter, self.tol)


def _is_walk_name(transitions: Any) -> bool:
    return isinstance(transitions, str) and transitions in ("auto", "walk", *LEARNED)
