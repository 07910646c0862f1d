"""Dense SIFT against its definition as loops, and against OpenCV's."""

from math import atan2, cos, hypot, pi

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from countinggrids.features import DenseSIFT, image_files
from countinggrids.features.maps import patch_corners
from countinggrids.features.sift import describe

PHOTO = image_files.read(load_sample_image("china.jpg"))[100:180, 200:300]


def naive(pixels, top, left, patch):
    """Describe one patch, pixel by pixel, before lengths are evened out."""
    height, width = pixels.shape
    gray = pixels.astype(float)
    bins = np.zeros((4, 4, 8))
    for y in range(height):
        for x in range(width):
            dx = (gray[y, min(x + 1, width - 1)] - gray[y, max(x - 1, 0)]) / 2
            dy = (gray[min(y + 1, height - 1), x] - gray[max(y - 1, 0), x]) / 2
            for i in range(4):
                for j in range(4):
                    down = 1 - abs(y - (top + (i + 0.5) * patch / 4 - 0.5)) / (patch / 4)
                    across = 1 - abs(x - (left + (j + 0.5) * patch / 4 - 0.5)) / (patch / 4)
                    if down > 0 and across > 0:
                        for o in range(8):
                            cosine = cos(atan2(dy, dx) - o * pi / 4)
                            bins[i, j, o] += down * across * hypot(dx, dy) * max(0, cosine) ** 9
    return bins.ravel()


@pytest.mark.parametrize(("patch", "step"), [(16, 8), (12, 5), (10, 3)])
def test_descriptors_are_those_of_the_definition(patch, step):
    pixels = PHOTO[:34, :41]
    ours = describe(pixels, patch, step, 1e-9)
    rows, columns = (patch_corners(n, patch, step) for n in pixels.shape)
    assert ours.shape == (len(rows), len(columns), 128)
    for i, j in [(0, 0), (1, 2), (len(rows) - 1, len(columns) - 1)]:
        wanted = naive(pixels, rows[i], columns[j], patch)
        wanted = np.minimum(wanted / np.linalg.norm(wanted), 0.2)
        np.testing.assert_allclose(ours[i, j], wanted / np.linalg.norm(wanted), atol=1e-5)


def test_patches_that_opencv_finds_alike_are_alike_here():
    import cv2

    # OpenCV blurs the image by this much before it looks at gradients.
    [ours] = DenseSIFT(contrast=1e-9).transform([cv2.GaussianBlur(PHOTO, (0, 0), 1.6)])
    rows, columns = ours.corners()
    points = [cv2.KeyPoint(float(x + 7.5), float(y + 7.5), 16 / 6, 0) for y in rows for x in columns]
    theirs = cv2.SIFT_create().compute(PHOTO, points)[1]
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    flat = ours.values.reshape(-1, 128)
    upper = np.triu_indices(len(flat), 1)
    assert np.corrcoef((flat @ flat.T)[upper], (theirs @ theirs.T)[upper])[0, 1] > 0.95


def test_flat_patches_are_zero_and_noise_in_them_stays_small():
    noise = np.random.default_rng(0).integers(127, 130, (64, 64)).astype(np.uint8)
    [flat, faint, photo] = DenseSIFT().transform([np.full((64, 64), 128, np.uint8), noise, PHOTO])
    assert not flat.values.any()
    assert np.linalg.norm(faint.values, axis=-1).max() < 0.6
    assert np.median(np.linalg.norm(photo.values, axis=-1)) > 0.99


def test_light_does_not_change_a_descriptor():
    dark = (PHOTO * 0.6).astype(np.uint8)
    [a, b] = DenseSIFT(contrast=0.1).transform([PHOTO, dark])
    assert np.median((a.values * b.values).sum(axis=-1)) > 0.98


@pytest.mark.parametrize("shape", [(1, 1), (5, 40), (16, 16), (17, 23), (300, 20)])
def test_images_of_any_size(shape):
    [feature_map] = DenseSIFT().transform([np.resize(PHOTO, shape)])
    assert feature_map.values.dtype == np.float32
    assert np.isfinite(feature_map.values).all()
    assert feature_map.shape == (*(max(0, n - 16) // 8 + 1 for n in shape), 128)


def test_a_feature_map_knows_where_its_features_came_from():
    [feature_map] = DenseSIFT(patch=12, step=5).transform([PHOTO])
    rows, columns = feature_map.corners()
    assert (rows[0], columns[0]) == feature_map.origin
    assert (feature_map.step, feature_map.patch, feature_map.size) == (5, 12, PHOTO.shape)
    assert rows[-1] + 12 <= PHOTO.shape[0]
    assert abs(rows[0] - (PHOTO.shape[0] - rows[-1] - 12)) <= 1
    [patch] = feature_map.cut(np.array([len(columns) + 2]))
    np.testing.assert_array_equal(patch, PHOTO[rows[1] : rows[1] + 12, columns[2] : columns[2] + 12])


def test_long_sides_are_no_different(monkeypatch):
    [dense] = DenseSIFT().transform([PHOTO])
    monkeypatch.setattr("countinggrids.features.sift.DENSE_UP_TO", 10)
    from countinggrids.features import sift

    sift._bins.cache_clear()
    [sparse] = DenseSIFT().transform([PHOTO])
    sift._bins.cache_clear()
    np.testing.assert_allclose(dense.values, sparse.values, atol=1e-5)


def test_gray_and_color_give_the_same_on_a_gray_photo():
    [a, b] = DenseSIFT().transform([PHOTO, np.repeat(PHOTO[..., None], 3, axis=2)])
    np.testing.assert_allclose(a.values, b.values, atol=0.02)


def test_threads_do_not_change_a_bit():
    photos = [PHOTO[i:] for i in range(6)]
    one, three = (list(DenseSIFT(n_jobs=n).transform(photos)) for n in (1, 3))
    assert all(a.values.tobytes() == b.values.tobytes() for a, b in zip(one, three, strict=True))
