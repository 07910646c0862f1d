import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from cases import POOL, as_bags, statistics_of
from countinggrids import CountingGrid
from countinggrids.backends import ThreadsBackend
from countinggrids.core import em
from countinggrids.core.geometry import Geometry
from countinggrids.core.schedule import Annealing, Pseudocounts, Schedule, critical_beta
from countinggrids.data.table import Table
from countinggrids.kernels.threads import Threads, use
from countinggrids.training import initialization
from countinggrids.training.initialization import downsampled, upsampled
from countinggrids.training.loop import FIRST_PATIENCE, PATIENCE, Start, run_em


@pytest.fixture
def counts(rng):
    return rng.poisson(rng.gamma(0.5, 4, (80, 6))) + 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_critical_beta_is_the_first_inertia_of_correspondence_analysis(counts, form):
    weights = np.arange(80) % 3 + 1.0
    totals = weights @ counts
    scaled = np.sqrt(weights)[:, None] * counts / np.sqrt(totals)
    mean = np.sqrt(totals / totals.sum())
    off_mean = np.eye(6) - np.outer(mean, mean)
    largest = np.linalg.eigvalsh(off_mean @ scaled.T @ scaled @ off_mean)[-1]
    assert critical_beta(form(counts), weights) == pytest.approx(1 / largest, rel=1e-3)


@pytest.mark.parametrize(("factor", "grows"), [(0.8, False), (1.25, True)])
def test_structure_grows_above_the_critical_beta_and_fades_below_it(counts, factor, grows):
    counts = 40 * counts / counts.sum(axis=1, keepdims=True)
    geometry, bags = Geometry.of(12, 2), as_bags(counts, Geometry.of(12, 2))
    beta = factor * critical_beta(counts, np.ones(80))
    wave = np.cos(2 * np.pi * np.arange(12) / 12)
    mean = counts.sum(axis=0) / counts.sum()
    tilt = np.random.default_rng(1).normal(size=6)
    pi = em.normalize(mean[:, None] * (1 + 1e-3 * np.outer(tilt, wave)), 1, POOL)
    grid = em.Grid(pi, np.full(12, -np.log(12)))
    sizes = []
    for _ in range(120):
        statistics = statistics_of(bags, grid, geometry, beta)
        grid = em.m_step(grid, statistics, geometry, np.zeros(6), "uniform", POOL)
        sizes.append(np.std(grid.pi, axis=1).max())
    assert (sizes[-1] > sizes[40]) == grows


def test_annealing_goes_from_start_to_end_by_its_rate():
    assert Annealing(0.1, 2.0, 1.0).betas() == [0.1, 0.2, 0.4, 0.8]
    assert Annealing(1.0, 2.0, 1.0).betas() == []


def test_annealing_quickens_once_the_layout_has_formed():
    betas = Annealing(0.1, 1.01, 1.0, formed=0.2).betas()
    rates = np.divide(betas[1:], betas[:-1])
    assert rates[0] == pytest.approx(1.01)
    assert rates[-1] == pytest.approx(1.05)


def test_annealing_fits_into_the_iterations_there_are():
    assert len(Annealing(0.001, 1.01, 1.0).within(20).betas()) <= 21
    assert Annealing(0.1, 2.0, 1.0).within(20) == Annealing(0.1, 2.0, 1.0)


def test_a_downsampled_geometry_keeps_the_capacity_and_the_sections():
    small = downsampled(Geometry.of((32, 48), (8, 16), (2, 2)))
    assert (small.grid, small.window, small.matched) == ((16, 12), (4, 4), (2, 2))
    assert small.capacity == Geometry.of((32, 48), (8, 16)).capacity
    assert downsampled(Geometry.of((32, 32), 2)) is None
    assert downsampled(Geometry.of((32, 32), 8, 8)) is None


def test_an_upsampled_grid_is_the_small_one_in_more_cells(rng):
    pi = np.moveaxis(rng.dirichlet(np.ones(4), (3, 2)), -1, 0)
    log_prior = np.log(rng.dirichlet(np.ones(6)).reshape(3, 2))
    fine = upsampled(em.Grid(pi, log_prior), Geometry.of((6, 5), 2), np.random.RandomState(0), POOL)
    np.testing.assert_allclose(fine.pi.sum(axis=0), 1)
    np.testing.assert_allclose(fine.pi[:, 5, 4], pi[:, 2, 1], atol=0.06)
    assert np.exp(fine.log_prior).sum() == pytest.approx(1)


def test_a_feature_that_no_bag_had_stays_possible():
    X = np.random.default_rng(0).multinomial(40, [0.5, 0.3, 0.2, 0.0], 50)
    model = CountingGrid((6, 6), (2, 2), random_state=0).fit(X)
    usual, new = model.score_samples([[20, 12, 8, 0], [20, 12, 7, 1]])
    assert 2 < usual - new < 12


def test_automatic_pseudocounts_follow_the_mean_histogram_up_to_their_limit():
    totals = np.array([10.0, 30.0, 0.0, 60.0])
    # Three features of four were seen: three more tokens, spread over all four.
    np.testing.assert_allclose(Pseudocounts(None, 0.2).of(totals, 5), 0.2 * 100 / 5 * (totals + 0.75) / 103)
    shares = totals[totals > 0] / 100
    effective = np.exp(-shares @ np.log(shares))
    limited = Pseudocounts(None, 0.2, at_most=0.1).of(totals, 5)
    assert limited.sum() == pytest.approx(0.1 * np.sqrt(effective))
    np.testing.assert_allclose(Pseudocounts(0.3).of(totals, 5), 0.3)


def test_the_best_grid_on_held_out_bags_is_kept(rng):
    X = rng.poisson(0.5, (60, 12)).astype("f4")
    geometry, backend = Geometry.of((6, 6), 2), ThreadsBackend()
    chunks = backend.prepare(Table.of(X), np.ones(60, "f4"), 12, geometry)
    pi = em.normalize(1 + rng.random((12, 6, 6)), 1, backend.pool).astype("f4")
    start = em.Grid(pi, np.full((6, 6), -np.log(36), "f4"))
    seen, scores = [], iter([1.0, 3.0, 5.0, 4.0, 4.5, *[0.0] * 20])
    how = Schedule(None, Pseudocounts(None), Pseudocounts(None, 0.2), "uniform", 50, 0.0, is_validated=True)

    def score(grid):
        seen.append(grid.pi.copy())
        return next(scores)

    result = run_em(chunks, Start.of(start), geometry, how, backend, lambda *_: None, validation=score)
    assert result.has_converged
    assert len(result.history) == 3 + PATIENCE
    assert result.score == 5.0
    np.testing.assert_array_equal(result.grid.pi, seen[2])


def test_gains_on_held_out_bags_below_tol_end_the_fit_and_are_kept(rng):
    backend, geometry = ThreadsBackend(), Geometry.of((6, 6), 2)
    chunks = backend.prepare(Table.of(rng.poisson(0.5, (60, 12)).astype("f4")), np.ones(60, "f4"), 12, geometry)
    pi = em.normalize(1 + rng.random((12, 6, 6)), 1, backend.pool).astype("f4")
    start = em.Grid(pi, np.full((6, 6), -np.log(36), "f4"))
    how = Schedule(None, Pseudocounts(None), Pseudocounts(None, 0.2), "uniform", 50, 1e-9, is_validated=True)
    scores = iter([1.0, *(3 + 1e-10 * step for step in range(40))])
    result = run_em(chunks, Start.of(start), geometry, how, backend, lambda *_: None, validation=lambda _: next(scores))
    assert result.has_converged
    assert len(result.history) == 2 + PATIENCE
    assert result.score == 3 + 1e-10 * PATIENCE
    annealed = replace(how, annealing=Annealing(0.5, 1.02, 1.0), scored_from=0.0)
    scores = iter([1.0, *(3 + 1e-10 * step for step in range(200))])
    start = Start.of(em.Grid(pi, np.full((6, 6), -np.log(36), "f4")))
    result = run_em(chunks, start, geometry, annealed, backend, lambda *_: None, validation=lambda _: next(scores))
    assert len(result.history) > len(annealed.annealing.betas())  # while annealing every gain counts
    scores = iter([1.0, *[0.5] * 40])
    start = Start.of(em.Grid(pi, np.full((6, 6), -np.log(36), "f4")))
    result = run_em(chunks, start, geometry, how, backend, lambda *_: None, validation=lambda _: next(scores))
    assert len(result.history) == 1 + FIRST_PATIENCE


@pytest.mark.parametrize("is_held", [False, True])
def test_the_first_grid_is_let_go_once_there_is_a_better_one(rng, is_held):
    geometry, backend = Geometry.of((6, 6), 2), ThreadsBackend()
    chunks = backend.prepare(Table.of(rng.poisson(0.5, (60, 12)).astype("f4")), np.ones(60, "f4"), 12, geometry)
    pi = em.normalize(1 + rng.random((12, 6, 6)), 1, backend.pool).astype("f4")
    is_alive, start = weakref.ref(pi), Start.of(em.Grid(pi, np.full((6, 6), -np.log(36), "f4")))
    held = pi if is_held else None
    del pi
    seen = []
    how = Schedule(None, Pseudocounts(None), Pseudocounts(None, 0.2), "uniform", 3, 0.0)
    run_em(chunks, start, geometry, how, backend, lambda *_: seen.append(is_alive() is not None))
    assert seen == [is_held] * 3
    assert (held is not None) == is_held
    with pytest.raises(IndexError):
        start.take()


@pytest.mark.parametrize("cells", [(7, 5), (40, 40)])
def test_upsampling_in_pieces_draws_the_same_noise(rng, cells):
    pi = em.normalize(1 + rng.random((300, 4, 5)), 1, POOL).astype("f4")
    coarse = em.Grid(pi, np.full((4, 5), -np.log(20), "f4"))
    fine = upsampled(coarse, Geometry.of(cells, 2), np.random.RandomState(3), POOL)
    source = np.ix_(*(np.arange(new) * old // new for new, old in zip(cells, (4, 5), strict=True)))
    noise = np.random.RandomState(3).uniform(size=(300, *cells)).astype("f4")
    whole = em.normalize(pi[(slice(None), *source)] * (1 + initialization.UPSAMPLING_NOISE * noise), 1, POOL)
    np.testing.assert_array_equal(fine.pi, whole)


def test_held_out_bags_have_tokens_and_weight_and_are_few(rng):
    X = rng.poisson(1.0, (3000, 5)).astype("f4")
    X[:100] = 0
    weights = np.ones(3000, "f4")
    weights[100:200] = 0
    rows = initialization.held_out(Table.of(X), weights)
    assert len(rows) == int(initialization.VALIDATION_FRACTION * np.count_nonzero(weights * X.sum(axis=1)))
    assert (weights[rows] * X[rows].sum(axis=1) > 0).all()
    assert not len(initialization.held_out(Table.of(X[:900]), weights[:900]))


def test_a_validated_fit_ends_on_all_bags_and_is_the_same_on_any_number_of_threads(rng):
    X = rng.multinomial(30, rng.dirichlet(np.full(40, 0.2), 12)[rng.integers(12, size=1100)][0], 1100)
    fits = []
    for n_threads in (1, 2):
        numbers = []
        with use(Threads(n_threads)):
            model = CountingGrid((8, 8), 4, random_state=0, init="uniform", max_iter=60, tol=1e-3)
            model.fit(X, callback=lambda now, numbers=numbers: numbers.append((now.stage, now.number)))
        learning = [number for stage, number in numbers if stage == "learning"]
        assert learning == list(range(1, model.n_iter_ + 1))
        fits.append(model.pi_.tobytes())
    assert fits[0] == fits[1]
