"""Small models and bags that many tests share."""

from math import prod

import numpy as np

from countinggrids.core import em
from countinggrids.core.geometry import Geometry
from countinggrids.core.protocols import Bags
from countinggrids.data.counts import coarsen
from countinggrids.kernels.counts import DenseCounts, SparseCounts
from countinggrids.kernels.threads import Threads

POOL = Threads(1)

GEOMETRIES = {
    "counting grid, 1 axis": Geometry.of(7, 3),
    "counting grid": Geometry.of((6, 5), (4, 2)),
    "counting grid, 3 axes": Geometry.of((4, 3, 5), (2, 1, 3)),
    "tessellated 2x2": Geometry.of((6, 5), (4, 2), (2, 2)),
    "tessellated 2x1": Geometry.of((6, 5), (4, 3), (2, 1)),
    "tessellated 4x4": Geometry.of((9, 8), (8, 8), (4, 4)),
    "tessellated, 1 axis": Geometry.of(8, 4, 2),
    "tessellated, 3 axes": Geometry.of((4, 4, 3), (2, 2, 2), (2, 1, 2)),
    "window as large as the grid": Geometry.of((4, 4), (4, 4), (2, 2)),
    "discrete epitome": Geometry.of((5, 6), (3, 2), (3, 2)),
    "discrete epitome, 3 axes": Geometry.of((3, 4, 3), (2, 2, 2), (2, 2, 2)),
    "hybrid": Geometry.of((5, 6), (4, 2), None, (4, 2)),
    "hybrid, coarse matching": Geometry.of((5, 6), (4, 2), (2, 1), (4, 2)),
    "mixture of unigrams": Geometry((6,), (1,), (1,), (1,)),
    "spatial bag of words": Geometry((5,), (1,), (1,), (1,), groups=4),
}


def random_counts(rng, geometry, n_bags=6, n_features=4):
    """Counts with empty bags and absent features among them."""
    columns = geometry.n_column_sections * n_features
    counts = rng.poisson(rng.gamma(0.5, 2, (n_bags, columns))).astype(float)
    counts[0] = 0
    counts[1:, 0] += 1
    return counts


def random_grid(rng, geometry, n_features=4, dtype="float64"):
    planes = rng.dirichlet(np.ones(n_features), (geometry.groups, *geometry.grid))
    pi = np.moveaxis(planes, -1, 1).reshape(-1, *geometry.grid)
    prior = rng.dirichlet(np.ones(geometry.n_cells)).reshape(geometry.grid)
    return em.Grid(pi.astype(dtype), np.log(prior).astype(dtype))


def as_bags(counts, geometry, kind=DenseCounts, weights=None, dtype="float64"):
    """Hold counts dense or sparse, in the forms the E and M steps want."""
    import scipy.sparse as sp

    n_features = counts.shape[1] // prod(geometry.painted)
    matrix = counts.astype(dtype)
    if kind is SparseCounts:
        matrix = sp.csr_array(matrix)
    matched = coarsen(matrix, n_features, geometry.painted, geometry.matched)
    if kind is SparseCounts:
        matched = sp.csr_array(matched)
    return Bags(
        kind(matched, n_features, geometry.matched_offsets, geometry.grid),
        kind(matrix, n_features, geometry.painted_offsets, geometry.grid),
        np.ones(len(counts), dtype) if weights is None else np.asarray(weights, dtype),
    )


def statistics_of(bags, grid, geometry, beta=1.0, pool=POOL):
    """Compute the expected sufficient statistics of some bags."""
    return em.e_step(bags, em.windows_of(grid, geometry, beta, pool), geometry, pool)


def posterior_of(bags, grid, geometry, beta=1.0):
    """Compute q and log p(bag)."""
    return em.posterior(bags.matched, em.windows_of(grid, geometry, beta, POOL), POOL)


def scene_windows(scene, size, n_windows, seed):
    """Cut windows out of a scene at random; give their corners and themselves."""
    rng = np.random.default_rng(seed)
    corners = np.stack([rng.integers(0, n - w + 1, n_windows) for n, w in zip(scene.shape, size, strict=True)], axis=1)
    return corners, [scene[tuple(slice(c, c + w) for c, w in zip(corner, size, strict=True))] for corner in corners]


def with_entry(X, value):
    """Put a value among counts, at row 3, column 5."""
    X = X.toarray()
    X[3, 5] = value
    return X
