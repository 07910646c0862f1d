"""Sampling of bags from a model."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from countinggrids.core import em
from countinggrids.core.geometry import Geometry


def draw(
    grid: em.Grid, geometry: Geometry, n_bags: int, n_tokens: int, rng: np.random.RandomState
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
    for corner in corners:
        each = np.full(n_sections, n_tokens // n_sections)
        each[rng.permutation(n_sections)[: n_tokens % n_sections]] += 1
        places = [tuple((corner + d) % geometry.grid) for d in geometry.painted_offsets]
        chances = [planes[(g, slice(None), *place)] for place in places for g in range(geometry.groups)]
        rows.append(np.concatenate([rng.multinomial(n, p / p.sum()) for n, p in zip(each, chances, strict=True)]))
    return sp.csr_array(np.array(rows, dtype=np.float32)), cells
