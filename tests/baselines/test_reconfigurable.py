"""Reconfigurable bags of words against loops and against every assignment of region models."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
import naive_baselines
from countinggrids.baselines import ReconfigurableBags


@parametrize_with_checks([ReconfigurableBags(2, sections=(1, 1), max_iter=3, random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def bags(rng):
    """Bags of two kinds of region, sky above and ground below; in half of them the sky fills three of four."""
    sky, ground = [0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]
    layouts = [[sky, sky, ground, ground], [sky, sky, sky, ground]]
    return np.array([[rng.multinomial(8, p) for p in layouts[t % 2]] for t in range(40)]).reshape(40, -1)


def test_likelihoods_add_up_over_all_assignments(bags):
    model = ReconfigurableBags(3, (2, 2), random_state=0).fit(bags)
    wanted = [
        naive_baselines.reconfigurable_by_enumeration(bag.reshape(4, 4), model.models_, model.prior_) for bag in bags
    ]
    np.testing.assert_allclose(model.score_samples(bags), wanted)
    np.testing.assert_allclose(model.score_samples(sp.csr_array(bags)), wanted)
    assert model.score(bags) == pytest.approx(np.mean(wanted))


def test_an_iteration_is_what_loops_say(bags):
    before = ReconfigurableBags(3, (2, 2), alpha=0.7, eta=0.3, max_iter=4, tol=0, random_state=0).fit(bags)
    after = ReconfigurableBags(3, (2, 2), alpha=0.7, eta=0.3, max_iter=5, tol=0, random_state=0).fit(bags)
    models, prior = naive_baselines.reconfigurable_step(bags.reshape(-1, 4, 4), before.models_, before.prior_, 0.7, 0.3)
    np.testing.assert_allclose(after.models_, models)
    np.testing.assert_allclose(after.prior_, prior)


@pytest.mark.parametrize("eta", ["auto", 0.0, 2.0])
def test_the_objective_never_falls(bags, eta):
    history = ReconfigurableBags(3, (2, 2), eta=eta, tol=1e-9, random_state=0).fit(bags).history_
    assert len(history) > 5
    assert np.diff(history).min() > -1e-12


def test_it_finds_sky_and_ground_and_where_they_are(bags):
    model = ReconfigurableBags(2, (2, 2), n_init=5, random_state=0).fit(bags)
    sky = model.models_[:, 0].argmax()
    assert model.prior_[:2, sky].min() > 0.9
    assert 0.3 < model.prior_[2, sky] < 0.7
    assert model.prior_[3, sky] < 0.1
    third = model.transform(bags).reshape(40, 4, 2)[:, 2, sky]
    np.testing.assert_allclose(third, np.arange(40) % 2, atol=0.1)


def test_one_region_is_a_mixture_of_unigrams(bags):
    ours = ReconfigurableBags(2, (1, 1), eta=0.5, alpha=1e-9, n_init=3, tol=1e-10, max_iter=1000, random_state=0)
    theirs = cg.MixtureOfUnigrams(2, eta=0.5, location_prior="exact", dtype="float64", random_state=0)
    wanted = theirs.fit(bags).score_samples(bags)
    np.testing.assert_allclose(ours.fit(bags).score_samples(bags), wanted, rtol=0.02)


def test_weights_are_copies(bags):
    times = np.arange(40) % 3
    weighted = ReconfigurableBags(2, (2, 2), random_state=0).fit(bags, sample_weight=times)
    copied = ReconfigurableBags(2, (2, 2), random_state=0).fit(np.repeat(bags, times, axis=0))
    np.testing.assert_allclose(weighted.models_, copied.models_)


def test_the_best_restart_is_kept(bags):
    rng = np.random.RandomState(0)
    ends = [ReconfigurableBags(4, (2, 2), random_state=rng).fit(bags).history_[-1] for _ in range(4)]
    best = ReconfigurableBags(4, (2, 2), n_init=4, random_state=np.random.RandomState(0)).fit(bags)
    assert best.history_[-1] == max(ends)


def test_it_classifies_what_a_bag_without_regions_cannot(bags):
    X = np.vstack([bags[::2], bags[::2].reshape(20, 4, 4)[:, ::-1].reshape(20, -1)])
    y = np.repeat(["up", "down"], 20)
    assert cg.GridClassifier(ReconfigurableBags(2, (2, 2)), random_state=0).fit(X, y).score(X, y) == 1


def test_wrong_use_is_refused(bags):
    for options, message in (
        ({"n_components": 0}, "n_components=0 must be an integer of at least 1"),
        ({"alpha": 0}, "alpha=0 must be a number above 0"),
        ({"eta": "flat"}, "eta='flat' must be 'auto' or a number"),
        ({"sections": (3, 3)}, r"X has 16 columns, but sections=\(3, 3\) needs a multiple of 9"),
    ):
        with pytest.raises(ValueError, match=message):
            ReconfigurableBags(**{"sections": (2, 2), **options}).fit(bags)
