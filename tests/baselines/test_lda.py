"""The bound of latent Dirichlet allocation against sampling, against scikit-learn's, and against its definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, psi
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.baselines import LDA, lda


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
    theta = np.random.default_rng(0).dirichlet(np.full(model.n_components, model.alpha_), n)
    logs = np.log(theta @ model.topics_ + 1e-300) @ bag
    return np.log(np.exp(logs - logs.max()).mean()) + logs.max()


def test_the_bound_lies_below_the_likelihood_and_not_far(bags):
    model = LDA(3, alpha=0.4, eta=0.1, random_state=0).fit(bags)
    bounds = model.score_samples(bags[:10])
    truths = np.array([sampled(model, bag) for bag in bags[:10]])
    assert (bounds < truths + 0.02).all()
    assert (truths - bounds).max() < 2.5


def test_one_topic_is_one_multinomial(bags):
    model = LDA(1, alpha=1.0, random_state=0).fit(bags)
    np.testing.assert_allclose(model.score_samples(bags), bags @ np.log(model.topics_[0]), rtol=1e-9)


def test_bounds_add_up_to_that_of_scikit_learn(bags):
    model = LDA(3, alpha=0.4, eta=0.1, tol=1e-6, random_state=0).fit(bags)
    theirs = LatentDirichletAllocation(
        3, doc_topic_prior=0.4, topic_word_prior=0.1, max_iter=1, max_doc_update_iter=1000, mean_change_tol=1e-8
    ).fit(bags)
    # So many tokens in the topics leave no difference between the mean of a logarithm and the logarithm of a mean.
    theirs.components_ = components = model.topics_ * 1e9
    log_topics = psi(components) - psi(components.sum(axis=1, keepdims=True))
    theirs.exp_dirichlet_component_ = np.exp(log_topics)
    of_topics = ((0.1 - components) * log_topics + gammaln(components) - gammaln(0.1)).sum()
    of_topics += (gammaln(1.2) - gammaln(components.sum(axis=1))).sum()
    gamma = theirs.transform(bags) * (1.2 + bags.sum(axis=1, keepdims=True))
    wanted = theirs._approx_bound(bags, gamma, sub_sampling=False) - of_topics
    np.testing.assert_allclose(model.score_samples(bags).sum(), wanted, rtol=1e-4)
    np.testing.assert_allclose(model.transform(bags), theirs.transform(bags), atol=1e-2)


@pytest.mark.parametrize("eta", ["auto", 0.5])
def test_the_objective_never_falls(bags, eta):
    model = LDA(3, eta=eta, tol=1e-7, random_state=0).fit(bags)
    assert len(model.history_) > 5
    assert np.diff(model.history_).min() > -1e-6


def test_it_finds_topics_that_explain_as_well_as_the_true_ones(bags):
    rng = np.random.default_rng(0)
    truth = LDA(3, alpha=0.4, random_state=0).fit(bags)
    truth.topics_ = rng.dirichlet(np.full(12, 0.3), 3)
    assert LDA(3, alpha=0.4, eta=0.01, random_state=0).fit(bags).score(bags) > truth.score(bags) - 0.1


def test_weights_are_copies(bags):
    times = np.arange(60) % 3
    weighted = LDA(3, random_state=0).fit(bags, sample_weight=times)
    copied = LDA(3, random_state=0).fit(np.repeat(bags, times, axis=0))
    np.testing.assert_allclose(weighted.topics_, copied.topics_, atol=1e-4)


def test_sparse_and_empty_bags(bags):
    model = LDA(3, random_state=0).fit(bags)
    np.testing.assert_allclose(model.score_samples(sp.csr_array(bags)), model.score_samples(bags), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(np.zeros((1, 12))), 0, atol=1e-9)
    np.testing.assert_allclose(model.transform(bags).sum(axis=1), 1)
    assert model.score(bags) == pytest.approx(model.score_samples(bags).mean())


def completed(model, topics, test, seen):
    """Return the log probability per token of the tokens that were not seen."""
    hidden = test - seen
    return (hidden * np.log(model.transform(seen) @ topics)).sum() / hidden.sum()


def drawn(n_bags, of_bags, of_topics, rng):
    """Draw bags of twelve topics from Dirichlet priors."""
    topics = rng.dirichlet(np.full(60, of_topics), 12)
    return np.array([rng.multinomial(200, theta @ topics) for theta in rng.dirichlet(np.full(12, of_bags), n_bags)])


@pytest.mark.parametrize("priors", [(0.6, 0.2), (0.1, 0.05), (0.1, 0.5)])
def test_held_out_tokens_are_predicted_as_well_as_by_scikit_learn(priors):
    rng = np.random.default_rng(1)
    X = drawn(240, *priors, rng)
    train, test = X[:160], X[160:]
    seen = rng.binomial(test, 0.5)
    ours, theirs = [], []
    for seed in range(3):
        model = LDA(10, random_state=seed).fit(train)
        ours.append(completed(model, model.topics_, test, seen))
        model = LatentDirichletAllocation(10, max_iter=40, random_state=seed).fit(train)
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        theirs.append(completed(model, topics, test, seen))
    assert np.mean(ours) > np.mean(theirs)


def test_alpha_maximizes_the_bound(bags):
    options = {"tol": 1e-9, "max_iter": 300, "n_init": 1, "random_state": 0}
    model = LDA(3, **options).fit(bags)
    for factor in (0.8, 1.25):
        near = LDA(3, **options, alpha=factor * model.alpha_).fit(bags)
        assert near.history_[-1] < model.history_[-1] + 1e-4


def test_a_fitted_pseudocount_maximizes_the_expected_prior():
    posteriors = np.random.default_rng(0).gamma(0.5, 40, (4, 12)) + 0.1
    weights = np.array([1.0, 2.0, 0.0, 3.0])
    logs = psi(posteriors) - psi(posteriors.sum(axis=1, keepdims=True))
    best = lda._best_pseudocount(posteriors, weights)
    expected = [lda._log_dirichlet(value, logs) @ weights for value in (best, 0.97 * best, 1.03 * best)]
    assert expected[0] > max(expected[1:])


def test_it_classifies(bags):
    X = np.vstack([bags, bags[:, ::-1]])
    y = np.repeat(["forth", "back"], len(bags))
    assert cg.GridClassifier(LDA(3), random_state=0).fit(X, y).score(X, y) > 0.9


def test_wrong_use_is_refused(bags):
    with pytest.raises(ValueError, match="eta='flat' must be 'auto' or a number"):
        LDA(eta="flat").fit(bags)
    with pytest.raises(ValueError, match="alpha='some' must be"):
        LDA(alpha="some").fit(bags)
    with pytest.raises(ValueError, match="n_components=0 must be an integer"):
        LDA(0).fit(bags)
