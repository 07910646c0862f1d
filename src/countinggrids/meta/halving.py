"""Successive halving: candidates are scored on one fold after the other, and the worse ones dropped after each."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Callback = Callable[[int, int], Any]
"""Called with the number of fits so far, and the largest number of fits that there can be."""


def halve(
    score: Callable[[int, int], float],
    n_candidates: int,
    n_folds: int,
    keep: float,
    callback: Callback | None = None,
    is_verbose: bool = False,
) -> tuple[Array, Array]:
    """Score candidates on one fold after the other, and drop some after each.

    Parameters
    ----------
    score : callable
        Called with the number of a candidate and that of a fold; returns the score.
    n_candidates : int
        Number of candidates.
    n_folds : int
        Number of folds.
    keep : float
        Fraction of the candidates that stays after each fold; at least two stay.
    callback : callable, default=None
        Called after every fit with the number of fits so far and the largest number there can be.
    is_verbose : bool, default=False
        Whether to write a line to stderr after each fold.

    Returns
    -------
    scores : ndarray of shape (n_candidates, n_folds)
        Scores; NaN on the folds after a candidate was dropped.
    remaining : ndarray of int
        The candidates that were scored on every fold.
    """
    scores, remaining = np.full((n_candidates, n_folds), np.nan), np.arange(n_candidates)
    n_done, n_most = 0, _n_fits(n_candidates, n_folds, keep)
    for fold in range(n_folds):
        for c in remaining.tolist():
            scores[c, fold] = score(c, fold)
            n_done += 1
            if callback is not None:
                callback(n_done, n_most)
        means = mean_scores(scores[remaining])
        if not np.isfinite(means).any():
            raise ValueError("no candidate has a finite score; check X, y and scoring.")
        if is_verbose:
            line = f"fold {fold + 1}: {len(remaining)} candidates, best score {np.nanmax(means):.4f}"
            print(line, file=sys.stderr)
        if fold + 1 < n_folds:
            remaining = remaining[np.argsort(-means, kind="stable")[: _n_kept(len(remaining), keep)]]
    return scores, remaining


def mean_scores(scores: Array) -> Array:
    """Average over the folds that were scored; NaN where none was."""
    n_folds = np.isfinite(scores).sum(axis=1)
    return np.where(n_folds > 0, np.nansum(scores, axis=1) / np.maximum(n_folds, 1), np.nan)


def _n_kept(n: int, keep: float) -> int:
    return max(2, int(np.ceil(keep * n)))


def _n_fits(n_candidates: int, n_folds: int, keep: float) -> int:
    total = 0
    for _ in range(n_folds):
        total += n_candidates
        n_candidates = min(n_candidates, _n_kept(n_candidates, keep))
    return total
