"""Maps of a grid show the cells where they are, rolled and tiled alike."""

import re

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import plot
from countinggrids.features import Vocabulary
from countinggrids.plot import painting
from countinggrids.plot.canvas import FlatTorus

COLORS = Vocabulary.of_colors(np.array([[250, 0, 0], [0, 250, 0], [0, 0, 250]], np.uint8))


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(0).integers(0, 9, (12, 3))


@pytest.fixture(scope="module")
def model(counts):
    return cg.CountingGrid((5, 7), (2, 3), random_state=0).fit(counts)


@pytest.fixture(scope="module")
def line(counts):
    return cg.CountingGrid((9,), (3,), random_state=0).fit(counts)


def picture_of(ax):
    return np.asarray(ax.images[0].get_array())


def test_the_grid_is_painted_as_pi_says(model):
    ax = plot.grid(model, COLORS, pitch=3)
    np.testing.assert_array_equal(picture_of(ax), painting.picture(model.pi_, COLORS, 3))
    assert ax.images[0].get_extent() == [-0.5, 6.5, 4.5, -0.5]


def test_a_collection_knows_its_vocabulary(model, counts):
    from countinggrids.data.items import Items

    collection = cg.Collection(counts, COLORS, Items({"title": list("abcdefghijkl")}), 1)
    np.testing.assert_array_equal(
        picture_of(plot.grid(model, collection)), picture_of(plot.grid(model, COLORS))
    )  # fmt: skip


def test_tiles_repeat_the_rolled_grid(model):
    once = picture_of(plot.grid(model, COLORS, pitch=1, roll=(1, 3)))
    np.testing.assert_array_equal(once, np.roll(painting.picture(model.pi_, COLORS, 1), (1, 3), (0, 1)))
    ax = plot.grid(model, COLORS, pitch=1, roll=(1, 3), tiles=(2, 3))
    np.testing.assert_array_equal(picture_of(ax), np.tile(once, (2, 3, 1)))
    assert ax.get_xlim() == (-0.5, 20.5)


def test_the_seam_of_the_prior_goes_to_the_border(model):
    shift = painting.seam(painting.coverage(model))
    assert any(shift)
    np.testing.assert_array_equal(
        picture_of(plot.grid(model, COLORS, roll=True)), picture_of(plot.grid(model, COLORS, roll=shift))
    )


def seen_cells(ax, shape):
    """Tell which cells lie inside the rectangles drawn on Axes."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    seen = np.zeros(shape, bool)
    for patch in ax.patches:
        left, top = patch.get_xy()
        seen |= (
            (rows > top) & (rows < top + patch.get_height()) & (columns > left) & (columns < left + patch.get_width())
        )
    return seen


@pytest.mark.parametrize("tiles", [(1, 1), (2, 2)])
@pytest.mark.parametrize("roll", [False, (3, 5), (-1, 2)])
@pytest.mark.parametrize("corner", [(0, 0), (4, 6), (1, 5)])
def test_outlines_lie_where_the_cells_of_the_window_are_shown(model, roll, tiles, corner):
    mask = np.zeros((5, 7), bool)
    mask[np.ix_(np.arange(corner[0], corner[0] + 2) % 5, np.arange(corner[1], corner[1] + 3) % 7)] = True
    shown = FlatTorus.of(model, roll, tiles).lay(mask)
    ax = plot.windows(model, [corner], roll=roll, tiles=tiles)
    np.testing.assert_array_equal(seen_cells(ax, shown.shape), shown)


def test_outlines_have_their_colors(model):
    from matplotlib.colors import to_rgba

    ax = plot.windows(model, [(0, 0), (2, 2)], colors=["red", "lime"])
    assert [to_rgba(patch.get_edgecolor()) for patch in ax.patches[1::2]] == [to_rgba("red"), to_rgba("lime")]


def test_usage_counts_bags_over_cells(model, counts):
    heights = picture_of(plot.usage(model, counts))
    np.testing.assert_allclose(heights, 12 * painting.coverage(model, counts))
    assert heights.sum() == pytest.approx(12 * 6)


def test_prior_and_posterior_lie_at_the_middle_of_the_windows(model, counts):
    peak = np.unravel_index(model.log_prior_.argmax(), (5, 7))
    shown = picture_of(plot.prior(model))
    assert np.unravel_index(shown.argmax(), (5, 7)) == ((peak[0] + 1) % 5, (peak[1] + 1) % 7)
    place = model.locate(counts[:1])[0]
    ax = plot.posterior(model, counts[0], roll=(2, 3))
    middle = (place + np.array([1 + 2, 1 + 3])) % (5, 7)
    assert np.unravel_index(picture_of(ax).argmax(), (5, 7)) == tuple(middle)
    assert seen_cells(ax, (5, 7))[tuple(middle)]


def test_a_posterior_lets_the_picture_below_shine_through(model, counts):
    ax = plot.grid(model, COLORS)
    assert plot.posterior(model, counts[:1], ax) is ax
    assert ax.images[1].cmap(0.0)[3] == 0


def test_history_is_what_was_recorded(model):
    [curve] = plot.history(model).lines
    np.testing.assert_allclose(curve.get_ydata(), model.history_)


def test_labels_have_a_legend_of_those_that_are_seen(counts):
    counts = np.hstack([counts, np.zeros((12, 17))])
    names = ("unlabeled", "sky", "sea", *(f"label {i}" for i in range(17)))
    model = cg.CountingGrid((5, 7), (2, 3), random_state=0).fit(counts)
    legend = plot.grid(model, Vocabulary("labels", names)).get_legend()
    most = np.bincount(model.pi_.argmax(axis=-1).ravel(), minlength=20)
    assert legend.get_texts()[0].get_text() == names[most.argmax()]
    assert {text.get_text() for text in legend.get_texts()} == {names[i] for i in np.flatnonzero(most)}


def test_more_labels_than_a_legend_shows_are_counted(rng):
    model = cg.CountingGrid((6, 6), (2, 2), random_state=0).fit(np.eye(36) * 50)
    texts = plot.grid(model, Vocabulary("labels", tuple(map(str, range(36))))).get_legend().get_texts()
    n_seen = len(np.unique(model.pi_.argmax(axis=-1)))
    assert n_seen > 12
    assert texts[-1].get_text() == f"and {n_seen - 12} more"


def test_a_grid_with_one_axis_is_one_row(line, counts):
    ax = plot.windows(line, line.locate(counts[:2]), plot.grid(line, COLORS, roll=4, pitch=1), roll=4)
    assert picture_of(ax).shape == (1, 9, 3)
    assert seen_cells(ax, (1, 9)).sum() in (3, 4, 5, 6)
    assert picture_of(plot.usage(line, counts)).shape == (1, 9)


MESSAGES = {
    "roll": (
        lambda model, counts: plot.grid(model, COLORS, roll="seam"),
        "roll='seam' must be True, False or 2 integers, a shift along each axis; use for instance "
        "roll=True, which puts the least used cells at the border.",
    ),
    "tiles": (
        lambda model, counts: plot.prior(model, tiles=0),
        "tiles=(0, 0) must be one positive integer per axis; use for instance tiles=(8, 8).",
    ),
    "cells": (
        lambda model, counts: plot.windows(model, [3, 4]),
        "cells of shape (2,) must be (n_bags, 2), coordinates of first cells; use for instance model.locate(X[:5]).",
    ),
    "several bags": (
        lambda model, counts: plot.posterior(model, counts),
        "bag of shape (12, 3) must be the counts of one bag; use for instance X[:1].",
    ),
    "no history": (
        lambda model, counts: plot.history(cg.CountingGrid((4, 4), 2).partial_fit(counts)),
        "the model has no history_; expected one trained with fit, as partial_fit records none.",
    ),
    "another vocabulary": (
        lambda model, counts: plot.words(model, Vocabulary("words", ("tea", "two"))),
        "vocabulary of 2 features must have as many as pi, 3; use that of the collection that the model was fitted to.",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_wrong_use_is_refused(case, model, counts):
    make, message = MESSAGES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(model, counts)


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=re.escape('plots need matplotlib; install it with pip install "countinggrids[plot]"')
    ):
        plot.prior(model)


def test_a_torus_is_not_repeated_without_end(model):
    with pytest.raises(ValueError, match=r"tiles=\(200, 200\) must be at most 8 along each axis"):
        plot.prior(model, tiles=(200, 200))
