import numpy as np
import pytest

from countinggrids.core.relevance import mean_histogram, relevance


def test_relevance_sums_to_the_divergence_from_the_whole_grid(rng):
    places, everywhere = rng.dirichlet(np.ones(5), (2, 3)), rng.dirichlet(np.ones(5))
    found = relevance(places, everywhere)
    assert found.shape == (2, 3, 5)
    np.testing.assert_allclose(found.sum(axis=-1), (places * np.log(places / everywhere)).sum(axis=-1), rtol=1e-9)


def test_features_that_a_place_does_not_have_are_not_relevant():
    assert relevance([0.0, 1.0], [0.5, 0.5]) == pytest.approx([0, np.log(2)], abs=1e-9)


def test_the_mean_histogram_is_weighted_by_usage(rng):
    pi, usage = rng.dirichlet(np.ones(4), (3, 2)), rng.random((3, 2))
    expected = sum(usage[place] * pi[place] for place in np.ndindex(3, 2)) / usage.sum()
    np.testing.assert_allclose(mean_histogram(pi, usage), expected)
    np.testing.assert_allclose(mean_histogram(pi), pi.mean(axis=(0, 1)))


def test_a_grid_that_nobody_uses_has_the_plain_mean(rng):
    pi = rng.dirichlet(np.ones(4), (3, 2))
    np.testing.assert_allclose(mean_histogram(pi, np.zeros((3, 2))), pi.mean(axis=(0, 1)))
