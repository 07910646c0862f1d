"""Stepwise EM: an iteration of the annealing looks at one batch of bags."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from cases import GEOMETRIES, as_bags, random_counts, random_grid, statistics_of
from countinggrids.backends import ThreadsBackend
from countinggrids.core import schedule
from countinggrids.data.table import Table
from countinggrids.kernels import threads
from countinggrids.training import checkpoints, initialization
from countinggrids.training.stepwise import AnnealingBatches


@pytest.fixture
def X(rng):  # noqa: N802
    """Bags from windows into a ring of themes."""
    themes = rng.dirichlet(np.full(40, 0.2), 12)
    starts = rng.integers(12, size=400)
    return sp.csr_array([rng.multinomial(30, themes[[s, (s + 1) % 12]].mean(axis=0)) for s in starts])


def fit(X, batch_size=None, **options):
    model = cg.CountingGrid((24,), (8,), random_state=0, max_iter=200, tol=1e-4, batch_size=batch_size)
    return model.fit(X, **options)


def batches_of(table, weights, geometry, size):
    backend = ThreadsBackend(threads.Threads(1))
    return AnnealingBatches(table, weights, table.shape[1], geometry, size, np.random.RandomState(0), backend)


def test_batches_learn_as_well_as_all_bags(X):
    whole, stepwise = fit(X[:300]), fit(X[:300], batch_size=60)
    assert stepwise.converged_
    assert stepwise.score(X[300:]) > whole.score(X[300:]) - 0.5


def test_a_batch_moves_what_was_seen_half_of_the_way(rng):
    geometry = GEOMETRIES["counting grid"]
    grid = random_grid(rng, geometry)
    bags = [as_bags(random_counts(rng, geometry), geometry) for _ in range(2)]
    first, second = (statistics_of(each, grid, geometry) for each in bags)
    batches = batches_of(Table.of(random_counts(rng, geometry)), np.ones(6), geometry, 3)
    batches.batches = iter([([bags[0]], 2.0), ([bags[1]], 3.0)])
    np.testing.assert_allclose(batches.e_step(grid, geometry, 1.0).A, 2 * first.A)
    given = batches.e_step(grid, geometry, 1.0)
    np.testing.assert_allclose(given.A, first.A + 1.5 * second.A)
    np.testing.assert_allclose(given.usage, first.usage + 1.5 * second.usage)
    assert given.log_likelihood == pytest.approx(first.log_likelihood + 1.5 * second.log_likelihood)


def a_schedule():
    forming, settled = schedule.Pseudocounts(None, 0.3), schedule.Pseudocounts(None, 0.2)
    return schedule.Schedule(schedule.Annealing(0.1, schedule.RATE, 1.0), forming, settled, "smoothed", 500, 1e-3)


def test_batches_anneal_faster_and_settle_at_once():
    whole = a_schedule()
    batches = replace(whole, has_batches=True)
    assert [phase.tol for phase in whole.phases()[-3:]] == [np.inf, 1e-2, 1e-3]
    assert [phase.tol for phase in batches.phases()[-3:]] == [np.inf, np.inf, 1e-3]
    assert batches.phases()[:-1] == whole.phases()[:-2]
    assert whole.for_refining().annealing.rate == schedule.QUICK_RATE < batches.for_refining().annealing.rate


def test_candidates_are_trained_on_batches_where_there_are_many_bags():
    small, how = cg.CountingGrid((32, 32), 8)._geometry(), a_schedule()
    enough = initialization.CANDIDATE_BATCH * initialization.FEWEST_BATCHES
    few, many = (initialization.candidates(small, n_bags, 12, how, None) for n_bags in (enough - 1, enough))
    assert few.batch_size is None
    assert not few.schedule.has_batches
    assert many.batch_size == initialization.CANDIDATE_BATCH
    assert many.schedule.has_batches
    assert many.schedule.annealing.rate == schedule.BATCH_RATE > few.schedule.annealing.rate == schedule.RATE
    assert initialization.candidates(small, enough, 12, how, 300).batch_size == 300  # as given
    assert few.number == many.number == initialization.N_CANDIDATES
    n_features = initialization.LARGE_CANDIDATE // small.n_cells + 1
    large = initialization.candidates(small, enough, n_features, how, None)
    assert large.number == initialization.N_LARGE_CANDIDATES < many.number
    gradual = replace(how, annealing=how.annealing._replace(start=schedule.GRADUAL / 2), is_validated=True)
    one = initialization.candidates(small, enough, 12, gradual, None)
    assert (one.number, one.batch_size) == (initialization.N_GRADUAL_CANDIDATES, None)


def test_a_layout_from_batches_is_annealed_like_batches_on_the_full_grid():
    how = a_schedule()
    assert how.for_refining().annealing.rate == schedule.QUICK_RATE
    assert how.for_refining(is_from_batches=True).annealing.rate == schedule.BATCH_QUICK_RATE
    assert how.in_batches().for_refining().annealing.rate == schedule.BATCH_QUICK_RATE > schedule.QUICK_RATE


def test_a_layout_is_looked_for_among_more_bags_where_they_come_in_batches(X, monkeypatch):
    sizes = []
    monkeypatch.setattr(initialization, "CANDIDATE_BAGS", 100)
    monkeypatch.setattr(initialization, "BATCH_CANDIDATE_BAGS", 250)
    monkeypatch.setattr(initialization, "N_CANDIDATES", 1)
    prepare = ThreadsBackend.prepare
    monkeypatch.setattr(
        ThreadsBackend, "prepare", lambda self, *given: sizes.append(given[0].shape[0]) or prepare(self, *given)
    )
    fit(X)
    assert sizes == [100, 400, 400]  # candidates, everything, and what partial_fit goes on from
    fit(X, batch_size=300)
    assert sorted(sizes[3:]) == [200, 200, 250, 400, 400]  # candidates on 250 bags, two batches, and the same


@pytest.mark.parametrize("is_held", [True, False])
def test_batches_hold_every_bag_once_a_round(X, is_held):
    blocks, sizes = ([X], [400]) if is_held else ([X[:90], X[90:]], [90, 310])
    table = Table(blocks, sizes, 40, X.dtype, is_held, X.sum(axis=1))
    weights = np.ones(400)
    weights[:10] = 0
    made = batches_of(table, weights, GEOMETRIES["counting grid"], 120).batches
    for _ in range(2):
        round_ = [next(made) for _ in range(4)]
        sizes = [sum(bags.weights.size for bags in shares) for shares, _ in round_]
        assert sizes == [100] * 4
        assert sum(1 / times for _, times in round_) == pytest.approx(1)
        seen = sum(bags.painted.matrix.sum(axis=0) for shares, _ in round_ for bags in shares)
        np.testing.assert_array_equal(seen, X.sum(axis=0))


def test_threads_change_no_bit(X):
    results = set()
    for n_threads in (1, 2):
        with threads.use(threads.Threads(n_threads, piece_entries=2**10)):
            results.add(fit(X, batch_size=100).pi_.tobytes())
    assert len(results) == 1


def test_a_checkpoint_of_a_stepwise_fit_changes_no_bit(X, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "TIME_FRACTION", 1.0)
    wanted, path = fit(X, batch_size=100), tmp_path / "checkpoint"
    for dies_at in (150, 300, None):
        seen = []

        def callback(now, seen=seen, dies_at=dies_at):
            seen.append(now)
            if len(seen) == dies_at:
                raise KeyboardInterrupt

        try:
            given = fit(X, batch_size=100, callback=callback, checkpoint=path)
        except KeyboardInterrupt:
            given = None
    assert given.pi_.tobytes() == wanted.pi_.tobytes()


def test_bags_that_are_not_in_memory_come_in_batches_too(X):
    model = fit([X[:150], X[150:]], batch_size=100)
    assert model.converged_
    assert model.score(X) > fit(X).score(X) - 1


@pytest.mark.parametrize(
    ("batch_size", "anneal", "message"),
    [
        (0, "auto", "batch_size=0 must be None or an integer of at least 1; use for instance batch_size=None."),
        (2.5, "auto", "batch_size=2.5 must be None or an integer"),
        (50, None, "batch_size=50 must come with annealing; use anneal='auto' or batch_size=None."),
    ],
)
def test_a_batch_size_that_makes_no_sense_is_refused(X, batch_size, anneal, message):
    with pytest.raises(ValueError, match=message):
        cg.CountingGrid((24,), (8,), anneal=anneal, batch_size=batch_size).fit(X)


def held_out(X, **options):
    """Fit most bags; return the model, these bags, the others, and the score of the others."""
    model = cg.CountingGrid((24,), (8,), random_state=0, **options).fit(X[:300])
    return model, X[:300], X[300:], model.score(X[300:])


@pytest.mark.parametrize(
    "options",
    [{}, {"location_prior": "exact"}, {"location_prior": "uniform", "eta": 0.3}, {"dtype": "float64"}],
    ids=str,
)
def test_seen_bags_shown_again_after_a_fit_do_not_lower_the_held_out_score(X, options):
    model, seen, others, before = held_out(X, **options)
    for batch in [seen[:10], *(seen[i : i + 50] for i in range(0, 300, 50)), seen]:
        model.partial_fit(batch)
        assert model.score(others) > before - 0.05  # of some 95 nats: single batches draw noise


def test_what_a_fit_leaves_is_its_expected_counts(X):
    model, seen, *_ = held_out(X)
    fitted = model._from_fit
    assert fitted.weight == 300
    assert fitted.tokens.sum() == pytest.approx(30, rel=1e-5)
    assert fitted.usage.sum() == pytest.approx(1)
    np.testing.assert_allclose(fitted.totals, np.asarray(seen.sum(axis=0)) / 300, rtol=1e-5)
    how = initialization.schedule_of(model, Table.of(seen.astype(np.float32)), np.ones(300), 40)
    stream = fitted.stream(model.planes(), model.geometry_, how)
    np.testing.assert_allclose(stream.counts.sum(axis=0), fitted.tokens[0], rtol=0.01, atol=0.01)
    tiny = model.pi_.copy()
    model.partial_fit(seen[:1], sample_weight=[1e-3])
    np.testing.assert_allclose(model.pi_, tiny, atol=1e-4)


def test_groups_of_features_go_on_from_a_fit_too(rng):
    X = rng.poisson(2, (60, 12))
    model = cg.SpatialBagOfWords(3, (2, 2), random_state=0).fit(X)
    before, score = model.pi_.copy(), model.score(X)
    model.partial_fit(X[:5], sample_weight=np.full(5, 1e-3))
    np.testing.assert_allclose(model.pi_, before, atol=1e-3)
    assert model.partial_fit(X).score(X) > score - 0.05


def test_a_loaded_model_goes_on_from_its_fit_by_the_same_bits(X, tmp_path):
    model, seen, *_ = held_out(X)
    model.save(tmp_path / "model")
    loaded = cg.load(tmp_path / "model")
    for batch in (seen[:40], seen[40:70]):
        assert model.partial_fit(batch).pi_.tobytes() == loaded.partial_fit(batch).pi_.tobytes()
    model.save(tmp_path / "model")
    assert cg.load(tmp_path / "model").partial_fit(seen).pi_.tobytes() == model.partial_fit(seen).pi_.tobytes()


def test_windows_of_a_scene_go_on_from_their_fit_with_its_pseudocounts(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.kron(rng.integers(0, 20, (8, 9)), np.ones((4, 4), int))
    corners = rng.integers(0, np.array(labels.shape) - 10, (60, 2))
    X = cg.bag([labels[r : r + 10, c : c + 10] for r, c in corners], 2, 20).toarray()
    model = cg.CountingGrid((36, 40), 10, 2, random_state=0).fit(X)
    assert model._is_scene
    before, score = model.pi_.copy(), model.score(X)
    model.save(tmp_path / "a.model")
    for one in (cg.load(tmp_path / "a.model"), model):
        one.partial_fit(X[:1], sample_weight=[1e-6])
        np.testing.assert_allclose(one.pi_, before, atol=1e-3)
    assert model.partial_fit(X).score(X) > score - 0.01
