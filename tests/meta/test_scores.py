"""Score vectors against the bound written out as loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.meta.scores import expected_terms

RNG = np.random.default_rng(0)
X = RNG.poisson(2.0, (12, 4 * 5)).astype(float)
Y = np.repeat(["a", "b", "c"], 4)
GRID = cg.CountingGrid((4, 6), (2, 2), (2, 2), anneal=None, max_iter=300, tol=1e-3, random_state=0)


@parametrize_with_checks(
    [
        cg.ScoreSpace(cg.CountingGrid((4, 4), (2, 2), anneal=None, max_iter=100, tol=1e-3, random_state=0), compare=how)
        for how in (None, "intersection")
    ]
)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def naive_terms(model, X):
    """Average count times log h over where each bag may lie, cell by cell."""
    q = model.transform(X).reshape(len(X), 4, 6)
    counts = X.reshape(len(X), 4, 5)
    terms = np.zeros(counts.shape)
    for t in range(len(X)):
        for i in range(4):
            for j in range(6):
                for s, (a, b) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
                    terms[t, s] += q[t, i, j] * counts[t, s] * np.log(model.pi_[(i + a) % 4, (j + b) % 6])
    return terms


def test_terms_are_those_of_the_bound():
    model = clone(GRID).fit(X)
    terms = expected_terms(model, X)
    np.testing.assert_allclose(terms, naive_terms(model, X), rtol=1e-4)
    q = model.transform(X).astype(float)
    entropy = -(q * np.log(np.maximum(q, 1e-300))).sum(axis=1) + q @ model.log_prior_.ravel()
    np.testing.assert_allclose(terms.sum(axis=(1, 2)) + entropy, model.score_samples(X), rtol=1e-4)


@pytest.mark.parametrize(("sum_over", "length"), [("sections", 15), ("features", 12), ("nothing", 60)])
def test_vectors_have_the_promised_length(sum_over, length):
    scores = cg.ScoreSpace(GRID, sum_over=sum_over).fit(X, Y).transform(X)
    assert scores.shape == (12, length)
    np.testing.assert_allclose(np.linalg.norm(scores, axis=1), 1, rtol=1e-5)


def test_steps_can_be_left_out():
    classifier = cg.GridClassifier(GRID, random_state=0).fit(X, Y)
    plain = cg.ScoreSpace(classifier, center=False, power=1.0, normalize=False).fit(X).transform(X)
    wanted = np.hstack([expected_terms(models[0], X).sum(axis=1) for models in classifier.models_])
    np.testing.assert_allclose(plain, wanted, rtol=1e-6)
    centered = cg.ScoreSpace(classifier, power=1.0, normalize=False).fit(X).transform(X).reshape(12, 3, 5)
    np.testing.assert_allclose(centered.sum(axis=1), 0, atol=1e-4)


def test_scores_of_the_members_of_an_ensemble_are_concatenated():
    whole = make_pipeline(cg.BagCoarsener(1, (2, 2)), cg.CountingGrid((4, 4), (2, 2), anneal=None, max_iter=300))
    both = cg.ScoreSpace(cg.GridClassifier([GRID, whole], random_state=0), sum_over="nothing").fit(X, Y)
    apart = [cg.GridClassifier(member, random_state=0).fit(X, Y) for member in (GRID, whole)]
    wanted = np.hstack([cg.ScoreSpace(each, sum_over="nothing").fit(X).transform(X) for each in apart]) / np.sqrt(2)
    np.testing.assert_allclose(both.transform(X), wanted, atol=1e-6)
    assert len(both.models_) == 6
    assert both.get_feature_names_out().shape == (75,)


def naive_intersection(a, b):
    """Add up the smaller of two scores wherever both are on the same side of zero."""
    return sum(min(abs(x), abs(y)) for x, y in zip(a, b, strict=True) if x * y > 0)


@pytest.mark.parametrize("options", [{"center": False}, {}, {"power": 1, "sum_over": "sections"}])
@pytest.mark.parametrize("normalize", [True, False])
def test_bags_are_compared_by_what_their_scores_have_in_common(options, normalize, monkeypatch):
    classifier = cg.GridClassifier(GRID, random_state=0).fit(X, Y)
    options = {"sum_over": "nothing"} | options
    scores = cg.ScoreSpace(classifier, **options, normalize=False).fit(X).transform(X).astype(float)
    wanted = np.array([[naive_intersection(a, b) for b in scores[:7]] for a in scores])
    if normalize:
        sizes = np.abs(scores).sum(axis=1)
        wanted /= np.sqrt(np.outer(sizes, sizes[:7]))
    space = cg.ScoreSpace(classifier, **options, normalize=normalize, compare="intersection")
    np.testing.assert_allclose(space.fit(X[:7]).transform(X), wanted, rtol=1e-4)
    monkeypatch.setattr("countinggrids.meta.scores.BLOCK_ENTRIES", 200)
    np.testing.assert_allclose(space.fit_transform(X[:7]), wanted[:7], rtol=1e-4)


def test_comparisons_of_restarts_and_members_are_averaged():
    members = [GRID, clone(GRID).set_params(grid=(6, 6))]
    options = {"sum_over": "nothing", "compare": "intersection"}
    both = cg.ScoreSpace(cg.GridClassifier(members, random_state=0), **options).fit_transform(X, Y)
    apart = [cg.ScoreSpace(cg.GridClassifier(each, random_state=0), **options).fit_transform(X, Y) for each in members]
    np.testing.assert_allclose(both, np.mean(apart, axis=0), rtol=1e-4)


def test_a_kernel_machine_can_use_comparisons():
    space = cg.ScoreSpace(cg.GridClassifier(GRID, random_state=0), center=False, power=1, compare="intersection")
    model = make_pipeline(space, SVC(C=100, kernel="precomputed")).fit(X, Y)
    assert model.score(X, Y) == 1.0
    assert model[0].get_feature_names_out().shape == (12,)


def test_empty_bags_have_nothing_in_common():
    space = cg.ScoreSpace(cg.GridClassifier(GRID, random_state=0), compare="intersection").fit(X, Y)
    np.testing.assert_array_equal(space.transform(np.zeros((1, 20))), 0)


def test_without_labels_one_grid_is_fitted():
    space = cg.ScoreSpace(GRID, sum_over="nothing").fit(X)
    np.testing.assert_array_equal(space.models_[0].pi_, clone(GRID).fit(X).pi_)


def test_blocks_and_sparse_bags_change_nothing(monkeypatch):
    space = cg.ScoreSpace(cg.GridClassifier(GRID, random_state=0)).fit(X, Y)
    whole = space.transform(X)
    monkeypatch.setattr("countinggrids.meta.scores.BLOCK", 5)
    np.testing.assert_allclose(space.transform(sp.csr_array(X)), whole, atol=1e-6)


@pytest.mark.parametrize(
    "row", [cg.HybridEpitome((4, 4), (2, 2), anneal=None, tol=1e-2), cg.SpatialBagOfWords(2, (2, 2))]
)
def test_other_rows_have_scores_too(row):
    assert np.isfinite(cg.ScoreSpace(cg.GridClassifier(row, random_state=0)).fit(X, Y).transform(X)).all()


def test_several_fitted_grids_will_do():
    grids = [clone(GRID).set_params(random_state=seed).fit(X) for seed in (0, 1)]
    assert cg.ScoreSpace(grids).fit(X).transform(X.tolist()).shape == (12, 10)


def test_a_linear_classifier_can_use_them():
    model = make_pipeline(cg.ScoreSpace(cg.GridClassifier(GRID, random_state=0)), LinearSVC())
    assert model.fit(X, Y).score(X, Y) == 1.0


@pytest.mark.parametrize(
    ("space", "labels", "message"),
    [
        (cg.ScoreSpace(sum_over="all"), Y, "sum_over='all' must be 'sections', 'features' or 'nothing'"),
        (cg.ScoreSpace(compare="chi2"), Y, "compare='chi2' must be None or 'intersection'"),
        (cg.ScoreSpace(power=0), Y, "power=0 must be a number above 0"),
        (cg.ScoreSpace(), None, "y=None must be labels to fit a grid to each class"),
    ],
)
def test_wrong_use_is_refused(space, labels, message):
    with pytest.raises(ValueError, match=message):
        space.fit(X, labels)


def test_models_without_a_grid_are_refused():
    from sklearn.neighbors import KernelDensity

    with pytest.raises(
        ValueError, match="estimator is a KernelDensity, which is not a fitted grid; use a CountingGrid"
    ):
        cg.ScoreSpace(cg.GridClassifier(KernelDensity())).fit(X, Y)
