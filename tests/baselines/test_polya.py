"""Mixtures of Polya distributions against SciPy's, loops, and a search for the maximum."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet_multinomial
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
import naive_baselines
from countinggrids.baselines import PolyaMixture, polya


@parametrize_with_checks([PolyaMixture(2, max_iter=3, random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def bags(rng):
    """Bursty bags of two kinds."""
    shares = np.vstack([rng.dirichlet(a, 40) for a in ([2.0, 1.0, 0.5, 0.2], [0.2, 0.5, 1.0, 2.0])])
    return np.array([rng.multinomial(30, p) for p in shares])


def coefficients(bags):
    """Give the log of the number of orders in which each bag may come."""
    return gammaln(bags.sum(axis=1) + 1) - gammaln(bags + 1).sum(axis=1)


def test_likelihoods_are_those_of_scipy(bags):
    model = PolyaMixture(2, random_state=0).fit(bags)
    parts = [dirichlet_multinomial(alpha, 30).logpmf(bags) - coefficients(bags) for alpha in model.alpha_]
    wanted = logsumexp(np.transpose(parts) + np.log(model.weights_), axis=1)
    np.testing.assert_allclose(model.score_samples(bags), wanted)
    np.testing.assert_allclose(model.score_samples(sp.csr_array(bags)), wanted)
    np.testing.assert_allclose(model.score_samples(np.zeros((1, 4))), 0, atol=1e-12)
    assert model.score(bags) == pytest.approx(wanted.mean())


def test_a_step_is_what_loops_say(bags, rng):
    alpha, weights = rng.random(4), rng.random(80)
    wanted = naive_baselines.polya_step(bags, alpha, weights)
    np.testing.assert_allclose(polya.fixed_point(bags, alpha, weights, np.zeros(4)), wanted)
    np.testing.assert_allclose(polya.fixed_point(sp.csr_array(bags), alpha, weights, np.zeros(4)), wanted)


def test_one_component_ends_at_the_maximum(bags):
    model = PolyaMixture(1, eta=0.0, tol=1e-12, max_iter=3000, random_state=0).fit(bags)
    best = minimize(lambda log_a: -dirichlet_multinomial(np.exp(log_a), 30).logpmf(bags).sum(), np.zeros(4))
    np.testing.assert_allclose(model.alpha_[0], np.exp(best.x), rtol=1e-3)


@pytest.mark.parametrize("eta", ["auto", 0.0, 2.0])
def test_the_objective_never_falls(bags, eta):
    history = PolyaMixture(3, eta=eta, tol=1e-9, random_state=0).fit(bags).history_
    assert len(history) > 5
    assert np.diff(history).min() > -1e-12


def test_it_tells_the_two_kinds_apart(bags):
    model = PolyaMixture(2, n_init=5, random_state=0).fit(bags)
    kinds = model.transform(bags).argmax(axis=1)
    assert abs(kinds[:40].mean() - kinds[40:].mean()) > 0.8
    np.testing.assert_allclose(model.weights_, 0.5, atol=0.1)


def test_bursty_bags_are_likelier_than_under_multinomials(bags):
    mixture = cg.MixtureOfUnigrams(2, random_state=0).fit(bags)
    assert PolyaMixture(2, random_state=0).fit(bags).score(bags) > mixture.score(bags) + 3


def test_bags_without_bursts_make_it_a_multinomial(rng):
    X = np.full((10, 3), [6, 3, 1])
    model = PolyaMixture(1, eta=0.0, max_iter=2000, tol=0, random_state=0).fit(X)
    assert model.alpha_.sum() > 100
    np.testing.assert_allclose(model.alpha_[0] / model.alpha_.sum(), [0.6, 0.3, 0.1], atol=1e-3)


def test_weights_are_copies(bags):
    times = np.arange(80) % 3
    weighted = PolyaMixture(2, random_state=0).fit(bags, sample_weight=times)
    copied = PolyaMixture(2, random_state=0).fit(np.repeat(bags, times, axis=0))
    np.testing.assert_allclose(weighted.alpha_, copied.alpha_)


def test_it_classifies(bags):
    y = np.repeat(["a", "b"], 40)
    assert cg.GridClassifier(PolyaMixture(1), random_state=0).fit(bags, y).score(bags, y) > 0.9


def test_wrong_use_is_refused(bags):
    with pytest.raises(ValueError, match=r"n_components=1\.5 must be an integer of at least 1"):
        PolyaMixture(1.5).fit(bags)
    with pytest.raises(ValueError, match="eta=-1 must be 'auto' or a number of at least 0"):
        PolyaMixture(eta=-1).fit(bags)
