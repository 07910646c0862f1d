"""The backend of threads: a chunk for each thread, or all threads on one chunk."""

import numpy as np
import pytest

from countinggrids.backends import ThreadsBackend
from countinggrids.core import em
from countinggrids.core.geometry import Geometry
from countinggrids.data.table import Table
from countinggrids.kernels.threads import Threads

GEOMETRY = Geometry.of((6, 5), 2)


@pytest.fixture
def bags(rng):
    """Return 5000 bags, which are three chunks, with their weights, features and geometry."""
    table = Table.of(rng.poisson(1.0, (5000, 12)).astype(np.float32))
    return table, np.ones(5000, np.float32), 12, GEOMETRY


def statistics(bags, pool, rng):
    backend = ThreadsBackend(pool)
    grid = em.Grid(em.normalize(rng.random((12, 6, 5), np.float32), 1, pool), np.full((6, 5), -np.log(30), np.float32))
    return backend.e_step(backend.prepare(*bags), grid, GEOMETRY, 1.0)


def test_a_chunk_for_each_thread_gives_the_bits_of_one_thread(bags):
    """With two and three threads there is a chunk for each; with four, all work on one chunk."""
    found = [statistics(bags, Threads(n), np.random.default_rng(0)) for n in (1, 2, 3, 4)]
    assert len({each.A.tobytes() + each.usage.tobytes() for each in found}) == 1
    assert len({each.log_likelihood for each in found}) == 1


def test_counts_are_conserved_over_chunks(bags, rng):
    found = statistics(bags, Threads(2), rng)
    np.testing.assert_allclose(found.A.sum(axis=(1, 2)), bags[0].take(np.arange(5000)).sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.usage.sum(), 5000, rtol=1e-6)
