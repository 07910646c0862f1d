"""One E and one M step of every row against the loops in naive.py."""

import numpy as np
import pytest

import naive
from cases import GEOMETRIES, POOL, as_bags, posterior_of, random_counts, random_grid, statistics_of
from countinggrids.core import em
from countinggrids.kernels.counts import DenseCounts, SparseCounts
from countinggrids.kernels.threads import Threads

N_FEATURES = 4
ETAS = {"none": np.zeros(N_FEATURES), "scalar": np.full(N_FEATURES, 0.3), "vector": np.array([0.5, 0.0, 1.5, 0.2])}


def naive_step(counts, grid, geometry, eta, kind, beta=1.0):
    """One iteration by loops: q, log p, pi, prior. Groups are run as models of their own with a common q."""
    pi = np.moveaxis(grid.pi, 0, -1)
    prior = np.exp(grid.log_prior)
    if geometry.groups > 1:
        return naive_grouped_step(counts, pi, prior, geometry, eta, kind, beta)
    fine = counts.reshape(len(counts), *geometry.painted, -1)
    coarse = naive.coarsened(fine, geometry.painted, geometry.matched)
    q, log_likelihood = naive.e_step(coarse, pi, prior, geometry.grid, geometry.window, geometry.matched, beta)
    expected = naive.expected_counts(fine, q, pi, geometry.grid, geometry.window, geometry.painted)
    new_prior = naive.location_prior(q, geometry.grid, geometry.window, kind)
    return q, log_likelihood, naive.m_step(expected, eta), new_prior


def naive_grouped_step(counts, pi, prior, geometry, eta, kind, beta):
    groups = np.split(pi, geometry.groups, axis=-1)
    bags = np.split(counts, geometry.groups, axis=1)
    joint = np.log(prior)[None] + beta * sum(b @ np.log(p).T for b, p in zip(bags, groups, strict=True))
    log_likelihood = np.log(np.exp(joint).sum(axis=1))
    q = np.exp(joint - log_likelihood[:, None])
    new = [naive.m_step(q.T @ b, eta) for b in bags]
    return (
        q,
        log_likelihood,
        np.concatenate(new, axis=-1),
        naive.location_prior(q, geometry.grid, geometry.window, kind),
    )


def our_step(counts, grid, geometry, eta, kind, counts_kind, beta=1.0):
    dtype = grid.pi.dtype.name
    bags = as_bags(counts, geometry, counts_kind, dtype=dtype)
    q, log_likelihood = posterior_of(bags, grid, geometry, beta)
    statistics = statistics_of(bags, grid, geometry, beta)
    assert statistics.log_likelihood == pytest.approx(log_likelihood.sum())
    pull = np.tile(eta, geometry.groups)
    new = em.m_step(grid, statistics, geometry, pull, kind, POOL)
    assert em.log_density(grid.pi, pull, POOL) == pytest.approx(
        sum(n * np.log(plane, dtype="f8").sum() for n, plane in zip(pull, grid.pi, strict=True)), rel=1e-6
    )
    return q.reshape(-1, *geometry.grid), log_likelihood, np.moveaxis(new.pi, 0, -1), np.exp(new.log_prior)


@pytest.mark.parametrize("counts_kind", [DenseCounts, SparseCounts])
@pytest.mark.parametrize("row", GEOMETRIES)
@pytest.mark.parametrize(("eta", "kind"), [("none", "exact"), ("scalar", "smoothed"), ("vector", "uniform")])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
def test_one_iteration_agrees_with_the_paper_as_loops(rng, row, eta, kind, counts_kind, dtype, tolerance):
    geometry = GEOMETRIES[row]
    counts = random_counts(rng, geometry)
    grid = random_grid(rng, geometry, dtype=dtype)
    exact = em.Grid(grid.pi.astype("float64"), grid.log_prior.astype("float64"))
    wanted = naive_step(counts, exact, geometry, ETAS[eta], kind)
    given = our_step(counts, grid, geometry, ETAS[eta], kind, counts_kind)
    for ours, theirs in zip(given, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", ["counting grid", "tessellated 2x2", "hybrid"])
def test_a_low_beta_tempers_the_posterior_as_in_the_loops(rng, row):
    geometry = GEOMETRIES[row]
    counts, grid = random_counts(rng, geometry), random_grid(rng, geometry)
    wanted = naive_step(counts, grid, geometry, ETAS["scalar"], "smoothed", beta=0.2)
    given = our_step(counts, grid, geometry, ETAS["scalar"], "smoothed", DenseCounts, beta=0.2)
    for ours, theirs in zip(given, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("row", ["discrete epitome", "hybrid", "hybrid, coarse matching", "discrete epitome, 3 axes"])
def test_painting_cell_by_cell_equals_copying_the_maps(rng, row):
    geometry = GEOMETRIES[row]
    maps = rng.integers(N_FEATURES, size=(5, *geometry.window))
    one_hot = np.eye(N_FEATURES)[maps].reshape(5, -1)
    grid = random_grid(rng, geometry)
    bags = as_bags(one_hot, geometry, SparseCounts)
    q, _ = posterior_of(bags, grid, geometry)
    painted = naive.painted_counts(maps, q.reshape(-1, *geometry.grid), N_FEATURES, geometry.grid)
    A = statistics_of(bags, grid, geometry).A
    np.testing.assert_allclose(np.moveaxis(A, 0, -1), painted, atol=1e-10)


@pytest.mark.parametrize("counts_kind", [DenseCounts, SparseCounts])
def test_a_weight_counts_a_bag_that_often(rng, counts_kind):
    geometry = GEOMETRIES["tessellated 2x2"]
    counts, grid = random_counts(rng, geometry), random_grid(rng, geometry)
    weights = [0, 1, 2, 3, 1, 2]
    once = statistics_of(as_bags(counts, geometry, counts_kind, weights), grid, geometry)
    repeated = statistics_of(as_bags(np.repeat(counts, weights, axis=0), geometry), grid, geometry)
    for ours, theirs in zip(once, repeated, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_an_empty_bag_gets_the_prior_as_its_posterior(rng):
    geometry = GEOMETRIES["counting grid"]
    grid = random_grid(rng, geometry)
    bags = as_bags(np.zeros((2, N_FEATURES)), geometry)
    q, log_likelihood = posterior_of(bags, grid, geometry)
    np.testing.assert_allclose(q[0], np.exp(grid.log_prior).ravel(), rtol=1e-12)
    np.testing.assert_allclose(log_likelihood, 0, atol=1e-12)


def test_a_feature_absent_from_the_whole_grid_leaves_numbers_finite(rng):
    geometry = GEOMETRIES["counting grid"]
    grid = random_grid(rng, geometry, dtype="float32")
    grid.pi[2] = 0
    bags = as_bags(random_counts(rng, geometry) + 1, geometry, dtype="float32")
    statistics = statistics_of(bags, grid, geometry)
    new = em.m_step(grid, statistics, geometry, np.zeros(N_FEATURES), "smoothed", POOL)
    assert np.isfinite(new.pi).all()
    assert np.isfinite(statistics.log_likelihood)


def test_the_comparison_with_the_loops_can_fail(rng):
    geometry = GEOMETRIES["tessellated 2x2"]
    counts, grid = random_counts(rng, geometry), random_grid(rng, geometry)
    wanted = naive_step(counts, grid, geometry, ETAS["scalar"], "smoothed")
    given = our_step(counts, grid, geometry, ETAS["scalar"] * 1.001, "smoothed", DenseCounts)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(given[2], wanted[2], rtol=1e-6)


@pytest.mark.parametrize("groups", [1, 2])
def test_histograms_of_very_many_features_sum_to_one(rng, groups):
    counts = rng.gamma(0.3, size=(200_000, 6)).astype(np.float32) + np.float32(1e-3)
    counts[:, 2] = 0
    of_groups = counts.reshape(groups, -1, 6)
    wanted = of_groups.astype(np.float64)
    wanted[:, :, 2] = 1
    wanted /= wanted.sum(axis=1, keepdims=True)
    pi = em.normalize(counts.copy(), groups, Threads(2)).reshape(of_groups.shape)
    np.testing.assert_allclose(pi.sum(axis=1, dtype=np.float64), 1, rtol=0, atol=1e-6)
    np.testing.assert_allclose(pi, wanted, rtol=1e-6)
    np.testing.assert_array_equal(pi, em.normalize(counts.copy(), groups, POOL).reshape(of_groups.shape))


def some_statistics():
    return em.Statistics(np.full((2, 3), 2.0), np.arange(3.0), 5.0, np.array([1.0, 4.0]))


def test_statistics_of_two_chunks_add_up():
    total = some_statistics().plus(em.Statistics(np.ones((2, 3)), np.ones(3), 0.5, np.array([2.0, 0.0])))
    assert total.A.tolist() == [[3, 3, 3], [3, 3, 3]]
    assert total.usage.tolist() == [1, 2, 3]
    assert total.log_likelihood == 5.5
    assert total.extra.tolist() == [3, 4]


def test_statistics_are_multiplied_by_a_weight():
    scaled = some_statistics().times(3.0)
    assert scaled.A.tolist() == [[6, 6, 6], [6, 6, 6]]
    assert scaled.usage.tolist() == [0, 3, 6]
    assert scaled.log_likelihood == 15
    assert scaled.extra.tolist() == [3, 12]
