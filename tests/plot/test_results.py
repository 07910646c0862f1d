"""Plots say what the numbers say."""

import numpy as np
import pytest

from countinggrids import plot


def test_confusions_are_fractions_of_the_true_label():
    ax = plot.confusion(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    np.testing.assert_allclose(ax.images[0].get_array(), [[0.5, 0.5], [0, 1]])
    assert ax.get_title() == "accuracy 75.0%"
    assert [text.get_text() for text in ax.texts] == ["50", "50", "100"]


def test_many_labels_are_not_written_over_each_other():
    labels = [f"place {i}" for i in range(60)]
    ax = plot.confusion(labels, labels)
    assert not ax.texts
    assert len(ax.get_xticklabels()) < 60


def test_capacity_draws_the_best_at_each_capacity():
    results = {
        "capacity": [4.0, 9.0, 4.0], "mean": [0.5, 0.7, 0.6], "std": [0.1, 0.1, 0.1],
        "folds": [3, 3, 3], "sections": [(1, 1)] * 3, "grid": [(4, 4), (6, 6), (8, 8)],
    }  # fmt: skip
    ax = plot.capacity(results)
    [line] = [line for line in ax.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(line.get_ydata(), [0.6, 0.7])
    assert ax.get_legend().get_texts()[0].get_text() == "sections 1x1"


def test_a_ribbon_leaves_out_places_that_never_matter():
    posterior = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    ax = plot.ribbon(posterior, ["hall", "lift", "roof"], ["hall", "lift"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["hall", "lift"]
    np.testing.assert_allclose(ax.images[0].get_array(), posterior[:, :2].T)


def test_regions_have_borders_and_names():
    labels = np.array([[0, 0, 1], [0, 0, 1]])
    ax = plot.regions(np.ones((2, 3)), labels, ["sea", "land"])
    assert [text.get_text() for text in ax.texts] == ["sea", "land"]
    assert len(ax.lines) == 4
    with pytest.raises(ValueError, match="labels of shape \\(3,\\) must have two axes"):
        plot.regions(np.ones(3), np.ones(3))


def test_given_axes_are_used():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot.confusion(["a"], ["a"], ax) is ax
