"""From scores to q: compiled loops against array functions, and both against the definition in float64."""

import numpy as np
import pytest

from countinggrids import posterior
from countinggrids.posterior import Scores

KINDS = {"flat": 0.1, "some": 3.0, "sharp": 60.0, "very sharp": 3000.0}


def defined(joint, log_prior):
    """Give q and log p(bag) by the definition."""
    joint = joint.astype(np.float64) + log_prior.astype(np.float64)
    best = joint.max(axis=1, keepdims=True)
    p = np.exp(joint - best)
    return p / p.sum(axis=1, keepdims=True), best[:, 0] + np.log(p.sum(axis=1))


@pytest.fixture(params=KINDS)
def case(request, rng):
    joint = (-KINDS[request.param] * rng.standard_exponential((30, 70))).astype(np.float32)
    log_prior = np.log(rng.dirichlet(np.ones(70))).astype(np.float32)
    return joint, log_prior


@pytest.fixture(params=[0, np.inf], ids=["compiled", "array functions"])
def worth_compiling(request, monkeypatch):
    monkeypatch.setattr(posterior, "FEW_ENTRIES", 0)
    monkeypatch.setattr(posterior, "WORTH_COMPILING", request.param)


@pytest.mark.usefixtures("worth_compiling")
def test_all_cells_have_the_q_of_the_definition(case):
    q, log_likelihood = posterior.of_all_cells(Scores.of(case[0].copy(), case[1]))
    wanted, wanted_likelihood = defined(*case)
    digits = 3e-7 * np.abs(case[0]).max()  # those of log p are lost by taking the best away
    np.testing.assert_allclose(q, wanted, rtol=1e-6 + digits, atol=1e-30)
    np.testing.assert_allclose(log_likelihood, wanted_likelihood, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.usefixtures("worth_compiling")
def test_few_cells_have_the_q_of_the_definition(case, monkeypatch):
    monkeypatch.setattr(posterior, "SPARSE_BELOW", 1.1)
    scores = Scores.of(case[0].copy(), case[1])
    q, log_likelihood = posterior.of_few_cells(scores)
    wanted, wanted_likelihood = defined(*case)
    assert q.nnz == scores.n_near == np.count_nonzero(wanted > 1e-6 * wanted.max(axis=1, keepdims=True))
    np.testing.assert_allclose(q.toarray(), wanted, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(log_likelihood, wanted_likelihood, rtol=1e-4)
    assert q.has_sorted_indices


@pytest.mark.usefixtures("worth_compiling")
def test_a_flat_posterior_is_not_held_sparse(rng):
    assert posterior.of_few_cells(Scores.of(rng.random((30, 70), np.float32), np.zeros(70, np.float32))) is None


def test_exponentials_keep_the_digits_of_float32(monkeypatch):
    monkeypatch.setattr(posterior, "WORTH_COMPILING", 0)
    exponents = -np.r_[0, np.geomspace(1e-6, 79, 5000)].astype(np.float32)[None]
    q, _ = posterior.of_all_cells(Scores.of(exponents.copy(), np.zeros(5001, np.float32)))
    wanted = np.exp(exponents.astype(np.float64))
    np.testing.assert_allclose(q / q.max(), wanted, rtol=4e-7)


@pytest.mark.usefixtures("worth_compiling")
@pytest.mark.parametrize("place", [0, 5, 69])
def test_what_is_no_number_shows(place):
    joint = np.zeros((2, 70), np.float32)
    joint[1, place] = np.nan
    q, log_likelihood = posterior.of_all_cells(Scores.of(joint, np.zeros(70, np.float32)))
    assert np.isfinite(q[0]).all()
    assert np.isnan(log_likelihood[1])
