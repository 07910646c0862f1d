"""The words of a grid: sized, in their places, without overlap."""

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary
from countinggrids.plot import painting, wordmap

NAMES = tuple(f"{'long' * (i % 4)}word{i}" for i in range(40))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.multinomial(60, p, 6) for p in rng.dirichlet(np.full(40, 0.1), 12)])
    return cg.CountingGrid((12, 12), (3, 3), random_state=0).fit(X)


def boxes_of(ax):
    ax.figure.draw_without_rendering()
    extents = [text.get_window_extent() for text in ax.texts]
    return np.array([[box.x0, box.y0, box.x1, box.y1] for box in extents])


def n_overlaps(boxes):
    touching = wordmap.touches(boxes, boxes)
    return int(touching.sum() - len(boxes))


@pytest.mark.parametrize("tiles", [(1, 1), (2, 2)])
def test_words_do_not_overlap_and_stay_inside(model, tiles):
    ax = plot.words(model, Vocabulary("words", NAMES), tiles=tiles)
    boxes = boxes_of(ax)
    assert len(boxes) > 40
    assert n_overlaps(boxes) == 0
    frame = ax.get_window_extent()
    assert (boxes >= (frame.x0, frame.y0, frame.x0, frame.y0)).all()
    assert (boxes <= (frame.x1, frame.y1, frame.x1, frame.y1)).all()


def test_the_overlap_check_can_fail():
    assert n_overlaps(np.array([[0, 0, 2, 2], [1, 1, 3, 3]])) == 2
    assert n_overlaps(np.array([[0, 0, 2, 2], [2, 0, 3, 2]])) == 0


def test_a_more_distinctive_word_is_larger_and_near_its_place(model):
    ax = plot.words(model, Vocabulary("words", NAMES))
    sizes = [text.get_fontsize() for text in ax.texts]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[-1]
    chosen = painting.words(model.pi_, painting.coverage(model), (8, 8), 6)
    assert [NAMES[word.feature] for word in chosen[:3]] == [text.get_text() for text in ax.texts[:3]]
    for word, text in zip(chosen[:3], ax.texts, strict=False):
        across = text.get_window_extent().width / ax.get_window_extent().width * 12
        column, row = text.get_position()
        assert abs(row - word.row) < 1
        assert abs(column - word.column) <= across / 2 + 0.5


def test_every_copy_is_written_alike(model):
    ax = plot.words(model, Vocabulary("words", NAMES), tiles=(1, 2), roll=(0, 5))
    for left, right in zip(ax.texts[::2], ax.texts[1::2], strict=True):
        assert left.get_text() == right.get_text()
        assert left.get_fontsize() == right.get_fontsize()
        np.testing.assert_allclose(np.subtract(right.get_position(), left.get_position()), (12, 0), atol=1e-6)


def test_a_word_without_room_is_left_out(model):
    from matplotlib.figure import Figure

    ax = Figure(figsize=(1, 1)).add_subplot()
    crowded = plot.words(model, Vocabulary("words", NAMES), ax)
    assert crowded is ax
    assert 0 < len(ax.texts) < 12


def test_dollars_are_no_formulas(model):
    names = ("$x_1$", "a$b", *NAMES[2:])
    ax = plot.words(model, Vocabulary("words", names))
    assert not any(text.get_parse_math() for text in ax.texts)
