"""Transitions along a reference walk: a few steps ahead or back, and rare jumps to anywhere, in linear time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.meta import chain as chains
from countinggrids.meta.options import is_integer, is_number

Array = NDArray[np.float64]
DIRECTIONS = ("forward", "backward", "both")
NEW_FRACTION, LEAVE = 0.5, 0.1
"""Fraction of the jumps that lead to a new place, and probability to leave it with the next frame."""
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Walk:
    """A Markov chain over the frames of reference walks: the next frame is a few steps away, or anywhere after a jump.

    Steps that would leave a walk are jumps too, so that its end is not absorbing. Sums over transitions take time and
    memory proportional to the number of frames.

    Parameters
    ----------
    lengths : tuple of int
        Numbers of frames of the reference walks.
    steps : tuple of int
        Steps that can be made, in frames; negative ones lead back.
    probabilities : tuple of float
        Probability of each step; the rest, above 0, is that of a jump.
    has_new : bool, default=False
        Whether there is one more state, the last one, for places that are in no reference walk.
    start : ndarray of shape (n_states,), default=None
        Log probability of the first state; None is uniform over frames.
    """

    lengths: tuple[int, ...]
    steps: tuple[int, ...]
    probabilities: tuple[float, ...]
    has_new: bool = False
    start: Array | None = None

    @property
    def n_frames(self) -> int:
        """Number of frames of all walks."""
        return sum(self.lengths)

    @property
    def jump(self) -> float:
        """Probability of a jump."""
        return 1.0 - sum(self.probabilities)

    @cached_property
    def log_start(self) -> Array:
        """Log probability of the first state; uniform over frames unless it is given."""
        if self.start is not None:
            return self.start
        n = self.n_frames
        if not self.has_new:
            return np.full(n, -np.log(n))
        new = self.jump * NEW_FRACTION
        return np.log(np.append(np.full(n, (1 - new) / n), new))

    @property
    def log_move(self) -> Array:
        """Log probabilities of all transitions as a matrix, from rows to columns."""
        n = self.n_frames + self.has_new
        with np.errstate(divide="ignore"):
            return np.log(np.stack([_Arrivals(self).sums(row) for row in np.eye(n)]))

    def is_possible(self, n_states: int) -> bool:
        """Return whether a walk that was read from a file has steps and probabilities of so many states."""
        numbers = (*self.lengths, *self.steps)
        if not numbers or not all(type(each) is int for each in numbers) or min(self.lengths, default=0) < 1:
            return False
        has_start = self.start is None or (isinstance(self.start, np.ndarray) and self.start.shape == (n_states,))
        are_probabilities = all(is_number(each) and 0 <= each < 1 for each in self.probabilities)
        return (
            has_start
            and are_probabilities
            and len(self.steps) == len(self.probabilities) == len(set(self.steps))
            and 0 < self.jump < 1
            and self.n_frames + bool(self.has_new) == n_states
        )

    def arrivals(self) -> chains.Sums:
        """Return sums over the states that a state is reached from."""
        return _Arrivals(self)

    def departures(self) -> chains.Sums:
        """Return sums over the states that a state leads to."""
        return _Departures(self)

    def best_arrivals(self, values: Array) -> tuple[NDArray[np.int64], Array]:
        """Return for every state the best one it is reached from, and the value through it."""
        n = self.n_frames
        jumps = self._leaving()
        leaving = values + np.log(jumps)
        start = int(leaving.argmax())
        came_from = np.full(len(values), start)
        best = np.full(len(values), leaving[start] + np.log(self._landing(n)))
        for step, probability in zip(self.steps, self.probabilities, strict=True):
            to = self._targets(step)
            through = values[to - step] + np.log(probability + jumps[to - step] * self._landing(n))
            is_better = through > best[to]
            best[to[is_better]], came_from[to[is_better]] = through[is_better], (to - step)[is_better]
        if self.has_new:
            entering = np.append(leaving[:n] + np.log(NEW_FRACTION), values[n] + np.log1p(-LEAVE))
            came_from[n], best[n] = entering.argmax(), entering.max()
            best[:n], came_from[:n] = _larger(best[:n], came_from[:n], values[n] + np.log(LEAVE / n), n)
        return came_from, best

    def re_estimated(self, filtered: Array, joint: Array, pseudocount: float) -> "Walk":
        """Return the walk with step probabilities from the expected number of each step (one M step).

        Parameters
        ----------
        filtered : ndarray of shape (n_frames, n_states)
            Filtered probabilities of a sequence of frames.
        joint : ndarray of shape (n_frames, n_states)
            Likelihoods of the frame and of those after it, each row up to a factor.
        pseudocount : float
            Added to each step, as a fraction of the number of transitions.

        Returns
        -------
        walk : Walk
            A walk with the same steps.
        """
        n_moves = max(len(filtered) - 1, 1)
        counts = np.zeros(len(self.steps) + 1)
        for before, after in zip(filtered[:-1], joint[1:], strict=True):
            weights = [
                p * float(before[(to := self._targets(step)) - step] @ after[to])
                for step, p in zip(self.steps, self.probabilities, strict=True)
            ]
            weights.append(float(before @ _Departures(self).sums(after)) - sum(weights))
            counts += np.maximum(weights, 0) / max(sum(weights), TINY)
        counts += pseudocount * n_moves / len(counts)
        return replace(self, probabilities=tuple((counts[:-1] / counts.sum()).tolist()))

    def _targets(self, step: int) -> NDArray[np.int64]:
        """Return the frames that a step leads to within the same walk."""
        return self._targets_by_step[step]

    @cached_property
    def _targets_by_step(self) -> dict[int, NDArray[np.int64]]:
        ends = np.cumsum([0, *self.lengths])
        walk = np.repeat(np.arange(len(self.lengths)), self.lengths)
        frames = np.arange(self.n_frames)
        found = {}
        for step in self.steps:
            start = frames - step
            is_inside = (start >= ends[walk]) & (start < ends[walk + 1])
            found[step] = frames[is_inside]
        return found

    def _leaving(self) -> Array:
        """Return the probability to jump from each state to any frame, or to a new place."""
        leaving = np.full(self.n_frames, self.jump)
        for step, probability in zip(self.steps, self.probabilities, strict=True):
            is_lost = np.ones(self.n_frames, bool)
            is_lost[self._targets(step) - step] = False
            leaving[is_lost] += probability
        return np.append(leaving, TINY) if self.has_new else leaving

    def _landing(self, n: int) -> float:
        """Return the probability that a jump leads to one frame."""
        return (1 - NEW_FRACTION if self.has_new else 1.0) / n


class _Arrivals:
    """Sums over the states that a state is reached from."""

    def __init__(self, walk: Walk):
        self.walk, self.leaving = walk, walk._leaving()

    def summed(self, values: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.sums(np.exp(values)))

    def sums(self, before: Array) -> Array:
        """Return the probability of each state after a transition."""
        walk, n = self.walk, self.walk.n_frames
        jumped = float(before[:n] @ self.leaving[:n])
        after = np.full(len(before), jumped * walk._landing(n))
        for step, probability in zip(walk.steps, walk.probabilities, strict=True):
            to = walk._targets(step)
            after[to] += probability * before[to - step]
        if walk.has_new:
            after[:n] += before[n] * LEAVE / n
            after[n] = jumped * NEW_FRACTION + before[n] * (1 - LEAVE)
        return after


class _Departures:
    """Sums over the states that a state leads to."""

    def __init__(self, walk: Walk):
        self.walk, self.leaving = walk, walk._leaving()

    def summed(self, values: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.sums(np.exp(values)))

    def sums(self, after: Array) -> Array:
        """Return the expectation of a value after a transition from each state."""
        walk, n = self.walk, self.walk.n_frames
        landed = float(after[:n].sum()) * walk._landing(n) + (after[n] * NEW_FRACTION if walk.has_new else 0.0)
        before = self.leaving * landed
        for step, probability in zip(walk.steps, walk.probabilities, strict=True):
            to = walk._targets(step)
            before[to - step] += probability * after[to]
        if walk.has_new:
            before[n] = LEAVE * after[:n].mean() + (1 - LEAVE) * after[n]
        return before


def make_walk(lengths: Sequence[int], direction: str, width: int, jump: float, has_new: bool = False) -> Walk:
    """Return a walk whose steps up to a width are equally probable.

    Parameters
    ----------
    lengths : sequence of int
        Numbers of frames of the reference walks.
    direction : {"forward", "backward", "both"}
        Whether the next frame lies ahead, behind, or on either side.
    width : int
        Largest step in frames; a step of 0 stays.
    jump : float
        Probability of a jump.
    has_new : bool, default=False
        Whether there is one more state for new places.

    Returns
    -------
    walk : Walk
        The transitions.
    """
    first, last = {"forward": (0, width), "backward": (-width, 0), "both": (-width, width)}[direction]
    steps = tuple(range(first, last + 1))
    return Walk(tuple(map(int, lengths)), steps, ((1 - jump) / len(steps),) * len(steps), has_new)


def check_walk(direction: Any, width: Any, jump: Any) -> None:
    """Raise unless the parameters of a walk can be used."""
    if direction not in DIRECTIONS:
        raise ValueError(f"direction={direction!r} must be 'forward', 'backward' or 'both'; use direction='forward'.")
    if not is_integer(width):
        raise ValueError(f"width={width!r} must be an integer of at least 1, the largest step in frames; use width=2.")
    if not is_number(jump) or not 0 < jump < 1:
        raise ValueError(f"jump={jump!r} must be a probability above 0 and below 1; use jump=0.01.")


def _larger(best: Array, came_from: Any, value: float, start: int) -> tuple[Array, Any]:
    """Take a value from a start wherever it is larger."""
    is_larger = value > best
    return np.where(is_larger, value, best), np.where(is_larger, start, came_from)
