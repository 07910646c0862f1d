"""Labels on an epitome of local histograms, against their definition and along a walk."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.baselines import Epitome, EpitomicPlaces
from countinggrids.core import torus

QUICK = Epitome((4, 4), (1, 1), anneal=None, max_iter=3)


@parametrize_with_checks([EpitomicPlaces(QUICK, sections=(1, 1), random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def walk(rng):
    """Views of two panoramas of 12 columns: 4 columns in view, each a bag of 20 words of 5."""
    panoramas = rng.dirichlet(np.full(5, 0.3), (2, 12))
    places, starts = np.repeat([0, 1], 100), rng.integers(12, size=200)
    views = [np.roll(panoramas[place], -start, axis=0)[:4] for place, start in zip(places, starts, strict=True)]
    X = np.array([[rng.multinomial(20, column) for column in view] for view in views]).reshape(200, -1)
    return X, np.array(["hall", "stairs"])[places]


def test_it_recognizes_places_it_has_seen_in_part(walk):
    X, y = walk
    model = EpitomicPlaces(Epitome((1, 30), (1, 4)), sections=(1, 4), random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_windows_of_a_known_image_are_put_back(seed):
    rng = np.random.default_rng(seed)
    image = rng.multinomial(40, rng.dirichlet(np.full(6, 0.5)), (12, 13)).astype(float)
    corners = rng.integers(0, [9, 10], (80, 2))
    X = np.array([image[r : r + 4, c : c + 4].ravel() for r, c in corners])
    model = EpitomicPlaces(random_state=seed).fit(X, np.where(corners[:, 1] < 5, "left", "right"))
    found = model.epitome_.locate(model._local_histograms(X))
    away = torus.displacement(corners, found, (16, 16))
    assert max(np.mean(np.abs(torus.displacement(away, by, (16, 16))).max(axis=1) <= 1) for by in away) >= 0.95


def test_labels_are_averaged_over_the_posterior(walk):
    X, y = walk
    model = EpitomicPlaces(sections=(1, 4), pseudocount=0.5, random_state=0).fit(X, y)
    shares = 10 * X.reshape(200, 4, 5) / X.reshape(200, 4, 5).sum(axis=2, keepdims=True)
    q = model.epitome_.transform(shares.reshape(200, -1))
    labels = np.zeros((q.shape[1], 2))
    for k in range(q.shape[1]):
        for c, name in enumerate(["hall", "stairs"]):
            labels[k, c] = 0.25 + q[y == name, k].sum()
        labels[k] /= labels[k].sum()
    np.testing.assert_allclose(model.labels_, labels)
    np.testing.assert_allclose(model.predict_proba(X), q @ labels)
    np.testing.assert_allclose(model.predict_proba(sp.csr_array(X)), q @ labels)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), q @ labels)
    assert model.epitome_.grid == (4, 16)


def test_other_models_with_windows_do_too(walk):
    X, y = walk
    for inner in (cg.DiscreteEpitome((1, 30), (1, 4)), cg.CountingGrid((4, 16), (1, 4), sections=(1, 4))):
        assert EpitomicPlaces(inner, sections=(1, 4), random_state=0).fit(X, y).score(X, y) > 0.9


def test_the_tracker_can_use_it(walk):
    X, y = walk
    tracker = cg.PlaceTracker(EpitomicPlaces(sections=(1, 4), random_state=0), gamma=1.0).fit(X, y)
    assert tracker.score(X, y) > 0.9


def test_wrong_use_is_refused(walk):
    X, y = walk
    with pytest.raises(ValueError, match=r"X has 20 columns, but sections=\(4, 4\) needs a multiple of 16"):
        EpitomicPlaces().fit(X, y)
    with pytest.raises(ValueError, match="pseudocount=0 must be a number above 0"):
        EpitomicPlaces(sections=(1, 4), pseudocount=0).fit(X, y)
