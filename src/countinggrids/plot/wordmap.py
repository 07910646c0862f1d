"""Maps of words: the most distinctive ones of each place, without overlap."""

from typing import Any

import numpy as np

from countinggrids.plot import painting
from countinggrids.plot.canvas import FlatTorus, axes

SMALLEST, LARGEST = 5.5, 21.0
"""Sizes of words, in points."""
GAP = 2
"""Smallest number of pixels between words."""
STEPS = [(row, column) for row in (0, -1, 1, -2, 2) for column in (0, -0.5, 0.5, -1, 1)]
"""Displacements of a word that are tried if its place is taken, in heights and widths of the word, nearest first."""
STEPS.sort(key=lambda step: step[0] ** 2 + 2 * step[1] ** 2)


def words(
    model: Any,
    vocabulary: Any,
    ax: Any = None,
    *,
    places: Any = None,
    n: int = 6,
    roll: Any = False,
    tiles: Any = (1, 1),
) -> Any:
    """Plot the most distinctive words of each place, in sizes by their relevance.

    The background is darker where the prior is larger. Words for which there is no space are left out.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    vocabulary : Vocabulary or Collection
        The features.
    ax : Axes, default=None
        Where to draw; None makes a figure.
    places : tuple of int, default=None
        Places along each axis; None is two for each window.
    n : int, default=6
        Largest number of words of a place.
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
    >>> import countinggrids as cg
    >>> from countinggrids import plot
    >>> from countinggrids.features.text import Document
    >>> tea = cg.Collection.from_texts([Document("tea for two"), Document("two cups"), Document("more tea")])
    >>> model = cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(tea.counts)
    >>> ax = plot.words(model, tea, roll=True)
    >>> "cups" in [text.get_text() for text in ax.texts]
    True
    """
    known = getattr(vocabulary, "vocabulary", vocabulary)
    flat = FlatTorus.of(model, roll, tiles)
    pi, usage = painting.plane(model), painting.coverage(model)
    painting.check_vocabulary(pi, known)
    ax = axes(ax, flat.size(9.0))
    shades = flat.lay(np.sqrt(usage))
    ax.imshow(shades, extent=flat.extent(), cmap="Blues", vmin=0, vmax=3 * shades.max(), aspect="auto",
              interpolation="bicubic")  # fmt: skip
    flat.frame(ax)
    chosen = painting.words(pi, usage, _places(model, flat) if places is None else places, n)
    write(ax, flat, chosen, known.names)
    return ax


def write(ax: Any, flat: FlatTorus, chosen: list[painting.Word], names: Any) -> None:
    """Draw words, the most distinctive first, each as near to its place as there is space for all its copies."""
    if not chosen:
        return
    ax.figure.draw_without_rendering()  # extents are known only after the layout
    bounds = ax.get_window_extent().extents
    top = chosen[0].weight
    taken = np.empty((0, 4))
    for word in chosen:
        strength = (word.weight / top) ** 0.5
        size = max(SMALLEST, LARGEST * strength)
        text = ax.text(0, 0, names[word.feature], fontsize=size, ha="center", va="center", color=_ink(strength),
                       clip_on=True, parse_math=False)  # fmt: skip
        extent = text.get_window_extent()
        centers = ax.transData.transform([(column, row) for row, column in flat.copies(word.row, word.column)])
        width, height = extent.width + GAP, extent.height + GAP
        found = room(centers, width, height, taken, bounds)
        if found is None:
            text.remove()
            continue
        taken = np.vstack([taken, boxes_at(found, width, height)])
        for copy, place in enumerate(ax.transData.inverted().transform(found)):
            shown = text if copy == 0 else ax.text(0, 0, text.get_text(), clip_on=True, parse_math=False)
            shown.update_from(text)
            shown.set_position(place)


def room(centers: Any, width: float, height: float, taken: Any, bounds: Any) -> Any:
    """Return the nearest centers where no copy overlaps another word or the border; None if there are none."""
    boxes = boxes_at(centers, width, height)
    low, high = np.asarray(bounds[:2]), np.asarray(bounds[2:])
    into = (low - boxes[:, :2]).max(axis=0).clip(min=0) + (high - boxes[:, 2:]).min(axis=0).clip(max=0)
    for up, aside in STEPS:
        moved = centers + into + np.array([aside * width, up * height])
        boxes = boxes_at(moved, width, height)
        # Half of the gap, so that rounding does not reject a word at the border.
        is_inside = (boxes[:, :2] > low - GAP / 2).all() and (boxes[:, 2:] < high + GAP / 2).all()
        if is_inside and not touches(boxes, taken).any():
            return moved
    return None


def boxes_at(centers: Any, width: float, height: float) -> Any:
    """Return left, lower, right and upper ends of boxes of one size, (n_centers, 4)."""
    half = np.array([width, height]) / 2
    return np.hstack([centers - half, centers + half])


def touches(boxes: Any, taken: Any) -> Any:
    """Return which boxes overlap which others, (n_boxes, n_taken)."""
    return (
        (boxes[:, None, :2] < taken[None, :, 2:]).all(axis=2) & (boxes[:, None, 2:] > taken[None, :, :2]).all(axis=2)
    )  # fmt: skip


def _places(model: Any, flat: FlatTorus) -> tuple[int, int]:
    """Return two places for each window along each axis."""
    lengths = painting.as_two_axes(model.geometry_.window)
    rows, columns = (max(1, round(2 * cells / length)) for cells, length in zip(flat.grid, lengths, strict=True))
    return rows, columns


def _ink(strength: float) -> tuple[float, float, float]:
    """Return the color of a word; distinctive words are darker."""
    pale, dark = np.array([0.35, 0.42, 0.55]), np.array([0.03, 0.08, 0.25])
    red, green, blue = pale + (dark - pale) * strength
    return float(red), float(green), float(blue)
