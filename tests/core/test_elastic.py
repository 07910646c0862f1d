"""Sections that slip, against loops and against the laws of EM."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cases import POOL, as_bags, random_counts, random_grid, statistics_of
from countinggrids.core import elastic, em
from countinggrids.core.elastic import ElasticGeometry
from countinggrids.core.geometry import Geometry
from countinggrids.kernels import threads
from countinggrids.kernels.counts import DenseCounts, SparseCounts

RIGID = {
    "1 axis": (Geometry.of(8, 4, 2), (1,)),
    "2x2": (Geometry.of((6, 5), (4, 2), (2, 2)), (1, 1)),
    "one section": (Geometry.of((5, 4), (2, 2)), (1, 1)),
    "along one axis": (Geometry.of((6, 5), (4, 3), (2, 1)), (2, 0)),
    "3 axes": (Geometry.of((4, 4, 3), (2, 2, 2), (2, 1, 2)), (1, 0, 1)),
    "the whole torus": (Geometry.of((4, 5), (2, 2), (2, 2)), (9, 9)),
    "hybrid": (Geometry.of((5, 6), (4, 2), (2, 1), (4, 2)), (1, 1)),
}
GEOMETRIES = {row: ElasticGeometry.with_slack(*each) for row, each in RIGID.items()}
rows = st.sampled_from(sorted(GEOMETRIES))
seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=40, deadline=None)


def random_slip(rng, geometry, is_separable=False):
    n_sections = int(np.prod(geometry.matched))
    if is_separable:
        along = [rng.dirichlet(np.ones(n), n_sections) for n in geometry.n_slips]
        slip = along[0]
        for each in along[1:]:
            slip = slip[..., None] * each.reshape(n_sections, *(1,) * (slip.ndim - 1), -1)
    else:
        slip = rng.dirichlet(np.ones(int(np.prod(geometry.n_slips))), n_sections)
    return np.log(slip).reshape(n_sections, *geometry.n_slips)


def case(seed, row, is_separable=False, kind=DenseCounts, dtype="float64"):
    rng, geometry = np.random.default_rng(seed), GEOMETRIES[row]
    counts = random_counts(rng, geometry)
    grid = random_grid(rng, geometry, dtype=dtype)._replace(extra=random_slip(rng, geometry, is_separable))
    return geometry, counts, grid, as_bags(counts, geometry, kind, dtype=dtype)


def statistics(bags, grid, geometry, beta=1.0, pool=POOL):
    return elastic.e_step(bags, elastic.windows_of(grid, geometry, beta, pool), geometry, pool)


@pytest.mark.parametrize("kind", [DenseCounts, SparseCounts])
@pytest.mark.parametrize("is_separable", [False, True])
@pytest.mark.parametrize("row", [row for row in GEOMETRIES if row != "hybrid"])
def test_an_e_step_is_that_of_loops(row, is_separable, kind):
    geometry, counts, grid, bags = case(0, row, is_separable, kind)
    slips = list(itertools.product(*geometry.slip_ranges))
    pi, prior = np.moveaxis(grid.pi, 0, -1), np.exp(grid.log_prior)
    slip = np.exp(grid.extra).reshape(*geometry.matched, -1)
    shaped = counts.reshape(len(counts), *geometry.painted, -1)
    how = (geometry.grid, geometry.window, geometry.matched, 0.7)
    q, painted, slipped, log_likelihood = naive.elastic_step(shaped, pi, prior, slip, slips, *how)
    A, usage, total, ours = statistics(bags, grid, geometry, 0.7)
    expected = em.expected_counts(grid.pi, A, geometry.block(painted=True))
    np.testing.assert_allclose(np.moveaxis(expected, 0, -1), painted, atol=1e-10)
    np.testing.assert_allclose(usage, q.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(ours.reshape(slipped.shape), slipped, atol=1e-10)
    assert total == pytest.approx(log_likelihood.sum())
    found, each = elastic.posterior(bags.matched, elastic.windows_of(grid, geometry, 0.7, POOL), POOL)
    np.testing.assert_allclose(found.reshape(q.shape), q, atol=1e-10)
    np.testing.assert_allclose(each, log_likelihood, atol=1e-12)


@given(seeds, rows, st.sampled_from([DenseCounts, SparseCounts]), st.sampled_from(["float32", "float64"]))
@quick
def test_counts_and_bags_are_conserved(seed, row, kind, dtype):
    geometry, counts, grid, bags = case(seed, row, kind=kind, dtype=dtype)
    A, usage, _, slips = statistics(bags, grid, geometry)
    expected = em.expected_counts(grid.pi, A, geometry.block(painted=True))
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    by_feature = counts.reshape(len(counts), -1, 4).sum(axis=(0, 1))
    np.testing.assert_allclose(expected.reshape(4, -1).sum(axis=1), by_feature, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(slips.reshape(len(slips), -1).sum(axis=1), len(counts), rtol=tolerance)
    assert usage.sum() == pytest.approx(len(counts), rel=tolerance)


@given(seeds, rows, st.sampled_from(["uniform", "exact"]), st.sampled_from([0.0, 0.2, 2.0]))
@quick
def test_the_objective_never_falls(seed, row, prior, pseudocount):
    geometry, _, grid, bags = case(seed, row)
    if geometry.matched != geometry.painted:
        return  # the hybrid promises nothing
    if prior == "uniform":
        grid = grid._replace(log_prior=np.full(geometry.grid, -np.log(geometry.n_cells)))
    eta, objectives = np.full(len(grid.pi), pseudocount), []
    for _ in range(6):
        seen = statistics(bags, grid, geometry)
        objectives.append(seen.log_likelihood + em.log_density(grid.pi, eta, POOL))
        new = em.m_step(grid, seen, geometry, eta, prior, POOL)
        grid = new._replace(extra=elastic.extra_step(grid, seen.extra, geometry))
    assert np.diff(objectives).min() > -1e-9 * abs(objectives[0])


@given(seeds, rows, st.integers(1, 30), st.integers(1, 30))
@quick
def test_cutting_the_bags_into_blocks_changes_nothing(seed, row, block, chunk):
    geometry, _, grid, bags = case(seed, row)
    small = threads.Threads(2, block_entries=block * geometry.n_cells, piece_entries=chunk * geometry.n_cells)
    whole, cut = (statistics(bags, grid, geometry, pool=pool) for pool in (POOL, small))
    for ours, theirs in zip(cut, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@given(seeds, rows, st.lists(st.integers(-9, 9), min_size=3, max_size=3))
@quick
def test_rolling_the_grid_rolls_everything_but_the_slips(seed, row, steps):
    geometry, _, grid, bags = case(seed, row)
    axes = tuple(range(-len(geometry.grid), 0))
    steps = steps[: len(axes)]
    rolled = em.Grid(np.roll(grid.pi, steps, axes), np.roll(grid.log_prior, steps, axes), grid.extra)
    before, after = (statistics(bags, each, geometry) for each in (grid, rolled))
    for ours, theirs in zip(after[:2], before[:2], strict=True):
        np.testing.assert_allclose(ours, np.roll(theirs, steps, axes), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.extra, before.extra, rtol=1e-9)
    assert after.log_likelihood == pytest.approx(before.log_likelihood)


@pytest.mark.parametrize("row", ["2x2", "hybrid", "one section"])
def test_one_offset_is_the_tessellated_grid_to_the_bit(row):
    _, counts, grid, _ = case(1, row)
    rigid = RIGID[row][0]
    geometry = ElasticGeometry.with_slack(rigid, (0, 0))
    bags = as_bags(counts, rigid)
    theirs = statistics_of(bags, grid, rigid)
    ours = statistics(bags, grid._replace(extra=elastic.first_extra(geometry)), geometry)
    np.testing.assert_array_equal(ours.A, theirs.A)
    np.testing.assert_array_equal(ours.usage, theirs.usage)
    assert ours.log_likelihood == theirs.log_likelihood
    assert ours.extra.ravel().tolist() == pytest.approx([len(counts)] * len(ours.extra))


def test_a_single_offset_away_from_zero_moves_the_section():
    geometry, counts, grid, bags = case(3, "2x2")
    certain = np.full((4, 3, 3), 1e-300)
    certain[:, 1, 1], certain[0, 1, 1], certain[0, 2, 1] = 1, 1e-300, 1
    moved = statistics(bags, grid._replace(extra=np.log(certain)), geometry)
    assert moved.extra[0, 2, 1] == pytest.approx(len(counts))
    assert moved.extra[1, 1, 1] == pytest.approx(len(counts))


def test_uniform_slips_over_the_torus_make_sections_independent():
    geometry, counts, grid, bags = case(2, "the whole torus")
    prior = np.full(geometry.grid, -np.log(geometry.n_cells))
    grid = em.Grid(grid.pi, prior, elastic.first_extra(geometry))
    alone = Geometry.of(geometry.grid, geometry.block(painted=True))
    parts = counts.reshape(len(counts), 4, 4)
    each = [statistics_of(as_bags(parts[:, s], alone), grid, alone) for s in range(4)]
    A, usage, log_likelihood, slips = statistics(bags, grid, geometry)
    np.testing.assert_allclose(A, sum(part.A for part in each), atol=1e-10)
    assert log_likelihood == pytest.approx(sum(part.log_likelihood for part in each))
    np.testing.assert_allclose(usage, len(counts) / geometry.n_cells)
    np.testing.assert_allclose(slips, len(counts) / geometry.n_cells)


def test_a_section_far_worse_than_another_does_not_underflow():
    geometry = ElasticGeometry.with_slack(Geometry.of((6, 6), (4, 4), (2, 2)), (1, 1))
    rng = np.random.default_rng(0)
    counts = rng.poisson(300, (5, 16)).astype("float32")
    grid = random_grid(rng, geometry, dtype="float32")._replace(extra=random_slip(rng, geometry))
    A, usage, log_likelihood, slips = statistics(as_bags(counts, geometry, dtype="float32"), grid, geometry)
    assert np.isfinite(log_likelihood)
    assert usage.sum() == pytest.approx(5, rel=1e-4)
    np.testing.assert_allclose(slips.sum(axis=(1, 2)), 5, rtol=1e-4)
    np.testing.assert_allclose(A.sum(), counts.sum(), rtol=1e-4)


def test_slips_shrink_with_the_window():
    geometry = ElasticGeometry.with_slack(Geometry.of((32, 32), 16, 2), (4, 1))
    assert geometry.n_slips == (9, 3)
    assert geometry.resized((8, 8), (4, 4)).n_slips == (3, 3)
    assert geometry.undivided() == Geometry.of((32, 32), 16)
