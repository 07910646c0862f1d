"""Rendering of a grid as an image and as words, for plots, films and the explorer.

Everything wraps around, as the grid does. Coordinates are in cells; the middle of cell (i, j) is at row i, column j.
"""

import colorsys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countinggrids.core import torus
from countinggrids.core.relevance import FLOOR, mean_histogram, relevance
from countinggrids.features.labels import UNLABELED
from countinggrids.features.vocabulary import Vocabulary

Array = NDArray[Any]

OVERLAP = 2
"""Cells along a painted patch: features are usually half a patch apart."""
SHARPNESS = 3.0
"""Power of pi by which patches are averaged: a mean over all features would be nearly gray."""
CANDIDATES = 12
"""Candidate words of a place for each word to be chosen, as neighboring places may have the first ones."""
PEAKEDNESS = 3
"""Power by which the place of a word is averaged: near its most likely cell, rather than in the middle of all."""
GRAY = (200, 200, 200)
"""The color of places without a label."""


def plane(model: Any) -> Array:
    """Return pi as (n_rows, n_columns, n_features): sections are averaged, a grid of one axis has one row."""
    grid = model.log_prior_.shape
    if len(grid) > 2:
        raise ValueError(f"grid={grid} has {len(grid)} axes; expected one or two to plot; use a slice of pi_.")
    pi = model.pi_ if model.pi_.ndim == len(grid) + 1 else model.pi_.mean(axis=-2)
    return pi.reshape(*(1,) * (2 - len(grid)), *grid, -1)


def as_two_axes(lengths: Sequence[int], missing: int = 1) -> tuple[int, int]:
    """Return a shape or a place on a grid of one axis as on a grid of one row; `missing` is the new entry."""
    return (missing, int(lengths[0])) if len(lengths) == 1 else (int(lengths[0]), int(lengths[1]))


def coverage(model: Any, X: Any = None) -> Array:
    """Compute the expected fraction of bags whose window covers each cell.

    Parameters
    ----------
    model : estimator
        A fitted model with one or two axes.
    X : array-like or sparse matrix of shape (n_bags, n_columns), default=None
        Counts; None uses the prior of the model.

    Returns
    -------
    coverage : ndarray of shape (n_rows, n_columns)
        Fraction of bags.
    """
    geometry = model.geometry_
    shape = plane(model).shape[:2]
    usage = np.exp(model.log_prior_.astype(np.float64)) if X is None else model.usage(X)
    usage = (usage / usage.sum()).reshape(geometry.grid)
    if X is None and model.location_prior_ == "smoothed":
        return (usage * np.prod(geometry.window)).reshape(shape)  # Eq. pl2 has summed it over windows already
    return torus.covering_sum(usage, geometry.window).reshape(shape)


def picture(pi: ArrayLike, vocabulary: Vocabulary, pitch: int = 8, sharpness: float | None = None) -> NDArray[np.uint8]:
    """Render a grid as an image of its features.

    Colors are averaged by pi. Patches are averaged by a power of pi, then blended where they overlap. A cell of
    labels has the color of the most likely one.

    Parameters
    ----------
    pi : array-like of shape (n_rows, n_columns, n_features)
        The grid; also (n_rows, n_columns, n_sections, n_features) or (n_cells, n_features).
    vocabulary : Vocabulary
        The features.
    pitch : int, default=8
        Pixels along each side of a cell.
    sharpness : float, default=None
        Power of pi by which features are averaged; None is 1 for colors and 3 for patches.

    Returns
    -------
    picture : ndarray of shape (n_rows * pitch, n_columns * pitch, 3)
        RGB, uint8.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import Vocabulary
    >>> colors = Vocabulary.of_colors(np.array([[255, 0, 0], [0, 0, 255]], np.uint8))
    >>> picture([[[1.0, 0.0], [0.5, 0.5]]], colors, pitch=1)[0].tolist()
    [[255, 0, 0], [128, 0, 128]]
    """
    weights = _as_plane(pi)
    check_vocabulary(weights, vocabulary)
    if not isinstance(pitch, int | np.integer) or pitch < 1:
        raise ValueError(f"pitch={pitch!r} must be a number of pixels of at least 1; use for instance pitch=8.")
    if vocabulary.patches is not None:
        return _overlapped(_powered(weights, sharpness or SHARPNESS), vocabulary.patches, pitch)
    colors = colors_of(vocabulary)
    if vocabulary.kind == "labels":
        cells = colors[weights.argmax(axis=2)]
    else:
        cells = (_powered(weights, sharpness or 1.0) @ colors).round().astype(np.uint8)
    return cells.repeat(pitch, axis=0).repeat(pitch, axis=1)


def check_vocabulary(pi: Array, vocabulary: Vocabulary) -> None:
    """Raise unless pi has as many features as the vocabulary."""
    if pi.shape[-1] != len(vocabulary):
        raise ValueError(
            f"vocabulary of {len(vocabulary)} features must have as many as pi, {pi.shape[-1]}; "
            "use that of the collection that the model was fitted to."
        )


def colors_of(vocabulary: Vocabulary) -> NDArray[np.uint8]:
    """Return the color of each feature, (n_features, 3); labels without one get distinct colors."""
    if vocabulary.colors is not None:
        return vocabulary.colors
    if vocabulary.kind == "labels":
        colors = label_colors(len(vocabulary))
        colors[[name == UNLABELED for name in vocabulary.names]] = GRAY
        return colors
    advice = "plot the words of the grid" if vocabulary.kind == "words" else "bag again from images"
    raise ValueError(
        f"vocabulary of {vocabulary.kind} has no colors; expected colors, labels, or patches with images; {advice}."
    )


def label_colors(n: int) -> NDArray[np.uint8]:
    """Return n distinct colors, (n, 3): hues a golden section apart, in cycling tones."""
    tones = ((0.75, 0.85), (0.85, 0.5), (0.4, 0.95), (0.95, 1.0), (0.5, 0.65))  # saturation and value
    hues = ((0.58 + i * 0.61803398875) % 1 for i in range(n))
    colors = [colorsys.hsv_to_rgb(hue, *tones[i % len(tones)]) for i, hue in enumerate(hues)]
    return (255 * np.array(colors).reshape(n, 3)).round().astype(np.uint8)


class Word(NamedTuple):
    """A word at a place of the grid.

    Attributes
    ----------
    feature : int
        Index of the word.
    row : float
        Row, in cells.
    column : float
        Column, in cells.
    weight : float
        Relevance of the word for the place.
    """

    feature: int
    row: float
    column: float
    weight: float


def words(
    pi: ArrayLike, usage: ArrayLike | None = None, places: Sequence[int] = (8, 8), n: int = 3, apart: float = 2.0
) -> list[Word]:
    """Choose the most distinctive words of each place, the most distinctive first.

    The grid is divided into places, and the words are chosen that distinguish a place from the whole grid. A word that
    is distinctive of neighboring places is chosen for that where it is most so.

    Parameters
    ----------
    pi : array-like of shape (n_rows, n_columns, n_features)
        The grid, as in `picture`.
    usage : array-like of shape (n_rows, n_columns), default=None
        Weight of each cell, such as `coverage`; None weighs all cells alike.
    places : sequence of int, default=(8, 8)
        Places along each axis.
    n : int, default=3
        Largest number of words of a place.
    apart : float, default=2.0
        Smallest distance of a word from itself on the torus, in places.

    Returns
    -------
    words : list of Word
        Words by decreasing weight.
    """
    planes = _as_plane(pi)
    grid = planes.shape[:2]
    cuts = [_cuts(length, parts) for length, parts in zip(grid, places, strict=True)]
    shape = len(cuts[0]) - 1, len(cuts[1]) - 1
    weights = np.ones(grid) if usage is None else np.maximum(np.asarray(usage, float).reshape(grid), FLOOR)
    weights = (weights / weights.sum()).astype(planes.dtype)
    everywhere = mean_histogram(planes, weights)
    masses = np.add.reduceat(np.add.reduceat(weights, cuts[0][:-1], 0), cuts[1][:-1], 1)
    found: list[tuple[float, int, int]] = []
    for place, (i, j) in enumerate(np.ndindex(shape)):
        block = slice(*cuts[0][i : i + 2]), slice(*cuts[1][j : j + 2])
        inside = mean_histogram(planes[block], weights[block])
        scores = relevance(inside, everywhere)
        best = _largest(scores, n * CANDIDATES)
        # Weighted by the square root of usage, between ignoring it and letting frequent places dominate.
        weight = float(np.sqrt(masses[i, j] * masses.size))
        found += [(float(scores[z]) * weight, place, int(z)) for z in best if scores[z] > 0]
    kept = _far_apart(sorted(found, key=lambda each: (-each[0], *each[1:])), shape, n, apart)
    return [_placed(planes, weights, cuts, shape, *each) for each in kept]


def seam(usage: ArrayLike) -> tuple[int, ...]:
    """Return the shifts with which `np.roll` moves the least used line of cells of every axis to the border.

    Among equally used lines, the middle of the longest run of them is chosen.

    Parameters
    ----------
    usage : array-like of shape (*grid,)
        Usage of each cell.

    Returns
    -------
    shifts : tuple of int
        Shift along each axis.

    Examples
    --------
    >>> seam([[3, 0, 3, 3]])
    (0, 3)
    """
    heights = np.asarray(usage, dtype=float)
    axes = range(heights.ndim)
    return tuple(
        _to_border(heights.sum(axis=tuple(other for other in axes if other != axis)) / heights.size) for axis in axes
    )


def _as_plane(pi: ArrayLike) -> Array:
    """Return pi as (n_rows, n_columns, n_features)."""
    planes = np.asarray(pi)
    if planes.dtype.kind != "f":
        planes = planes.astype(np.float64)
    if planes.ndim == 4:
        planes = planes.mean(axis=2)
    if planes.ndim == 2:
        planes = planes[None]
    if planes.ndim != 3 or not planes.size:
        raise ValueError(f"pi of shape {np.shape(pi)} must be (n_rows, n_columns, n_features); use two axes.")
    return planes


def _powered(weights: Array, power: float) -> Array:
    """Raise distributions to a power, and normalize them again without underflow."""
    if power == 1:
        return weights
    raised = (weights / weights.max(axis=-1, keepdims=True)) ** power
    return raised / raised.sum(axis=-1, keepdims=True)


def _overlapped(weights: Array, patches: Array, pitch: int) -> NDArray[np.uint8]:
    """Average patches in every cell, and blend the results with those of neighboring cells."""
    rows, columns, n_features = weights.shape
    side = OVERLAP * pitch
    resized = _resized(patches.astype(np.float32), side).reshape(n_features, -1)
    means = (weights.astype(np.float32) @ resized).reshape(rows, columns, side, side, 3)
    fade = 1 - np.abs((np.arange(side) + 0.5) * 2 / side - 1)
    mask = np.outer(fade, fade).astype(np.float32)
    total = np.zeros((rows, columns, pitch, pitch, 3), np.float32)
    norm = np.zeros((pitch, pitch, 1), np.float32)
    for a, b in np.ndindex(OVERLAP, OVERLAP):
        part = slice(a * pitch, (a + 1) * pitch), slice(b * pitch, (b + 1) * pitch)
        total += np.roll(means[:, :, *part] * mask[part][..., None], (a, b), (0, 1))
        norm += mask[part][..., None]
    cells = (total / norm).round().astype(np.uint8).swapaxes(1, 2)
    # A patch is centered on its cell.
    return np.roll(cells.reshape(rows * pitch, columns * pitch, 3), -((side - pitch) // 2), (0, 1))


def _resized(patches: Array, side: int) -> Array:
    """Resize square patches by a triangle filter, (n_patches, side, side, 3)."""
    old = patches.shape[1]
    places = (np.arange(side) + 0.5) * old / side - 0.5
    kernel = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(old)) / max(1, old / side))
    kernel = (kernel / kernel.sum(axis=1, keepdims=True)).astype(patches.dtype)
    return np.einsum("ai,bj,zijc->zabc", kernel, kernel, patches, optimize=True)


def _cuts(length: int, parts: int) -> NDArray[np.int64]:
    """Divide an axis into parts, or into single cells if there are fewer."""
    parts = max(1, min(parts, length))
    return np.arange(parts + 1) * length // parts


def _largest(scores: Array, n: int) -> Array:
    """Return the indices of the n largest scores, in decreasing order."""
    if n < scores.size:
        top = np.argpartition(-scores, n)[:n]
        return top[np.lexsort((top, -scores[top]))]
    return np.argsort(-scores, kind="stable")


def _far_apart(
    found: list[tuple[float, int, int]], shape: tuple[int, int], n: int, apart: float
) -> list[tuple[float, int, int]]:
    """Keep n words of a place, the best first, that were not kept for a place near it."""
    kept: list[tuple[float, int, int]] = []
    taken: dict[int, list[tuple[int, int]]] = {}
    n_of = np.zeros(shape, int)
    for score, place, word in found:
        here = divmod(place, shape[1])
        others = taken.setdefault(word, [])
        ways = torus.displacement([here] * len(others), others, shape) if others else np.full((1, 2), np.inf)
        if n_of[here] < n and np.abs(ways).max(axis=1).min() >= apart:
            n_of[here] += 1
            others.append(here)
            kept.append((score, place, word))
    return kept


def _placed(
    planes: Array, weights: Array, cuts: list[Any], shape: tuple[int, int], score: float, place: int, word: int
) -> Word:
    """Place a word near its most likely cell."""
    i, j = divmod(place, shape[1])
    (top, bottom), (left, right) = cuts[0][i : i + 2], cuts[1][j : j + 2]
    here = planes[top:bottom, left:right, word] * weights[top:bottom, left:right]
    here = (here / here.max()) ** PEAKEDNESS
    here = here / here.sum()
    row, column = here.sum(axis=1) @ np.arange(top, bottom), here.sum(axis=0) @ np.arange(left, right)
    return Word(word, float(row), float(column), score)


def _to_border(line: Array) -> int:
    """Return the shift that moves the middle of the longest run of minima to the front."""
    is_least = line == line.min()
    if is_least.all():
        return 0
    begin = int(np.argmin(is_least))  # outside any run, as runs may wrap around
    runs: list[list[int]] = [[]]
    for cell in (begin + np.arange(line.size)) % line.size:
        if is_least[cell]:
            runs[-1].append(int(cell))
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=len)
    return -longest[len(longest) // 2] % line.size
