"""Plots of place recognition: the similarity matrix of two walks, and precision against recall."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countinggrids.meta.retrieval import precision_recall
from countinggrids.plot.canvas import axes


def similarity_matrix(
    similarity: ArrayLike, matches: ArrayLike | None = None, found: ArrayLike | None = None, ax: Any = None
) -> Any:
    """Plot how similar each query frame is to each reference frame, with the matches that were found.

    Parameters
    ----------
    similarity : array-like of shape (n_queries, n_references)
        Similarities.
    matches : array-like of shape (n_queries, n_references), default=None
        Whether a reference frame is correct; their outline is drawn.
    found : array-like of shape (n_queries,), default=None
        Reference frame that was found for each query.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot.
    """
    values = np.asarray(similarity, dtype=float)
    ax = axes(ax, (6, 5.4))
    low, high = np.percentile(values, [1, 99.9])
    ax.imshow(values, cmap="Greys", vmin=low, vmax=max(high, low + 1e-12), aspect="auto", interpolation="nearest")
    rows = np.arange(len(values))
    if matches is not None:
        is_match = np.asarray(matches, dtype=bool)
        if is_match.any() and min(is_match.shape) > 1:
            ax.contour(is_match, levels=[0.5], colors="C0", linewidths=0.8)
            ax.plot([], [], color="C0", lw=0.8, label="correct")
    if found is not None:
        ax.scatter(np.asarray(found), rows, s=4, color="C3", label="found", zorder=3)
    if matches is not None or found is not None:
        ax.legend(loc="upper right", framealpha=0.9)
    ax.set(xlabel="reference frame", ylabel="query frame")
    return ax


def precision_recall_curve(curves: Mapping[str, ArrayLike], matches: ArrayLike, ax: Any = None) -> Any:
    """Plot precision against recall of the best match of each query.

    Parameters
    ----------
    curves : mapping of str to array-like of shape (n_queries, n_references)
        Similarities or posteriors by name.
    matches : array-like of shape (n_queries, n_references)
        Whether a reference frame is correct.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot; areas are in its legend.
    """
    ax = axes(ax, (5, 4))
    for name, scores in curves.items():
        curve = precision_recall(scores, matches)
        ax.plot(100 * curve.recall, 100 * curve.precision, label=f"{name}, area {curve.area:.3f}")
    ax.set(xlabel="recall, %", ylabel="precision, %", xlim=(0, 102), ylim=(0, 102))
    ax.legend(frameon=False, loc="lower left")
    return ax
