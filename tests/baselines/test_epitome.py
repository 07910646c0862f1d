"""The epitome of images against loops, and on a photo cut to pieces."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
import naive_baselines
from countinggrids.baselines import Epitome, spectra
from countinggrids.core import torus


@parametrize_with_checks([Epitome((4, 4), (1, 1), anneal=None, max_iter=3, random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.fixture
def images(rng):
    """Small pieces of a scene in two channels."""
    scene = rng.random((6, 7, 2))
    corners = rng.integers(0, [4, 4], (12, 2))
    return np.array([scene[r : r + 3, c : c + 4] for r, c in corners]) + 0.1 * rng.standard_normal((12, 3, 4, 2))


def fitted(images, **options):
    options = {"grid": (5, 6), "window": (3, 4), "anneal": None, "random_state": 0, **options}
    return Epitome(**options).fit(images.reshape(len(images), -1))


def test_likelihoods_are_what_loops_say(images):
    model = fitted(images)
    wanted = np.array([naive_baselines.epitome_scores(each, model.mean_, model.variance_) for each in images])
    flat = images.reshape(12, -1)
    np.testing.assert_allclose(model.score_samples(flat), np.log(np.exp(wanted).mean(axis=(1, 2))))
    best = wanted.reshape(12, -1).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(flat), best)
    np.testing.assert_array_equal(model.locate(flat), np.transpose(np.unravel_index(best, (5, 6))))
    shares = np.exp(wanted) / np.exp(wanted).sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(model.transform(flat), shares.reshape(12, -1), atol=1e-9)
    assert model.score(flat) == pytest.approx(model.score_samples(flat).mean())


def test_an_iteration_is_what_loops_say(images):
    before, after = (fitted(images, eta=0.7, max_iter=n, tol=-1) for n in (3, 4))
    scores, mean, variance = naive_baselines.epitome_step(images, before.mean_, before.variance_, 0.7)
    np.testing.assert_allclose(before.score_samples(images.reshape(12, -1)), scores)
    np.testing.assert_allclose(after.mean_, mean)
    np.testing.assert_allclose(after.variance_, variance, rtol=1e-6)


@pytest.mark.parametrize("anneal", [None, (0.1, 1.2, 1.0)])
def test_the_objective_never_falls(images, anneal):
    history = fitted(images, anneal=anneal, tol=-1, max_iter=20).history_
    assert np.diff(history).min() > -1e-12


def test_blocks_change_nothing(images, monkeypatch):
    whole = fitted(images)
    monkeypatch.setattr(spectra, "BLOCK_ENTRIES", 300)
    monkeypatch.setattr(spectra, "KEPT_ENTRIES", 0)
    np.testing.assert_allclose(fitted(images).mean_, whole.mean_)


def test_weights_are_copies(images):
    times, flat = np.arange(12) % 3, images.reshape(12, -1)
    options = {"grid": (5, 6), "window": (3, 4), "random_state": 0}
    weighted = Epitome(**options).fit(flat, sample_weight=times)
    copied = Epitome(**options).fit(np.repeat(flat, times, axis=0))
    np.testing.assert_allclose(weighted.mean_, copied.mean_)


def test_a_rolled_epitome_has_rolled_locations(images):
    model = fitted(images)
    before = model.locate(images.reshape(12, -1))
    model.mean_, model.variance_ = (np.roll(each, (2, 1), (0, 1)) for each in (model.mean_, model.variance_))
    np.testing.assert_array_equal(model.locate(images.reshape(12, -1)), (before + np.array([2, 1])) % [5, 6])


def test_a_signal_of_one_axis_is_put_back_together(rng):
    signal = np.cumsum(rng.standard_normal(40))
    starts = rng.integers(40, size=(60, 1))
    X = np.array([np.roll(signal, -start)[:20] for start in starts])
    model = Epitome(40, 20, eta=0.1, anneal=(0.02, 1.03, 1.0), random_state=0).fit(X)
    away = torus.displacement(starts, model.locate(X), (40,))
    assert max(np.mean(np.abs(torus.displacement(away, shift, (40,))) <= 1) for shift in away) == 1


def test_annealing_lays_out_a_photo_better_than_plain_em(rng):
    photo = np.asarray(Image.fromarray(load_sample_image("china.jpg")).resize((30, 20))) / 255
    corners = rng.integers(0, [13, 23], (60, 2))
    X = np.array([photo[r : r + 8, c : c + 8].ravel() for r, c in corners])
    ends = [Epitome((24, 32), (8, 8), anneal=how, random_state=0).fit(X).score(X) for how in (None, (0.01, 1.1, 1.0))]
    assert ends[1] > ends[0]


@pytest.mark.parametrize("seed", range(3))
def test_windows_of_an_image_without_noise_are_put_back(seed):
    photo = np.asarray(Image.fromarray(load_sample_image("china.jpg")).resize((40, 22))) / 255
    corners = np.random.default_rng(seed).integers(0, [13, 31], (150, 2))
    X = np.array([photo[r : r + 10, c : c + 10].ravel() for r, c in corners])
    model = Epitome((26, 46), (10, 10), random_state=seed).fit(X)
    away = torus.displacement(corners, model.locate(X), (26, 46))
    shifts = np.unique(away, axis=0)
    assert max(np.mean(np.abs(torus.displacement(away, by, (26, 46))).max(axis=1) <= 1) for by in shifts) >= 0.95


def test_it_classifies(images):
    flat = images.reshape(12, -1)
    X, y = np.vstack([flat, -flat]), np.repeat(["light", "dark"], 12)
    assert cg.GridClassifier(Epitome((5, 6), (3, 4)), random_state=0).fit(X, y).score(X, y) == 1


def test_wrong_use_is_refused(images):
    for options, message in (
        ({"window": (5, 5)}, r"X has 24 columns, but window=\(5, 5\) needs a multiple of 25"),
        ({"window": (6, 4)}, r"window=\(6, 4\) must fit into grid=\(5, 6\)"),
        ({"eta": 0}, "eta=0 must be a number above 0"),
        ({"max_iter": 0}, "max_iter=0 must be an integer of at least 1"),
        ({"anneal": (0.1, 0.9, 1)}, r"anneal=\(0\.1, 0\.9, 1\) must be None or \(start, rate, end\)"),
        ({"anneal": "auto"}, "anneal='auto' must be None"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(images, **options)
