"""The E step of the componential grid: against loops, and the laws that hold whatever the numbers are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from cases import POOL, as_bags, random_counts, random_grid
from countinggrids.core import componential, em, steps
from countinggrids.core.componential import ComponentialGeometry
from countinggrids.core.protocols import InnerSteps
from countinggrids.kernels import admixture, threads
from countinggrids.kernels.counts import DenseCounts, SparseCounts

GEOMETRIES = {
    "1 axis": ComponentialGeometry.of(7, 3),
    "2 axes": ComponentialGeometry.of((6, 5), (4, 2)),
    "2x2 sections": ComponentialGeometry.of((6, 5), (4, 2), (2, 2)),
    "3 axes": ComponentialGeometry.of((4, 3, 3), (2, 1, 2), (2, 1, 1)),
    "one cell": ComponentialGeometry.of(5, 1),
}
KINDS = [DenseCounts, SparseCounts]
seeds, rows, kinds = st.integers(0, 2**32 - 1), st.sampled_from(sorted(GEOMETRIES)), st.sampled_from(KINDS)
quick = settings(max_examples=25, deadline=None)


def random_case(seed, row, kind, dtype="float64", alpha=1.5):
    rng, geometry = np.random.default_rng(seed), GEOMETRIES[row]
    counts = random_counts(rng, geometry)
    grid = random_grid(rng, geometry, dtype=dtype)._replace(extra=np.array([alpha]))
    return counts, as_bags(counts, geometry, kind, dtype=dtype), grid, geometry


def statistics_of(bags, grid, geometry, pool=POOL):
    step = steps.of(geometry)
    return step.e_step(bags, step.windows_of(grid, geometry, 1.0, pool), geometry, pool)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", GEOMETRIES)
def test_the_e_step_is_that_of_the_loops(row, kind, monkeypatch):
    monkeypatch.setattr(admixture, "COUNTING", -1.0)  # all cells count
    monkeypatch.setattr(componential, "LEARNING", InnerSteps(2, 2))
    counts, bags, grid, geometry = random_case(3, row, kind)
    pi = np.moveaxis(grid.pi, 0, -1)
    by_section = counts.reshape(len(counts), *geometry.painted, -1)
    theta, expected, log_p = naive.componential_e_step(
        by_section, pi, 1.5, geometry.grid, geometry.window, geometry.painted, 4
    )
    windows = componential.windows_of(grid, geometry, 1.0, POOL)
    found = componential.admixture(bags.painted, windows, componential.LEARNING, POOL)
    np.testing.assert_allclose(found.excess + found.floor[:, None], theta.reshape(len(theta), -1), rtol=1e-9)
    np.testing.assert_allclose(found.log_p, log_p, rtol=1e-9)
    statistics = statistics_of(bags, grid, geometry)
    shared = em.expected_counts(grid.pi, statistics.A, geometry.block(painted=True))
    np.testing.assert_allclose(np.moveaxis(shared, 0, -1), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(statistics.usage, theta.sum(axis=0), rtol=1e-9)


@given(seeds, rows, kinds, st.sampled_from(["float32", "float64"]), st.sampled_from([0.0, 0.1, 5.0]))
@quick
def test_counts_are_conserved(seed, row, kind, dtype, alpha):
    counts, bags, grid, geometry = random_case(seed, row, kind, dtype, alpha)
    statistics = statistics_of(bags, grid, geometry)
    shared = em.expected_counts(grid.pi, statistics.A, geometry.block(painted=True))
    by_feature = counts.reshape(len(counts), -1, len(grid.pi)).sum(axis=(0, 1))
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(shared.reshape(len(grid.pi), -1).sum(axis=1), by_feature, rtol=tolerance, atol=tolerance)
    assert statistics.usage.sum() == pytest.approx(len(counts), rel=tolerance)


@given(seeds, rows, st.sampled_from([0.0, 0.5]), st.sampled_from([0.1, 2.0]))
@settings(max_examples=10, deadline=None)
def test_the_objective_never_falls_by_more_than_the_inner_updates_leave(seed, row, pseudocount, alpha):
    """theta starts anew in every E step, and 500 updates of it end within 1e-4 of the best for small bags."""
    _, bags, grid, geometry = random_case(seed, row, DenseCounts, alpha=alpha)
    eta, objectives = np.full(len(grid.pi), pseudocount), []
    before, componential.LEARNING = componential.LEARNING, InnerSteps(500, 0)
    try:
        for _ in range(6):
            statistics = statistics_of(bags, grid, geometry)
            objectives.append(statistics.log_likelihood + em.log_density(grid.pi, eta, POOL))
            grid = em.m_step(grid, statistics, geometry, eta, "uniform", POOL)
    finally:
        componential.LEARNING = before
    assert np.diff(objectives).min() > -1e-4 * abs(objectives[0])


@given(seeds, rows, kinds, st.integers(1, 30), st.integers(1, 30))
@quick
def test_cutting_the_bags_into_blocks_changes_nothing(seed, row, kind, block, chunk):
    _, bags, grid, geometry = random_case(seed, row, kind)
    small = threads.Threads(1, block_entries=block * geometry.n_cells // 4, piece_entries=chunk * geometry.n_cells // 8)
    for ours, theirs in zip(
        statistics_of(bags, grid, geometry, small), statistics_of(bags, grid, geometry), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@given(seeds, rows, st.lists(st.integers(-9, 9), min_size=3, max_size=3))
@quick
def test_rolling_the_grid_rolls_everything(seed, row, shifts):
    _, bags, grid, geometry = random_case(seed, row, DenseCounts)
    axes = tuple(range(-len(geometry.grid), 0))
    shifts = shifts[: len(axes)]
    before = statistics_of(bags, grid, geometry)
    after = statistics_of(bags, grid._replace(pi=np.roll(grid.pi, shifts, axes)), geometry)
    np.testing.assert_allclose(after.A, np.roll(before.A, shifts, axes), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(after.usage, np.roll(before.usage, shifts, axes), rtol=1e-7, atol=1e-10)


@given(seeds, kinds)
@quick
def test_permuting_bags_or_features_permutes_the_results(seed, kind):
    counts, bags, grid, geometry = random_case(seed, "2x2 sections", kind)
    rng = np.random.default_rng(seed)
    bag_order, feature_order = rng.permutation(len(counts)), rng.permutation(4)
    shuffled = counts.reshape(len(counts), -1, 4)[bag_order][:, :, feature_order].reshape(counts.shape)
    before = statistics_of(bags, grid, geometry)
    after = statistics_of(as_bags(shuffled, geometry, kind), grid._replace(pi=grid.pi[feature_order]), geometry)
    np.testing.assert_allclose(after.A, before.A[feature_order], rtol=1e-7, atol=1e-10)


def test_the_bound_is_below_the_integral_and_near_it():
    """Two cells, so that theta is one number, and the integral over it a sum."""
    geometry, alpha = ComponentialGeometry.of(2, 1), 1.2
    pi = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])
    grid = em.Grid(pi, np.log(np.full(2, 0.5)), np.array([alpha]))
    counts = np.array([[3.0, 1, 0], [0, 2, 2], [1, 1, 1], [0, 0, 6]])
    bags = as_bags(counts, geometry)
    bound = componential.lower_bounds(bags.matched, componential.windows_of(grid, geometry, 1.0, POOL), POOL)
    theta = (np.arange(200_000) + 0.5) / 200_000
    density = (theta * (1 - theta)) ** (alpha / 2 - 1)
    p = pi @ np.stack([theta, 1 - theta])
    exact = np.log((np.exp(counts @ np.log(p)) * density).sum(axis=1) / density.sum())
    assert (bound < exact).all()
    assert (bound > exact - 0.5).all()


def test_updates_bring_the_bound_nearer_to_the_integral_over_many_cells(monkeypatch):
    """The integral over theta as a mean over draws from its Dirichlet distribution."""
    rng, geometry, alpha = np.random.default_rng(0), ComponentialGeometry.of((4, 4), (2, 2)), 2.0
    pi = np.moveaxis(rng.dirichlet(np.full(6, 0.2), (4, 4)), -1, 0)
    grid = em.Grid(pi, np.log(np.full((4, 4), 1 / 16)), np.array([alpha]))
    windows = componential.windows_of(grid, geometry, 1.0, POOL)
    counts = rng.multinomial(8, rng.dirichlet(np.ones(6), 5)).astype(float)
    bound = componential.lower_bounds(as_bags(counts, geometry).matched, windows, POOL)
    theta = rng.dirichlet(np.full(16, alpha / 16), 200_000)
    exact = np.log(np.exp(counts @ np.log(theta @ windows.h.reshape(6, -1).T).T).mean(axis=1))
    assert (bound < exact + 0.05).all()
    monkeypatch.setattr(componential, "BOUND_STEPS", 0)
    at_first = componential.lower_bounds(as_bags(counts, geometry).matched, windows, POOL)
    assert (bound - at_first > 0.3 * (exact - at_first)).all()


def test_a_bag_lies_where_most_of_its_tokens_are():
    geometry = ComponentialGeometry.of((6, 6), (2, 2))
    theta = np.zeros((1, 6, 6))
    theta[0, 0, 0] = 0.4
    theta[0, 3, 3] = theta[0, 3, 4] = 0.3
    assert componential.main_cells(theta.reshape(1, -1), geometry)[0] in (3 * 6 + 3, 3 * 6 + 4)
