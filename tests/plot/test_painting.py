"""A grid as pixels and as words: what is painted is what pi says, and it wraps round."""

import re

import numpy as np
import pytest

import countinggrids as cg
from countinggrids.features import Vocabulary
from countinggrids.plot import painting

COLORS = Vocabulary.of_colors(np.array([[250, 0, 0], [0, 250, 0], [0, 0, 250]], np.uint8))
LABELS = Vocabulary("labels", ("unlabeled", "sky", "sea"))
WORDS = Vocabulary("words", ("tea", "for", "two"))


def some_pi(rng, *shape):
    pi = rng.random(shape) ** 4
    return pi / pi.sum(axis=-1, keepdims=True)


def patches_of(rng, n=5, side=6):
    return Vocabulary.of_patches(rng.integers(0, 256, (n, side, side, 3), dtype=np.uint8), n)


def test_colors_are_averaged_under_pi():
    painted = painting.picture([[[1, 0, 0], [0.5, 0.5, 0]]], COLORS, pitch=2)
    assert painted.shape == (2, 4, 3)
    assert painted.dtype == np.uint8
    np.testing.assert_array_equal(painted[0], [[250, 0, 0]] * 2 + [[125, 125, 0]] * 2)


def test_a_power_of_pi_makes_colors_purer():
    soft, sharp = (painting.picture([[[0.6, 0.4, 0]]], COLORS, 1, sharpness) for sharpness in (None, 4))
    assert soft[0, 0].tolist() == [150, 100, 0]
    assert sharp[0, 0].tolist() == pytest.approx(
        [250 * 0.6**4 / (0.6**4 + 0.4**4), 250 * 0.4**4 / (0.6**4 + 0.4**4), 0], abs=1
    )


def test_labels_give_the_color_of_the_most_likely_one():
    painted = painting.picture([[[0.4, 0.3, 0.3], [0.1, 0.5, 0.4]]], LABELS, pitch=1)
    assert painted[0].tolist() == [list(painting.GRAY), painting.label_colors(3)[1].tolist()]


@pytest.mark.parametrize("kind", ["colors", "labels", "patches"])
@pytest.mark.parametrize("pitch", [1, 3, 4])
def test_a_rolled_grid_gives_the_rolled_picture(rng, kind, pitch):
    vocabulary = {"colors": COLORS, "labels": LABELS, "patches": patches_of(rng, 3)}[kind]
    pi = some_pi(rng, 4, 5, 3)
    painted = painting.picture(pi, vocabulary, pitch)
    rolled = painting.picture(np.roll(pi, (1, 2), (0, 1)), vocabulary, pitch)
    np.testing.assert_array_equal(rolled, np.roll(painted, (pitch, 2 * pitch), (0, 1)))
    assert (rolled != painted).any()


def test_patches_lie_over_the_middle_of_their_cell_and_fade_out(rng):
    black_and_white = Vocabulary.of_patches(np.array([0, 255], np.uint8).repeat(3 * 36).reshape(2, 6, 6, 3), 2)
    pi = np.zeros((5, 5, 2))
    pi[..., 0] = 1
    pi[2, 2] = (0, 1)
    painted = painting.picture(pi, black_and_white, pitch=4)[..., 0].astype(float)
    np.testing.assert_array_equal(painted, painted[::-1, ::-1])
    assert painted[:6].max() == painted[:, 14:].max() == 0  # a patch is two cells wide
    along = painted[9, 6:14]
    assert (np.diff(along)[:3] > 0).all()
    assert along.argmax() in (3, 4)


def test_one_patch_everywhere_is_an_even_picture():
    even = Vocabulary.of_patches(np.full((2, 5, 5, 3), 77, np.uint8), 2)
    assert (painting.picture(np.full((3, 4, 2), 0.5), even, 7) == 77).all()


def test_patches_keep_their_picture_when_resized(rng):
    patches = rng.random((2, 6, 6, 3))
    np.testing.assert_allclose(painting._resized(patches, 6), patches)
    ramp = np.broadcast_to(np.arange(8.0)[:, None, None], (1, 8, 8, 3))
    np.testing.assert_allclose(painting._resized(ramp, 4)[0, 1:-1, 0, 0], [2.5, 4.5])


def test_sections_are_averaged_and_one_axis_is_one_row(rng):
    pi = some_pi(rng, 3, 4, 2, 3)
    np.testing.assert_array_equal(painting.picture(pi, COLORS), painting.picture(pi.mean(axis=2), COLORS))
    assert painting.picture(some_pi(rng, 6, 3), COLORS, 2).shape == (2, 12, 3)


MESSAGES = {
    "words": (
        lambda: painting.picture(np.ones((2, 2, 3)) / 3, WORDS),
        "vocabulary of words has no colors; expected colors, labels, or patches with images; "
        "plot the words of the grid.",
    ),
    "patches without pictures": (
        lambda: painting.picture(np.ones((2, 2, 3)) / 3, Vocabulary.of_patches(None, 3)),
        "vocabulary of patches has no colors; expected colors, labels, or patches with images; bag again from images.",
    ),
    "another vocabulary": (
        lambda: painting.picture(np.ones((2, 2, 4)) / 4, COLORS),
        "vocabulary of 3 features must have as many as pi, 4; use that of the collection that the model was fitted to.",
    ),
    "too many axes": (
        lambda: painting.picture(np.ones((2, 2, 2, 2, 3)), COLORS),
        "pi of shape (2, 2, 2, 2, 3) must be (n_rows, n_columns, n_features); use two axes.",
    ),
    "no pitch": (
        lambda: painting.picture(np.ones((2, 2, 3)), COLORS, 0),
        "pitch=0 must be a number of pixels of at least 1; use for instance pitch=8.",
    ),
    "a grid with three axes": (
        lambda: painting.plane(cg.CountingGrid((3, 3, 3), 2, random_state=0).fit(np.eye(4) + 1)),
        "grid=(3, 3, 3) has 3 axes; expected one or two to plot; use a slice of pi_.",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_wrong_use_is_refused(case):
    make, message = MESSAGES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_label_colors_are_distinct():
    colors = painting.label_colors(24).astype(int)
    distances = np.abs(colors[:, None] - colors).sum(axis=2)
    assert distances[~np.eye(24, dtype=bool)].min() > 30
    assert painting.label_colors(0).shape == (0, 3)


def test_models_become_planes(rng):
    X = rng.integers(1, 9, (12, 8))
    one_axis = cg.MixtureOfUnigrams(3, random_state=0).fit(X)
    with_sections = cg.SpatialBagOfWords(3, (2, 1), random_state=0).fit(X)
    assert painting.plane(one_axis).shape == (1, 3, 8)
    np.testing.assert_allclose(painting.plane(with_sections)[0], with_sections.pi_.mean(axis=1))


def test_coverage_spreads_the_posterior_over_the_windows(rng):
    X = rng.integers(0, 9, (6, 5))
    model = cg.CountingGrid((5, 6), (2, 3), random_state=0).fit(X)
    q = model.transform(X).sum(axis=0).reshape(5, 6) / 6
    expected = sum(np.roll(q, (a, b), (0, 1)) for a in range(2) for b in range(3))
    np.testing.assert_allclose(painting.coverage(model, X), expected, rtol=1e-5)


def test_without_bags_the_prior_tells_the_coverage(rng):
    X = rng.integers(0, 9, (6, 5))
    for prior in ("exact", "smoothed"):
        model = cg.CountingGrid((5, 6), (2, 3), location_prior=prior, random_state=0).fit(X)
        np.testing.assert_allclose(painting.coverage(model), painting.coverage(model, X), atol=0.02)
        assert painting.coverage(model).sum() == pytest.approx(6)


def test_relevant_features_are_frequent_here_and_rare_elsewhere():
    here, anywhere = np.array([0.5, 0.4, 0.1]), np.array([0.6, 0.1, 0.1])
    np.testing.assert_allclose(painting.relevance(here, anywhere), here * np.log(here / anywhere), atol=1e-9)
    assert painting.relevance(here, anywhere).argmax() == 1
    pi = np.array([[[0.5, 0.5]], [[1.0, 0.0]]])
    np.testing.assert_allclose(painting.mean_histogram(pi, [[3], [1]]), [0.625, 0.375])
    np.testing.assert_allclose(painting.mean_histogram(pi), [0.75, 0.25])


def test_words_are_placed_where_they_are_most_distinctive():
    pi = np.full((8, 8, 4), 1.0)
    pi[1, 1, 1] = pi[1, 6, 2] = pi[6, 2, 3] = 50
    found = painting.words(pi / pi.sum(axis=-1, keepdims=True), places=(2, 2), n=1)
    by_word = {word.feature: word for word in found}
    assert {feature: (round(by_word[feature].row), round(by_word[feature].column)) for feature in (1, 2, 3)} == {
        1: (1, 1), 2: (1, 6), 3: (6, 2)}  # fmt: skip
    assert [word.weight for word in found] == sorted((word.weight for word in found), reverse=True)


def test_the_same_word_is_not_written_twice_close_by(rng):
    pi = some_pi(rng, 12, 12, 30)
    found = painting.words(pi, places=(6, 6), n=2, apart=2)
    assert len(found) == 72
    for word in {word.feature for word in found}:
        places = [(int(each.row + 1e-6) // 2, int(each.column + 1e-6) // 2) for each in found if each.feature == word]
        for i, one in enumerate(places):
            for other in places[i + 1 :]:
                ways = [min(abs(a - b), 6 - abs(a - b)) for a, b in zip(one, other, strict=True)]
                assert max(ways) >= 2


def test_words_of_places_that_nobody_uses_weigh_little(rng):
    pi = some_pi(rng, 4, 8, 10)
    usage = np.ones((4, 8))
    usage[:, 4:] = 1e-6
    found = painting.words(pi, usage, places=(1, 2), n=3)
    used, unused = ([word.weight for word in found if (word.column < 3.5) == side] for side in (True, False))
    assert max(used) < 1
    assert max(unused) < 0.01


@pytest.mark.parametrize("is_tilted", [False, True])
def test_the_seam_goes_to_the_border(rng, is_tilted):
    usage = rng.random((7, 9)) + 1
    usage[3], usage[:, 5] = 0, 0
    usage = usage.T if is_tilted else usage
    rolled = np.roll(usage, painting.seam(usage), (0, 1))
    assert not rolled[0].any()
    assert not rolled[:, 0].any()


def test_the_seam_is_in_the_middle_of_a_gap():
    usage = np.ones((1, 10))
    usage[0, [4, 8, 9, 0, 1, 2]] = 0
    assert painting.seam(usage) == (0, 0)
    assert painting.seam(np.ones((3, 3))) == (0, 0)
