"""Matching and painting of dense and sparse bags."""

from math import prod

import numpy as np
import pytest
import scipy.sparse as sp

from countinggrids.kernels.counts import DenseCounts, SparseCounts, as_counts
from countinggrids.kernels.threads import Threads
from countinggrids.kernels.tuning import Tuning

FORMS = {"dense": lambda counts: (DenseCounts, counts), "sparse": lambda counts: (SparseCounts, sp.csr_array(counts))}


@pytest.fixture
def painted(rng):
    """Return a function that paints the same bags, and the planes by matrix products."""
    q = rng.random((40, 35)) * (rng.random((40, 35)) < rng.random(35) * 0.4)  # cells with none, a few and many bags
    q[:, 3] = 0
    q[:, 4] += 1e-3  # no bag is without any
    counts = rng.integers(3, size=(40, 12)).astype(float)

    def paint(form, n_threads=2, dtype="float64"):
        kind, matrix = FORMS[form](counts.astype(dtype))
        bags = kind(matrix, 6, [(0, 0), (2, 1)], (5, 7))
        canvas = bags.canvas(np.empty(0, dtype))
        bags.paint(q.astype(dtype), canvas, Threads(n_threads))
        return bags.planes(canvas)

    planes = (counts.T @ q).reshape(2, 6, 5, 7)
    return paint, planes[0] + np.roll(planes[1], (2, 1), axis=(1, 2))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
def test_bags_are_painted_where_their_sections_are(painted, form, dtype, tolerance):
    paint, wanted = painted
    given = paint(form, dtype=dtype)
    assert given.dtype == dtype
    np.testing.assert_allclose(given, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_threads_change_no_bit(painted, form):
    paint, _ = painted
    assert len({paint(form, n).tobytes() for n in (1, 2, 4)}) == 1


@pytest.mark.parametrize(
    ("grid", "offsets"), [((9,), [(0,), (4,)]), ((5, 7), [(0, 0), (2, 1)]), ((3, 4, 5), [(0, 0, 0), (1, 0, 3)])]
)
def test_sparse_bags_are_matched_as_dense_ones_are(rng, grid, offsets):
    counts = rng.integers(3, size=(20, 6 * len(offsets))) * (rng.random((20, 6 * len(offsets))) < 0.6)
    counts[3] = 0
    log_h = rng.random((6, *grid))
    dense = DenseCounts(counts.astype(float), 6, offsets, grid)
    sparse = SparseCounts(sp.csr_array(counts), 6, offsets, grid)
    ours, theirs = (
        each.match(each.prepare(log_h), slice(4, 20), np.empty((16, prod(grid))), Threads(2))
        for each in (sparse, dense)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_the_form_of_bags_follows_their_size_and_sparsity(rng):
    few = sp.csr_array(rng.random((50, 400)) < 0.02).astype(float)
    many = sp.csr_array(rng.random((50, 400)) < 0.5).astype(float)
    large = Tuning(small_product=0)
    assert isinstance(as_counts(few, 400, [(0, 0)], (4, 4), large), SparseCounts)
    assert isinstance(as_counts(many, 400, [(0, 0)], (4, 4), large), DenseCounts)
    assert isinstance(as_counts(few, 400, [(0, 0)], (4, 4)), DenseCounts)
