"""How well a layout was put back: places that were found against places that were known, up to what cannot be told."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countinggrids import torus


class Alignment(NamedTuple):
    """The common move of the known places that agrees best with the found ones.

    Attributes
    ----------
    is_right : (bags,) whether a bag lies within the tolerance of where it should
    shift : (axes,) what was added to the known places, on the grid
    """

    is_right: NDArray[np.bool_]
    shift: NDArray[np.int64]


def align(
    found: ArrayLike, known: ArrayLike, grid: Sequence[int], tolerance: int = 1, has_symmetries: bool = False
) -> Alignment:
    """Find the common shift under which most bags lie where they should.

    Parameters
    ----------
    found : (bags, axes) coordinates on the grid
    known : (bags, axes) true coordinates, in any frame
    grid : cells along each axis
    tolerance : cells along each axis that still count as right
    has_symmetries : let reflections and swapped axes count as right too, as they must for bags without sections

    Examples
    --------
    >>> align([[5, 5], [7, 1], [0, 0]], [[0, 0], [2, 4], [6, 6]], grid=(8, 8)).is_right.tolist()
    [True, True, False]
    """
    places = np.asarray(found, dtype=np.int64)
    truth = np.asarray(known, dtype=np.int64)
    moved = _symmetries(truth) if has_symmetries else [truth]
    return max((_best_shift(places, each, grid, tolerance) for each in moved), key=lambda best: best.is_right.sum())


def _best_shift(found: Any, known: Any, grid: Sequence[int], tolerance: int) -> Alignment:
    shifts = np.unique((found - known) % np.asarray(grid), axis=0)
    steps = list(itertools.product(range(-tolerance, tolerance + 1), repeat=len(grid)))
    candidates = np.unique((shifts[:, None] + np.asarray(steps)).reshape(-1, len(grid)) % np.asarray(grid), axis=0)
    off = torus.displacement(known[None] + candidates[:, None], found[None], grid)
    is_right = np.abs(off).max(axis=-1) <= tolerance
    best = int(is_right.sum(axis=1).argmax())
    return Alignment(is_right[best], candidates[best])


def _symmetries(places: Any) -> Iterator[Any]:
    """Give the places reflected along any axes, and with the axes in any order."""
    n_axes = places.shape[1]
    for signs in itertools.product((1, -1), repeat=n_axes):
        for order in itertools.permutations(range(n_axes)):
            yield (places * np.asarray(signs))[:, order]
