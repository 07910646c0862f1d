"""Sums of minima against NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

from countinggrids.kernels.threads import Threads, use
from countinggrids.meta import kernels


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("entries", "rows"), [(2**22, 256), (40, 7)])
def test_minima_are_added_up_whatever_the_blocks_and_threads(rng, monkeypatch, threads, entries, rows):
    A, B = (rng.poisson(0.7, (n, 19)) * rng.random((n, 19), np.float32) for n in (20, 30))
    A[3], B[:, 4] = 0, 0
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", entries)
    monkeypatch.setattr(kernels, "BLOCK_ROWS", rows)
    with use(Threads(threads)):
        found = kernels.intersections(sp.csr_array(A, dtype=np.float32), sp.csr_array(B, dtype=np.float32))
    np.testing.assert_allclose(found, np.minimum(A[:, None], B).sum(axis=2), rtol=1e-5)


@pytest.mark.parametrize(("entries", "rows"), [(2**22, 256), (120, 7), (19, 64)])
def test_rows_compared_with_themselves_give_the_same_bits(rng, monkeypatch, entries, rows):
    A = sp.csr_array(rng.poisson(0.7, (40, 19)) * rng.random((40, 19), np.float32), dtype=np.float32)
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", entries)
    monkeypatch.setattr(kernels, "BLOCK_ROWS", rows)
    np.testing.assert_array_equal(kernels.intersections(A, A), kernels.intersections(A, A.copy()))
