"""Support vector machines on histograms, against their kernels in loops and against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from countinggrids.baselines import HistogramSVM


@parametrize_with_checks([HistogramSVM(), HistogramSVM("intersection")])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def bags(rng):
    """Three classes of bags."""
    X = np.vstack([rng.multinomial(20, p, 20) for p in rng.dirichlet(np.full(6, 0.5), 3)])
    return X, np.repeat(["a", "b", "c"], 20)


def histogram(bag):
    return bag / max(bag.sum(), 1)


def chi_squared(a, b):
    a, b = histogram(a), histogram(b)
    return sum((p - q) ** 2 / (p + q) for p, q in zip(a, b, strict=True) if p + q)


def intersection(a, b):
    return sum(min(p, q) for p, q in zip(histogram(a), histogram(b), strict=True))


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_it_is_a_machine_on_the_kernel_of_loops(bags, kernel):
    X, y = bags
    train, test = X[::2], np.vstack([X[1::2], np.zeros((1, 6))])
    if kernel == "chi2":
        mean = np.mean([[chi_squared(a, b) for b in train] for a in train])
        K, L = (np.exp([[-chi_squared(a, b) / mean for b in train] for a in rows]) for rows in (train, test))
    else:
        K, L = (np.array([[intersection(a, b) for b in train] for a in rows]) for rows in (train, test))
    theirs = SVC(C=3, kernel="precomputed").fit(K, y[::2])
    ours = HistogramSVM(kernel, C=3).fit(train, y[::2])
    np.testing.assert_allclose(ours.decision_function(test), theirs.decision_function(L), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(test), theirs.predict(L))
    assert ours.score(X[1::2], y[1::2]) > 0.8


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_sparse_bags_change_nothing(bags, kernel):
    X, y = bags
    dense, sparse = (HistogramSVM(kernel).fit(each, y) for each in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-5)


def test_wrong_use_is_refused(bags):
    with pytest.raises(ValueError, match="kernel='rbf' must be 'chi2' or 'intersection'"):
        HistogramSVM("rbf").fit(*bags)
    with pytest.raises(ValueError, match="C=0 must be a number above 0"):
        HistogramSVM(C=0).fit(*bags)
