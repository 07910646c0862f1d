"""The search over capacities: which candidates there are, how they race, what it reports."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg

SMALL = cg.CountingGrid(anneal=None, max_iter=100, tol=1e-3, dtype="float64")
FAST = cg.CountingGrid(anneal=None, max_iter=100, tol=1e-2)


@pytest.fixture(scope="module")
def bags():
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(6, 0.5), (2, 4))
    X = np.vstack([rng.multinomial(40, histograms[c].ravel() / 4) for c in range(2) for _ in range(24)]).astype(float)
    return X, np.repeat(["a", "b"], 24)


@parametrize_with_checks(
    [cg.CapacitySearch(SMALL, grids=(4,), windows=(2,), capacities=(1, 9), cv=2, random_state=0)],
    expected_failed_checks=lambda _: {
        "check_decision_proba_consistency": "it draws bags with negative counts",
        "check_fit2d_1feature": "a class of three bags leaves one to learn from in a fold, and that is refused",
    },
)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def test_candidates_lie_within_the_limits(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(2, 4, 8, 40), windows=(2, 4), sections=(1, 2), random_state=0, keep=1.0)
    results = search.fit(X, y).cv_results_
    assert all(1.5 <= kappa <= 12 for kappa in results["capacity"])
    assert set(zip(results["param_grid"], results["param_window"], strict=True)) == {((4, 4), (2, 2)), ((8, 8), (4, 4))}
    assert list(results["param_sections"]).count((2, 2)) == 2
    assert results["n_folds"].tolist() == [3] * 4


def test_results_have_the_keys_of_grid_search(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(3, 4, 5, 6), windows=(2,), x_sections=2, random_state=0, keep=0.5)
    results = search.fit(X, y).cv_results_
    reference = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2]}, cv=3).fit(X, y).cv_results_
    assert {key for key in reference if not key.endswith("_time") and "n_neighbors" not in key} <= set(results)
    splits = np.stack([results[f"split{i}_test_score"] for i in range(search.n_splits_)], axis=1)
    np.testing.assert_allclose(results["mean_test_score"], np.nanmean(splits, axis=1))
    np.testing.assert_array_equal(results["n_folds"], np.isfinite(splits).sum(axis=1))
    assert [params["grid"] for params in results["params"]] == list(results["param_grid"])
    assert results["rank_test_score"][search.best_index_] == 1
    assert sorted(results["rank_test_score"]) == [1, 2, 3, 4]
    assert set(results["rank_test_score"][results["n_folds"] == 3]) == {1, 2}
    assert search.best_params_ == results["params"][search.best_index_]


def test_the_callback_counts_fits(bags):
    X, y = bags
    calls = []
    search = cg.CapacitySearch(FAST, grids=(3, 4, 5, 6), windows=(2,), random_state=0, keep=0.5)
    search.fit(X, y, callback=lambda done, most: calls.append((done, most)))
    assert calls == [(done, 8) for done in range(1, 9)]


def test_the_race_drops_the_worse_half(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(3, 4, 5, 6), windows=(2,), x_sections=2, random_state=0, keep=0.5)
    results = search.fit(X, y).cv_results_
    assert sorted(results["n_folds"]) == [1, 1, 3, 3]
    kept = results["mean_test_score"][results["n_folds"] == 3]
    assert search.best_score_ == max(kept)


def test_the_best_candidate_is_fitted_to_all_bags(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(4,), windows=(2,), sections=(1, 2), tokens=(20, None), random_state=0).fit(
        X, y
    )
    assert search.score(X, y) > 0.8
    assert search.predict(X).shape == (48,)
    assert search.best_params_["grid"] == (4, 4)
    assert search.best_estimator_[-1].models_[0][0].sections in (None, (2, 2))


def test_the_best_gives_probabilities(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(4,), windows=(2,), x_sections=2, random_state=0).fit(X, y)
    shares = search.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(search.predict_log_proba(X)), shares)
    np.testing.assert_array_equal(search.classes_[shares.argmax(axis=1)], search.predict(X))
    assert search.decision_function(X).shape == (48,)
    blind = cg.CapacitySearch(FAST, grids=(4,), windows=(2,), random_state=0).fit(X)
    with pytest.raises(
        AttributeError, match="fit was called without labels, so there is no predict_proba; use best_estimator_"
    ):
        blind.predict_proba(X)


def test_hybrids_and_powers_are_candidates_too(bags):
    X, y = bags
    search = cg.CapacitySearch(
        FAST, grids=(4,), windows=(2,), sections=(1, 2), paint=(None, 2), tokens=(40,), powers=(1.0, 0.5),
        random_state=0, keep=1.0,
    ).fit(X, y)  # fmt: skip
    cuts = set(zip(search.cv_results_["param_sections"], search.cv_results_["param_paint"], strict=True))
    assert cuts == {((1, 1), None), ((2, 2), None), ((1, 1), (2, 2)), ((2, 2), (2, 2))}
    assert list(search.cv_results_["param_power"]).count(0.5) == 4
    assert search.score(X, y) > 0.8
    hybrid = cg.CapacitySearch(FAST, grids=(4,), windows=(2,), paint=(2,), powers=(0.5,), random_state=0).fit(X, y)
    assert hybrid.best_estimator_[0].power == 0.5
    assert hybrid.best_estimator_[-1].models_[0][0].paint == (2, 2)


def test_held_out_likelihood_without_labels(bags):
    X, _ = bags
    search = cg.CapacitySearch(FAST, grids=(3, 4), windows=(2,), capacities=(1, 5), random_state=0).fit(X)
    assert search.best_score_ < 0
    assert np.isfinite(search.score(X))


def test_scikit_learns_splitters_scorers_and_stopping_points(bags):
    X, y = bags
    search = cg.CapacitySearch(
        FAST, grids=(4,), windows=(2,), max_iters=(2, 30), cv=StratifiedShuffleSplit(2, random_state=0),
        scoring="balanced_accuracy", random_state=0, keep=1.0,
    ).fit(X, y)  # fmt: skip
    assert search.cv_results_["param_max_iter"].tolist() == [2, 30]
    assert search.cv_results_["n_folds"].tolist() == [2, 2]
    groups = np.tile([0, 1, 2], 16)
    folds = list(LeaveOneGroupOut().split(X, y, groups))
    assert cg.CapacitySearch(FAST, grids=(4,), windows=(2,), cv=folds).fit(X, y).cv_results_["n_folds"].tolist() == [3]


def test_groups_reach_the_splitter(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(4,), windows=(2,), cv=GroupKFold(3), random_state=0)
    assert search.fit(X, y, groups=np.tile([0, 1, 2], 16)).cv_results_["n_folds"].tolist() == [3]


def test_spread_needs_two_folds_and_nan_never_wins(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=(3, 4, 5), windows=(2,), random_state=0, keep=0.1).fit(X, y)
    for n, std in zip(search.cv_results_["n_folds"], search.cv_results_["std_test_score"], strict=True):
        assert np.isnan(std) == (n == 1)

    def sometimes(model, X, y):
        return np.nan if model[-1].estimator.grid == (4, 4) else 0.5

    search = cg.CapacitySearch(FAST, grids=(3, 4), windows=(2,), scoring=sometimes, random_state=0, keep=1.0)
    assert search.fit(X, y).best_params_["grid"] == (3, 3)


def test_the_plot_leaves_dropped_candidates_out_of_the_line(bags):
    X, y = bags
    ax = cg.CapacitySearch(FAST, grids=(3, 4, 5), windows=(2,), random_state=0, keep=0.1).fit(X, y).plot()
    assert len(ax.lines[0].get_xdata()) == 2


def test_shapes_need_not_be_square(bags):
    X, y = bags
    search = cg.CapacitySearch(FAST, grids=((4, 6),), windows=((2, 2),), random_state=0).fit(X, y)
    assert search.best_params_["grid"] == (4, 6)


def test_likelihoods_of_different_scales_are_not_compared(bags):
    with pytest.raises(ValueError, match="cannot be compared; give y, or one value of each"):
        cg.CapacitySearch(FAST, tokens=(5, 50)).fit(bags[0])
    with pytest.raises(ValueError, match="cannot be compared; give y, or one value of each"):
        cg.CapacitySearch(FAST, powers=(1, 0.5)).fit(bags[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"grids": (2,), "windows": (2,)},
            "no grid and window has a capacity from 1.5 to 12; use other grids, windows or capacities",
        ),
        ({"keep": 0}, "keep=0 must be a fraction above 0"),
        ({"x_sections": 5}, r"X has 24 columns, but x_sections=\(5, 5\) needs a multiple of 25"),
        ({"sections": (2,), "x_sections": 1}, r"sections=\(2, 2\) must divide x_sections=\(1, 1\)"),
        ({"grids": ("big",)}, "grids='big' must be one positive integer per axis"),
    ],
)
def test_wrong_use_is_refused(bags, options, message):
    X, y = bags
    with pytest.raises(ValueError, match=message):
        cg.CapacitySearch(FAST, **{"grids": (4,), "windows": (2,)} | options).fit(X, y)
