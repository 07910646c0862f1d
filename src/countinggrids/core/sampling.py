"""Sampling of bags from a model."""

import itertools

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core import em
from countinggrids.core.arrays import Array
from countinggrids.core.elastic import ElasticGeometry
from countinggrids.core.geometry import Geometry


def draw_slips(slip: Array, geometry: ElasticGeometry, n_bags: int, rng: np.random.RandomState) -> Array:
    """Draw by how many cells each painted section of each bag slips, (bags, painted sections, axes)."""
    offsets = np.array(list(itertools.product(*geometry.slip_ranges)))
    slips = np.zeros((n_bags, len(geometry.painted_offsets), len(geometry.grid)), np.int64)
    for chances, inside in zip(slip.reshape(len(slip), -1), geometry.painted_inside, strict=True):
        slips[:, list(inside)] = offsets[rng.choice(len(offsets), n_bags, p=chances / chances.sum())][:, None]
    return slips


def draw(
    grid: em.Grid,
    geometry: Geometry,
    n_bags: int,
    n_tokens: int,
    rng: np.random.RandomState,
    slips: Array | None = None,
) -> tuple[sp.csr_array, NDArray[np.int64]]:
    """Draw a window for each bag, and then its features, as many from each section of the window.

    Parameters
    ----------
    grid : Grid
        Parameters of the model.
    geometry : Geometry
        Grid, window and sections.
    n_bags : int
        Number of bags.
    n_tokens : int
        Tokens of each bag.
    rng : RandomState
        Random numbers.
    slips : ndarray of shape (n_bags, n_sections, n_axes), default=None
        Cells by which each section is away from its place in the window; None for nowhere.

    Returns
    -------
    counts : csr_array of shape (n_bags, n_sections * n_features)
        The bags.
    cells : ndarray of shape (n_bags,)
        Window of each bag, as a flat index.
    """
    prior = np.exp(grid.log_prior.astype(np.float64)).ravel()
    cells = rng.choice(prior.size, n_bags, p=prior / prior.sum())
    h = em.histograms(grid.pi.astype(np.float64), geometry.block(painted=True))
    planes = h.reshape(geometry.groups, -1, *geometry.grid)
    corners = np.stack(np.unravel_index(cells, geometry.grid), axis=-1)
    n_sections = geometry.n_column_sections
    rows = []
    for number, corner in enumerate(corners):
        away = np.zeros(len(corner), np.int64) if slips is None else slips[number]
        each = np.full(n_sections, n_tokens // n_sections)
        each[rng.permutation(n_sections)[: n_tokens % n_sections]] += 1
        places = [tuple(place) for place in (corner + geometry.painted_offsets + away) % geometry.grid]
        chances = [planes[(g, slice(None), *place)] for place in places for g in range(geometry.groups)]
        rows.append(np.concatenate([rng.multinomial(n, p / p.sum()) for n, p in zip(each, chances, strict=True)]))
    return sp.csr_array(np.array(rows, dtype=np.float32)), cells
