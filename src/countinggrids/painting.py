"""Painting: what a grid looks like, as pixels and as words, for plots and pages alike.

Everything wraps round, as the grid does. Coordinates are in cells; the middle of cell (i, j) is at row i, column j.
"""

import colorsys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countinggrids import torus
from countinggrids.features.labels import UNLABELLED
from countinggrids.features.vocabulary import Vocabulary

Array = NDArray[Any]

OVERLAP = 2
"""Sides of a painted patch, in cells: features are usually taken every half a patch."""
SHARPNESS = 3.0
"""Power of pi under which patches are averaged: a mean over all features would be grey fog."""
CANDIDATES = 12
"""Words of a place that are looked at for each that is wanted, as neighbours may have taken the first."""
HOME = 3
"""Power under which a word's place is averaged: near its most likely cell, rather than in the middle of everything."""
FLOOR = 1e-12
"""Added to probabilities before their logarithm."""
GREY = (200, 200, 200)
"""The colour of what has no label."""


def plane(model: Any) -> Array:
    """Give pi of a fitted model as (rows, columns, features): sections averaged, a grid with one axis as one row."""
    grid = model.log_prior_.shape
    if len(grid) > 2:
        raise ValueError(f"the grid {grid} has {len(grid)} axes; wanted one or two to paint; take a slice of pi_")
    pi = model.pi_ if model.pi_.ndim == len(grid) + 1 else model.pi_.mean(axis=-2)
    return pi.reshape(*(1,) * (2 - len(grid)), *grid, -1)


def coverage(model: Any, X: Any = None) -> Array:
    """Tell how much each cell is used: the share of the bags whose windows lie over it, (rows, columns).

    Parameters
    ----------
    model : a fitted model with one or two axes
    X : the bags; None takes the prior's word for it
    """
    geometry = model._geometry()
    shape = plane(model).shape[:2]
    if X is None:
        usage = np.exp(model.log_prior_.astype(np.float64))
    else:
        usage = np.sum([np.asarray(q.sum(axis=0), np.float64).ravel() for q, _ in model._posteriors(X)], axis=0)
    usage = (usage / usage.sum()).reshape(geometry.grid)
    if X is None and model.location_prior == "smoothed":
        return (usage * np.prod(geometry.window)).reshape(shape)  # Eq. pl2 has spread it over the windows already.
    return torus.covering_sum(usage, geometry.window).reshape(shape)


def picture(pi: ArrayLike, vocabulary: Vocabulary, pitch: int = 8, sharpness: float | None = None) -> NDArray[np.uint8]:
    """Paint a grid with its features, (rows * pitch, columns * pitch, 3).

    Colours are averaged under pi. Patches are averaged under a power of pi, then laid over each other, fading
    towards their borders. Of labels the most likely one gives its colour.

    Parameters
    ----------
    pi : (rows, columns, features), (rows, columns, sections, features) or (cells, features)
    vocabulary : what the features are
    pitch : pixels along each side of a cell
    sharpness : power of pi under which features are averaged; None takes 1 for colours and 3 for patches

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.features import Vocabulary
    >>> colours = Vocabulary.of_colours(np.array([[255, 0, 0], [0, 0, 255]], np.uint8))
    >>> picture([[[1.0, 0.0], [0.5, 0.5]]], colours, pitch=1)[0].tolist()
    [[255, 0, 0], [128, 0, 128]]
    """
    weights = _as_plane(pi)
    check_vocabulary(weights, vocabulary)
    if not isinstance(pitch, int | np.integer) or pitch < 1:
        raise ValueError(f"pitch is {pitch!r}; wanted pixels along a side of a cell; give for instance pitch=8")
    if vocabulary.patches is not None:
        return _overlapped(_powered(weights, sharpness or SHARPNESS), vocabulary.patches, pitch)
    colours = colours_of(vocabulary)
    if vocabulary.kind == "labels":
        cells = colours[weights.argmax(axis=2)]
    else:
        cells = (_powered(weights, sharpness or 1.0) @ colours).round().astype(np.uint8)
    return cells.repeat(pitch, axis=0).repeat(pitch, axis=1)


def check_vocabulary(pi: Array, vocabulary: Vocabulary) -> None:
    """Raise unless pi has as many features as the vocabulary."""
    if pi.shape[-1] != len(vocabulary):
        raise ValueError(
            f"pi has {pi.shape[-1]} features and the vocabulary {len(vocabulary)}; wanted the same; "
            "give the vocabulary of the collection that the model was learnt from"
        )


def colours_of(vocabulary: Vocabulary) -> NDArray[np.uint8]:
    """Give the colour of each feature, (features, 3); labels that have none get distinct ones."""
    if vocabulary.colours is not None:
        return vocabulary.colours
    if vocabulary.kind == "labels":
        colours = label_colours(len(vocabulary))
        colours[[name == UNLABELLED for name in vocabulary.names]] = GREY
        return colours
    wanted = "wanted colours, labels, or patches with their pictures"
    advice = "write the words of the grid instead" if vocabulary.kind == "words" else "bag again from images"
    raise ValueError(f"the features are {vocabulary.kind} without colours; {wanted}; {advice}")


def label_colours(n: int) -> NDArray[np.uint8]:
    """Give n distinct colours, (n, 3): hues a golden section apart, in tones that take turns."""
    tones = ((0.75, 0.85), (0.85, 0.5), (0.4, 0.95), (0.95, 1.0), (0.5, 0.65))  # saturation and value
    hues = ((0.58 + i * 0.61803398875) % 1 for i in range(n))
    colours = [colorsys.hsv_to_rgb(hue, *tones[i % len(tones)]) for i, hue in enumerate(hues)]
    return (255 * np.array(colours).reshape(n, 3)).round().astype(np.uint8)


def mean_histogram(pi: ArrayLike, usage: ArrayLike | None = None) -> Array:
    """Average pi over cells that count by their usage, (..., features) to (features,)."""
    histograms = np.asarray(pi)
    histograms = histograms.reshape(-1, histograms.shape[-1])
    if usage is None:
        return histograms.mean(axis=0)
    weights = np.maximum(np.asarray(usage, dtype=histograms.dtype).ravel(), FLOOR)
    return weights @ histograms / weights.sum()


def telling(inside: ArrayLike, everywhere: ArrayLike) -> Array:
    """Score how much each feature tells of a place, p log (p / p everywhere): frequent there, and rarer elsewhere.

    Parameters
    ----------
    inside : (..., features) histograms of places
    everywhere : (features,) the histogram of all places, such as `mean_histogram` gives

    Examples
    --------
    >>> telling([0.5, 0.5], [0.5, 0.1]).round(2).tolist()
    [0.0, 0.8]
    """
    here, anywhere = np.asarray(inside) + FLOOR, np.asarray(everywhere) + FLOOR
    return here * np.log(here / anywhere)


class Word(NamedTuple):
    """A word for a place of the grid.

    Attributes
    ----------
    feature : which word
    row, column : where, in cells
    weight : how much it tells of the place
    """

    feature: int
    row: float
    column: float
    weight: float


def words(
    pi: ArrayLike, usage: ArrayLike | None = None, places: Sequence[int] = (8, 8), n: int = 3, apart: float = 2.0
) -> list[Word]:
    """Choose the most telling words of each place, the most telling first.

    The grid is cut into places; of each, the words are taken that stand out against the whole grid. A word that
    stands out in neighbouring places is written where it does so most.

    Parameters
    ----------
    pi : as in `picture`
    usage : (rows, columns) how much each cell counts, such as `coverage` gives; None counts all the same
    places : how many places along each axis
    n : words in each place at the most
    apart : how many places the same word must at least be away from itself, on the torus
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
        scores = telling(inside, everywhere)
        best = _largest(scores, n * CANDIDATES)
        # A place that is hardly used should not shout; one that is much used should not drown the rest either.
        share = float(np.sqrt(masses[i, j] * masses.size))
        found += [(float(scores[z]) * share, place, int(z)) for z in best if scores[z] > 0]
    kept = _far_apart(sorted(found, key=lambda each: (-each[0], *each[1:])), shape, n, apart)
    return [_placed(planes, weights, cuts, shape, *each) for each in kept]


def seam(usage: ArrayLike) -> tuple[int, ...]:
    """Give the shifts with which `np.roll` brings the least used line of cells of every axis to the border.

    Where several lines are used equally little, the middle of the longest run of them is taken.

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
    """Give pi as (rows, columns, features)."""
    planes = np.asarray(pi)
    if planes.dtype.kind != "f":
        planes = planes.astype(np.float64)
    if planes.ndim == 4:
        planes = planes.mean(axis=2)
    if planes.ndim == 2:
        planes = planes[None]
    if planes.ndim != 3 or not planes.size:
        raise ValueError(f"pi has shape {np.shape(pi)}; wanted (rows, columns, features); give a grid with two axes")
    return planes


def _powered(weights: Array, power: float) -> Array:
    """Raise distributions to a power, and normalise them again; large numbers of features stay in range."""
    if power == 1:
        return weights
    raised = (weights / weights.max(axis=-1, keepdims=True)) ** power
    return raised / raised.sum(axis=-1, keepdims=True)


def _overlapped(weights: Array, patches: Array, pitch: int) -> NDArray[np.uint8]:
    """Average patches in every cell, and lay what comes out over the neighbours, fading towards its border."""
    rows, columns, n_features = weights.shape
    side = OVERLAP * pitch
    resized = _resized(patches.astype(np.float32), side).reshape(n_features, -1)
    means = (weights.astype(np.float32) @ resized).reshape(rows, columns, side, side, 3)
    fade = 1 - np.abs((np.arange(side) + 0.5) * 2 / side - 1)
    mask = np.outer(fade, fade).astype(np.float32)
    total = np.zeros((rows, columns, pitch, pitch, 3), np.float32)
    share = np.zeros((pitch, pitch, 1), np.float32)
    for a, b in np.ndindex(OVERLAP, OVERLAP):
        part = slice(a * pitch, (a + 1) * pitch), slice(b * pitch, (b + 1) * pitch)
        total += np.roll(means[:, :, *part] * mask[part][..., None], (a, b), (0, 1))
        share += mask[part][..., None]
    cells = (total / share).round().astype(np.uint8).swapaxes(1, 2)
    # A patch lies over the middle of its cell.
    return np.roll(cells.reshape(rows * pitch, columns * pitch, 3), -((side - pitch) // 2), (0, 1))


def _resized(patches: Array, side: int) -> Array:
    """Resize square patches by a triangle filter, (patches, side, side, 3)."""
    old = patches.shape[1]
    places = (np.arange(side) + 0.5) * old / side - 0.5
    kernel = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(old)) / max(1, old / side))
    kernel = (kernel / kernel.sum(axis=1, keepdims=True)).astype(patches.dtype)
    return np.einsum("ai,bj,zijc->zabc", kernel, kernel, patches, optimize=True)


def _cuts(length: int, parts: int) -> NDArray[np.int64]:
    """Cut an axis into so many parts, or into single cells where there are fewer."""
    parts = max(1, min(parts, length))
    return np.arange(parts + 1) * length // parts


def _largest(scores: Array, n: int) -> Array:
    """List the n largest scores, largest first."""
    if n < scores.size:
        top = np.argpartition(-scores, n)[:n]
        return top[np.lexsort((top, -scores[top]))]
    return np.argsort(-scores, kind="stable")


def _far_apart(
    found: list[tuple[float, int, int]], shape: tuple[int, int], n: int, apart: float
) -> list[tuple[float, int, int]]:
    """Keep, from the best down, words that no place near by has taken, and n in a place."""
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
    """Put a word where in its place it is most at home."""
    i, j = divmod(place, shape[1])
    (top, bottom), (left, right) = cuts[0][i : i + 2], cuts[1][j : j + 2]
    here = planes[top:bottom, left:right, word] * weights[top:bottom, left:right]
    here = (here / here.max()) ** HOME
    here = here / here.sum()
    row, column = here.sum(axis=1) @ np.arange(top, bottom), here.sum(axis=0) @ np.arange(left, right)
    return Word(word, float(row), float(column), score)


def _to_border(line: Array) -> int:
    """Give the shift that brings the middle of the longest run of least values to the front."""
    is_least = line == line.min()
    if is_least.all():
        return 0
    begin = int(np.argmin(is_least))  # A run may go round the end: start counting where there is none.
    runs: list[list[int]] = [[]]
    for cell in (begin + np.arange(line.size)) % line.size:
        if is_least[cell]:
            runs[-1].append(int(cell))
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=len)
    return -longest[len(longest) // 2] % line.size
