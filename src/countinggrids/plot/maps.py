"""Maps of a grid: painted with its features, its windows, usage, prior and posterior; and how it was learnt.

The maps share `roll` and `tiles`, so that what is drawn on the same Axes lands in the same place.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countinggrids import painting
from countinggrids.plot.canvas import Flat, axes

MOST_LABELS = 12
"""Labels in a legend at the most, the most frequent ones."""


def grid(
    model: Any, vocabulary: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1), pitch: int = 16
) -> Any:
    """Paint a grid with its features: colours, overlapped patches, or labels with a legend.

    Parameters
    ----------
    model : a fitted model with one or two axes
    vocabulary : what the features are; a `Collection` will do
    ax : where to draw; None makes a figure
    roll : True puts the least used seam (by the model's prior) at the border; or a shift along each axis
    tiles : how often the torus is repeated along each axis; (2, 2) shows that it wraps round
    pitch : pixels along each side of a cell

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from countinggrids import plot
    >>> from countinggrids.features import Vocabulary
    >>> X = np.random.default_rng(0).integers(0, 9, (20, 3))
    >>> model = cg.CountingGrid((8, 8), (3, 3), random_state=0).fit(X)
    >>> colours = Vocabulary.of_colours(np.eye(3, dtype=np.uint8) * 255)
    >>> ax = plot.grid(model, colours, tiles=(2, 2))
    >>> ax = plot.windows(model, model.locate(X[:3]), ax, tiles=(2, 2))
    >>> ax.figure.savefig("grid.png")  # doctest: +SKIP
    """
    known = getattr(vocabulary, "vocabulary", vocabulary)
    flat = Flat.of(model, roll, tiles)
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
    colours: Any = None,
    roll: Any = False,
    tiles: Any = (1, 1),
) -> Any:
    """Outline the windows of bags; one that leaves at a border comes in at the other side.

    Parameters
    ----------
    model : a fitted model with one or two axes
    cells : (bags, axes) the corners of the windows, as `model.locate` gives them
    ax : where to draw; None makes a figure
    colours : a colour for all outlines, or one for each; None takes matplotlib's own in turn
    roll, tiles : as in `grid`
    """
    from matplotlib.patches import Rectangle

    flat = Flat.of(model, roll, tiles)
    corners = _corners(model, cells)
    ax = axes(ax, flat.size())
    window = _two(model._geometry().window, 1)
    each = [f"C{i}" for i in range(len(corners))] if colours is None else colours
    each = [each] * len(corners) if isinstance(each, str) else list(each)
    for corner, colour in zip(corners, each, strict=True):
        for row, column in flat.rectangles(corner, window):
            # A thin dark line around the coloured one can be told from any picture.
            for width, edge in ((2.6, "black"), (1.4, colour)):
                ax.add_patch(Rectangle((column, row), window[1], window[0], fill=False, edgecolor=edge, lw=width))
    ax.set_aspect(_aspect(flat))
    flat.frame(ax)
    return ax


def usage(model: Any, X: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1)) -> Any:
    """Draw how many bags lie over each cell: their posteriors, spread over the windows.

    Parameters
    ----------
    model : a fitted model with one or two axes
    X : the bags
    ax : where to draw; None makes a figure
    roll, tiles : as in `grid`
    """
    heights = painting.coverage(model, X) * X.shape[0]
    return _heat(model, heights, "bags over a cell", ax, roll, tiles)


def prior(model: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1)) -> Any:
    """Draw the prior of the windows, each at its middle.

    Parameters
    ----------
    model : a fitted model with one or two axes
    ax : where to draw; None makes a figure
    roll, tiles : as in `grid`
    """
    return _heat(model, _to_middles(model, np.exp(model.log_prior_)), "prior of a window", ax, roll, tiles)


def posterior(model: Any, bag: Any, ax: Any = None, *, roll: Any = False, tiles: Any = (1, 1)) -> Any:
    """Draw where a bag may lie as heat: the posterior of the windows, each at its middle; the best one is outlined.

    Where the posterior is low the heat is transparent: on the Axes of a painted grid the picture shines through.

    Parameters
    ----------
    model : a fitted model with one or two axes
    bag : the counts of one bag, (sections * features,) or (1, sections * features)
    ax : where to draw; None makes a figure
    roll, tiles : as in `grid`
    """
    from matplotlib.colors import LinearSegmentedColormap

    row = bag.reshape(1, -1) if isinstance(bag, np.ndarray) and bag.ndim == 1 else bag
    if row.shape[0] != 1:
        raise ValueError(f"bag has {row.shape[0]} rows; wanted the counts of one bag; give for instance X[:1]")
    q = model.transform(row).reshape(model.log_prior_.shape)
    flat = Flat.of(model, roll, tiles)
    ax = axes(ax, flat.size())
    ramp = LinearSegmentedColormap.from_list("heat", [(1, 0.8, 0, 0), (1, 0.5, 0, 0.75), (0.8, 0, 0, 0.9)])
    heights = np.sqrt(_to_middles(model, q))  # the eye should find what is unlikely but possible too
    ax.imshow(flat.lay(heights), extent=flat.extent(), cmap=ramp, interpolation="nearest", aspect=_aspect(flat))
    return windows(model, model.locate(row), ax, colours="white", roll=roll, tiles=tiles)


def history(model: Any, ax: Any = None) -> Any:
    """Draw the objective per token against the iterations of the best restart.

    While beta rises it falls: the log-likelihood is taken times beta. Where beta stands still it rises.

    Parameters
    ----------
    model : a fitted model
    ax : where to draw; None makes a figure
    """
    values = getattr(model, "history_", ())
    if not len(values):
        raise ValueError("the model has no history; wanted one that was learnt with fit; partial_fit keeps none")
    ax = axes(ax, (6.4, 4))
    ax.plot(np.arange(1, len(values) + 1), values, lw=1.5)
    ax.set(xlabel="iteration", ylabel="objective per token", xlim=(1, max(2, len(values))))
    ax.grid(alpha=0.3)
    return ax


def _heat(model: Any, heights: Any, name: str, ax: Any, roll: Any, tiles: Any) -> Any:
    flat = Flat.of(model, roll, tiles)
    ax = axes(ax, flat.size())
    image = ax.imshow(
        flat.lay(heights), extent=flat.extent(), cmap="YlGnBu", vmin=0, interpolation="nearest", aspect=_aspect(flat)
    )
    ax.figure.colorbar(image, ax=ax, label=name, shrink=0.7)
    flat.frame(ax)
    return ax


def _legend(ax: Any, pi: Any, vocabulary: Any) -> None:
    """Name the labels that are seen, those of the most cells first."""
    from matplotlib.patches import Patch

    colours = painting.colours_of(vocabulary) / 255
    n_cells = np.bincount(pi.argmax(axis=2).ravel(), minlength=len(vocabulary))
    seen = [label for label in np.argsort(-n_cells, kind="stable") if n_cells[label]]
    entries = [Patch(color=colours[label], label=vocabulary.names[label]) for label in seen[:MOST_LABELS]]
    if len(seen) > MOST_LABELS:
        entries.append(Patch(color="none", label=f"and {len(seen) - MOST_LABELS} more"))
    ax.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)


def _corners(model: Any, cells: ArrayLike) -> list[tuple[int, int]]:
    """Read the corners of windows as rows and columns."""
    n_axes = model.log_prior_.ndim
    corners = np.asarray(cells)
    if corners.ndim != 2 or corners.shape[1] != n_axes:
        raise ValueError(
            f"cells have shape {corners.shape}; wanted (bags, {n_axes}), coordinates of corners; "
            "give for instance model.locate(X[:5])"
        )
    return [_two(corner, 0) for corner in corners.tolist()]


def _two(lengths: Any, missing: int) -> tuple[int, int]:
    """Give a shape or a place on a grid with one axis as on one with a single row."""
    return (missing, int(lengths[0])) if len(lengths) == 1 else (int(lengths[0]), int(lengths[1]))


def _to_middles(model: Any, planes: Any) -> Any:
    """Move what belongs to windows from their corners to their middles, (rows, columns)."""
    window = model._geometry().window
    moved = np.roll(planes, [length // 2 for length in window], tuple(range(len(window))))
    return moved.reshape(painting.plane(model).shape[:2])


def _aspect(flat: Flat) -> str:
    """Keep cells square, except on a grid of one row: that would be a thin line."""
    return "auto" if flat.grid[0] == 1 else "equal"
