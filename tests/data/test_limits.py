"""Numbers too large or too small to compute with are refused before any work, and never end in a model of NaN."""

import warnings

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import countinggrids as cg
from countinggrids import baselines
from countinggrids.core import em
from countinggrids.core.fitting import check_finite
from countinggrids.data import validation
from countinggrids.training import loop

GOOD = np.random.default_rng(0).poisson(2, (30, 8)).astype(float)
PLACES = np.repeat(["a", "b"], 15)


def with_entry(value):
    X = GOOD.copy()
    X[2, 3] = value
    return X


def model(**options):
    return cg.CountingGrid((4, 4), 2, **{"max_iter": 5, "tol": 9.0, "random_state": 0} | options)


def saved(X, folder):
    np.save(folder / "bags.npy", X)
    return folder / "bags.npy"


COME_AS = {
    "in memory": lambda X, folder: X,
    "sparse": lambda X, folder: sp.csr_array(X),
    "in blocks": lambda X, folder: [X[:2], X[2:]],
    "sparse blocks": lambda X, folder: [sp.csr_array(X)],
    "in a file": saved,
    "in Dask's blocks": lambda X, folder: da.from_array(X, chunks=(7, 8)),
}


@pytest.fixture(autouse=True)
def _without_warnings():
    """A number that overflows on the way to an error warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("value", [1e14, 1e37, 1e39, 1e200, 1e308])
@pytest.mark.parametrize("form", COME_AS)
def test_counts_too_large_to_add_up_are_refused(form, value, tmp_path):
    X = COME_AS[form](with_entry(value), tmp_path)
    with pytest.raises(ValueError, match=r"has 1e\+\d+ tokens in row \d and must have at most 1e\+13; divide the"):
        model().fit(X)
    fitted = model().fit(GOOD)
    with pytest.raises(ValueError, match=r"tokens in row \d and must have at most 1e\+13"):
        np.asarray(fitted.score_samples(X))


@pytest.mark.parametrize("form", COME_AS)
def test_counts_that_overflow_only_together_are_refused(form, tmp_path):
    with pytest.raises(ValueError, match=r"tokens in row \d+ and must have at most 1e\+13"):
        model().fit(COME_AS[form](np.full((30, 8), 1e308), tmp_path))
    X = COME_AS[form](GOOD * 1e12 / GOOD.sum(axis=1, keepdims=True), tmp_path)
    with pytest.raises(ValueError, match=r"X has 3e\+13 tokens, times their sample_weight, and must have"):
        model().fit(X)


@pytest.mark.parametrize("factor", [1e-300, 1e-46, 1e-40, 1e-20])
@pytest.mark.parametrize("form", COME_AS)
def test_counts_too_small_to_divide_by_are_refused(form, factor, tmp_path):
    X = COME_AS[form](GOOD * factor, tmp_path)
    with pytest.raises(ValueError, match=r"tokens, times their sample_weight, and must have 1e-13 to"):
        model().fit(X)
    with pytest.raises(ValueError, match="tokens, times their sample_weight"):
        model().partial_fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(30, 1e38), r"sample_weight sums to 3e\+39 and must sum to at most 1e\+13; divide the weights"),
        (np.full(30, 1e308), r"sample_weight sums to inf and must sum to at most 1e\+13"),
        (np.full(30, 1e11), r"X has \S+ tokens, times their sample_weight, and must have"),
        (np.full(30, 1e-30), r"X has \S+ tokens, times their sample_weight, and must have"),
        (np.eye(30)[4], "sample_weight is 0 for every bag with counts; use a weight above 0"),
        (np.full(30, np.inf), "sample_weight has NaN, infinity or a negative number"),
    ],
)
def test_weights_that_cannot_be_added_up_are_refused(weights, message):
    X = GOOD.copy()
    X[4] = 0
    for fit in (model().fit, model().partial_fit):
        with pytest.raises(ValueError, match=message):
            fit(X, sample_weight=weights)


@pytest.mark.parametrize("eta", [1e38, 1e308, [1e13] * 8])
def test_pseudocounts_that_cannot_be_added_up_are_refused(eta):
    with pytest.raises(ValueError, match=r"eta(=| sums to ).* at most 1e\+13.*; use for instance eta='auto'"):
        model(eta=eta).fit(GOOD)


@pytest.mark.parametrize("factor", [1e39, 1e300, 1e-50, 1e-300])
def test_a_first_grid_that_no_float32_holds_is_refused(factor):
    init = np.random.default_rng(1).random((4, 4, 8)) * factor
    with pytest.raises(ValueError, match=r"init has cells whose largest numbers are .* divide every cell by its sum"):
        model(init=init).fit(GOOD)


@pytest.mark.parametrize("total", [1e-12, 1e12])
@pytest.mark.parametrize("make", [cg.CountingGrid, cg.HybridEpitome])
def test_within_the_limits_models_are_finite(make, total):
    X = GOOD * total / GOOD.sum()
    fitted = make((4, 4), 2, random_state=0, max_iter=60).fit(X)
    assert np.isfinite(fitted.pi_).all()
    assert np.isfinite(fitted.history_).all()
    assert np.isfinite(fitted.score_samples(X)).all()


def test_what_was_seen_can_be_divided_by_an_empty_histogram_up_to_the_limit():
    assert np.finfo(np.float32).max > validation.LARGEST_TOTAL / em.SMALLEST


def test_the_perplexity_of_no_tokens_is_an_error():
    with pytest.raises(ValueError, match=r"X (holds|has) no counts"):
        model().fit(GOOD).perplexity(np.zeros((3, 8)))


@pytest.mark.parametrize("objective", [np.nan, np.inf])
def test_a_fit_whose_objective_is_not_finite_raises_and_leaves_nothing(objective, monkeypatch):
    m_step = loop.m_step
    monkeypatch.setattr(loop, "m_step", lambda *given, **how: (m_step(*given, **how)[0], objective))
    fitting = model(anneal=None)
    with pytest.raises(ValueError, match=r"the objective is (nan|inf) at iteration 1"):
        fitting.fit(GOOD)
    with pytest.raises(NotFittedError):
        fitting.transform(GOOD)
    assert not [name for name in vars(fitting) if name.endswith("_")]


def test_an_objective_is_finite_or_an_error():
    check_finite(np.array([1.0, 2.0]), 3)
    with pytest.raises(ValueError, match="the objective is nan at iteration 3"):
        check_finite(np.array([1.0, np.nan]), 3)


BASELINES = {
    "LDA": (baselines.LDA(2), False),
    "Polya": (baselines.PolyaMixture(2), False),
    "regions": (baselines.ReconfigurableBags(2, (1, 2)), False),
    "LDA by section": (baselines.Tessellated(baselines.LDA(2), (1, 2)), False),
    "pyramid": (baselines.PyramidKernel((1, 2)), False),
    "pyramid classifier": (baselines.PyramidClassifier((1, 2)), True),
    "epitomic places": (baselines.EpitomicPlaces(sections=(1, 2)), True),
    "epitome": (baselines.Epitome((4, 4), (2, 2), max_iter=3), False),
    "stels": (baselines.StelEpitome((4, 4), (2, 2), max_iter=3), False),
    "views": (baselines.Views(2), False),
}


@pytest.mark.parametrize("value", [1e39, 1e200])
@pytest.mark.parametrize("name", BASELINES)
def test_baselines_refuse_what_they_cannot_add_up(name, value):
    baseline, has_labels = BASELINES[name]
    labels = [PLACES] if has_labels else []
    with pytest.raises(ValueError, match=r"X (has|holds) .* (at most|exceed) 1e\+13.*; divide"):
        baseline.fit(with_entry(value), *labels)


@pytest.mark.parametrize("name", ["LDA", "Polya", "regions", "epitome", "stels"])
def test_baselines_refuse_weights_and_pseudocounts_that_they_cannot_add_up(name):
    baseline, _ = BASELINES[name]
    with pytest.raises(ValueError, match=r"sample_weight sums to 3e\+39 and must sum to at most 1e\+13"):
        baseline.fit(GOOD, sample_weight=np.full(30, 1e38))
    with pytest.raises(ValueError, match="sample_weight has NaN, infinity or a negative number"):
        baseline.fit(GOOD, sample_weight=-np.ones(30))
    with pytest.raises(ValueError, match=r"eta( is |=)1e\+300.* at most 1e\+13"):
        type(baseline)(**baseline.get_params() | {"eta": 1e300}).fit(GOOD)


@pytest.mark.parametrize("alpha", [0, -1.0, np.inf, np.nan])
def test_topics_refuse_impossible_pseudocounts_of_a_bag(alpha):
    with pytest.raises(ValueError, match=r"alpha( is |=).* a number above 0"):
        baselines.LDA(2, alpha=alpha).fit(GOOD)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_scaled_bags_are_finite_or_an_error(form):
    with pytest.raises(ValueError, match=r"row 2 overflow float32 with power=2.0"):
        cg.BagScaler(100, 2.0).fit_transform(form(with_entry(1e30).astype(np.float32)))
    with pytest.raises(ValueError, match=r"tokens( is |=)inf.* a number above 0"):
        cg.BagScaler(np.inf).fit(form(GOOD))
    scaled = cg.BagScaler(100).fit_transform(form(np.full((2, 4), 1e38, np.float32)))
    np.testing.assert_allclose(scaled.sum(axis=1), 100, rtol=1e-6)
