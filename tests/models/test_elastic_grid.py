"""The elastic grid as users see it: slips recovered, files, batches, and where it agrees with other models."""

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.core import torus

CELLS, WINDOW, SECTIONS = 32, 12, 3
SLIPS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
"""Probability that each of three sections slips by -1, 0 and 1."""


def jittered(seed, n_bags=200, tokens=600, n_features=40):
    """Draw bags from windows of a strip whose sections slip; return the counts and where each section was."""
    rng = np.random.default_rng(seed)
    strip, block = rng.dirichlet(np.full(n_features, 0.05), CELLS), WINDOW // SECTIONS
    corners = rng.integers(CELLS, size=n_bags)
    slips = np.stack([rng.choice([-1, 0, 1], n_bags, p=chances) for chances in SLIPS], axis=1)
    places = (corners[:, None] + block * np.arange(SECTIONS) + slips) % CELLS
    h = np.array([np.roll(strip, -k, axis=0)[:block].mean(axis=0) for k in range(CELLS)])
    counts = np.array([[rng.multinomial(tokens // SECTIONS, h[k]) for k in bag] for bag in places])
    return counts.reshape(n_bags, -1), places


def fraction_in_place(model, X, places):
    """Return the fraction of sections that are found where they were, up to one common shift."""
    found = model.section_posteriors(X).argmax(axis=-1)
    away = (found - places) % CELLS
    return max(np.mean(away == shift) for shift in range(CELLS))


@pytest.mark.parametrize("seed", range(2))
def test_slips_of_a_jittered_scene_are_recovered(seed):
    X, places = jittered(seed)
    elastic = cg.ElasticGrid(CELLS, WINDOW, SECTIONS, slack=2, n_init=3, random_state=0).fit(X)
    rigid = cg.CountingGrid(CELLS, WINDOW, SECTIONS, n_init=3, random_state=0).fit(X)
    assert fraction_in_place(elastic, X, places) > 0.9
    assert fraction_in_place(rigid, X, places) < 0.8
    assert elastic.score(X) > rigid.score(X)
    wanted = np.pad(SLIPS, ((0, 0), (1, 1)))
    errors = [np.abs(np.roll(elastic.slip_, shift, axis=1) - wanted).sum(axis=1).mean() / 2 for shift in (-1, 0, 1)]
    assert min(errors) < 0.15


@pytest.fixture
def bags(rng):
    return sp.csr_array(rng.poisson(rng.gamma(0.5, 2, (2, 4 * 5))[rng.integers(2, size=40)]))


OPTIONS = {"random_state": 0, "max_iter": 30, "tol": 1e-3, "dtype": "float64"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_slack_zero_is_the_counting_grid_to_the_bit(bags):
    rigid = cg.CountingGrid((6, 6), 4, 2, **OPTIONS).fit(bags)
    elastic = cg.ElasticGrid((6, 6), 4, 2, slack=0, **OPTIONS).fit(bags)
    np.testing.assert_array_equal(elastic.pi_, rigid.pi_)
    np.testing.assert_array_equal(elastic.history_, rigid.history_)
    np.testing.assert_array_equal(elastic.transform(bags), rigid.transform(bags))
    np.testing.assert_array_equal(elastic.section_posteriors(bags), rigid.section_posteriors(bags))
    np.testing.assert_array_equal(elastic.slip_, np.ones((4, 1, 1)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_slack_of_the_torus_makes_sections_independent(bags):
    options = OPTIONS | {"anneal": None, "location_prior": "uniform"}
    model = cg.ElasticGrid((6, 6), 4, 2, slack=6, **options).fit(bags)
    np.testing.assert_allclose(model.slip_, 1 / 36)
    alone = cg.CountingGrid((6, 6), 2, **options | {"init": model.pi_, "max_iter": 1}).fit(np.ones((2, 5)))
    alone.pi_, alone.log_prior_ = model.pi_, model.log_prior_
    sections = bags.toarray().reshape(-1, 5)
    np.testing.assert_allclose(model.score_samples(bags), alone.score_samples(sections).reshape(-1, 4).sum(axis=1))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_files_keep_the_slips(bags, tmp_path):
    model = cg.ElasticGrid((6, 6), 4, 2, slack=(1, 0), **OPTIONS).fit(bags)
    model.save(tmp_path / "model.safetensors")
    loaded = cg.load(tmp_path / "model.safetensors")
    assert loaded.slip_.shape == (4, 3, 1)
    np.testing.assert_array_equal(loaded.slip_, model.slip_)
    np.testing.assert_array_equal(loaded.score_samples(bags), model.score_samples(bags))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_batches_and_checkpoints_work(bags, tmp_path):
    make = lambda **options: cg.ElasticGrid((6, 6), 4, 2, **OPTIONS | options)  # noqa: E731
    whole = make().fit(bags)
    again = make().fit(bags, checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(again.slip_, whole.slip_)
    np.testing.assert_allclose(make().fit([bags[:25], bags[25:]]).slip_, whole.slip_, rtol=1e-8)
    assert np.isfinite(make(batch_size=10).fit(bags).slip_).all()
    streamed = make(init=whole.pi_).partial_fit(bags[:20]).partial_fit(bags[20:])
    np.testing.assert_allclose(streamed.slip_.sum(axis=(1, 2)), 1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_section_posteriors_and_samples_follow_the_slips(bags):
    model = cg.ElasticGrid((8, 8), 4, 2, **OPTIONS).fit(bags)
    q = model.section_posteriors(bags)
    assert q.shape == (40, 4, 64)
    np.testing.assert_allclose(q.sum(axis=-1), 1)
    X, cells = model.sample(30, 200, random_state=0)
    assert X.shape == (30, 20)
    assert (X.sum(axis=1) == 200).all()
    assert cells.max() < 64


@pytest.mark.parametrize("slack", [-1, (1, 1, 1), 1.5, "all", True])
def test_slack_that_is_no_number_of_cells_is_refused(bags, slack):
    with pytest.raises(ValueError, match=r"slack=.* must be an integer of at least 0"):
        cg.ElasticGrid((6, 6), 4, 2, slack=slack).fit(bags)


def test_locations_are_those_of_a_rigid_grid_where_nothing_slips(rng):
    strip = rng.integers(0, 30, 40)
    starts = rng.integers(40, size=60)
    maps = [np.roll(strip, -start)[:12] for start in starts]
    X = cg.bag(maps, 3, 30)
    model = cg.ElasticGrid(40, 12, 3, slack=1, random_state=0).fit(X)
    away = torus.displacement(starts[:, None], model.locate(X), (40,))
    assert max(np.mean(np.abs(torus.displacement(away, shift, (40,))) <= 1) for shift in away) > 0.95
