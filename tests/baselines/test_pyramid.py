"""The spatial pyramid kernel against loops, and its machine against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive_baselines
from countinggrids.baselines import PyramidClassifier, PyramidKernel, pyramid
from countinggrids.meta import kernels


@parametrize_with_checks([PyramidKernel(sections=(1, 1)), PyramidClassifier(sections=(1, 1))])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def bags(rng, n, sections, n_features=3):
    return rng.integers(0, 4, (n, *sections, n_features)) * rng.integers(0, 2, (n, *sections, n_features))


@pytest.mark.parametrize("sections", [(1, 1), (2, 2), (4, 4), (1, 4), (8, 2)])
def test_the_kernel_is_what_loops_say(rng, sections):
    some, others = bags(rng, 5, sections), bags(rng, 4, sections)
    some[0] = 0
    kernel = PyramidKernel(sections).fit(others.reshape(4, -1))
    wanted = [[naive_baselines.pyramid_kernel(a, b, sections) for b in others] for a in some]
    np.testing.assert_allclose(kernel.transform(some.reshape(5, -1)), wanted, atol=1e-6)


def test_blocks_and_sparse_bags_change_nothing(rng, monkeypatch):
    X = bags(rng, 300, (4, 4)).reshape(300, -1)
    whole = PyramidKernel().fit_transform(X)
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", 1000)
    monkeypatch.setattr(kernels, "BLOCK_ROWS", 7)
    np.testing.assert_array_equal(PyramidKernel().fit_transform(sp.csr_array(X)), whole)


def test_a_bag_with_itself_is_one_and_nothing_is_more(rng):
    K = PyramidKernel().fit_transform(1 + bags(rng, 20, (4, 4)).reshape(20, -1))
    np.testing.assert_allclose(np.diag(K), 1, atol=1e-5)
    assert (K < 1 + 1e-5).all()
    np.testing.assert_allclose(K, K.T, atol=1e-6)
    assert np.linalg.eigvalsh(K).min() > -1e-5


def two_classes(rng):
    """Bags with the same features in total, told apart by where they are."""
    left = rng.multinomial(20, [0.4, 0.1, 0.1, 0.4], 30)
    return np.vstack([left, left[:, [2, 3, 0, 1]]]), np.repeat(["a", "b"], 30)


def test_the_classifier_is_a_machine_on_the_kernel(rng, monkeypatch):
    X, y = two_classes(rng)
    model = PyramidClassifier((1, 2), C=3).fit(X[::2], y[::2])
    pipe = make_pipeline(PyramidKernel((1, 2)), SVC(C=3, kernel="precomputed")).fit(X[::2], y[::2])
    monkeypatch.setattr(pyramid, "KERNEL_ENTRIES", 100)
    np.testing.assert_array_equal(model.predict(X), pipe.predict(X))
    np.testing.assert_allclose(model.decision_function(X), pipe.decision_function(X), atol=1e-6)
    assert model.score(X[1::2], y[1::2]) > 0.9


def test_its_cost_can_be_searched_for(rng):
    X, y = two_classes(rng)
    search = GridSearchCV(PyramidClassifier((1, 2)), {"C": [0.1, 10]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_wrong_use_is_refused():
    X = np.ones((4, 9))
    with pytest.raises(ValueError, match=r"sections=\(3, 3\) must be powers of two; use sections=\(2, 2\)"):
        PyramidKernel((3, 3)).fit(X)
    with pytest.raises(ValueError, match=r"X has 9 columns, but sections=\(2, 2\) needs a multiple of 4"):
        PyramidKernel((2, 2)).fit(X)
    with pytest.raises(ValueError, match="C=-1 must be a number above 0"):
        PyramidClassifier((1, 1), C=-1).fit(X, [0, 0, 1, 1])
