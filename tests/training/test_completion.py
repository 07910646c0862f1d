"""Document completion."""

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.core import em
from countinggrids.core.geometry import Geometry
from countinggrids.kernels.threads import default
from countinggrids.training import completion
from countinggrids.training.completion import log_completed, split


@pytest.mark.parametrize("sections", [1, (2, 1)])
def test_hidden_tokens_are_predicted_by_the_windows_of_the_posterior(rng, sections):
    geometry, pool = Geometry.of((5, 6), 2, sections), default()
    pi = em.normalize(rng.random((7, 5, 6)), 1, pool)
    grid = em.Grid(pi, np.zeros((5, 6)))
    n_sections = int(np.prod(sections))
    hidden = sp.csr_array(rng.poisson(0.5, (9, 7 * n_sections)).astype(float))
    q = rng.dirichlet(np.ones(30), 9)
    expected, (tall, wide) = 0.0, geometry.block(painted=True)
    for bag, column in zip(*hidden.nonzero(), strict=True):
        section, feature = divmod(column, 7)
        p = 0.0
        for place in range(30):
            row, left = divmod(place, 6)
            row += section * tall
            cells = [pi[feature, (row + i) % 5, (left + j) % 6] for i in range(tall) for j in range(wide)]
            p += q[bag, place] * np.mean(cells)
        expected += hidden[bag, column] * np.log(p)
    assert log_completed([q[:4], q[4:]], hidden, grid, geometry, pool) == pytest.approx(expected)


def test_the_shown_and_the_hidden_tokens_are_all_tokens(rng):
    counts = sp.csr_array(rng.poisson(2.0, (20, 8)).astype(float))
    shown, hidden = split(counts, np.random.RandomState(0))
    np.testing.assert_array_equal((shown + hidden).toarray(), counts.toarray())
    assert 0.4 < hidden.sum() / counts.sum() < 0.6


@pytest.mark.parametrize(("kind", "by_tokens"), [(cg.CountingGrid, True), (cg.ElasticGrid, False)])
def test_layouts_that_form_gradually_are_scored_by_hidden_tokens_unless_sections_slip(
    rng, monkeypatch, kind, by_tokens
):
    topics = rng.dirichlet(np.full(30, 0.1), 8)
    X = np.array([rng.multinomial(600, topic) for topic in topics[rng.integers(8, size=1100)]], float)
    if not by_tokens:
        X = np.hstack([X, X])
    calls = []
    monkeypatch.setattr(completion, "log_completed", lambda *given: calls.append(1) or log_completed(*given))
    sections = {} if by_tokens else {"sections": (2, 1)}
    kind((8, 8), 4, init="uniform", random_state=0, max_iter=40, tol=1e-3, **sections).fit(X)
    assert bool(calls) is by_tokens
