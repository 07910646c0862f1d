"""Bags compared with a reference walk: square roots and TF-IDF against their definitions, in loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from countinggrids.baselines import RootBags, TfidfBags

MATCHERS = [RootBags(), TfidfBags(), TfidfBags(0.7)]


@parametrize_with_checks(MATCHERS)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def walks(rng):
    """A reference walk, and the same places once more in another order."""
    places = rng.dirichlet(np.full(30, 0.2), 12)
    order = rng.permutation(12)
    reference, query = (np.array([rng.multinomial(200, place) for place in which]) for which in (places, places[order]))
    return reference, query, order


def test_roots_have_the_coefficient_of_bhattacharyya(walks):
    reference, query, _ = walks
    wanted = np.zeros((len(query), len(reference)))
    for i, a in enumerate(query):
        for j, b in enumerate(reference):
            wanted[i, j] = sum(np.sqrt(a[z] / a.sum() * b[z] / b.sum()) for z in range(len(a)))
    np.testing.assert_allclose(RootBags().fit(reference).similarity(query), wanted)


@pytest.mark.parametrize("power", [1.0, 0.7])
def test_tfidf_is_what_loops_say(walks, power):
    reference, query, _ = walks
    n = len(reference)

    def vector(bag):
        weights = [np.log((1 + n) / (1 + sum(other[z] > 0 for other in reference))) + 1 for z in range(len(bag))]
        found = np.array([count**power * weight for count, weight in zip(bag, weights, strict=True)])
        return found / np.sqrt((found**2).sum())

    wanted = [[vector(a) @ vector(b) for b in reference] for a in query]
    np.testing.assert_allclose(TfidfBags(power).fit(reference).similarity(query), wanted)


@pytest.mark.parametrize("matcher", MATCHERS, ids=str)
def test_the_same_place_is_the_most_alike(walks, matcher):
    reference, query, order = walks
    similarity = matcher.fit(reference).similarity(query)
    np.testing.assert_array_equal(similarity.argmax(axis=1), order)
    np.testing.assert_allclose(np.diag(matcher.similarity(reference)), 1)


@pytest.mark.parametrize("matcher", MATCHERS, ids=str)
def test_sparse_bags_and_empty_ones(walks, matcher):
    reference, query, _ = walks
    dense = matcher.fit(reference).similarity(query)
    np.testing.assert_allclose(matcher.fit(sp.csr_array(reference)).similarity(sp.csr_array(query)), dense)
    assert (matcher.similarity(np.zeros((1, 30))) == 0).all()


@pytest.mark.parametrize("classifier", [KNeighborsClassifier(1), LogisticRegression(C=100)], ids=str)
def test_the_vectors_can_be_classified(walks, classifier):
    reference, query, order = walks
    pipe = make_pipeline(RootBags(), classifier).fit(reference, np.arange(12))
    np.testing.assert_array_equal(pipe.predict(query), order)


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="Negative values in data"):
        RootBags().fit([[1, -1], [1, 2]])
    with pytest.raises(ValueError, match="power=0 must be a number above 0"):
        RootBags(0).fit([[1, 1], [1, 2]])
    with pytest.raises(ValueError, match="X has 3 features, but RootBags is expecting 2"):
        RootBags().fit([[1, 1], [1, 2]]).similarity([[1, 2, 3]])
