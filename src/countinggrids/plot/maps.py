"""Maps of a grid: its features, windows, usage, prior and posterior; and the history of its training.

All maps have the options `roll` and `tiles`, so that maps on the same Axes are aligned.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countinggrids.plot import painting
from countinggrids.plot.canvas import FlatTorus, axes

MOST_LABELS = 12
"""Largest number of labels in a legend, the most frequent ones."""


def grid(
    model: Any, vocabulary: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1), pitch: int = 16
) -> Any:
    """Plot a grid as its features: colors, overlapping patches, or labels with a legend.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    vocabulary : Vocabulary or Collection
        The features.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    roll : bool or sequence of int, default=False
        True puts the cells least used by the prior at the border; or a shift along each axis.
    tiles : tuple of int, default=(1, 1)
        Copies of the torus along each axis; (2, 2) shows that it wraps around.
    pitch : int, default=16
        Pixels along each side of a cell.

    Returns
    -------
    ax : Axes
        The plot.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from countinggrids import plot
    >>> from countinggrids.features import Vocabulary
    >>> X = np.random.default_rng(0).integers(0, 9, (20, 3))
    >>> model = cg.CountingGrid((8, 8), (3, 3), random_state=0).fit(X)
    >>> colors = Vocabulary.of_colors(np.eye(3, dtype=np.uint8) * 255)
    >>> ax = plot.grid(model, colors, tiles=(2, 2))
    >>> ax = plot.windows(model, model.locate(X[:3]), ax, tiles=(2, 2))
    >>> ax.figure.savefig("grid.png")  # doctest: +SKIP
    """
    known = getattr(vocabulary, "vocabulary", vocabulary)
    flat = FlatTorus.of(model, roll, tiles)
    pi = painting.plane(model)
    painted = flat.lay(painting.picture(pi, known, pitch), pitch)
    ax = axes(ax, flat.size())
    ax.imshow(painted, extent=flat.extent(), interpolation="nearest", aspect=_aspect(flat))
    flat.frame(ax)
    if known.kind == "labels":
        _legend(ax, pi, known)
    return ax


def windows(
    model: Any,
    cells: ArrayLike,
    ax: Any = None,
    *,
    colors: Any = None,
    roll: Any = False,
    tiles: Any = (1, 1),
) -> Any:
    """Outline the windows of bags; a window that crosses a border continues at the opposite one.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    cells : array-like of shape (n_bags, n_axes)
        First cells of the windows, as of `model.locate`.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    colors : color or sequence of colors, default=None
        Color of all outlines, or of each; None cycles through those of matplotlib.
    roll : bool or sequence of int, default=False
        As in `grid`.
    tiles : tuple of int, default=(1, 1)
        As in `grid`.

    Returns
    -------
    ax : Axes
        The plot.
    """
    from matplotlib.patches import Rectangle

    flat = FlatTorus.of(model, roll, tiles)
    corners = _corners(model, cells)
    ax = axes(ax, flat.size())
    window = painting.as_two_axes(model.geometry_.window)
    each = [f"C{i}" for i in range(len(corners))] if colors is None else colors
    each = [each] * len(corners) if isinstance(each, str) else list(each)
    for corner, color in zip(corners, each, strict=True):
        for row, column in flat.rectangles(corner, window):
            # A thin dark line around the colored one is visible on any picture.
            for width, edge in ((2.6, "black"), (1.4, color)):
                ax.add_patch(Rectangle((column, row), window[1], window[0], fill=False, edgecolor=edge, lw=width))
    ax.set_aspect(_aspect(flat))
    flat.frame(ax)
    return ax


def usage(model: Any, X: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1)) -> Any:
    """Plot the expected number of bags whose window covers each cell.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    X : array-like or sparse matrix of shape (n_bags, n_columns)
        Counts.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    roll : bool or sequence of int, default=False
        As in `grid`.
    tiles : tuple of int, default=(1, 1)
        As in `grid`.

    Returns
    -------
    ax : Axes
        The plot.
    """
    heights = painting.coverage(model, X) * X.shape[0]
    return _heat(model, heights, "bags over a cell", ax, roll, tiles)


def prior(model: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1)) -> Any:
    """Plot the prior over windows, each at its middle.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    roll : bool or sequence of int, default=False
        As in `grid`.
    tiles : tuple of int, default=(1, 1)
        As in `grid`.

    Returns
    -------
    ax : Axes
        The plot.
    """
    return _heat(model, _to_middles(model, np.exp(model.log_prior_)), "prior of a window", ax, roll, tiles)


def posterior(model: Any, bag: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1)) -> Any:
    """Plot the posterior of a bag over windows, each at its middle, and outline the most likely one.

    The plot is transparent where the posterior is low, so that it can be drawn over that of `grid`.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    bag : array-like or sparse matrix of shape (n_columns,) or (1, n_columns)
        Counts of one bag.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    roll : bool or sequence of int, default=False
        As in `grid`.
    tiles : tuple of int, default=(1, 1)
        As in `grid`.

    Returns
    -------
    ax : Axes
        The plot.
    """
    from matplotlib.colors import LinearSegmentedColormap

    row = bag.reshape(1, -1) if isinstance(bag, np.ndarray) and bag.ndim == 1 else bag
    if row.shape[0] != 1:
        raise ValueError(f"bag of shape {row.shape} must be the counts of one bag; use for instance X[:1].")
    q = next(model.iter_posteriors(row))[0].reshape(model.log_prior_.shape)
    flat = FlatTorus.of(model, roll, tiles)
    ax = axes(ax, flat.size())
    ramp = LinearSegmentedColormap.from_list("heat", [(1, 0.8, 0, 0), (1, 0.5, 0, 0.75), (0.8, 0, 0, 0.9)])
    heights = np.sqrt(_to_middles(model, q))  # so that small probabilities are visible too
    ax.imshow(flat.lay(heights), extent=flat.extent(), cmap=ramp, interpolation="nearest", aspect=_aspect(flat))
    return windows(model, model.locate(row), ax, colors="white", roll=roll, tiles=tiles)


def history(model: Any, ax: Any = None) -> Any:
    """Plot the objective per token against the iterations of the best restart.

    It falls while the inverse temperature rises, because the log-likelihood is multiplied by it, and rises while that
    is constant.

    Parameters
    ----------
    model : estimator
        A fitted model.
    ax : Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : Axes
        The plot.
    """
    values = getattr(model, "history_", ())
    if not len(values):
        raise ValueError("the model has no history_; expected one trained with fit, as partial_fit records none.")
    ax = axes(ax, (6.4, 4))
    ax.plot(np.arange(1, len(values) + 1), values, lw=1.5)
    ax.set(xlabel="iteration", ylabel="objective per token", xlim=(1, max(2, len(values))))
    ax.grid(alpha=0.3)
    return ax


def _heat(model: Any, heights: Any, name: str, ax: Any, roll: Any, tiles: Any) -> Any:
    flat = FlatTorus.of(model, roll, tiles)
    ax = axes(ax, flat.size())
    image = ax.imshow(
        flat.lay(heights), extent=flat.extent(), cmap="YlGnBu", vmin=0, interpolation="nearest", aspect=_aspect(flat)
    )
    ax.figure.colorbar(image, ax=ax, label=name, shrink=0.7)
    flat.frame(ax)
    return ax


def _legend(ax: Any, pi: Any, vocabulary: Any) -> None:
    """Add a legend of the labels on the map, by decreasing number of cells."""
    from matplotlib.patches import Patch

    colors = painting.colors_of(vocabulary) / 255
    n_cells = np.bincount(pi.argmax(axis=2).ravel(), minlength=len(vocabulary))
    seen = [label for label in np.argsort(-n_cells, kind="stable") if n_cells[label]]
    entries = [Patch(color=colors[label], label=vocabulary.names[label]) for label in seen[:MOST_LABELS]]
    if len(seen) > MOST_LABELS:
        entries.append(Patch(color="none", label=f"and {len(seen) - MOST_LABELS} more"))
    ax.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)


def _corners(model: Any, cells: ArrayLike) -> list[tuple[int, int]]:
    """Return the first cells of windows as rows and columns."""
    n_axes = model.log_prior_.ndim
    corners = np.asarray(cells)
    if corners.ndim != 2 or corners.shape[1] != n_axes:
        raise ValueError(
            f"cells of shape {corners.shape} must be (n_bags, {n_axes}), coordinates of first cells; "
            "use for instance model.locate(X[:5])."
        )
    return [painting.as_two_axes(corner, missing=0) for corner in corners.tolist()]


def _to_middles(model: Any, planes: Any) -> Any:
    """Move values of windows from their first cells to their middles, (n_rows, n_columns)."""
    window = model.geometry_.window
    moved = np.roll(planes, [length // 2 for length in window], tuple(range(len(window))))
    return moved.reshape(painting.plane(model).shape[:2])


def _aspect(flat: FlatTorus) -> str:
    """Return the aspect: square cells, except on a grid of one row, which would be a thin line."""
    return "auto" if flat.grid[0] == 1 else "equal"
