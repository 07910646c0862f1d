"""Grids side by side learn as each would alone."""

import numpy as np
import pytest

import countinggrids as cg
from cases import ENGINE, GEOMETRIES, as_bags, random_counts, random_grid
from countinggrids import em, learn, posterior, recipe
from countinggrids.products import DenseCounts, SparseCounts

N_COPIES = 3


@pytest.mark.parametrize("location_prior", ["smoothed", "exact", "uniform"])
@pytest.mark.parametrize("kind", [DenseCounts, SparseCounts])
@pytest.mark.parametrize("row", GEOMETRIES)
def test_copies_learn_as_each_would_alone(rng, monkeypatch, row, kind, location_prior):
    monkeypatch.setattr(posterior, "FEW_ENTRIES", 0)
    geometry = GEOMETRIES[row]
    together = geometry.side_by_side(N_COPIES)
    counts = random_counts(rng, geometry) * np.array([1, 1, 1, 1, 40, 200])[:, None]  # some posteriors are sharp
    grids = [random_grid(rng, geometry) for _ in range(N_COPIES)]
    eta = recipe.Eta(None, 0.3)

    def iterated(geometry, grid):
        step = learn.Step(geometry, 0.7, eta, location_prior, 0.0)
        return learn.iterate([as_bags(counts, geometry, kind, np.linspace(0.5, 2, 6))], grid, iter([step]), ENGINE)

    made, objectives = iterated(together, em.side_by_side(grids))
    assert objectives.shape == (N_COPIES,)
    for number, grid in enumerate(grids):
        alone, objective = iterated(geometry, grid)
        assert objectives[number] == pytest.approx(objective, rel=1e-12)
        np.testing.assert_allclose(made.copy_of(number).pi, alone.pi, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(made.copy_of(number).log_prior, alone.log_prior, rtol=1e-9)


@pytest.mark.parametrize("scale", [1, 1000])
def test_every_copy_has_a_posterior_of_its_own(rng, monkeypatch, scale):
    monkeypatch.setattr(posterior, "FEW_ENTRIES", 0)
    monkeypatch.setattr(posterior, "SPARSE_BELOW", 1.1 if scale > 1 else 0)
    geometry = GEOMETRIES["tessellated 2x2"]
    grids = [random_grid(rng, geometry) for _ in range(N_COPIES)]
    counts = scale * random_counts(rng, geometry)

    def located(geometry, grid):
        windows, _ = em.windows_of(grid, geometry, 1.0, ENGINE)
        q, log_likelihood = em.locate(as_bags(counts, geometry).matched, windows, ENGINE)
        return (q.toarray() if scale > 1 else q), log_likelihood

    q, log_likelihood = located(geometry.side_by_side(N_COPIES), em.side_by_side(grids))
    assert log_likelihood.shape == (len(counts), N_COPIES)
    for number, (of_copy, grid) in enumerate(zip(np.split(q, N_COPIES, axis=1), grids, strict=True)):
        wanted, wanted_likelihood = located(geometry, grid)
        np.testing.assert_allclose(of_copy, wanted, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(log_likelihood[:, number], wanted_likelihood, rtol=1e-12)


@pytest.fixture
def runs(rng, monkeypatch):
    """Fit a model that scouts; give it, what each run was told, and what a callback saw."""
    made, seen = [], []
    monkeypatch.setattr(learn, "learn", lambda *args, run=learn.learn, **how: made.append(how) or run(*args, **how))
    X = rng.multinomial(200, rng.dirichlet(np.ones(12)), 30)

    def fit(grid, window, **options):
        model = cg.CountingGrid(grid, window, random_state=0, tol=1e-3, **options)
        return model.fit(X, callback=lambda now: seen.append(now) and None), made, seen

    return fit


def test_scouts_go_side_by_side_on_no_more_cells_than_there_will_be(runs):
    _, made, _ = runs((12, 12), 4)  # small grids of 6x6 cells
    assert [how["geometry"].copies for how in made] == [4, 4, 1]
    assert [how["geometry"].grid for how in made] == [(4, 6, 6), (4, 6, 6), (12, 12)]
    made.clear()
    runs((24, 24), 8)
    assert [how["geometry"].copies for how in made] == [8, 1]


def test_the_best_layout_is_told_of_and_learnt_on(runs, monkeypatch):
    blown_up = []
    monkeypatch.setattr(learn, "finer", lambda grid, *how, real=learn.finer: blown_up.append(grid) or real(grid, *how))
    _, _, seen = runs((12, 12), 4)
    scouting = [now for now in seen if now.stage == "scouting"]
    assert {now.pi.shape for now in scouting} == {(6, 6, 12)}
    assert all(isinstance(now.objective, float) for now in seen)
    last = [now for now, after in zip(scouting, [*scouting[1:], None], strict=True) if not after or after.number == 1]
    best = max(last, key=lambda now: now.objective)
    np.testing.assert_array_equal(np.moveaxis(best.pi, -1, 0), blown_up[0].pi)


def test_copies_settle_when_the_last_one_does():
    step = learn.Step(GEOMETRIES["counting grid"], 1.0, recipe.Eta(None), "exact", 0.1)
    assert step.has_settled(np.array([1.0, 2.0]), np.array([1.05, 2.0]))
    assert not step.has_settled(np.array([1.0, 2.0]), np.array([1.05, 1.8]))
    assert not step.has_settled(np.array([1.0, 2.0]), -np.inf)
