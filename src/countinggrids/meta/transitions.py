"""The Markov chain of a tracker: counted in labels, given, a walk, or learned by EM."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.meta import chain as chains
from countinggrids.meta.walk import Walk, check_walk, make_walk

Array = NDArray[Any]
NAMES = ("auto", "labels", "walk", "learn", "em")
LEARNED = ("learn", "em")


def check_transitions(tracker: Any, n: int) -> None:
    """Raise about transitions and starts of a tracker that cannot be used with n places."""
    given = tracker.transitions
    if isinstance(given, str) and given not in NAMES:
        raise ValueError(
            f"transitions={given!r} must be 'auto', 'labels', 'walk', 'learn', 'em' or an array of shape ({n}, {n}); "
            "use transitions='auto'."
        )
    if not isinstance(given, str):
        log_rows(given, (n, n), "transitions")
    if not isinstance(tracker.start, str):
        log_rows(tracker.start, (n,), "start")
    elif tracker.start not in ("uniform", "labels"):
        raise ValueError(
            f"start={tracker.start!r} must be 'uniform', 'labels' or an array of shape ({n},); use start='uniform'."
        )
    check_walk(tracker.direction, tracker.width, tracker.jump)


def first_chain(tracker: Any, paths: list[Array], n: int, is_walk: bool) -> Any:
    """Return the chain of a tracker before EM.

    Parameters
    ----------
    tracker : PlaceTracker
        Its parameters are used.
    paths : list of ndarray of int
        Places of the training sequences.
    n : int
        Number of places, with that of unknown frames.
    is_walk : bool
        Whether every frame is a place of its own.

    Returns
    -------
    chain : Transitions
        The Markov chain.
    """
    given = tracker.transitions
    if isinstance(given, str) and (given == "walk" or (is_walk and given != "labels")):
        walk = make_walk(
            _walk_lengths(paths, is_walk), tracker.direction, tracker.width, tracker.jump, tracker.new_place
        )
        return walk if isinstance(tracker.start, str) else replace(walk, start=log_rows(tracker.start, (n,), "start"))
    first, moves = chains.count_moves(paths, n)
    chain = chains.re_estimate(first, moves, tracker.pseudocount)
    if not isinstance(given, str):
        chain = chain._replace(log_move=log_rows(given, (n, n), "transitions"))
    if not isinstance(tracker.start, str):
        return chain._replace(log_start=log_rows(tracker.start, (n,), "start"))
    return chain if tracker.start == "labels" else chain._replace(log_start=np.full(n, -np.log(n)))


def learn_chain(
    chain: chains.Chain, scores: list[Array], pseudocount: float, max_iter: int, tol: float
) -> tuple[chains.Chain, int]:
    """Re-estimate transitions until the log-likelihood plus log prior no longer rises; the start is kept.

    Parameters
    ----------
    chain : Chain
        The first chain.
    scores : list of ndarray of shape (n_frames, n_places)
        Log-likelihoods of each sequence.
    pseudocount : float
        Added to the number of each transition.
    max_iter : int
        Largest number of iterations.
    tol : float
        Gain of the objective per frame below which EM stops.

    Returns
    -------
    chain : Chain
        The chain.
    n_iter : int
        Number of iterations.
    """
    n_frames, last, n_iter = sum(map(len, scores)), -np.inf, 0
    for n_iter in range(1, max_iter + 1):  # noqa: B007
        parts = [chains.expected_moves(chain, each) for each in scores]
        prior = pseudocount * chain.log_move.sum() if pseudocount else 0.0
        objective = sum(evidence for _, _, evidence in parts) + prior
        if objective - last < tol * n_frames:
            break
        last = objective
        moves = np.sum([each for _, each, _ in parts], axis=0)
        chain = chains.re_estimate(np.zeros(len(moves)), moves, pseudocount)._replace(log_start=chain.log_start)
    return chain, n_iter


def learn_walk(walk: Walk, scores: list[Array], pseudocount: float, max_iter: int, tol: float) -> tuple[Walk, int]:
    """Re-estimate the probabilities of the steps of a walk and of jumps by EM.

    Parameters
    ----------
    walk : Walk
        The first walk.
    scores : list of ndarray of shape (n_frames, n_places)
        Log-likelihoods of each sequence.
    pseudocount : float
        Added to each step, as a fraction of the number of transitions.
    max_iter : int
        Largest number of iterations.
    tol : float
        Change of a probability below which EM stops.

    Returns
    -------
    walk : Walk
        The walk.
    n_iter : int
        Number of iterations.
    """
    n_iter = 0
    for n_iter in range(1, max_iter + 1):  # noqa: B007
        pairs = [_forward_backward(walk, each) for each in scores]
        # Sequences are joined by a row of zeros, which is no transition from anywhere.
        filtered = np.concatenate([np.pad(each, ((0, 1), (0, 0))) for each, _ in pairs])
        joint = np.concatenate([np.pad(each, ((0, 1), (0, 0))) for _, each in pairs])
        learned = walk.re_estimated(filtered, joint, pseudocount)
        change = np.abs(np.subtract(learned.probabilities, walk.probabilities)).max()
        walk = learned
        if change < tol:
            break
    return walk, n_iter


def _forward_backward(walk: Walk, scores: Array) -> tuple[Array, Array]:
    """Return filtered probabilities, and likelihoods of the frames from each one on, up to a factor."""
    filtered = np.exp(chains.forward(walk, scores)[0])
    joint = scores + chains.backward(walk, scores)
    return filtered, np.exp(joint - joint.max(axis=1, keepdims=True))


def _walk_lengths(paths: Sequence[Array], is_walk: bool) -> list[int]:
    """Return the lengths of the walks; with several frames a place, the places in sorted order are one walk."""
    return [len(path) for path in paths] if is_walk else [int(max(path.max() for path in paths)) + 1]


def log_rows(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return the logarithm of probabilities, each row of which must sum to one."""
    given = np.asarray(values, dtype=np.float64)
    if given.shape != shape or not (given >= 0).all() or not np.allclose(given.sum(axis=-1), 1, atol=1e-6):
        raise ValueError(
            f"{name} of shape {given.shape} must be probabilities of shape {shape} whose rows sum to 1; normalize them."
        )
    with np.errstate(divide="ignore"):
        return np.log(given)
