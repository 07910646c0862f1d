"""Plots of results: scores by capacity, confusion matrices, places over time, regions of a grid."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countinggrids.plot.canvas import axes

MOST_NAMES = 40
"""Labels that are legible along an axis."""


def capacity(results: Mapping[str, Sequence[Any]], ax: Any = None) -> Any:
    """Plot score against capacity with its standard deviation, a line per tessellation; larger grids are lighter.

    Small hollow marks are candidates that were dropped before all folds were scored.

    Parameters
    ----------
    results : mapping of str to sequence
        Columns `capacity`, `mean`, `std`, `folds`, `sections` and `grid`, as of `CapacitySearch`.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot.
    """
    ax = axes(ax, (6.4, 4))
    tessellations = sorted(set(map(tuple, results["sections"])))
    cells = np.array([np.prod(grid) for grid in results["grid"]], dtype=float)
    lightness = 0.75 * (cells - cells.min()) / max(float(np.ptp(cells)), 1)
    for number, sections in enumerate(tessellations):
        rows = [i for i, each in enumerate(results["sections"]) if tuple(each) == sections]
        rows.sort(key=lambda i: results["capacity"][i])
        x, mean, std = (np.array([results[name][i] for i in rows]) for name in ("capacity", "mean", "std"))
        color = f"C{number}"
        is_whole = np.array([results["folds"][i] for i in rows]) == max(results["folds"])
        fills = np.array([(1 - v) * _rgb(color) + v for v in lightness[rows]])
        ax.errorbar(x, mean, std, fmt="none", ecolor=color, elinewidth=1, alpha=0.5)
        ax.scatter(x[is_whole], mean[is_whole], c=fills[is_whole], edgecolors=color, zorder=3)
        ax.scatter(x[~is_whole], mean[~is_whole], c="none", edgecolors=color, alpha=0.4, s=12)
        name = "sections " + "x".join(map(str, sections))
        ax.plot(*_upper(x[is_whole], mean[is_whole]), color=color, lw=1, label=name)
    ax.set(xlabel="capacity", ylabel="score", xscale="log")
    ticks = [tick for tick in (1.5, 2, 4, 6, 10, 16, 25, 50, 100, 200, 500) if tick <= max(results["capacity"]) * 1.2]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False)
    return ax


def confusion(truth: ArrayLike, predicted: ArrayLike, ax: Any = None) -> Any:
    """Plot the confusion matrix, normalized by row.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    predicted : array-like of shape (n_items,)
        Predicted labels.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot; its title is the accuracy.
    """
    truth, predicted = np.asarray(truth, dtype=object), np.asarray(predicted, dtype=object)
    names = sorted(set(truth.tolist()) | set(predicted.tolist()), key=str)
    place = {name: i for i, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, ([place[name] for name in truth], [place[name] for name in predicted]), 1)
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = min(12.0, 3 + 0.32 * len(names))
    ax = axes(ax, (side, side))
    ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    if len(names) <= MOST_NAMES:
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
    if len(names) <= MOST_NAMES // 2:
        for i, j in np.argwhere(fractions >= 0.005):
            ax.text(j, i, f"{100 * fractions[i, j]:.0f}", ha="center", va="center", fontsize=7,
                    color="white" if fractions[i, j] > 0.5 else "black")  # fmt: skip
    accuracy = np.mean([a == b for a, b in zip(truth, predicted, strict=True)])
    ax.set(xlabel="predicted", ylabel="true", title=f"accuracy {100 * accuracy:.1f}%")
    return ax


def ribbon(posterior: ArrayLike, classes: Any, truth: ArrayLike | None = None, ax: Any = None) -> Any:
    """Plot the posterior over places of a sequence over time, with its true places.

    Parameters
    ----------
    posterior : array-like of shape (n_frames, n_places)
        Probabilities.
    classes : sequence of str
        The places.
    truth : array-like of shape (n_frames,), default=None
        True place of each frame.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot.
    """
    probabilities = np.asarray(posterior, dtype=float)
    names = [str(name) for name in classes]
    seen = set() if truth is None else {str(name) for name in np.asarray(truth, dtype=object)}
    # Places that are never likely would make the other rows too small to see.
    rows = [i for i, name in enumerate(names) if name in seen or probabilities[:, i].max() > 0.2]
    ax = axes(ax, (10, min(14.0, 1.2 + 0.22 * len(rows))))
    ax.imshow(probabilities[:, rows].T, aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    if truth is not None:
        place = {names[row]: i for i, row in enumerate(rows)}
        where = np.array([place[str(name)] for name in np.asarray(truth, dtype=object)])
        for begin, end in _runs(where):
            ax.hlines(where[begin] + 0.42, begin - 0.5, end - 0.5, color="C3", lw=2)
        ax.hlines([], 0, 0, color="C3", lw=2, label="true place")
        ax.legend(loc="upper right", fontsize=8)
    if len(rows) <= MOST_NAMES:
        ax.set_yticks(range(len(rows)), [names[row] for row in rows], fontsize=8)
    ax.set(xlabel="frame", ylim=(len(rows) - 0.4, -0.6))
    return ax


def regions(usage: ArrayLike, labels: ArrayLike, names: Sequence[str] = (), ax: Any = None) -> Any:
    """Plot the usage of a grid with the borders and names of its regions.

    Parameters
    ----------
    usage : array-like of shape (n_rows, n_columns)
        Usage of each cell.
    labels : array-like of shape (n_rows, n_columns)
        Region of each cell.
    names : sequence of str, default=()
        Name of each region.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot.
    """
    heights, which = np.asarray(usage, dtype=float), np.asarray(labels)
    if which.ndim != 2:
        raise ValueError(f"labels of shape {which.shape} must have two axes; use a grid with two axes.")
    ax = axes(ax, (7, 7 * which.shape[0] / which.shape[1] + 0.3))
    ax.imshow(heights, cmap="YlGnBu")
    for axis in (0, 1):
        is_border = which != np.roll(which, -1, axis)
        for i, j in np.argwhere(is_border):
            ends = ([j - 0.5, j + 0.5], [i + 0.5] * 2) if axis == 0 else ([j + 0.5] * 2, [i - 0.5, i + 0.5])
            ax.plot(*ends, color="C3", lw=1)
    for region, name in enumerate(names):
        top = np.unravel_index(np.where(which == region, heights, -1).argmax(), which.shape)
        box = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": "none", "alpha": 0.75}
        ax.text(top[1], top[0], name, ha="center", va="center", fontsize=7, bbox=box)
    ax.set(xticks=[], yticks=[], xlim=(-0.5, which.shape[1] - 0.5), ylim=(which.shape[0] - 0.5, -0.5))
    return ax


def _rgb(color: str) -> Any:
    from matplotlib.colors import to_rgb

    return np.array(to_rgb(color))


def _upper(x: Any, y: Any) -> tuple[Any, Any]:
    """Keep the best score at each capacity."""
    distinct = np.unique(x)
    return distinct, np.array([y[x == value].max() for value in distinct])


def _runs(values: Any) -> list[tuple[int, int]]:
    """Return where runs of equal values begin and end."""
    breaks = (np.flatnonzero(np.diff(values)) + 1).tolist()
    return list(zip([0, *breaks], [*breaks, len(values)], strict=True))
