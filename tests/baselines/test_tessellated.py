"""A model a section, against its models one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.baselines import LDA, Tessellated


@parametrize_with_checks([Tessellated(LDA(2, max_iter=3), sections=(1, 1), random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def bags(rng):
    return rng.multinomial(30, rng.dirichlet(np.ones(12)), 20)


def test_likelihoods_of_sections_are_summed(bags):
    model = Tessellated(LDA(2, random_state=3), sections=(1, 3)).fit(bags)
    wanted = sum(
        LDA(2, random_state=3).fit(part).score_samples(part) for part in (bags[:, :4], bags[:, 4:8], bags[:, 8:])
    )
    np.testing.assert_allclose(model.score_samples(bags), wanted)
    np.testing.assert_allclose(model.score_samples(sp.csr_array(bags)), wanted)
    assert model.score(bags) == pytest.approx(wanted.mean())


def test_mixtures_become_those_of_the_spatial_bag_of_words(bags):
    one = cg.MixtureOfUnigrams(1, eta=0.5, anneal=None, dtype="float64")
    wanted = cg.SpatialBagOfWords(1, sections=(2, 2), eta=0.5, anneal=None, dtype="float64").fit(bags)
    ours = Tessellated(one, (2, 2), random_state=0).fit(bags)
    np.testing.assert_allclose(ours.score_samples(bags), wanted.score_samples(bags), rtol=1e-6)


def test_weights_and_seeds_reach_the_models(bags):
    times = np.arange(20) % 3
    weighted = Tessellated(LDA(2), (2, 2), random_state=1).fit(bags, sample_weight=times)
    copied = Tessellated(LDA(2), (2, 2), random_state=1).fit(np.repeat(bags, times, axis=0))
    np.testing.assert_allclose(weighted.score_samples(bags), copied.score_samples(bags), rtol=1e-4)
    assert len({model.random_state for model in weighted.models_}) == 4


def test_other_densities_do_too_and_classify(rng):
    left = rng.multinomial(60, [0.4, 0.1, 0.1, 0.4], 30)
    X, y = np.vstack([left, left[:, [2, 3, 0, 1]]]), np.repeat(["a", "b"], 30)
    for inner in (LDA(2), GaussianMixture(1, reg_covar=1.0)):
        assert cg.GridClassifier(Tessellated(inner, (1, 2)), random_state=0).fit(X, y).score(X, y) > 0.9


def test_features_that_a_section_never_had_stay_possible():
    X = np.array([[5, 5, 0, 5, 0, 5], [4, 6, 0, 6, 0, 4]])
    model = Tessellated(LDA(2), (1, 2), random_state=0).fit(X)
    assert -100 < model.score_samples([[5, 4, 1, 5, 1, 4]])[0] < model.score(X)


def test_wrong_use_is_refused(bags):
    with pytest.raises(ValueError, match=r"X has 12 columns, but sections=\(4, 4\) needs a multiple of 16"):
        Tessellated().fit(bags)
