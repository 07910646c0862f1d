"""Gist: gratings, light, and direct convolution with the same filters."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from countinggrids.features import BadItemError, Gist, gist

PHOTO = load_sample_image("china.jpg")[:256, :256]


def grating(turn, frequency=0.3, size=128):
    """Draw stripes across which brightness goes up and down; turned by an angle from upright."""
    rows, columns = np.mgrid[:size, :size]
    return 0.5 + 0.4 * np.cos(2 * np.pi * frequency * (columns * np.cos(turn) + rows * np.sin(turn)))


def strongest(image):
    """Give the filter that responds most in the middle of an image."""
    blocks = Gist().transform([image]).reshape(4, 4, 24)
    return blocks[1:3, 1:3].mean(axis=(0, 1)).argmax()


@pytest.mark.parametrize("i", range(8))
def test_filters_find_the_orientation_of_a_grating(i):
    assert strongest(grating(np.pi * i / 8)) == i


@pytest.mark.parametrize(("scale", "first", "n"), [(0, 0, 8), (1, 8, 8), (2, 16, 4), (3, 20, 4)])
def test_filters_find_the_scale_of_a_grating(scale, first, n):
    assert first <= strongest(grating(0.0, 0.3 / 1.85**scale)) < first + n


def test_light_and_contrast_hardly_matter():
    photo = PHOTO.mean(axis=2) / 255
    plain, dark, other = Gist().transform([photo, photo * 0.6, photo[:, ::-1]])
    assert np.linalg.norm(plain - dark) < 0.15 * np.linalg.norm(plain - other)
    # The logarithm takes a factor out; nothing but rounding to eight bits and the darkest pixels is left.
    assert np.corrcoef(plain, dark)[0, 1] > 0.99


def test_an_even_image_is_all_zeros():
    np.testing.assert_allclose(Gist().transform([np.full((50, 70), 0.5)]), 0, atol=1e-9)


def test_responses_are_those_of_direct_convolution(rng):
    """Each response is the sum over all offsets of the padded image times the filter as pixels, round the torus."""
    image = rng.standard_normal((6, 8))
    padded = np.pad(image, gist.PADDING, mode="symmetric")
    height, width = padded.shape
    found = gist.responses(image, (2, 1))
    for response, transfer in zip(found, gist.filters(height, width, (2, 1)), strict=True):
        kernel = np.fft.ifft2(transfer)
        for row, column in ((0, 0), (5, 7), (2, 3)):
            total = 0j
            for down in range(height):
                for across in range(width):
                    there = padded[row + gist.PADDING - down, column + gist.PADDING - across]
                    total += kernel[down, across] * there
            assert response[row, column] == pytest.approx(abs(total))


def test_blocks_are_where_they_are_in_the_image():
    half = np.full((128, 128), 0.5)
    half[:64, :64] = grating(0.0)[:64, :64]
    blocks = Gist(orientations=(4,)).transform([half]).reshape(4, 4, 4).sum(axis=2)
    assert blocks[0, 0] > 10 * blocks[3, 3]
    assert blocks[:2, :2].sum() > 0.6 * blocks.sum()


def test_images_of_any_kind_and_size_are_brought_to_one(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "photo.png")
    table = Gist(n_jobs=2).fit_transform([tmp_path / "photo.png", PHOTO, PHOTO[::2, ::3]])
    assert table.shape == (3, 384)
    np.testing.assert_array_equal(table[0], table[1])
    assert np.corrcoef(table[1], table[2])[0, 1] > 0.5


def test_it_works_in_a_pipeline():
    pipe = make_pipeline(Gist(size=32, orientations=(4, 4), blocks=2), PCA(2))
    assert pipe.fit_transform([PHOTO, PHOTO[:100], PHOTO[::-1]]).shape == (3, 2)


def test_wrong_use_is_refused(tmp_path):
    with pytest.raises(ValueError, match="blocks=3 must divide size=128; use for instance size=126"):
        Gist(blocks=3).transform([PHOTO])
    with pytest.raises(ValueError, match=r"orientations=\(\) must be integers"):
        Gist(orientations=()).transform([PHOTO])
    with pytest.raises(ValueError, match="images is empty"):
        Gist().transform([])
    with pytest.raises(BadItemError, match="does not exist"):
        Gist().transform([tmp_path / "nothing.png"])
