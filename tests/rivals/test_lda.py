"""The bound of latent Dirichlet allocation against sampling, against scikit-learn's, and against its definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, psi
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.rivals import LDA


@pytest.fixture(scope="module")
def bags():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(12, 0.3), 3)
    return np.array([rng.multinomial(30, theta @ topics) for theta in rng.dirichlet(np.full(3, 0.4), 60)])


@parametrize_with_checks([LDA(2, max_iter=3, random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def sampled(model, bag, n=200_000):
    """Estimate log p(bag), drawing theta from its prior."""
    theta = np.random.default_rng(0).dirichlet(np.full(model.n_components, model.model_.doc_topic_prior_), n)
    logs = np.log(theta @ model.topics_ + 1e-300) @ bag
    return np.log(np.exp(logs - logs.max()).mean()) + logs.max()


def test_the_bound_lies_below_the_likelihood_and_not_far(bags):
    model = LDA(3, alpha=0.4, eta=0.1, max_iter=50, random_state=0).fit(bags)
    bounds = model.score_samples(bags[:10])
    truths = np.array([sampled(model, bag) for bag in bags[:10]])
    assert (bounds < truths + 0.02).all()
    assert (truths - bounds).max() < 2.5


def test_one_topic_is_one_multinomial(bags):
    model = LDA(1, alpha=1.0, random_state=0).fit(bags)
    np.testing.assert_allclose(model.score_samples(bags), bags @ np.log(model.topics_[0]), rtol=1e-9)


def test_bounds_add_up_to_that_of_scikit_learn(bags):
    model = LDA(3, alpha=0.4, eta=0.1, max_iter=20, random_state=0).fit(bags)
    inner = model.model_
    # So many tokens in the topics leave no difference between the mean of a logarithm and the logarithm of a mean.
    inner.components_ = components = model.topics_ * 1e9
    inner.exp_dirichlet_component_ = np.exp(psi(components) - psi(components.sum(axis=1, keepdims=True)))
    eta = inner.topic_word_prior_
    log_topics = psi(components) - psi(components.sum(axis=1, keepdims=True))
    of_topics = ((eta - components) * log_topics + gammaln(components) - gammaln(eta)).sum()
    of_topics += (gammaln(12 * eta) - gammaln(components.sum(axis=1))).sum()
    wanted = inner._approx_bound(bags, model._gamma(bags.astype(float)), sub_sampling=False) - of_topics
    np.testing.assert_allclose(model.score_samples(bags).sum(), wanted, rtol=1e-4)


def test_sparse_and_empty_bags(bags):
    model = LDA(3, random_state=0).fit(bags)
    np.testing.assert_allclose(model.score_samples(sp.csr_array(bags)), model.score_samples(bags), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(np.zeros((1, 12))), 0, atol=1e-9)
    np.testing.assert_allclose(model.transform(bags).sum(axis=1), 1)
    assert model.score(bags) == pytest.approx(model.score_samples(bags).mean())


def test_it_classifies(bags):
    X = np.vstack([bags, bags[:, ::-1]])
    y = np.repeat(["forth", "back"], len(bags))
    assert cg.GridClassifier(LDA(3), random_state=0).fit(X, y).score(X, y) > 0.9
