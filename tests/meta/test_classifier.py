"""Classifiers: density models of each class, and nearest neighbors on the torus."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg

SMALL = {"grid": (4, 4), "window": (2, 2), "anneal": None, "max_iter": 100, "tol": 1e-3}


@pytest.fixture(scope="module")
def bags():
    """Three classes, each a mixture of two histograms over ten features."""
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(10, 0.5), (3, 2))
    X = np.vstack([rng.multinomial(60, histograms[c, i % 2]) for c in range(3) for i in range(30)]).astype(float)
    return X, np.repeat(["a", "b", "c"], 30)


@parametrize_with_checks(
    [
        cg.GridClassifier(cg.CountingGrid(**SMALL, dtype="float64"), random_state=0),
        cg.GridNeighbors(cg.CountingGrid(**SMALL | {"grid": (8, 8)}, random_state=0)),
        cg.BagScaler(power=0.6),
        cg.BagCoarsener(),
    ],
    expected_failed_checks=lambda _: {"check_decision_proba_consistency": "it draws bags with negative counts"},
)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "row",
    [
        cg.CountingGrid(**SMALL),
        cg.MixtureOfUnigrams(3, anneal=None),
        cg.CountingGrid((4, 4), (2, 2), (2, 1), anneal=None, max_iter=100, tol=1e-3),
        cg.SpatialBagOfWords(2, (2, 1), anneal=None),
        cg.DiscreteEpitome((4, 4), (2, 1), anneal=None, tol=1e-3),
        cg.HybridEpitome((4, 4), (2, 1), anneal=None, tol=1e-2, max_iter=500),
    ],
    ids=lambda row: type(row).__name__,
)
def test_every_row_of_the_family_classifies(bags, row):
    X, y = bags
    assert cg.GridClassifier(row, random_state=0).fit(X, y).score(X, y) > 0.9


def test_the_class_with_the_lowest_free_energy_wins(bags):
    X, y = bags
    model = cg.GridClassifier(cg.CountingGrid(**SMALL), random_state=0).fit(X, y)
    energies = np.stack([models[0].free_energy(X) for models in model.models_], axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[energies.argmin(axis=1)])
    np.testing.assert_allclose(model.log_likelihoods(X), -energies, rtol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)).sum(axis=1), 1)


def test_models_of_a_class_are_averaged_or_the_best_is_kept(bags):
    X, y = bags
    mean = cg.GridClassifier(cg.CountingGrid(**SMALL), n_estimators=3, random_state=0).fit(X, y)
    best = cg.GridClassifier(cg.CountingGrid(**SMALL), n_estimators=3, combine="best", random_state=0).fit(X, y)
    for c in range(3):
        scores = np.stack([model.score_samples(X) for model in mean.models_[c]])
        np.testing.assert_allclose(mean.log_likelihoods(X)[:, c], np.log(np.exp(scores).mean(axis=0)), rtol=1e-6)
        own = X[y == mean.classes_[c]]
        [kept] = best.models_[c]
        assert kept.score(own) == max(model.score(own) for model in mean.models_[c])


def test_models_of_a_seeded_grid_differ(bags):
    X, y = bags
    seeded = cg.CountingGrid(**SMALL, random_state=0)
    model = cg.GridClassifier(seeded, n_estimators=2, random_state=1).fit(X, y)
    assert not np.array_equal(model.models_[0][0].pi_, model.models_[0][1].pi_)
    again = cg.GridClassifier(seeded, n_estimators=2, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.models_[0][1].pi_, again.models_[0][1].pi_)


def test_weights_count_in_the_prior(bags):
    X, y = bags
    weights = np.where(y == "a", 3.0, 1.0)
    model = cg.GridClassifier(cg.CountingGrid(**SMALL), class_prior="frequency", random_state=0)
    np.testing.assert_allclose(np.exp(model.fit(X, y, sample_weight=weights).log_prior_), [0.6, 0.2, 0.2])


def test_other_densities_plug_in(bags):
    X, y = bags
    assert cg.GridClassifier(KernelDensity(bandwidth=5.0)).fit(X, y).score(X, y) > 0.9

    class Lda(LatentDirichletAllocation):
        def score_samples(self, X):
            return np.array([self.score(row[None]) for row in X])

    assert cg.GridClassifier(Lda(2, random_state=0)).fit(X, y).score(X, y) > 0.9


def test_pipelines_and_searches(bags):
    X, y = bags
    scaled = make_pipeline(cg.BagScaler(40), cg.GridClassifier(cg.CountingGrid(**SMALL), random_state=0))
    assert cross_val_score(scaled, X, y, cv=3).mean() > 0.8
    inside = cg.GridClassifier(make_pipeline(cg.BagScaler(40), cg.CountingGrid(**SMALL)), random_state=0)
    np.testing.assert_array_equal(inside.fit(X, y).predict(X), scaled.fit(X, y).predict(X))
    search = GridSearchCV(inside, {"estimator__bagscaler__tokens": [10, 50]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8


def test_an_ensemble_averages_its_members(bags):
    X, y = bags
    halves = make_pipeline(cg.BagCoarsener(1, (2,)), cg.BagScaler(60), cg.MixtureOfUnigrams(2, anneal=None))
    members = [cg.CountingGrid(**SMALL), halves]
    both = cg.GridClassifier(members, n_estimators=2, random_state=0).fit(X, y)
    alone = [cg.GridClassifier(member, n_estimators=2, random_state=0).fit(X, y) for member in members]
    assert [len(models) for models in both.models_] == [4, 4, 4]
    wanted = np.mean([model.log_likelihoods(X) for model in alone], axis=0)
    np.testing.assert_allclose(both.log_likelihoods(X), wanted, rtol=1e-6)
    both = cg.GridClassifier(members, n_estimators=2, average="likelihoods", random_state=0).fit(X, y)
    wanted = np.logaddexp(*(model.log_likelihoods(X) for model in alone)) - np.log(2)
    np.testing.assert_allclose(both.log_likelihoods(X), wanted, rtol=1e-6)
    with pytest.raises(
        ValueError, match="average='votes' must be 'log_likelihoods' or 'likelihoods'; use average='log_likelihoods'"
    ):
        cg.GridClassifier(members, average="votes").fit(X, y)
    best = cg.GridClassifier(members, n_estimators=2, combine="best", random_state=0).fit(X, y)
    assert [len(models) for models in best.models_] == [2, 2, 2]
    assert best.score(X, y) > 0.9


def test_weights_reach_the_end_of_a_pipeline(bags):
    X, y = bags
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    inside = cg.GridClassifier(make_pipeline(cg.BagScaler(None), cg.CountingGrid(**SMALL)), random_state=0)
    plain = cg.GridClassifier(cg.CountingGrid(**SMALL), random_state=0)
    wanted = plain.fit(X, y, sample_weight=weights).log_likelihoods(X)
    np.testing.assert_allclose(inside.fit(X, y, sample_weight=weights).log_likelihoods(X), wanted)


def test_class_priors(bags):
    X, y = bags
    some = np.r_[0:30, 30:40, 60:65]
    model = cg.GridClassifier(cg.CountingGrid(**SMALL), class_prior="frequency", random_state=0).fit(X[some], y[some])
    np.testing.assert_allclose(np.exp(model.log_prior_), [30 / 45, 10 / 45, 5 / 45])
    sure = cg.GridClassifier(cg.CountingGrid(**SMALL), class_prior=[1e-300, 1, 1e-300], random_state=0).fit(X, y)
    assert set(sure.predict(np.zeros((2, 10)))) == {"b"}


def test_settings_of_single_classes(bags):
    X, y = bags
    model = cg.GridClassifier(cg.CountingGrid(**SMALL), class_params={"b": {"grid": (6, 6)}}, random_state=0).fit(X, y)
    assert [models[0].grid for models in model.models_] == [(4, 4), (6, 6), (4, 4)]


def test_threads_and_sparse_bags_change_nothing(bags):
    X, y = bags
    one = cg.GridClassifier(cg.CountingGrid(**SMALL), random_state=3).fit(X, y)
    two = cg.GridClassifier(cg.CountingGrid(**SMALL), random_state=3, n_jobs=2).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(one.models_[2][0].pi_, two.models_[2][0].pi_)
    np.testing.assert_allclose(one.log_likelihoods(X), two.log_likelihoods(X), rtol=1e-6)


def test_a_weight_of_zero_leaves_a_bag_out(bags):
    X, y = bags
    weights = np.ones(len(y))
    weights[:5] = 0
    model = cg.GridClassifier(cg.MixtureOfUnigrams(1, anneal=None), random_state=0)
    with_zeros = clone_fit(model, X, y, weights)
    without = clone_fit(model, X[5:], y[5:], weights[5:])
    np.testing.assert_allclose(with_zeros.log_likelihoods(X), without.log_likelihoods(X), rtol=1e-4)


def clone_fit(model, X, y, weights):
    from sklearn.base import clone

    return clone(model).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["a"] * 90, {}, "y has 1 class, 'a', but must have at least two; add bags of another class"),
        (["b"] + ["a"] * 89, {}, "class .*b.* has n_samples=1 bag but must have at least two"),
        (["a"] * 45, {}, "inconsistent numbers of samples"),
        (None, {"combine": "sum"}, "combine='sum' must be 'mean' or 'best'; use combine='mean'"),
        (None, {"n_jobs": 0}, "n_jobs=0 must be None, -1 or a number of threads; use n_jobs=2"),
        (None, {"class_prior": [np.inf, 1, 1]}, "must be 3 probabilities above 0"),
        (None, {"n_estimators": 0}, "n_estimators=0 must be an integer of at least 1; use n_estimators=3"),
        (None, {"class_prior": [0.5, 0.5]}, "must be 3 probabilities above 0"),
        (None, {"class_prior": "flat"}, "class_prior='flat' must be 'uniform' or 'frequency'"),
        (None, {"class_params": {"z": {}}}, r"class_params names \['z'\], which are not in y; use labels of y"),
    ],
)
def test_wrong_use_is_refused(bags, labels, options, message):
    X, y = bags
    with pytest.raises(ValueError, match=message):
        cg.GridClassifier(cg.CountingGrid(**SMALL), **options).fit(X, y if labels is None else labels)


def test_neighbors_are_found_across_the_edges_of_the_torus(bags):
    X, y = bags
    model = cg.GridNeighbors(cg.CountingGrid((8, 8), (2, 2), random_state=0), n_neighbors=5, metric="cells").fit(X, y)
    distances, who = model.kneighbors(X[:7])
    for i in range(7):
        place = model.model_.locate(X[i : i + 1])[0]
        apart = np.abs(model.locations_ - place)
        wanted = np.sqrt((np.minimum(apart, 8 - apart) ** 2).sum(axis=1))
        order = sorted(range(len(X)), key=lambda j, wanted=wanted: (wanted[j], j))[:5]
        assert who[i].tolist() == order
        np.testing.assert_allclose(distances[i], wanted[order])
    assert model.score(X, y) > 0.8


def test_neighbors_vote(bags):
    X, y = bags
    model = cg.GridNeighbors(cg.CountingGrid((8, 8), (2, 2), random_state=0), n_neighbors=90, weights="uniform").fit(
        X, y
    )
    np.testing.assert_allclose(model.predict_proba(X[:3]), np.full((3, 3), 1 / 3))
    nearest = cg.GridNeighbors(model.model_, n_neighbors=1).fit(X, y)
    assert nearest.model_ is model.model_
    np.testing.assert_array_equal(model.predict(X), nearest.predict(X))
    weighted = cg.GridNeighbors(model.model_, n_neighbors=90, weights="distance").fit(X, y)
    assert weighted.score(X, y) > 0.5
    with pytest.raises(ValueError, match="n_neighbors=0 must be an integer"):
        cg.GridNeighbors(n_neighbors=0).fit(X, y)
    with pytest.raises(ValueError, match="n_neighbors=-1 must be an integer"):
        model.kneighbors(X, -1)
    with pytest.raises(ValueError, match="weights='near' must be 'uniform' or 'distance'"):
        cg.GridNeighbors(weights="near").fit(X, y)


def test_scaled_bags_have_the_wanted_sum():
    X = sp.csr_array(np.array([[1.0, 3.0], [0.0, 0.0]]))
    assert cg.BagScaler(8).fit_transform(X).toarray().tolist() == [[2, 6], [0, 0]]
    assert cg.BagScaler(None).fit_transform(X).toarray().tolist() == [[1, 3], [0, 0]]
    with pytest.raises(ValueError, match="tokens=0 must be a number above 0"):
        cg.BagScaler(0).fit(X)


def test_counts_to_a_power():
    X = sp.csr_array(np.array([[1.0, 9.0], [0.0, 0.0]]))
    np.testing.assert_allclose(cg.BagScaler(8, power=0.5).fit_transform(X).toarray(), [[2, 6], [0, 0]])
    np.testing.assert_allclose(cg.BagScaler(None, power=0.5).fit_transform(X.toarray()), [[1, 3], [0, 0]])
    with pytest.raises(ValueError, match="power=0 must be a number above 0"):
        cg.BagScaler(power=0).fit(X)


def test_coarser_bags_are_those_of_the_collection():
    maps = np.random.default_rng(0).integers(5, size=(3, 8, 8))
    fine, coarse = (cg.bag(maps, sections, 5) for sections in ((4, 4), (2, 2)))
    coarsener = cg.BagCoarsener(2, (4, 4))
    np.testing.assert_array_equal(coarsener.fit_transform(fine).toarray(), coarse.toarray())
    np.testing.assert_array_equal(coarsener.fit_transform(fine.toarray()), coarse.toarray())
    with pytest.raises(ValueError, match=r"sections=\(3, 3\) must divide x_sections=\(4, 4\)"):
        cg.BagCoarsener(3, (4, 4)).fit(fine)
    with pytest.raises(ValueError, match=r"X has 80 columns, but x_sections=\(3, 3\) needs a multiple of 9"):
        cg.BagCoarsener(1, (3, 3)).fit(fine)


def test_componential_grids_classify_bags(bags):
    X, y = bags
    grid = cg.ComponentialGrid((4, 4), (2, 2), max_iter=300, tol=1e-3)
    is_train = np.arange(len(y)) % 3 > 0
    assert cg.GridClassifier(grid, random_state=0).fit(X[is_train], y[is_train]).score(X[~is_train], y[~is_train]) > 0.9
