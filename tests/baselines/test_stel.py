"""The stel epitome against loops, and on a scene in changing light."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
import naive_baselines
from countinggrids.baselines import Epitome, StelEpitome, palettes, spectra, stel
from countinggrids.core import torus
from countinggrids.core.geometry import Geometry

TIES = "the checks' columns are channels of a single pixel here, which fits several cells equally well"


@parametrize_with_checks(
    [StelEpitome((3, 3), (1, 1), 2, max_iter=3, random_state=0)],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": TIES},
)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def lit(scene, corners, window, rng):
    """Cut windows out of a scene of segments, and give the segments of each colors of its own."""
    images = []
    for row, column in corners:
        segments = scene[row : row + window, column : column + window]
        palette = np.sort(rng.random((3, 2)), axis=0)  # the order of the segments by brightness stays
        images.append(palette[segments] + 0.02 * rng.standard_normal((window, window, 2)))
    return np.array(images)


@pytest.fixture
def images(rng):
    return lit(rng.integers(0, 3, (7, 7)), rng.integers(0, 4, (10, 2)), 4, rng)


def test_an_update_is_that_of_loops(images, rng):
    epitome = rng.dirichlet(np.ones(3), (5, 6))
    stels = rng.dirichlet(np.ones(3), (10, 4, 4))
    found = stel._update(
        np.moveaxis(images, -1, 1), np.moveaxis(stels, -1, 1), np.moveaxis(epitome, -1, 0).copy(), floor=0.05
    )
    qs, rs, bounds = zip(
        *(naive_baselines.stel_update(image, r, epitome, 0.05) for image, r in zip(images, stels, strict=True)),
        strict=True,
    )
    np.testing.assert_allclose(found.q, qs, atol=1e-12)
    np.testing.assert_allclose(np.moveaxis(found.stels, 1, -1), rs, atol=1e-12)
    np.testing.assert_allclose(found.bound, bounds)


def test_bounds_of_windows_are_those_of_loops(images, rng):
    epitome = rng.dirichlet(np.ones(3), (5, 6))
    planes, by_stel = np.moveaxis(images, -1, 1), np.moveaxis(epitome, -1, 0).copy()
    found = palettes.window_bounds(planes, by_stel, floor=0.05)
    wanted = np.array([naive_baselines.stel_window_bounds(image, epitome, 0.05) for image in images])
    np.testing.assert_allclose(found, wanted.reshape(10, -1))
    stels = palettes.stels_of_best_window(planes, by_stel, floor=0.05)
    for n in range(10):
        row, column = np.unravel_index(wanted[n].argmax(), (5, 6))
        prior = np.roll(epitome, (-row, -column), axis=(0, 1))[:4, :4]
        density = palettes.log_densities(planes[n : n + 1], np.moveaxis(prior, -1, 0)[None], 0.05)[0]
        joint = prior * np.exp(np.moveaxis(density, 0, -1))
        np.testing.assert_allclose(np.moveaxis(stels[n], 0, -1), joint / joint.sum(axis=-1, keepdims=True))


def test_stels_are_painted_as_loops_do(images):
    before, after = (
        StelEpitome((5, 6), (4, 4), init="uniform", eta=0.3, max_iter=n, tol=-1, random_state=0).fit(
            images.reshape(10, -1)
        )
        for n in (1, 2)
    )
    start = np.moveaxis(before._first_stels(images.reshape(10, -1), Geometry.of((5, 6), (4, 4))), 1, -1)
    first = np.moveaxis(before._start(Geometry.of((5, 6), (4, 4))), 0, -1)
    epitome, stels = first, start
    for model in (before, after):
        updates = [naive_baselines.stel_update(image, r, epitome, 0.05) for image, r in zip(images, stels, strict=True)]
        qs, stels, _ = zip(*updates, strict=True)
        epitome = naive_baselines.stel_epitome(qs, stels, 0.3)
        np.testing.assert_allclose(model.stels_, epitome, atol=1e-9)


def test_the_bound_never_falls(images):
    model = StelEpitome((5, 6), (4, 4), tol=-1, max_iter=30, random_state=0).fit(images.reshape(10, -1))
    assert np.diff(model.history_).min() > -1e-12


def test_the_bound_lies_below_the_likelihood(images):
    """Given its palette, an image's likelihood is a sum over windows of products over pixels of sums over stels."""
    X = images.reshape(10, -1)
    model = StelEpitome((5, 6), (4, 4), random_state=0).fit(X)
    stels = np.moveaxis(model.segment(X), -1, 1)
    density = np.exp(palettes.log_densities(np.moveaxis(images, -1, 1), stels, model.floor))
    truths = []
    for each in density:
        likelihoods = np.ones((5, 6))
        for k in np.ndindex(5, 6):
            for i in np.ndindex(4, 4):
                likelihoods[k] *= model.stels_[(k[0] + i[0]) % 5, (k[1] + i[1]) % 6] @ each[:, *i]
        truths.append(np.log(likelihoods.mean()))
    bounds = model.score_samples(X)
    assert (bounds < np.array(truths) + 0.05).all()
    assert np.abs(bounds - truths).max() < 5


def share_in_place(corners, model, X, grid):
    away = torus.displacement(corners, model.locate(X), grid)
    return max(np.mean(np.abs(torus.displacement(away, shift, grid)).max(axis=1) <= 1) for shift in away)


def test_light_that_breaks_the_epitome_does_not_break_the_stels(rng):
    scene = np.kron(rng.integers(0, 3, (7, 7)), np.ones((3, 3), int))
    corners = rng.integers(0, 13, (80, 2))
    X = lit(scene, corners, 9, rng).reshape(80, -1)
    options = {"grid": (24, 24), "window": (9, 9), "random_state": 0}
    stels = StelEpitome(**options).fit(X)
    plain = Epitome(**options, anneal=(0.02, 1.05, 1.0)).fit(X)
    assert share_in_place(corners, stels, X, (24, 24)) > 2 * share_in_place(corners, plain, X, (24, 24))


def test_windows_of_segments_without_noise_are_put_back(rng):
    segments = np.kron(rng.integers(0, 3, (6, 8)), np.ones((3, 3), int))
    scene = np.array([[0.1, 0.2], [0.5, 0.4], [0.9, 0.8]])[segments]
    corners = rng.integers(0, [9, 15], (80, 2))
    X = np.array([scene[r : r + 10, c : c + 10].ravel() for r, c in corners])
    model = StelEpitome((22, 28), (10, 10), random_state=0).fit(X)
    assert share_in_place(corners, model, X, (22, 28)) >= 0.95


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_windows_of_a_photo_are_put_back_by_many_stels(seed):
    photo = np.asarray(Image.fromarray(load_sample_image("china.jpg")).resize((40, 22))) / 255
    corners = np.random.default_rng(seed).integers(0, [13, 31], (150, 2))
    X = np.array([photo[r : r + 10, c : c + 10].ravel() for r, c in corners])
    model = StelEpitome((26, 46), (10, 10), 12, eta=0.01, max_iter=12, random_state=seed).fit(X)
    assert share_in_place(corners, model, X, (26, 46)) >= 0.95


def test_a_new_image_is_explained_at_least_as_well_as_from_its_brightness(rng):
    scene = np.kron(rng.integers(0, 3, (7, 7)), np.ones((3, 3), int))
    X = lit(scene, rng.integers(0, 13, (40, 2)), 9, rng).reshape(40, -1)
    model = StelEpitome((24, 24), (9, 9), eta=0.1, max_iter=10, random_state=0).fit(X)
    planes, epitome = spectra.as_windows(X, (9, 9)), np.moveaxis(model.stels_, -1, 0).copy()
    starts = model._first_stels(X, model.geometry_), palettes.stels_of_best_window(planes, epitome, model.floor)
    bounds = [stel._converged(planes, each, epitome, model.floor).bound for each in starts]
    assert (bounds[1] > bounds[0] + 1e-6).any()
    np.testing.assert_allclose(model.score_samples(X), np.maximum(*bounds))


def test_segments_are_found(rng):
    scene = np.kron(rng.integers(0, 3, (4, 4)), np.ones((3, 3), int))
    corners = rng.integers(0, 5, (40, 2))
    X = lit(scene, corners, 8, rng).reshape(40, -1)
    found = StelEpitome((16, 16), (8, 8), random_state=0).fit(X).segment(X)
    assert found.shape == (40, 8, 8, 3)
    wanted = np.array([scene[r : r + 8, c : c + 8] for r, c in corners])
    assert np.mean(found.argmax(axis=-1) == wanted) > 0.9


def test_blocks_and_copies_change_nothing(images, monkeypatch):
    X, times = images.reshape(10, -1), np.arange(10) % 3
    options = {"grid": (5, 6), "window": (4, 4), "random_state": 0}
    weighted = StelEpitome(**options).fit(X, sample_weight=times)
    monkeypatch.setattr(spectra, "BLOCK_ENTRIES", 400)
    copied = StelEpitome(**options).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.stels_, copied.stels_, atol=1e-9)


def test_it_classifies_by_layout(rng):
    wide, tall = np.zeros((12, 12), int), np.zeros((12, 12), int)
    wide[4:8], tall[:, 4:8] = 2, 2
    X = np.vstack([lit(each, rng.integers(0, 4, (20, 2)), 8, rng).reshape(20, -1) for each in (wide, tall)])
    y = np.repeat(["wide", "tall"], 20)
    model = cg.GridClassifier(StelEpitome((12, 12), (8, 8), 2), random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9


def test_wrong_use_is_refused(images):
    X = images.reshape(10, -1)
    for options, message in (
        ({"n_stels": 0}, "n_stels=0 must be an integer of at least 1"),
        ({"floor": 0}, "floor=0 must be a number above 0"),
        ({"window": (3, 3)}, r"X has 32 columns, but window=\(3, 3\) needs a multiple of 9"),
    ):
        with pytest.raises(ValueError, match=message):
            StelEpitome(**{"grid": (5, 6), "window": (4, 4), **options}).fit(X)
