"""The componential grid as an estimator."""

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.core import componential
from countinggrids.core.protocols import InnerSteps
from countinggrids.kernels import threads, tuning
from countinggrids.training import admixing, completion

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SPARSE = tuning.Tuning(small_product=0, dense_from=2.0)


def planted(rng, n_bags=500, n_tokens=80):
    """Bags of two blocks of a ring of 12 sharp cells each, with the pair of each bag."""
    topics = np.kron(np.eye(12), np.full(5, 0.19)) + 0.05 / 60
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(n_bags)])
    chances = topics[pairs].mean(axis=1)
    return sp.csr_array([rng.multinomial(n_tokens, p / p.sum()) for p in chances]), pairs


def textbook(X, topics, alpha, eta, n_iterations, n_steps):
    """MAP LDA as in any textbook, topics in rows; with alpha = eta = 0 it is pLSA."""
    for _ in range(n_iterations):
        theta = np.full((len(X), len(topics)), 1 / len(topics))
        for _ in range(n_steps):
            used = theta * ((X / (theta @ topics)) @ topics.T) + alpha / len(topics)
            theta = used / used.sum(axis=1, keepdims=True)
        topics = topics * (theta.T @ (X / (theta @ topics))) + eta
        topics = topics / topics.sum(axis=1, keepdims=True)
    return topics, theta


@pytest.mark.parametrize(("alpha", "eta"), [(0.0, 0.0), (0.7, 0.3)])
def test_a_window_of_one_cell_is_plsa_or_map_lda(rng, alpha, eta, monkeypatch):
    monkeypatch.setattr(componential, "LEARNING", InnerSteps(6, 0))
    X = rng.poisson(3, (20, 6)) + 1.0
    start = rng.dirichlet(np.ones(6), 4)
    model = cg.ComponentialGrid(
        4, 1, alpha=alpha, eta=eta, init=start, max_iter=3, tol=0, batch_size=None, dtype="float64"
    ).fit(X)
    topics, _ = textbook(X, start, alpha, eta, 3, 6)
    np.testing.assert_allclose(model.pi_, topics, rtol=1e-8, atol=1e-10)
    assert model.alpha_ == alpha


def test_a_bag_of_two_windows_has_its_weight_on_both(rng):
    X, pairs = planted(rng)
    model = cg.ComponentialGrid(24, 2, random_state=0).fit(X)
    theta = model.transform(X[:100])
    singles = np.kron(np.eye(12, dtype=int), np.full(5, 16))
    places = model.transform(singles)
    weights = theta @ (places / np.linalg.norm(places, axis=1, keepdims=True)).T
    found = np.sort(np.argsort(-weights, axis=1)[:, :2], axis=1)
    assert (found == np.sort(pairs[:100], axis=1)).all(axis=1).mean() > 0.9


def test_cell_weights_spread_every_window_over_its_cells(rng):
    X = rng.poisson(0.5, (30, 12))
    X[3] = 0
    model = cg.ComponentialGrid((5, 4), (2, 3), random_state=0, max_iter=20).fit(X)
    weights, theta = model.cell_weights(X), model.transform(X)
    assert weights[3] == pytest.approx(np.full(20, 1 / 20))
    for bag in (0, 1, 7):
        excess = theta[bag] - theta[bag].min()
        expected = np.zeros((5, 4))
        for k, share in enumerate(excess / excess.sum()):
            for row, column in np.ndindex(2, 3):
                expected[(k // 4 + row) % 5, (k % 4 + column) % 4] += share / 6
        assert weights[bag] == pytest.approx(expected.ravel(), abs=1e-6)


def test_every_token_is_assigned_to_a_window_that_has_its_feature(rng):
    X, _ = planted(rng)
    model = cg.ComponentialGrid(24, 2, random_state=0).fit(X)
    cells = model.assign(X[:20])
    assert cells.shape == X[:20].shape
    np.testing.assert_array_equal(cells.indices, X[:20].indices)
    rows = np.repeat(np.arange(20), np.diff(cells.indptr))
    h = (model.pi_ + np.roll(model.pi_, -1, axis=0)) / 2
    theta = model.transform(X[:20])
    joint = theta[rows] * h[:, cells.indices].T
    np.testing.assert_allclose(joint[np.arange(len(rows)), cells.data - 1], joint.max(axis=1), rtol=1e-5)


def test_weights_sum_to_one_dense_and_sparse(rng):
    X, _ = planted(rng, 60)
    model = cg.ComponentialGrid(12, 2, max_iter=20, random_state=0).fit(X)
    dense = model.transform(X)
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=1e-5)
    few = model.set_params(sparse_output=True).transform(X)
    np.testing.assert_allclose(few.toarray(), dense, atol=1e-4)
    empty = model.set_params(sparse_output=False).transform(np.zeros((1, 60)))
    np.testing.assert_allclose(empty, 1 / 12, rtol=1e-5)


def test_a_file_keeps_everything(rng, tmp_path):
    X, _ = planted(rng, 60)
    model = cg.ComponentialGrid(12, 2, max_iter=20, alpha=0.5, random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = cg.load(tmp_path / "model")
    assert again.alpha_ == 0.5
    assert type(again.geometry_) is type(model.geometry_)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert again.perplexity(X) == model.perplexity(X)
    model.partial_fit(X).save(tmp_path / "model")
    np.testing.assert_array_equal(cg.load(tmp_path / "model").partial_fit(X).pi_, model.partial_fit(X).pi_)


@pytest.mark.parametrize("batch_size", [None, 50])
def test_threads_and_blocks_change_no_bit(rng, batch_size):
    X, _ = planted(rng)
    with tuning.use(SPARSE):
        model = cg.ComponentialGrid(24, 4, max_iter=20, batch_size=batch_size, random_state=0)
        fits = []
        for n_threads in (1, 3):
            with threads.use(threads.Threads(n_threads)):
                fits.append(model.fit(X).pi_)
        in_blocks = model.fit([X[:123], X[123:]]).pi_ if batch_size is None else fits[0]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], in_blocks)


def test_torch_agrees_with_numpy(rng):
    pytest.importorskip("torch")
    X, _ = planted(rng, 60)
    how = {"max_iter": 6, "tol": 0, "random_state": 0, "dtype": "float64", "batch_size": None}
    ours, theirs = (cg.ComponentialGrid(12, 4, device=device, **how).fit(X.toarray()) for device in (None, "cpu"))
    np.testing.assert_allclose(theirs.pi_, ours.pi_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(theirs.score_samples(X), ours.score_samples(X), rtol=1e-8)


def test_a_fit_resumes_from_its_checkpoint(rng, tmp_path):
    X, _ = planted(rng)
    model = cg.ComponentialGrid(24, 4, batch_size=50, max_iter=40, random_state=0)
    wanted = model.fit(X).pi_

    def die(iteration):
        if iteration.stage == "learning" and iteration.number == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(X, callback=die, checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(model.fit(X, checkpoint=tmp_path / "state").pi_, wanted)


def test_grids_of_one_place_and_of_many_start_from_each_other(rng):
    X, _ = planted(rng, 60)
    single = cg.CountingGrid((12,), (2,), max_iter=30, random_state=0).fit(X)
    many = cg.ComponentialGrid(12, 2, init=single.pi_, max_iter=30).fit(X)
    back = cg.CountingGrid((12,), (2,), init=many.pi_, anneal=None, max_iter=30).fit(X)
    assert many.score(X) > cg.ComponentialGrid(12, 2, init=single.pi_, max_iter=1).fit(X).score(X)
    assert back.pi_.shape == many.pi_.shape


def test_batches_of_a_stream_learn(rng):
    X, _ = planted(rng)
    model = cg.ComponentialGrid(24, 2, random_state=0)
    for start in range(0, 500, 100):
        model.partial_fit(X[start : start + 100])
    first = model.perplexity(X)
    for _ in range(4):
        for start in range(0, 500, 100):
            model.partial_fit(X[start : start + 100])
    assert model.perplexity(X) < first < 60


def test_samples_come_from_the_windows(rng):
    X, _ = planted(rng)
    model = cg.ComponentialGrid(24, 2, random_state=0).fit(X)
    drawn, cells = model.sample(50, 80, random_state=0)
    assert drawn.shape == (50, 60)
    np.testing.assert_array_equal(drawn.sum(axis=1), 80)
    assert cells.shape == (50,)
    assert model.score(drawn) > model.score(rng.multinomial(80, np.full(60, 1 / 60), 50))


def test_pseudocounts_are_chosen_by_held_out_words(rng):
    X, _ = planted(rng)
    model = cg.ComponentialGrid(24, 2, random_state=0).fit(X)
    worse = cg.ComponentialGrid(24, 2, alpha=100.0, random_state=0).fit(X)
    assert model.alpha_ < 100
    assert model.perplexity(X) < worse.perplexity(X)


def test_the_best_factor_is_found():
    assert completion.best_by_factor(2.0, lambda value: abs(np.log(value / 4.4))) == pytest.approx(4.5)
    assert completion.best_by_factor(2.0, lambda value: abs(np.log(value / 0.9))) == pytest.approx(2 / 2.25)
    assert completion.best_by_factor(2.0, lambda value: abs(np.log(value / 2.1))) == 2.0


def test_half_of_the_tokens_are_shown(rng):
    counts = sp.csr_array(rng.poisson(3.0, (200, 30)) * 1.5)
    shown, hidden = completion.split(counts, np.random.RandomState(0))
    np.testing.assert_allclose((shown + hidden).toarray(), counts.toarray())
    assert shown.sum() / counts.sum() == pytest.approx(0.5, abs=0.02)
    assert min(shown.data.min(), hidden.data.min()) > 0


def test_small_grids_come_first():
    stages = admixing.stages_of(cg.ComponentialGrid((32, 32), 3)._geometry())
    assert [stage.n_cells for stage in stages] == sorted(stage.n_cells for stage in stages)
    assert stages[-1].grid == (32, 32)
    assert stages[0].n_cells <= 500
    assert admixing.stages_of(stages[-1], np.ones(3)) == [stages[-1]]


def test_bad_input_is_refused(rng):
    X, _ = planted(rng, 60)
    for options in ({"alpha": -1.0}, {"alpha": "much"}, {"batch_size": 0}, {"init": "embedding"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            cg.ComponentialGrid(12, 2, **options).fit(X)
