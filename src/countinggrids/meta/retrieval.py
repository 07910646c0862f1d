"""Measures of place recognition: recall at k, and precision and recall over all thresholds."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countinggrids.meta.targets import read_poses

Array = NDArray[Any]


class PrecisionRecall(NamedTuple):
    """Precision and recall of the best match of each query, at every threshold of its score.

    Attributes
    ----------
    precision : ndarray of shape (n_thresholds,)
        Fraction of the accepted matches that are correct, from the highest threshold to the lowest.
    recall : ndarray of shape (n_thresholds,)
        Fraction of the queries with a place in the reference whose match is accepted and correct.
    area : float
        Area under the curve, by steps (average precision).
    recall_at_full_precision : float
        Largest recall without a wrong match.
    """

    precision: Array
    recall: Array
    area: float
    recall_at_full_precision: float


def true_matches(truth: ArrayLike, n_references: int, tolerance: float = 2) -> NDArray[np.bool_]:
    """Return which reference frames are the place of each query.

    Parameters
    ----------
    truth : array-like of shape (n_queries,)
        Number of the reference frame of each query, from 0; NaN or a negative number for a place that is not there.
    n_references : int
        Number of reference frames.
    tolerance : float, default=2
        Largest distance in frames.

    Returns
    -------
    matches : ndarray of shape (n_queries, n_references)
        Whether a reference frame is correct.
    """
    numbers = np.asarray(truth, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"truth of shape {numbers.shape} must have one number for each query; pass a flat array.")
    numbers = np.where(numbers < 0, np.nan, numbers)
    if (numbers >= n_references).any():
        row = int(np.flatnonzero(numbers >= n_references)[0])
        raise ValueError(
            f"truth has {numbers[row]:g} for query {row} but the reference has {n_references} frames, from 0; use -1 "
            "for places that are not in the reference."
        )
    with np.errstate(invalid="ignore"):
        return np.abs(numbers[:, None] - np.arange(n_references)) <= tolerance


def pose_matches(queries: ArrayLike, references: ArrayLike, tolerance: float) -> NDArray[np.bool_]:
    """Return which reference frames are within a distance of the pose of each query.

    Parameters
    ----------
    queries : array-like of shape (n_queries, n_coordinates)
        Poses of the queries.
    references : array-like of shape (n_references, n_coordinates)
        Poses of the reference frames.
    tolerance : float
        Largest Euclidean distance.

    Returns
    -------
    matches : ndarray of shape (n_queries, n_references)
        Whether a reference frame is correct.
    """
    there, here = read_poses(np.asarray(queries)), read_poses(np.asarray(references))
    if there.ndim != 2 or here.ndim != 2 or there.shape[1] != here.shape[1]:
        raise ValueError(
            f"poses of shapes {there.shape} and {here.shape} must have the same coordinates; pass both so."
        )
    return np.linalg.norm(there[:, None] - here, axis=2) <= tolerance


def recall_at(similarity: ArrayLike, matches: ArrayLike, k: Sequence[int] = (1, 5, 10)) -> dict[int, float]:
    """Compute the fraction of queries with a correct frame among the k most similar ones.

    Parameters
    ----------
    similarity : array-like of shape (n_queries, n_references)
        Similarities, or posterior probabilities.
    matches : array-like of shape (n_queries, n_references)
        Whether a reference frame is correct. Queries without a correct frame do not count.
    k : sequence of int, default=(1, 5, 10)
        Numbers of frames.

    Returns
    -------
    recall : dict
        Recall for each k; NaN if no query has a correct frame.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.meta.retrieval import recall_at
    >>> recall_at([[3, 2, 1], [3, 2, 1]], np.array([[1, 0, 0], [0, 0, 1]]), k=(1, 3))
    {1: 0.5, 3: 1.0}
    """
    values, is_match = _pair(similarity, matches)
    order = np.argsort(-values, axis=1, kind="stable")[:, : max(k)]
    found = np.take_along_axis(is_match, order, axis=1)[is_match.any(axis=1)]
    return {each: float(found[:, :each].any(axis=1).mean()) if len(found) else float("nan") for each in k}


def precision_recall(similarity: ArrayLike, matches: ArrayLike) -> PrecisionRecall:
    """Compute precision and recall of the best match of each query, over thresholds of its similarity.

    Parameters
    ----------
    similarity : array-like of shape (n_queries, n_references)
        Similarities, or posterior probabilities.
    matches : array-like of shape (n_queries, n_references)
        Whether a reference frame is correct; queries of other places have none.

    Returns
    -------
    curve : PrecisionRecall
        The curve, its area, and the recall at full precision.
    """
    values, is_match = _pair(similarity, matches)
    best = values.argmax(axis=1)
    rows = np.arange(len(values))
    score, is_correct = values[rows, best], is_match[rows, best]
    order = np.argsort(-score, kind="stable")
    # Queries of equal score are accepted together.
    is_last = np.append(np.diff(score[order]) != 0, True)
    n_correct = np.cumsum(is_correct[order])[is_last]
    n_accepted = (rows + 1)[is_last]
    precision, recall = n_correct / n_accepted, n_correct / max(int(is_match.any(axis=1).sum()), 1)
    area = float(np.sum(np.diff(recall, prepend=0.0) * precision))
    is_full = precision == 1
    return PrecisionRecall(precision, recall, area, float(recall[is_full].max()) if is_full.any() else 0.0)


def _pair(similarity: ArrayLike, matches: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    values, is_match = np.asarray(similarity, dtype=np.float64), np.asarray(matches, dtype=bool)
    if values.shape != is_match.shape or values.ndim != 2:
        raise ValueError(
            f"similarity of shape {values.shape} and matches of shape {is_match.shape} must agree; pass a row for each "
            "query and a column for each reference frame."
        )
    return values, is_match
