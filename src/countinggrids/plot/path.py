"""A text as a path over the map of a componential grid, where every word has its own window."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countinggrids.core import torus
from countinggrids.models import ComponentialGrid
from countinggrids.plot import painting
from countinggrids.plot.canvas import FlatTorus, axes

Array = NDArray[Any]


def path(
    model: ComponentialGrid,
    words: Sequence[Any],
    vocabulary: Any = None,
    ax: Any = None,
    *,
    stretch: int = 12,
    n_labels: int = 6,
    roll: Any = False,
    tiles: Any = (1, 1),
) -> Any:
    """Plot a text as a path: where its words lie, from the first to the last.

    Every word is a dot in the middle of its window. The path goes from one stretch of consecutive words to the next:
    each is at the word from which the others are least far away on the torus.

    Parameters
    ----------
    model : ComponentialGrid
        A fitted model with one or two axes, without sections.
    words : sequence of int or str
        Features of the text in reading order, or words with a vocabulary; words that it does not have are left out.
    vocabulary : Vocabulary or Collection, default=None
        Names of the features; words are then written along the path too.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    stretch : int, default=12
        Words of a stretch.
    n_labels : int, default=6
        Words that are written, at most.
    roll : bool or sequence of int, default=False
        As in `grid`.
    tiles : tuple of int, default=(1, 1)
        As in `grid`.

    Returns
    -------
    ax : Axes
        The plot.

    Examples
    --------
    >>> import numpy as np
    >>> import countinggrids as cg
    >>> from countinggrids import plot
    >>> X = np.random.default_rng(0).integers(0, 3, (30, 12))
    >>> model = cg.ComponentialGrid((6, 6), (2, 2), random_state=0).fit(X)
    >>> plot.path(model, [0, 3, 3, 7, 1, 2, 11], stretch=3).figure.savefig("path.png")  # doctest: +SKIP
    """
    if not isinstance(model, ComponentialGrid):
        raise TypeError(f"model={model!r} must be a ComponentialGrid, in which every word has a window of its own.")
    if isinstance(stretch, bool) or not isinstance(stretch, int | np.integer) or stretch < 1:
        raise ValueError(f"stretch={stretch!r} must be a positive integer; use for instance 12.")
    names = None if vocabulary is None else getattr(vocabulary, "vocabulary", vocabulary).names
    features = _features(words, names, model.n_features_in_)
    places = _places(model, features)
    flat = FlatTorus.of(model, roll, tiles)
    ax = axes(ax, flat.size())
    middles = [_medoid(places[i : i + stretch], flat.grid) for i in range(0, len(places), stretch)]
    stops = places[[start * stretch + each for start, each in enumerate(middles)]]
    _draw(ax, flat, places, stops)
    if names is not None:
        _label(ax, flat, [names[i] for i in features], places, n_labels)
    flat.frame(ax)
    ax.set_aspect("auto" if flat.grid[0] == 1 else "equal")
    return ax


def _features(words: Sequence[Any], names: Sequence[str] | None, n_features: int) -> NDArray[np.int64]:
    """Return the features of the words that the model knows."""
    if names is not None and any(isinstance(word, str) for word in words):
        numbers = {name: i for i, name in enumerate(names)}
        words = [numbers[word] for word in words if word in numbers]
    found = np.asarray(words)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iu":
        raise ValueError(
            "words must be features as integers, or words with a vocabulary that has at least one of them; "
            "use for instance plot.path(model, text.lower().split(), collection)."
        )
    if found.min() < 0 or found.max() >= n_features:
        raise ValueError(f"words must be features from 0 to {n_features - 1}; got {found.min()} to {found.max()}.")
    return found.astype(np.int64)


def _places(model: ComponentialGrid, features: NDArray[np.int64]) -> Array:
    """Return the middle of the window of every word, as rows and columns."""
    geometry = model.geometry_
    if geometry.n_column_sections > 1:
        raise ValueError("model has sections, and a text has none; fit it with sections=None.")
    counts = np.bincount(features, minlength=model.n_features_in_)[None].astype(model.dtype)
    cells = model.assign(counts).toarray()[0, features] - 1
    corners = np.stack(np.unravel_index(cells, geometry.grid), axis=1)
    middles = (corners + (np.array(geometry.window) - 1) / 2) % geometry.grid
    return np.array([painting.as_two_axes(middle, missing=0) for middle in middles.tolist()], dtype=float)


def _medoid(places: Array, grid: tuple[int, int]) -> int:
    """Return the place from which the others are least far away."""
    ways = torus.displacement(places[:, None], places[None], grid)
    return int(np.hypot(ways[..., 0], ways[..., 1]).sum(axis=1).argmin())


def _draw(ax: Any, flat: FlatTorus, places: Array, stops: Array) -> None:
    """Draw the words as dots and the path as lines, from light to dark, along the shortest way on the torus."""
    from matplotlib import colormaps

    ramp = colormaps["viridis_r"]
    colors = ramp(np.linspace(0, 1, len(places)))
    for place, color in zip(places, colors, strict=True):
        for row, column in flat.copies(*place):
            ax.plot(column, row, "o", color=color, alpha=0.6, ms=5, mew=0)
    times = np.linspace(0, 1, len(stops))
    for start, end, time in zip(stops[:-1], stops[1:], times[1:], strict=True):
        way = torus.displacement(start, end, flat.grid)
        for row, column in _with_margins(flat, start):
            ax.plot([column, column + way[1]], [row, row + way[0]], color=ramp(time), lw=1.6, solid_capstyle="round")
    for stop, marker, time in ((stops[0], "o", 0.0), (stops[-1], "s", 1.0)):
        for row, column in flat.copies(*stop):
            ax.plot(column, row, marker, color=ramp(time), ms=8, mec="black", mew=0.8)


def _with_margins(flat: FlatTorus, place: Array) -> list[tuple[float, float]]:
    """Return the copies of a place in all tiles and in those around them, from which a line may enter the plot."""
    first = flat.copies(*place)[0]
    ways = [
        [at + i * n for i in range(-1, tiles + 1)] for at, n, tiles in zip(first, flat.grid, flat.tiles, strict=True)
    ]
    return [(row, column) for row in ways[0] for column in ways[1]]


def _label(ax: Any, flat: FlatTorus, words: list[str], places: Array, most: int) -> None:
    """Write the most frequent words where they lie, each in its first copy, none over another."""
    from matplotlib.patheffects import withStroke

    kinds, first, times = np.unique(words, return_index=True, return_counts=True)
    taken: list[Array] = []
    for i in np.lexsort((first, -times)):
        at = np.array(flat.copies(*places[first[i]])[0])
        if all(abs(at - other)[0] >= 0.06 * flat.grid[0] * flat.tiles[0] for other in taken):
            text = ax.annotate(kinds[i], at[::-1], (4, 4), textcoords="offset points", fontsize=9)
            text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
            taken.append(at)
        if len(taken) == most:
            return
