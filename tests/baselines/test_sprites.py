"""Flexible sprites on sequences of two layers, and by their bound."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.utils.estimator_checks import parametrize_with_checks

from countinggrids.baselines import FlexibleSprites


@parametrize_with_checks([FlexibleSprites((1, 1), n_init=1, max_iter=3, random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


SIZE = (16, 20)


def sequence(seed, n_images=30, is_panning=False):
    """Draw a disk with stripes that moves in front of a background; return images, corners and its mask."""
    rng = np.random.default_rng(seed)
    background = gaussian_filter(rng.random((*SIZE, 3)), (1, 1, 0), mode="wrap")
    background = (background - background.min()) / np.ptp(background)
    rows, columns = np.mgrid[:7, :7]
    mask = (rows - 3) ** 2 + (columns - 3) ** 2 <= 9
    disk = np.stack([np.full((7, 7), 0.9), 0.5 + 0.4 * (rows % 3 == 0), np.full((7, 7), 0.1)], axis=-1)
    corners = rng.integers(0, SIZE, (n_images, 2))
    pans = rng.integers(0, SIZE, (n_images, 2)) * is_panning
    images = []
    for corner, pan in zip(corners, pans, strict=True):
        image = np.roll(background, pan, axis=(0, 1))
        inside = np.nonzero(mask)
        image[(inside[0] + corner[0]) % SIZE[0], (inside[1] + corner[1]) % SIZE[1]] = disk[mask]
        images.append(image + 0.02 * rng.standard_normal(image.shape))
    return np.array(images).reshape(n_images, -1), corners, mask, background


def fraction_in_place(model, X, corners, layer=1):
    away = (model.locate(X)[:, layer] - corners) % SIZE
    return np.unique(away, axis=0, return_counts=True)[1].max() / len(X)


@pytest.mark.parametrize("seed", range(3))
def test_a_sprite_in_front_of_a_background_is_found(seed):
    X, corners, mask, background = sequence(seed)
    model = FlexibleSprites(SIZE, random_state=0).fit(X)
    assert fraction_in_place(model, X, corners) == 1
    assert model.noise_ == pytest.approx(0.02, rel=0.3)
    assert (model.masks_[1] > 0.5).sum() == pytest.approx(mask.sum(), abs=2)
    np.testing.assert_allclose(model.appearance_[0], background, atol=0.05)
    visible = model.segment(X)
    np.testing.assert_allclose(visible.sum(axis=1), 1, atol=1e-6)
    assert visible[:, 1].sum(axis=(1, 2)).mean() == pytest.approx(mask.sum(), rel=0.1)


def test_new_images_are_explained(rng):
    X, corners, _, _ = sequence(5, 60)
    model = FlexibleSprites(SIZE, random_state=0).fit(X[::2])
    away = (model.locate(X)[:, 1] - corners) % SIZE
    assert len(np.unique(away, axis=0)) == 1
    assert model.score_samples(X[1::2]).mean() > model.score_samples(np.roll(X[1::2], 1, axis=1)).mean()
    assert model.transform(X).shape == (60, 2 * 16 * 20)


def test_a_background_may_pan():
    X, corners, mask, _ = sequence(1, is_panning=True)
    model = FlexibleSprites(SIZE, is_panning=True, n_init=6, random_state=0).fit(X)
    assert fraction_in_place(model, X, corners) > 0.9
    assert (model.masks_[1] > 0.5).sum() == pytest.approx(mask.sum(), abs=4)


@pytest.mark.parametrize("is_panning", [False, True])
def test_the_bound_never_falls(is_panning):
    X, *_ = sequence(2, 12, is_panning)
    model = FlexibleSprites(SIZE, n_init=1, tol=-1, max_iter=15, is_panning=is_panning, random_state=0).fit(X)
    assert np.diff(model.history_).min() > -1e-9


def test_images_of_another_size_are_refused(rng):
    with pytest.raises(ValueError, match=r"X has 12 columns, but size=\(4, 4\) needs a multiple of 16"):
        FlexibleSprites((4, 4)).fit(rng.random((5, 12)))
