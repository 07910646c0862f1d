"""Hidden Markov chains in logs: forward, backward, the best path, and EM for the transitions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]


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
    for t, score in enumerate(scores):
        expected = chain.log_start if before is None else _log_sum(before[:, None] + chain.log_move, axis=0)
        joint = expected + score
        evidence[t] = _log_sum(joint, axis=0)
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
    for t in range(len(scores) - 2, -1, -1):
        joint = scores[t + 1] + after[t + 1]
        after[t] = _log_sum(chain.log_move + (joint - np.max(joint, initial=-1e300)), axis=1)
    return after


def smooth(chain: Chain, scores: Array) -> Array:
    """Give log p(state at t | all scores), (frames, states)."""
    joint = forward(chain, scores)[0] + backward(chain, scores)
    return joint - logsumexp(joint, axis=1, keepdims=True)


def best_path(chain: Chain, scores: Array) -> tuple[NDArray[np.int64], float]:
    """Give the most likely path (Viterbi), (frames,), and log p(path, scores)."""
    n_frames, n_states = scores.shape
    came_from = np.empty((n_frames, n_states), dtype=np.int64)
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
    after = backward(chain, scores)
    first = _softmax(filtered[0] + after[0])
    moves = np.zeros_like(chain.log_move)
    for t in range(len(scores) - 1):
        moves += _softmax(filtered[t][:, None] + chain.log_move + (scores[t + 1] + after[t + 1]))
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


def _log_sum(values: Array, axis: int) -> Array:
    """Add up along an axis in logs; what is impossible, minus infinity, stays so."""
    top = np.maximum(values.max(axis=axis), -1e300)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(values - np.expand_dims(top, axis)).sum(axis=axis))
