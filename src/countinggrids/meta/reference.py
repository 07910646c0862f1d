"""Settings chosen on a reference walk alone: it is compared with itself, as if it were seen from a few frames away.

A second walk never passes exactly the same points. Frames within a gap of a frame are therefore made no more alike to
it than those just outside the gap, and the filter has to find the frame among all others.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from countinggrids.meta import chain as chains
from countinggrids.meta.emissions import standardized
from countinggrids.meta.tracking import sequences
from countinggrids.meta.walk import make_walk

Array = NDArray[np.float64]
GAPS = (1, 2, 4)
"""Gaps, in multiples of the tolerance."""
GAMMAS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.09, 0.06)
USUAL_GAMMA = 0.5
"""Weight of standardized similarities where a walk is too short to choose it."""
MOST_SIMILARITIES = 2**23
"""Similarities of the reference walk with itself that are computed."""
LEAST_QUERIES = 60
FAR = 8
"""Distance from which on a frame is another place, in multiples of the tolerance."""
MOST_LOG_ODDS = 3.0
"""Limit of the evidence of one frame for or against a new place: frames in a row are much alike."""
SMALLEST = 1e-12


class Runs(NamedTuple):
    """Frames of a reference walk that are compared with all of it.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        Numbers of the frames.
    parts : list of slice
        Runs of consecutive frames, as slices of `queries`.
    distance : ndarray of shape (n_queries, n_references)
        Distance of each query and each reference in frames; infinite between walks.
    """

    queries: NDArray[np.int64]
    parts: list[slice]
    distance: Array


def select_runs(lengths: Sequence[int]) -> Runs:
    """Select runs of consecutive frames: all of a short walk, several runs of a long one."""
    n = int(sum(lengths))
    most = min(n, max(LEAST_QUERIES, MOST_SIMILARITIES // n))
    ends = np.cumsum([0, *lengths])
    chosen = [np.arange(a, b) for a, b in pairwise(ends)]
    if most < n:
        run = LEAST_QUERIES // 2
        starts = np.linspace(0, n - run, most // run).astype(int)
        walk_of = np.searchsorted(ends, starts, side="right")
        chosen = [np.arange(a, min(a + run, ends[w])) for a, w in zip(starts, walk_of, strict=True)]
    queries = np.concatenate(chosen)
    stops = np.cumsum([0, *map(len, chosen)])
    parts = [slice(int(a), int(b)) for a, b in pairwise(stops)]
    return Runs(queries, parts, frame_distance(lengths, queries, np.arange(n)))


def frame_distance(lengths: Sequence[int], queries: NDArray[np.int64], references: NDArray[np.int64]) -> Array:
    """Return distances between frames of the same walk, infinite between walks, (queries, references)."""
    walk = np.repeat(np.arange(len(lengths)), lengths)
    distance = np.abs(queries[:, None] - references).astype(np.float64)
    distance[walk[queries][:, None] != walk[references]] = np.inf
    return distance


def seen_from_afar(similarity: Array, distance: Array, gap: float) -> Array:
    """Limit similarities within a gap to the largest one just outside of it."""
    outside = distance > gap
    nearest = np.where(outside, distance, np.inf).min(axis=1, keepdims=True)
    limit = np.where(outside & (distance <= nearest + 1), similarity, -np.inf).max(axis=1, keepdims=True)
    return np.where(outside, similarity, np.minimum(similarity, limit))


def usable_gaps(tolerance: float, lengths: Sequence[int]) -> list[float]:
    """Return the gaps that leave at least half of the longest walk outside."""
    gaps = [max(1.0, factor * tolerance) for factor in GAPS]
    return [gap for gap in dict.fromkeys(gaps) if 4 * (gap + 1) <= max(lengths)]


def gap_losses(
    similarity: Array,
    distance: Array,
    parts: Sequence[slice],
    chain: chains.Transitions,
    gammas: Sequence[float],
    gaps: Sequence[float],
    tolerance: float,
) -> Array:
    """Compute minus the log probability of the correct frames after filtering, averaged over gaps.

    Parameters
    ----------
    similarity : ndarray of shape (n_queries, n_references)
        Similarities of frames of the reference walk with all of it.
    distance : ndarray of shape (n_queries, n_references)
        Distances in frames.
    parts : sequence of slice
        Runs of consecutive queries.
    chain : Transitions
        The Markov chain over references.
    gammas : sequence of float
        Weights of the standardized similarities.
    gaps : sequence of float
        Gaps in frames.
    tolerance : float
        Frames up to this distance beyond the gap are correct.

    Returns
    -------
    losses : ndarray of shape (n_gammas, n_queries)
        Losses of each frame.
    """
    losses = np.zeros((len(gammas), len(similarity)))
    for gap in gaps:
        values = standardized(seen_from_afar(similarity, distance, gap))
        is_correct = distance <= gap + tolerance
        for row, gamma in zip(losses, gammas, strict=True):
            for part in parts:
                filtered = np.exp(chains.forward(chain, gamma * values[part])[0])
                row[part] -= np.log((filtered * is_correct[part]).sum(axis=1) + SMALLEST)
    return losses / len(gaps)


class Halves:
    """Every second frame of a reference walk as queries, compared with the others.

    Parameters
    ----------
    lengths : list of int
        Numbers of frames of the walks.
    tolerance : float
        Tolerance in frames.

    Attributes
    ----------
    kept, queries : ndarray of int
        Frames that are references, and frames that are queries.
    gaps : list of float
        Gaps in frames; none if the walk is too short.
    """

    def __init__(self, lengths: list[int], tolerance: float):
        starts = np.cumsum([0, *lengths[:-1]])
        within = np.concatenate([np.arange(n) for n in lengths])
        frames = np.arange(len(within))
        self.kept, self.queries = frames[within % 2 == 0], frames[within % 2 == 1]
        self.gaps, self.tolerance = usable_gaps(tolerance, lengths), tolerance
        runs = [(int(start), int(start) + n) for start, n in zip(starts, lengths, strict=True)]
        n_queries = [int(((self.queries >= a) & (self.queries < b)).sum()) for a, b in runs]
        self.parts = sequences(len(self.queries), [n for n in n_queries if n]) if self.gaps else []
        self.distance = frame_distance(lengths, self.queries, self.kept)
        self.walk = make_walk([-(-n // 2) for n in lengths], "forward", 2, 0.01)

    def losses(self, similarity: Array) -> Array:
        """Return the log loss of each query, at the weight of the similarities with the lowest mean loss."""
        found = gap_losses(similarity, self.distance, self.parts, self.walk, GAMMAS, self.gaps, self.tolerance)
        return found[found.mean(axis=1).argmin()]


def choose_gamma(
    similarity: Callable[[NDArray[np.int64]], Array],
    lengths: Sequence[int],
    chain: chains.Transitions,
    gammas: Sequence[float],
    tolerance: float,
) -> tuple[float, dict[float, float]]:
    """Choose the weight of similarities on the reference walk.

    Parameters
    ----------
    similarity : callable
        Returns the similarities of some of its frames with all of them.
    lengths : sequence of int
        Numbers of frames of the walks.
    chain : Transitions
        The Markov chain over its frames.
    gammas : sequence of float
        Candidates.
    tolerance : float
        Tolerance in frames.

    Returns
    -------
    gamma : float
        The weight with the lowest loss; that of a walk too short to choose it is the usual one.
    losses : dict
        Mean loss of each candidate.
    """
    gaps = usable_gaps(tolerance, lengths)
    if not gaps:
        return min(gammas, key=lambda gamma: abs(np.log(gamma / USUAL_GAMMA))), {}
    runs = select_runs(lengths)
    losses = gap_losses(similarity(runs.queries), runs.distance, runs.parts, chain, gammas, gaps, tolerance)
    means = dict(zip(gammas, losses.mean(axis=1).tolist(), strict=True))
    return min(means, key=lambda gamma: means[gamma]), means


class NoveltyModel(NamedTuple):
    """Log odds of a new place, linear in the largest similarity of a frame.

    Attributes
    ----------
    slope, offset : float
        The log odds are offset - slope * similarity, within limits.
    """

    slope: float
    offset: float

    def log_odds(self, similarity: Array) -> Array:
        """Return log p(largest similarity | new place) / p(largest similarity | known place) of each frame."""
        odds = self.offset - self.slope * similarity.max(axis=1)
        return np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)


def learn_novelty(similarity: Array, distance: Array, gaps: Sequence[float], tolerance: float) -> NoveltyModel:
    """Learn the log odds of a new place: frames without all others near them stand for new places.

    Parameters
    ----------
    similarity : ndarray of shape (n_queries, n_references)
        Similarities of frames of the reference walk with all of it.
    distance : ndarray of shape (n_queries, n_references)
        Distances in frames.
    gaps : sequence of float
        Gaps at which places are known.
    tolerance : float
        Tolerance in frames.

    Returns
    -------
    model : NoveltyModel
        The log odds.
    """
    known = np.concatenate([seen_from_afar(similarity, distance, gap).max(axis=1) for gap in gaps])
    far = np.where(distance > FAR * max(tolerance, 1), similarity, -np.inf).max(axis=1)
    new = far[np.isfinite(far)]
    if not len(new) or np.ptp(np.concatenate([known, new])) == 0:
        return NoveltyModel(0.0, 0.0)
    values, is_new = np.concatenate([known, new]), np.repeat([0, 1], [len(known), len(new)])
    center, scale = values.mean(), values.std()
    found = LogisticRegression(class_weight="balanced").fit(((values - center) / scale)[:, None], is_new)
    slope = max(0.0, -float(found.coef_[0, 0]))
    return NoveltyModel(float(slope / scale), float(found.intercept_[0] + slope * center / scale))
