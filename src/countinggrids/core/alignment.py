"""Alignment of found places with known ones, up to shifts and symmetries of the torus."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countinggrids.core import torus


class Alignment(NamedTuple):
    """The common shift of the known places that agrees best with the found ones.

    Attributes
    ----------
    is_correct : ndarray of bool, of shape (n_bags,)
        Whether a bag lies within the tolerance of its known place.
    shift : ndarray of shape (n_axes,)
        What was added to the known places, on the grid.
    """

    is_correct: NDArray[np.bool_]
    shift: NDArray[np.int64]


def align(
    found: ArrayLike, known: ArrayLike, grid: Sequence[int], tolerance: int = 1, has_symmetries: bool = False
) -> Alignment:
    """Find the common shift under which most bags lie at their known places.

    Parameters
    ----------
    found : array-like of shape (n_bags, n_axes)
        Coordinates on the grid.
    known : array-like of shape (n_bags, n_axes)
        True coordinates, in any frame.
    grid : sequence of int
        Cells along each axis.
    tolerance : int, default=1
        Distance along each axis, in cells, up to which a place is correct.
    has_symmetries : bool, default=False
        Whether reflections and swapped axes are allowed too, as they must be for bags without sections.

    Returns
    -------
    alignment : Alignment
        The shift, and which bags are correct under it.

    Examples
    --------
    >>> align([[5, 5], [7, 1], [0, 0]], [[0, 0], [2, 4], [6, 6]], grid=(8, 8)).is_correct.tolist()
    [True, True, False]
    """
    places = np.asarray(found, dtype=np.int64)
    truth = np.asarray(known, dtype=np.int64)
    moved = _symmetries(truth) if has_symmetries else [truth]
    return max((_best_shift(places, each, grid, tolerance) for each in moved), key=lambda best: best.is_correct.sum())


def _best_shift(found: Any, known: Any, grid: Sequence[int], tolerance: int) -> Alignment:
    shifts = np.unique((found - known) % np.asarray(grid), axis=0)
    steps = list(itertools.product(range(-tolerance, tolerance + 1), repeat=len(grid)))
    candidates = np.unique((shifts[:, None] + np.asarray(steps)).reshape(-1, len(grid)) % np.asarray(grid), axis=0)
    off = torus.displacement(known[None] + candidates[:, None], found[None], grid)
    is_correct = np.abs(off).max(axis=-1) <= tolerance
    best = int(is_correct.sum(axis=1).argmax())
    return Alignment(is_correct[best], candidates[best])


def _symmetries(places: Any) -> Iterator[Any]:
    """Yield the places reflected along any axes, and with the axes in any order."""
    n_axes = places.shape[1]
    for signs in itertools.product((1, -1), repeat=n_axes):
        for order in itertools.permutations(range(n_axes)):
            yield (places * np.asarray(signs))[:, order]
