"""Hidden Markov chains in logs: forward, backward, the best path, and EM for the transitions."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]
LOWEST = -1e300  # stands for minus infinity where that is subtracted
SAFE = 1e-150  # sums above it have lost nothing that counts, for what is dropped lies below 1e-308


class Chain(NamedTuple):
    """A Markov chain over states.

    Attributes
    ----------
    log_start : (states,) log probability of the first state
    log_move : (states, states) log probability of going from one state (row) to another (column)
    """

    log_start: Array
    log_move: Array


def forward(chain: Chain, scores: Array, before: Array | None = None) -> tuple[Array, Array]:
    """Filter: log p(state at t | scores up to t) (Eq. hmm), and log p(score at t | scores before t).

    Parameters
    ----------
    chain : the chain
    scores : (frames, states) log p(frame | state)
    before : (states,) filtered logs of the frame before the first, to go on from; None starts afresh

    Returns
    -------
    filtered : (frames, states)
    evidence : (frames,), adds up to log p(sequence)
    """
    filtered, evidence = np.empty_like(scores), np.empty(len(scores))
    moves = _Moves(chain.log_move.T)
    for t, score in enumerate(scores):
        joint = score + (chain.log_start if before is None else moves.summed(before))
        evidence[t] = _log_sum(joint)
        if not np.isfinite(evidence[t]):
            raise ValueError(
                f"frame {t} is impossible in every state that can be reached; wanted some chance for it; "
                "add pseudocounts, or leave no zeros in transitions and start"
            )
        before = filtered[t] = joint - evidence[t]
    return filtered, evidence


def backward(chain: Chain, scores: Array) -> Array:
    """Give log p(scores after t | state at t), up to a constant per frame, (frames, states)."""
    after = np.zeros_like(scores)
    moves = _Moves(chain.log_move)
    for t in range(len(scores) - 2, -1, -1):
        joint = scores[t + 1] + after[t + 1]
        after[t] = moves.summed(joint - max(joint.max(), LOWEST))
    return after


def smooth(chain: Chain, scores: Array) -> Array:
    """Give log p(state at t | all scores), (frames, states)."""
    joint = forward(chain, scores)[0] + backward(chain, scores)
    return joint - logsumexp(joint, axis=1, keepdims=True)


def best_path(chain: Chain, scores: Array) -> tuple[NDArray[np.int64], float]:
    """Give the most likely path (Viterbi), (frames,), and log p(path, scores)."""
    n_frames, n_states = scores.shape
    came_from = np.empty((n_frames, n_states), dtype=np.int32)
    best = chain.log_start + scores[0]
    for t in range(1, n_frames):
        through = best[:, None] + chain.log_move
        came_from[t] = through.argmax(axis=0)
        best = through[came_from[t], np.arange(n_states)] + scores[t]
    path = np.empty(n_frames, dtype=np.int64)
    path[-1] = best.argmax()
    for t in range(n_frames - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path, float(best.max())


def expected_moves(chain: Chain, scores: Array) -> tuple[Array, Array, float]:
    """Give the expected first state, the expected number of moves between states, and log p(sequence)."""
    filtered, evidence = forward(chain, scores)
    joint = scores + backward(chain, scores)
    posterior = filtered - scores + joint
    first = _softmax(posterior[0])
    # Moves from i to j at t go as filtered[t, i] move[i, j] joint[t + 1, j]: one product for all frames, once each
    # frame is divided by its sum. Where the two sides hardly meet, that sum is lost in rounding and taken in logs.
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
    """Turn (expected) counts of first states and of moves into a chain; pseudocounts keep every move possible."""
    start, move = first + pseudocount, moves + pseudocount
    with np.errstate(divide="ignore"):
        return Chain(np.log(start / start.sum()), np.log(move / np.maximum(move.sum(axis=1, keepdims=True), 1e-300)))


def counted(paths: list[NDArray[np.int64]], n_states: int) -> tuple[Array, Array]:
    """Count first states and moves in known paths."""
    first, moves = np.zeros(n_states), np.zeros((n_states, n_states))
    for path in paths:
        first[path[0]] += 1
        np.add.at(moves, (path[:-1], path[1:]), 1)
    return first, moves


def _softmax(values: Array) -> Array:
    values = np.exp(values - values.max())
    return values / values.sum()


class _Moves:
    """Sums over the states that a move leads from, or to, in logs: log sum_j exp(log_move[i, j] + values[j]).

    A product does it as long as nothing that counts is lost in rounding; what may be is added up in logs.
    """

    def __init__(self, log_move: Array):
        self.log_move, self.move = log_move, np.exp(log_move)

    def summed(self, values: Array) -> Array:
        """Sum for every state; the largest of the values must be near zero."""
        sums = self.move @ np.exp(values)
        is_lost = sums < SAFE
        if not is_lost.any():
            return np.log(sums)
        logs = np.log(np.where(is_lost, 1, sums))
        logs[is_lost] = _log_sum(self.log_move[is_lost] + values)
        return logs


def _log_sum(values: Array) -> Any:
    """Add up along the last axis in logs; what is impossible, minus infinity, stays so."""
    top = np.maximum(values.max(axis=-1), LOWEST)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(values - top[..., None]).sum(axis=-1))
