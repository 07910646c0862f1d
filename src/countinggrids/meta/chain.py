"""Hidden Markov models in the log domain: forward and backward passes, the Viterbi path, and EM for transitions."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]
LOWEST = -1e300
"""Replaces minus infinity where that is subtracted."""
ROUNDING = 1e-6
"""Largest log probability, with rounding."""
SAFE = 1e-150
"""Smallest sum that underflow, below 1e-308, does not change."""


class Sums(Protocol):
    """Computes sums over transitions in the log domain."""

    def summed(self, values: Array) -> Array:
        """Return the logarithm of the sum over transitions for every state; the largest value must be near zero."""
        ...


class Transitions(Protocol):
    """A Markov chain in any form: a matrix of transitions, or the few steps of a walk."""

    @property
    def log_start(self) -> Array:
        """Log probability of the first state, (states,)."""
        ...

    def arrivals(self) -> Sums:
        """Return sums over the states that a state is reached from."""
        ...

    def departures(self) -> Sums:
        """Return sums over the states that a state leads to."""
        ...

    def best_arrivals(self, values: Array) -> tuple[NDArray[np.int64], Array]:
        """Return for every state the best one it is reached from, and the value through it."""
        ...


class Chain(NamedTuple):
    """A Markov chain over states, with a matrix of transitions.

    Attributes
    ----------
    log_start : ndarray of shape (n_states,)
        Log probability of the first state.
    log_move : ndarray of shape (n_states, n_states)
        Log probability of a transition from one state (row) to another (column).
    """

    log_start: Array
    log_move: Array

    def is_possible(self, n_states: int) -> bool:
        """Return whether a chain that was read from a file has log probabilities of so many states."""
        shapes = ((self.log_start, (n_states,)), (self.log_move, (n_states, n_states)))
        return all(
            isinstance(each, np.ndarray) and each.dtype.kind == "f" and each.shape == shape and (each <= ROUNDING).all()
            for each, shape in shapes
        )

    def arrivals(self) -> Sums:
        """Return sums over the states that a state is reached from."""
        return _Moves(self.log_move.T)

    def departures(self) -> Sums:
        """Return sums over the states that a state leads to."""
        return _Moves(self.log_move)

    def best_arrivals(self, values: Array) -> tuple[NDArray[np.int64], Array]:
        """Return for every state the best one it is reached from, and the value through it."""
        through = values[:, None] + self.log_move
        best = through.argmax(axis=0)
        return best, through[best, np.arange(len(values))]


def forward(chain: Transitions, scores: Array, before: Array | None = None) -> tuple[Array, Array]:
    """Compute log p(state at t | frames up to t) (Eq. hmm), and log p(frame at t | frames before t).

    Parameters
    ----------
    chain : Transitions
        The Markov chain.
    scores : ndarray of shape (n_frames, n_states)
        The emission log-likelihoods, log p(frame | state).
    before : ndarray of shape (n_states,), default=None
        Filtered log probabilities of the frame before the first; None starts a new sequence.

    Returns
    -------
    filtered : ndarray of shape (n_frames, n_states)
        Filtered log probabilities.
    evidence : ndarray of shape (n_frames,)
        Terms whose sum is log p(sequence).
    """
    filtered, evidence = np.empty_like(scores), np.empty(len(scores))
    moves = chain.arrivals()
    for t, score in enumerate(scores):
        joint = score + (chain.log_start if before is None else moves.summed(before))
        evidence[t] = _log_sum(joint)
        if not np.isfinite(evidence[t]):
            raise ValueError(
                f"frame {t} is impossible in every state that can be reached; use a pseudocount above 0, or "
                "transitions and start without zeros."
            )
        before = filtered[t] = joint - evidence[t]
    return filtered, evidence


def backward(chain: Transitions, scores: Array) -> Array:
    """Compute log p(frames after t | state at t), up to a constant for each frame, (frames, states)."""
    after = np.zeros_like(scores)
    moves = chain.departures()
    for t in range(len(scores) - 2, -1, -1):
        joint = scores[t + 1] + after[t + 1]
        after[t] = moves.summed(joint - max(joint.max(), LOWEST))
    return after


def smooth(chain: Transitions, scores: Array) -> Array:
    """Compute log p(state at t | all frames), (frames, states)."""
    joint = forward(chain, scores)[0] + backward(chain, scores)
    return joint - logsumexp(joint, axis=1, keepdims=True)


def best_path(chain: Transitions, scores: Array) -> tuple[NDArray[np.int64], float]:
    """Return the most likely path (Viterbi), (frames,), and log p(path, frames)."""
    n_frames, n_states = scores.shape
    came_from = np.empty((n_frames, n_states), dtype=np.int32)
    best = chain.log_start + scores[0]
    for t in range(1, n_frames):
        came_from[t], best = chain.best_arrivals(best)
        best = best + scores[t]
    path = np.empty(n_frames, dtype=np.int64)
    path[-1] = best.argmax()
    for t in range(n_frames - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path, float(best.max())


def expected_moves(chain: Chain, scores: Array) -> tuple[Array, Array, float]:
    """Compute the expected first state, the expected number of transitions, and log p(sequence)."""
    filtered, evidence = forward(chain, scores)
    joint = scores + backward(chain, scores)
    posterior = filtered - scores + joint
    first = _softmax(posterior[0])
    # A transition from i to j at t has weight filtered[t, i] move[i, j] joint[t + 1, j]: one product for all frames,
    # each divided by its sum. Where that sum underflows, it is computed in the log domain.
    left = np.exp(filtered[:-1])
    right = np.exp(joint[1:] - np.maximum(joint[1:].max(axis=1, keepdims=True), LOWEST))
    move = np.exp(chain.log_move)
    total = np.einsum("ts,ts->t", left @ move, right)
    is_safe = total > SAFE
    moves = move * ((left[is_safe] / total[is_safe, None]).T @ right[is_safe])
    for t in np.flatnonzero(~is_safe):
        moves += _softmax(filtered[t][:, None] + chain.log_move + joint[t + 1])
    return first, moves, float(evidence.sum())


def re_estimate(first: Array, moves: Array, pseudocount: float) -> Chain:
    """Estimate a chain from (expected) counts of first states and of transitions, with a pseudocount for each."""
    start, move = first + pseudocount, moves + pseudocount
    with np.errstate(divide="ignore"):
        return Chain(np.log(start / start.sum()), np.log(move / np.maximum(move.sum(axis=1, keepdims=True), 1e-300)))


def count_moves(paths: list[NDArray[np.int64]], n_states: int) -> tuple[Array, Array]:
    """Count first states and transitions in known paths."""
    first, moves = np.zeros(n_states), np.zeros((n_states, n_states))
    for path in paths:
        first[path[0]] += 1
        np.add.at(moves, (path[:-1], path[1:]), 1)
    return first, moves


def _softmax(values: Array) -> Array:
    values = np.exp(values - values.max())
    return values / values.sum()


class _Moves:
    """Computes log sum_j exp(log_move[i, j] + values[j]) by a matrix product, and where that underflows in logs."""

    def __init__(self, log_move: Array):
        self.log_move, self.move = log_move, np.exp(log_move)

    def summed(self, values: Array) -> Array:
        """Return the sum for every state; the largest value must be near zero."""
        sums = self.move @ np.exp(values)
        underflows = sums < SAFE
        if not underflows.any():
            return np.log(sums)
        logs = np.log(np.where(underflows, 1, sums))
        logs[underflows] = _log_sum(self.log_move[underflows] + values)
        return logs


def _log_sum(values: Array) -> Any:
    """Return log sum exp along the last axis, minus infinity where all values are."""
    top = np.maximum(values.max(axis=-1), LOWEST)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(values - top[..., None]).sum(axis=-1))
