"""Matching in one run or in many, and painting from a posterior of few cells, on any number of threads."""

from math import prod

import numpy as np
import pytest
import scipy.sparse as sp

from countinggrids import engine, products
from countinggrids.products import DenseCounts, SparseCounts


@pytest.fixture
def painted(rng):
    """Give a function that paints the same bags, and what it should give."""
    q = rng.random((40, 35)) * (rng.random((40, 35)) < rng.random(35) * 0.4)  # cells with none, a few and many bags
    q[:, 3] = 0
    counts = rng.random((40, 12))

    def paint(n_threads, dtype="float64"):
        bags = DenseCounts(counts.astype(dtype), 6, [(0, 0), (2, 1)], (5, 7))
        canvas = bags.canvas(np.empty(0, dtype))
        bags.paint(sp.csr_array(q.astype(dtype)), engine.Threads(n_threads), canvas)
        return canvas

    planes = (counts.T @ q).reshape(2, 6, 5, 7)
    return paint, planes[0] + np.roll(planes[1], (2, 1), axis=(1, 2))


@pytest.mark.parametrize("least", [0, np.inf])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
def test_few_cells_are_painted_as_all_are(painted, monkeypatch, least, dtype, tolerance):
    monkeypatch.setattr(products, "WORTH_COMPILING", least)
    paint, wanted = painted
    given = paint(2, dtype)
    assert given.dtype == dtype
    np.testing.assert_allclose(given, wanted, rtol=tolerance, atol=tolerance)


def test_threads_change_no_bit(painted, monkeypatch):
    monkeypatch.setattr(products, "WORTH_COMPILING", 0)
    paint, _ = painted
    assert len({paint(n).tobytes() for n in (1, 2, 4)}) == 1


@pytest.mark.parametrize("longest", [0, 10])
@pytest.mark.parametrize(
    ("grid", "offsets"), [((9,), [(0,), (4,)]), ((5, 7), [(0, 0), (2, 1)]), ((3, 4, 5), [(0, 0, 0), (1, 0, 3)])]
)
def test_sparse_bags_are_matched_as_dense_ones_are(rng, monkeypatch, grid, offsets, longest):
    monkeypatch.setattr(products, "LONGEST_RUN", longest)
    counts = rng.integers(3, size=(20, 6 * len(offsets))) * (rng.random((20, 6 * len(offsets))) < 0.6)
    counts[3] = 0
    table = rng.random((6, *grid))
    dense, sparse = (
        DenseCounts(counts.astype(float), 6, offsets, grid),
        SparseCounts(sp.csr_array(counts), 6, offsets, grid),
    )
    ours, theirs = (
        each.match(each.prepare(table), slice(4, 20), np.empty((16, prod(grid)))) for each in (sparse, dense)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
