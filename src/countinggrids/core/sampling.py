"""Sampling of bags from a model."""

import itertools

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core import componential, em
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


def draw_mixtures(
    grid: em.Grid, geometry: Geometry, n_bags: int, n_tokens: int, rng: np.random.RandomState
) -> tuple[sp.csr_array, NDArray[np.int64]]:
    """Draw weights of the windows for each bag, a window for each token, and then its feature.

    Parameters
    ----------
    grid : Grid
        Parameters of a componential grid.
    geometry : Geometry
        Grid, window and sections.
    n_bags : int
        Number of bags.
    n_tokens : int
        Tokens of each bag.
    rng : RandomState
        Random numbers.

    Returns
    -------
    counts : csr_array of shape (n_bags, n_sections * n_features)
        The bags.
    cells : ndarray of shape (n_bags,)
        Main window of each bag, as a flat index.
    """
    h = em.histograms(grid.pi.astype(np.float64), geometry.block(painted=True)).reshape(len(grid.pi), -1)
    alpha = np.full(geometry.n_cells, max(float(grid.extra[0]), em.SMALLEST) / geometry.n_cells)
    counts, thetas = np.zeros((n_bags, geometry.n_column_sections, len(h)), np.float32), []
    for bag in counts:
        thetas.append(_dirichlet(alpha, rng))
        tokens = rng.choice(geometry.n_cells, n_tokens, p=thetas[-1])
        sections = rng.permutation(n_tokens) % geometry.n_column_sections
        corners = np.stack(np.unravel_index(tokens, geometry.grid), axis=-1)
        places = (corners + np.array(geometry.painted_offsets)[sections]) % geometry.grid
        for place, section in zip(np.ravel_multi_index(tuple(places.T), geometry.grid), sections, strict=True):
            bag[section, rng.choice(len(h), p=h[:, place] / h[:, place].sum())] += 1
    main = componential.main_cells(np.array(thetas).reshape(n_bags, -1), geometry)
    return sp.csr_array(counts.reshape(n_bags, -1)), main


def _dirichlet(alpha: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Draw from a Dirichlet distribution; one cell has all the weight where every gamma variate is zero."""
    gammas = rng.standard_gamma(alpha)
    if not gammas.sum():
        gammas[rng.randint(len(alpha))] = 1
    return np.asarray(gammas / gammas.sum())
