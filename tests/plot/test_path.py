"""A text as a path over a componential grid."""

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary
from countinggrids.models import ComponentialGrid

NAMES = ("bread", "butter", "salt", "star", "planet", "moon")


@pytest.fixture(scope="module")
def model():
    """A grid of 8x8 cells: kitchen words lie in the windows at (1, 1), words of the sky in those at (5, 5)."""
    pi = np.full((8, 8, 6), 1e-4)
    pi[1:3, 1:3, :3] = 1
    pi[5:7, 5:7, 3:] = 1
    start = pi / pi.sum(axis=-1, keepdims=True)
    X = np.repeat([[4, 4, 4, 0, 0, 0], [0, 0, 0, 4, 4, 4]], 10, axis=0)
    return ComponentialGrid((8, 8), (2, 2), init=start, max_iter=2, tol=0, random_state=0).fit(X)


def ends_of(ax):
    """Return the ends of the path, which have large markers, as (row, column)."""
    marks = [line for line in ax.lines if line.get_markersize() == 8]
    return [(float(line.get_ydata()[0]), float(line.get_xdata()[0])) for line in marks]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_path_goes_from_the_place_of_the_first_words_to_that_of_the_last(model):
    words = ["bread", "butter", "salt"] * 4 + ["star", "planet", "moon"] * 4
    first, last = ends_of(plot.path(model, words, Vocabulary("words", NAMES)))
    np.testing.assert_allclose(first, (1.5, 1.5), atol=1)
    np.testing.assert_allclose(last, (5.5, 5.5), atol=1)
    back = ends_of(plot.path(model, words[::-1], Vocabulary("words", NAMES)))
    assert back == [last, first]


def test_words_outside_the_vocabulary_are_left_out(model):
    vocabulary = Vocabulary("words", NAMES)
    with_others = plot.path(model, ["the", "bread", "of", "stars", "moon"], vocabulary, stretch=1)
    assert ends_of(with_others) == ends_of(plot.path(model, [0, 5], stretch=1))
    assert {text.get_text() for text in with_others.texts} <= {"bread", "moon"}
    assert with_others.texts


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {}, "words must be features as integers"),
        (["bread"], {}, "words must be features as integers"),
        ([0.5], {}, "words must be features as integers"),
        ([7], {}, "from 0 to 5; got 7 to 7"),
        ([1], {"stretch": 0}, "stretch=0 must be a positive integer"),
    ],
)
def test_bad_words_are_refused(model, words, options, message):
    with pytest.raises(ValueError, match=message):
        plot.path(model, words, **options)


def test_models_with_one_place_for_each_text_are_refused():
    single = cg.CountingGrid((4, 4), (2, 2), random_state=0, tol=1e-2).fit(np.eye(6, dtype=int)[:, :4] + 1)
    with pytest.raises(TypeError, match="must be a ComponentialGrid"):
        plot.path(single, [0, 1])
