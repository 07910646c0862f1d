"""Stepwise EM: an iteration of the annealing looks at one batch of bags."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from cases import GEOMETRIES, as_bags, random_counts, random_grid
from countinggrids import checkpoints, em, engine, learn, recipe, sources


@pytest.fixture
def X(rng):  # noqa: N802
    """Bags from windows into a ring of themes."""
    themes = rng.dirichlet(np.full(40, 0.2), 12)
    starts = rng.integers(12, size=400)
    return sp.csr_array([rng.multinomial(30, themes[[s, (s + 1) % 12]].mean(axis=0)) for s in starts])


def fit(X, **options):
    return cg.CountingGrid((24,), (8,), random_state=0, max_iter=200, tol=1e-4).fit(X, **options)


def test_batches_learn_as_well_as_all_bags(X):
    whole, stepwise = fit(X[:300]), fit(X[:300], batch_size=60)
    assert stepwise.converged_
    assert stepwise.score(X[300:]) > whole.score(X[300:]) - 0.5


def test_a_batch_moves_what_was_seen_half_of_the_way(rng):
    geometry = GEOMETRIES["counting grid"]
    grid = random_grid(rng, geometry)
    bags = [as_bags(random_counts(rng, geometry), geometry) for _ in range(2)]
    first, second = (em.e_step([each], grid, geometry, 1.0, engine.Threads(1)) for each in bags)
    batches = learn.Batches(iter([([bags[0]], 2.0), ([bags[1]], 3.0)]))
    given = batches.e_step(grid, geometry, 1.0, engine.Threads(1))
    np.testing.assert_allclose(given.seen, 2 * first.seen)
    given = batches.e_step(grid, geometry, 1.0, engine.Threads(1))
    np.testing.assert_allclose(given.seen, first.seen + 1.5 * second.seen)
    np.testing.assert_allclose(given.usage, first.usage + 1.5 * second.usage)
    assert given.log_likelihood == pytest.approx(first.log_likelihood + 1.5 * second.log_likelihood)


def test_batches_cool_faster_and_settle_at_once():
    cooling = recipe.Cooling(0.1, recipe.RATE, 1.0)
    whole = recipe.Recipe(cooling, recipe.Eta(None, 0.3), recipe.Eta(None, 0.2), "smoothed", 500, 1e-3)
    batches = replace(whole, has_batches=True)
    assert [limit for *_, limit in whole.phases()[-3:]] == [np.inf, 1e-2, 1e-3]
    assert [limit for *_, limit in batches.phases()[-3:]] == [np.inf, np.inf, 1e-3]
    assert batches.phases()[:-1] == whole.phases()[:-2]
    assert whole.refining().cooling.rate == recipe.QUICK_RATE < batches.refining().cooling.rate


def test_a_layout_is_looked_for_among_more_bags_where_they_come_in_batches(X, monkeypatch):
    sizes = []
    monkeypatch.setattr(learn, "SCOUT_BAGS", 100)
    monkeypatch.setattr(learn, "BATCH_SCOUT_BAGS", 250)
    shares = sources.shares
    monkeypatch.setattr(sources, "shares", lambda *given: sizes.append(given[0].shape[0]) or shares(*given))
    fit(X)
    fit(X, batch_size=60)
    assert sizes == [100, 100, 400, 250, 250, 400]  # scouts in two groups, then everything


@pytest.mark.parametrize("is_held", [True, False])
def test_batches_hold_every_bag_once_a_round(X, is_held):
    table = sources.Table(
        [X[:90], X[90:]] if not is_held else [X], [90, 310] if not is_held else [400], 40, X.dtype, is_held
    )
    weights = np.ones(400)
    weights[:10] = 0
    made = sources.batches(table, weights, 40, GEOMETRIES["counting grid"], 120, np.random.RandomState(0))
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
        with engine.use(engine.Threads(n_threads, chunk_entries=2**10)):
            results.add(fit(X, batch_size=100).pi_.tobytes())
    assert len(results) == 1


def test_a_checkpoint_of_a_stepwise_fit_changes_no_bit(X, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SHARE_OF_TIME", 1.0)
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
        (0, "auto", "batch_size is 0; wanted an integer of at least 1, or None; give for instance batch_size=500"),
        (2.5, "auto", "batch_size is 2.5; wanted an integer"),
        (50, None, "batch_size is 50 and anneal is None; wanted an annealing, whose iterations look at batches"),
    ],
)
def test_a_batch_size_that_makes_no_sense_is_refused(X, batch_size, anneal, message):
    with pytest.raises(ValueError, match=message):
        cg.CountingGrid((24,), (8,), anneal=anneal).fit(X, batch_size=batch_size)


def test_batches_leave_no_bounds(rng):
    table, geometry = (
        sources.Table.of(rng.integers(5, size=(40, 12)).astype("f4")),
        cg.CountingGrid((6, 6), 2)._geometry(),
    )
    batches = sources.batches(table, np.ones(40, "f4"), 12, geometry, 10, np.random.RandomState(0))
    for shares, _ in (next(batches) for _ in range(5)):
        assert [bags.shortlist for bags in shares] == [None]
    assert all(bags.shortlist is not None for bags in sources.shares(table, np.ones(40, "f4"), 12, geometry))
