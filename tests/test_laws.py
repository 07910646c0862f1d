"""Laws that hold whatever the numbers are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countinggrids as cg
from cases import GEOMETRIES, POOL, as_bags, random_counts, random_grid, statistics_of
from countinggrids.core import em
from countinggrids.core.geometry import Geometry
from countinggrids.kernels import threads
from countinggrids.kernels.counts import DenseCounts, SparseCounts

seeds = st.integers(0, 2**32 - 1)
rows = st.sampled_from(sorted(GEOMETRIES))
kinds = st.sampled_from([DenseCounts, SparseCounts])
quick = settings(max_examples=40, deadline=None)


@given(seeds, rows, kinds, st.sampled_from(["float32", "float64"]))
@quick
def test_the_m_step_conserves_the_counts_of_every_feature(seed, row, kind, dtype):
    rng, geometry = np.random.default_rng(seed), GEOMETRIES[row]
    counts = random_counts(rng, geometry)
    grid = random_grid(rng, geometry, dtype=dtype)
    statistics = statistics_of(as_bags(counts, geometry, kind, dtype=dtype), grid, geometry)
    shared = em.expected_counts(grid.pi, statistics.A, geometry.block(painted=True))
    by_feature = counts.reshape(len(counts), -1, len(grid.pi)).sum(axis=(0, 1))
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(shared.reshape(len(grid.pi), -1).sum(axis=1), by_feature, rtol=tolerance, atol=tolerance)
    assert statistics.usage.sum() == pytest.approx(len(counts), rel=tolerance)


@given(seeds, rows, st.sampled_from(["uniform", "exact"]), st.sampled_from([0.0, 0.2, 2.0]))
@quick
def test_the_objective_never_falls_where_it_must_not(seed, row, prior, pseudocount):
    geometry = GEOMETRIES[row]
    if geometry.matched != geometry.painted:
        return  # the hybrid promises nothing
    rng = np.random.default_rng(seed)
    bags = as_bags(random_counts(rng, geometry), geometry)
    grid = random_grid(rng, geometry)
    if prior == "uniform":
        grid = grid._replace(log_prior=np.full(geometry.grid, -np.log(geometry.n_cells)))
    eta = np.full(len(grid.pi), pseudocount)
    objectives = []
    for _ in range(6):
        statistics = statistics_of(bags, grid, geometry)
        objectives.append(statistics.log_likelihood + em.log_density(grid.pi, eta, POOL))
        grid = em.m_step(grid, statistics, geometry, eta, prior, POOL)
    assert np.diff(objectives).min() > -1e-9 * abs(objectives[0])


@given(seeds, rows, kinds, st.integers(1, 30), st.integers(1, 30))
@quick
def test_cutting_the_bags_into_blocks_changes_nothing(seed, row, kind, block, chunk):
    rng, geometry = np.random.default_rng(seed), GEOMETRIES[row]
    counts, grid = random_counts(rng, geometry), random_grid(rng, geometry)
    bags = as_bags(counts, geometry, kind)
    whole = statistics_of(bags, grid, geometry)
    small = threads.Threads(1, block_entries=block * geometry.n_cells // 4, piece_entries=chunk * geometry.n_cells // 8)
    cut = statistics_of(bags, grid, geometry, pool=small)
    for ours, theirs in zip(cut, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@given(seeds, rows, kinds, st.lists(st.integers(-9, 9), min_size=3, max_size=3))
@quick
def test_rolling_the_grid_rolls_everything(seed, row, kind, steps):
    rng, geometry = np.random.default_rng(seed), GEOMETRIES[row]
    bags, grid = as_bags(random_counts(rng, geometry), geometry, kind), random_grid(rng, geometry)
    axes = tuple(range(-len(geometry.grid), 0))
    steps = steps[: len(axes)]
    rolled = em.Grid(np.roll(grid.pi, steps, axes), np.roll(grid.log_prior, steps, axes))
    before = statistics_of(bags, grid, geometry)
    after = statistics_of(bags, rolled, geometry)
    np.testing.assert_allclose(after.A, np.roll(before.A, steps, axes), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.usage, np.roll(before.usage, steps, axes), rtol=1e-9, atol=1e-12)
    assert after.log_likelihood == pytest.approx(before.log_likelihood)


@given(seeds, kinds)
@quick
def test_permuting_bags_or_features_permutes_the_results(seed, kind):
    rng, geometry = np.random.default_rng(seed), GEOMETRIES["tessellated 2x2"]
    counts, grid = random_counts(rng, geometry), random_grid(rng, geometry)
    bag_order, feature_order = rng.permutation(len(counts)), rng.permutation(4)
    shuffled = counts.reshape(len(counts), -1, 4)[bag_order][:, :, feature_order].reshape(counts.shape)
    moved = grid._replace(pi=grid.pi[feature_order])
    before = statistics_of(as_bags(counts, geometry, kind), grid, geometry)
    after = statistics_of(as_bags(shuffled, geometry, kind), moved, geometry)
    np.testing.assert_allclose(after.A, before.A[feature_order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.usage, before.usage, rtol=1e-9, atol=1e-12)


def textbook_mixture(X, pi, weights, n_iterations):
    """A mixture of unigrams as in any textbook, components in rows."""
    for _ in range(n_iterations):
        joint = np.log(weights) + X @ np.log(pi).T
        q = np.exp(joint - joint.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        pi = q.T @ X
        pi /= pi.sum(axis=1, keepdims=True)
        weights = q.mean(axis=0)
    return pi, weights


@given(seeds)
@quick
def test_a_window_of_one_cell_is_a_textbook_mixture(seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(3, (20, 6)) + 1.0
    start = rng.dirichlet(np.ones(6), 4)
    options = {"location_prior": "exact", "eta": 0.0, "anneal": None, "max_iter": 3, "tol": 0, "dtype": "float64"}
    with pytest.warns(match="did not converge"):
        model = cg.MixtureOfUnigrams(4, init=start, **options).fit(X)
    pi, weights = textbook_mixture(X, start, np.full(4, 0.25), 3)
    np.testing.assert_allclose(model.pi_, pi, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.exp(model.log_prior_), weights, rtol=1e-8)


def test_a_grid_whose_sections_are_cells_is_the_epitome(rng):
    maps = rng.integers(4, size=(12, 3, 2))
    X = cg.bag(maps, (3, 2), 4)
    options = {"random_state": 0, "dtype": "float64"}
    as_grid = cg.CountingGrid((6, 5), (3, 2), (3, 2), **options).fit(X)
    as_epitome = cg.DiscreteEpitome((6, 5), (3, 2), **options).fit(X)
    np.testing.assert_array_equal(as_grid.pi_, as_epitome.pi_)


def test_a_hybrid_painted_as_coarsely_as_it_matches_is_a_tessellated_grid(rng):
    X = rng.poisson(1, (20, 4 * 5))
    options = {"random_state": 0, "dtype": "float64"}
    plain = cg.CountingGrid((6, 6), (4, 4), (2, 2), **options).fit(X)
    painted = cg.CountingGrid((6, 6), (4, 4), (2, 2), (2, 2), **options).fit(X)
    np.testing.assert_array_equal(plain.pi_, painted.pi_)


def test_a_spatial_bag_of_words_with_one_section_is_a_mixture(rng):
    X = rng.poisson(1, (20, 5)) + np.eye(20, 5)
    mixture = cg.MixtureOfUnigrams(3, random_state=0).fit(X)
    spatial = cg.SpatialBagOfWords(3, sections=1, random_state=0).fit(X)
    np.testing.assert_array_equal(mixture.pi_, spatial.pi_)


def test_the_capacity_is_the_number_of_windows_side_by_side():
    assert Geometry.of((32, 32), 8).capacity == 16
    assert cg.CountingGrid((32, 16), (8, 2)).capacity == 32
