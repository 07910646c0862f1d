"""The weight of likelihoods of frames, chosen by cross-validation over labeled sequences."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from countinggrids.meta import chain as chains

Array = NDArray[Any]


def gamma_by_folds(tracker: Any, X: Any, labels: Array, parts: list[slice]) -> tuple[float, dict[float, float]]:
    """Evaluate each gamma on held-out runs of frames; the models of the places are fitted once for each fold.

    Parameters
    ----------
    tracker : PlaceTracker
        Its parameters are used.
    X : ndarray or csr_array of shape (n_frames, n_columns)
        Bags.
    labels : ndarray of shape (n_frames,)
        Places.
    parts : list of slice
        Sequences.

    Returns
    -------
    gamma : float
        The best weight.
    scores : dict
        Accuracy of filtering for each candidate.
    """
    gammas = tracker._gammas(is_walk=False)
    sequence = np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts])
    n_correct, n_frames = dict.fromkeys(gammas, 0), 0
    for held_out in _folds(parts, tracker.cv):
        is_out = np.zeros(X.shape[0], bool)
        for part in held_out:
            is_out[part] = True
        train = np.flatnonzero(~is_out & np.isin(labels, _frequent(labels[~is_out])))
        if len(np.unique(labels[train])) < 2:
            continue
        settings = {"gamma": 1.0, "transitions": "labels", "start": "uniform", "unknown": None, "new_place": False}
        inner = clone(tracker).set_params(**settings)
        inner.fit(X[train], labels[train], _run_lengths(train, sequence[train]))
        for part in held_out:
            raw, _ = inner._raw(X[part])
            n_frames += len(raw)
            for gamma in gammas:
                filtered, _ = chains.forward(inner.chain_, gamma * raw)
                n_correct[gamma] += int((inner.classes_[filtered.argmax(axis=1)] == labels[part]).sum())
    if not n_frames:
        raise ValueError("gamma='cv' needs folds that leave two places to fit; use a number, such as gamma=0.1.")
    best = max(gammas, key=lambda gamma: (n_correct[gamma], -abs(np.log(gamma))))
    return best, {gamma: n / n_frames for gamma, n in n_correct.items()}


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
