"""The estimators as scikit-learn users meet them."""

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from cases import scene_windows
from countinggrids.core import em
from countinggrids.kernels import threads, tuning

QUICK = {"max_iter": 20, "tol": 1e-2, "random_state": 0, "dtype": "float64"}
# scikit-learn's checks bring tables of any width, so sections must number one here.
ESTIMATORS = [
    cg.CountingGrid((4, 4), (2, 2), **QUICK),
    cg.CountingGrid((4, 4), (2, 2), **QUICK | {"dtype": "float32"}),
    cg.ElasticGrid((4, 4), (2, 2), sections=1, **QUICK),
    cg.ComponentialGrid((4, 4), (2, 2), **QUICK),
    cg.MixtureOfUnigrams(3, **QUICK),
    cg.SpatialBagOfWords(3, sections=1, **QUICK),
    cg.DiscreteEpitome((4, 4), 1, **QUICK),
    cg.HybridEpitome((4, 4), 1, **QUICK),
]


def expected_failures(estimator):
    """In float32 a weight of two and a bag given twice are added in another order and differ by rounding."""
    rounding = "equal to float32 rounding only; passes in float64"
    checks = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(checks, rounding) if estimator.dtype == "float32" else {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def X():  # noqa: N802
    """Bags from windows into a small scene, so that there is something to learn."""
    scene = np.add.outer(np.arange(12) // 2, np.arange(12) // 3)
    return cg.bag(scene_windows(scene, (4, 4), 40, seed=0)[1], (2, 2), 9).toarray()


@pytest.fixture
def model(X):
    return cg.CountingGrid((8, 8), (4, 4), (2, 2), random_state=0).fit(X)


def test_the_fitted_attributes_have_their_documented_shapes(model, X):
    assert model.pi_.shape == (8, 8, 9)
    assert model.log_prior_.shape == (8, 8)
    np.testing.assert_allclose(model.pi_.sum(axis=-1), 1, rtol=1e-5)
    assert np.exp(model.log_prior_).sum() == pytest.approx(1, rel=1e-5)
    assert model.history_.shape == (model.n_iter_,)
    assert model.converged_
    assert model.locate(X).shape == (40, 2)
    assert model.pi_.dtype == np.float32


def test_the_outputs_agree_with_each_other(model, X):
    q = model.transform(X)
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(X), q.argmax(axis=1))
    np.testing.assert_array_equal(model.locate(X), np.stack(np.unravel_index(q.argmax(axis=1), (8, 8)), axis=1))
    np.testing.assert_array_equal(model.free_energy(X), -model.score_samples(X))
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.perplexity(X) == pytest.approx(np.exp(-model.score_samples(X).sum() / X.sum()))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8])
def test_any_form_of_the_counts_gives_the_same_model(model, X, form, dtype):
    again = cg.CountingGrid((8, 8), (4, 4), (2, 2), random_state=0).fit(form(X.astype(dtype)))
    np.testing.assert_array_equal(again.pi_, model.pi_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_large_sparse_table_stays_sparse_and_gives_the_dense_answer(rng, monkeypatch):
    X = sp.csr_array(rng.poisson(0.1, (60, 50)).astype(np.float32))
    model = cg.CountingGrid((6, 6), (3, 3), anneal=None, random_state=0, max_iter=10, tol=0)
    dense = model.fit(X).pi_
    monkeypatch.setattr(sp.csr_array, "toarray", lambda *_: pytest.fail("the counts were made dense"))
    with tuning.use(tuning.Tuning(small_product=0)):
        np.testing.assert_allclose(model.fit(X).pi_, dense, atol=1e-4)


@pytest.mark.parametrize("row", ["counting grid", "epitome", "hybrid", "text"])
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(rng, row):
    maps = rng.integers(30, size=(300, 4, 4))
    X, model = {
        "counting grid": (cg.bag(maps, 2, 30), cg.CountingGrid((12, 12), 4, 2)),
        "epitome": (cg.bag(maps, 4, 30), cg.DiscreteEpitome((12, 12), 4)),
        "hybrid": (cg.bag(maps, 4, 30), cg.HybridEpitome((12, 12), 4)),
        "text": (sp.csr_array(rng.poisson(0.02, (300, 400))), cg.CountingGrid((12, 12), 4)),
    }[row]
    model.set_params(random_state=1, max_iter=12, tol=0.1)
    results = []
    for n_threads in (1, 2, 4):
        pool = threads.Threads(n_threads, piece_entries=2**12)
        with threads.use(pool), tuning.use(tuning.Tuning(small_product=0)):
            results.append(model.fit(X).pi_.tobytes())
    assert len(set(results)) == 1


def test_the_threads_of_blas_change_no_bit(rng):
    from threadpoolctl import threadpool_limits

    X = rng.poisson(2, (200, 64))
    results = set()
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            model = cg.CountingGrid((16, 16), 4, random_state=0, max_iter=12, tol=0.1).fit(X)
            results.add(model.pi_.tobytes() + model.transform(X).tobytes())
    assert len(results) == 1


def test_another_block_size_moves_the_likelihood_by_less_than_a_millionth_per_token(rng):
    X = rng.poisson(2, (200, 64))
    scores = []
    for entries in (2**24, 2**14):
        with threads.use(threads.Threads(1, block_entries=entries, piece_entries=entries // 4)):
            model = cg.CountingGrid((8, 8), 2, random_state=0, max_iter=12, tol=0.1).fit(X)
            scores.append(model.score_samples(X).sum() / X.sum())
    assert abs(scores[0] - scores[1]) < 1e-6


def test_restarts_keep_the_best(X):
    options = {"anneal": None, "max_iter": 50, "tol": 1e-3}
    one = [cg.CountingGrid((8, 8), 4, 2, random_state=seed, **options).fit(X) for seed in range(3)]
    several = cg.CountingGrid((8, 8), 4, 2, n_init=6, random_state=0, **options).fit(X)
    assert several.history_[-1] >= one[0].history_[-1]


def test_a_weight_of_two_counts_a_bag_twice(X):
    options = {"anneal": None, "eta": 0.1, "max_iter": 40, "tol": 1e-4, "dtype": "float64", "random_state": 0}
    weights = np.arange(40) % 3
    weighted = cg.CountingGrid((8, 8), 4, 2, **options).fit(X, sample_weight=weights)
    repeated = cg.CountingGrid((8, 8), 4, 2, **options).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.pi_, repeated.pi_, atol=1e-8)


@pytest.mark.parametrize("eta", ["auto", 0.3])
def test_partial_fit_on_one_batch_is_one_em_iteration(X, eta):
    start = np.random.default_rng(1).dirichlet(np.ones(9), (8, 8))
    options = {"anneal": None, "init": start, "eta": eta, "dtype": "float64"}
    with pytest.warns(ConvergenceWarning):
        once = cg.CountingGrid((8, 8), 4, 2, max_iter=1, **options).fit(X)
    batch = cg.CountingGrid((8, 8), 4, 2, **options).partial_fit(X)
    np.testing.assert_allclose(batch.pi_, once.pi_, rtol=1e-12)
    np.testing.assert_allclose(batch.log_prior_, once.log_prior_, rtol=1e-12)


def test_partial_fit_goes_on_learning_and_learns_new_features(X):
    model = cg.CountingGrid((8, 8), 4, 2, random_state=0)
    X = X.copy()
    late = X[20:].copy()
    late[:, 8] += 5
    early = X[:20]
    early[:, 8::9] = 0
    model.partial_fit(early)
    before = model.score(late)
    for _ in range(20):
        model.partial_fit(late)
    assert model.score(late) > before + 1
    assert model.n_iter_ == 21


def test_a_callback_sees_every_iteration_and_can_stop(X):
    seen = []
    model = cg.CountingGrid((8, 8), 4, 2, anneal=None, random_state=0)
    model.fit(X, callback=lambda now: seen.append(now) or now.number == 5)
    assert [now.number for now in seen] == [1, 2, 3, 4, 5]
    assert model.n_iter_ == 5
    assert not model.converged_
    assert seen[0].pi.shape == (8, 8, 9)
    assert [now.objective for now in seen] == list(model.history_)


def test_annealing_reaches_one_even_with_few_iterations(X):
    betas = []
    model = cg.CountingGrid((8, 8), 4, 2, max_iter=25, tol=0.5, random_state=0)
    model.fit(X, callback=lambda now: betas.append(now.beta) if now.stage == "learning" else None)
    assert betas[-1] == 1
    assert betas == sorted(betas)


def test_ones_own_annealing_is_followed_and_its_end_stays_in_force(X):
    betas = []
    model = cg.CountingGrid((8, 8), 4, 2, anneal=(0.1, 2.0, 0.5), random_state=0)
    model.fit(X, callback=lambda now: betas.append(now.beta))
    assert betas[:4] == [0.1, 0.2, 0.4, 0.5]
    assert betas[-1] == 0.5
    plain = deepcopy(model)
    plain.inverse_temperature_ = 1.0
    np.testing.assert_allclose(model.score_samples(X), plain.score_samples(X / 2), rtol=1e-5)
    np.testing.assert_allclose(model.transform(X), plain.transform(X / 2), atol=1e-4)


def test_too_few_iterations_warn_as_scikit_learn_does(X):
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=3 iterations; increase max_iter or tol"):
        cg.CountingGrid((8, 8), 4, 2, anneal=None, tol=0, max_iter=3).fit(X)


def test_progress_goes_to_stderr(X, capsys):
    cg.CountingGrid((8, 8), 4, 2, anneal=None, verbose=2, random_state=0).fit(X)
    captured = capsys.readouterr()
    assert captured.out == ""
    estimate, first, *_ = captured.err.splitlines()
    assert estimate.startswith("about 1 s to fit")
    assert first.startswith("learning, restart 1, iteration 1 of at most 500: beta 1, objective per token -")


def test_models_work_in_pipelines_and_searches(X):
    pipeline = make_pipeline(Binarizer(), cg.CountingGrid((6, 6), 2, 2, max_iter=30, tol=1e-2, random_state=0))
    search = GridSearchCV(pipeline, {"countinggrid__window": [(2, 2), (4, 4)]}, cv=2).fit(X)
    assert search.best_params_["countinggrid__window"] in [(2, 2), (4, 4)]


@pytest.mark.parametrize("name", ["CountingGrid", "HybridEpitome", "SpatialBagOfWords"])
def test_samples_follow_the_model_they_come_from(rng, name):
    grid = {"grid": (6, 6), "window": (4, 4)}
    model, shape = {
        "CountingGrid": (cg.CountingGrid(**grid, sections=(2, 2)), (6, 6, 5)),
        "HybridEpitome": (cg.HybridEpitome(**grid), (6, 6, 5)),
        "SpatialBagOfWords": (cg.SpatialBagOfWords(6, (2, 2)), (6, 4, 5)),
    }[name]
    n_sections = model._geometry().n_column_sections
    model.set_params(init=rng.dirichlet(np.full(5, 0.3), shape[:-1]), anneal=None, random_state=0)
    model.partial_fit(rng.poisson(1, (30, n_sections * 5)) + 1)
    X, cells = model.sample(4000, n_tokens=2 * n_sections)
    assert set(np.unique(X.sum(axis=1))) == {2 * n_sections}
    prior = np.exp(model.log_prior_).ravel()
    np.testing.assert_allclose(np.bincount(cells, minlength=prior.size) / 4000, prior, atol=0.03)
    planes = em.histograms(model.planes().pi, model.geometry_.block(painted=True))
    mean = planes.reshape(-1, prior.size) @ prior
    groups = X.toarray().reshape(4000, -1, mean.size).sum(axis=(0, 1))
    np.testing.assert_allclose(groups / groups.sum(), mean / mean.sum(), atol=0.02)


def test_a_shape_may_be_one_number_for_all_axes(X):
    assert cg.CountingGrid((8, 8), window=4).capacity == cg.CountingGrid((8, 8), window=(4, 4)).capacity == 4


def test_a_tolerance_without_end_stops_at_once(rng):
    assert cg.CountingGrid((5, 5), 2, anneal=None, tol=np.inf).fit(rng.poisson(1.0, (9, 4))).n_iter_ == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_cell_sums_to_one_over_200_000_features(device):
    if device:
        pytest.importorskip("torch")
    counts = sp.random_array((60, 200_000), density=0.002, rng=np.random.default_rng(0), dtype=np.float32)
    model = cg.CountingGrid((6, 6), 2, max_iter=3, random_state=0, device=device).fit(counts)
    np.testing.assert_allclose(model.pi_.sum(axis=-1, dtype=np.float64), 1, rtol=0, atol=1e-6)
    model.partial_fit(counts)
    np.testing.assert_allclose(model.pi_.sum(axis=-1, dtype=np.float64), 1, rtol=0, atol=1e-6)


def test_a_posterior_sums_to_one_over_very_many_cells():
    X = np.random.default_rng(0).poisson(2, (4, 6))
    model = cg.CountingGrid((400, 400), 2, anneal=(0.01, 1.5, 0.02), max_iter=1, tol=9.0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    np.testing.assert_allclose(model.transform(X).sum(axis=1, dtype=np.float64), 1, rtol=0, atol=1e-6)


def test_columns_of_transform_are_named_by_their_coordinates(X):
    model = cg.CountingGrid((3, 4), 2, 2, anneal=None, tol=9.0, random_state=0).fit(X)
    names = model.get_feature_names_out()
    assert names[:5].tolist() == [
        "countinggrid0_0",
        "countinggrid0_1",
        "countinggrid0_2",
        "countinggrid0_3",
        "countinggrid1_0",
    ]
    assert len(names) == model.transform(X).shape[1]


def test_a_sparse_output_is_the_posterior_without_what_is_lost_in_rounding(X):
    model = cg.CountingGrid((8, 8), 4, 2, random_state=0).fit(X)
    dense = model.transform(X)
    sparse = model.set_params(sparse_output=True).transform(X)
    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), dense, atol=1e-5)
    np.testing.assert_allclose(sparse.sum(axis=1), 1, rtol=1e-6)


def test_the_usage_is_the_posterior_summed_over_bags(X):
    model = cg.CountingGrid((8, 8), 4, 2, random_state=0).fit(X)
    np.testing.assert_allclose(model.usage(X).ravel(), model.transform(X).sum(axis=0), rtol=1e-5)
    assert model.usage(X).sum() == pytest.approx(X.shape[0])


def test_a_collection_is_fitted_at_the_sections_of_the_model_and_remembered(rng):
    from countinggrids.data.items import Items
    from countinggrids.features.vocabulary import Vocabulary

    maps = rng.integers(6, size=(12, 4, 4))
    items = Items({"title": [str(i) for i in range(12)]})
    fine = cg.Collection(cg.bag(maps, 2, 6), Vocabulary("words", tuple("abcdef")), items, (2, 2))
    model = cg.CountingGrid((6, 6), 2, max_iter=20, tol=1e-2, random_state=0).fit(fine)
    assert model.fingerprint_ == fine.fingerprint
    plain = cg.CountingGrid((6, 6), 2, max_iter=20, tol=1e-2, random_state=0).fit(cg.bag(maps, 1, 6))
    np.testing.assert_array_equal(model.pi_, plain.pi_)
    np.testing.assert_array_equal(model.locate(fine), plain.locate(cg.bag(maps, 1, 6)))
    other = cg.Collection(cg.bag(maps, 2, 6), Vocabulary("words", tuple("ghijkl")), items, (2, 2))
    with pytest.raises(ValueError, match="must have the features of the model"):
        model.locate(other)


def test_a_file_of_a_collection_must_have_the_features_of_the_model_too(rng, tmp_path):
    from countinggrids.data.items import Items
    from countinggrids.features.vocabulary import Vocabulary

    counts, items = rng.poisson(2, (20, 6)), Items({"title": [str(i) for i in range(20)]})
    for name, words in (("a", "abcdef"), ("b", "ghijkl")):
        cg.Collection(counts, Vocabulary("words", tuple(words)), items).save(tmp_path / f"{name}.cg")
    model = cg.CountingGrid((6, 6), 2, max_iter=20, tol=1e-2, random_state=0).fit(tmp_path / "a.cg")
    assert model.fingerprint_ == cg.Collection.load(tmp_path / "a.cg").fingerprint
    assert model.locate(str(tmp_path / "a.cg")).shape == (20, 2)
    for method in (model.locate, model.score, model.partial_fit, model.perplexity):
        with pytest.raises(ValueError, match="must have the features of the model"):
            method(tmp_path / "b.cg")
    with pytest.raises(ValueError, match="must have the features of the model"):
        cg.CountingGrid((6, 6), 2).fit([tmp_path / "a.cg", tmp_path / "b.cg"])
