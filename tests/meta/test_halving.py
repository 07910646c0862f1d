"""Successive halving on a table of scores: who is scored on which fold, and who is left."""

import numpy as np
import pytest

from countinggrids.meta.halving import halve, mean_scores

TABLE = np.array([[0.1, 0.9, 0.9], [0.6, 0.2, 0.1], [0.5, 0.8, 0.3], [0.4, 0.9, 0.9], [0.7, 0.6, 0.4]])


def halved(table, keep, **options):
    return halve(lambda c, fold: table[c, fold], *table.shape, keep, **options)


def test_the_worse_ones_are_dropped_after_each_fold():
    scores, remaining = halved(TABLE, 0.5)
    assert np.isfinite(scores).sum(axis=1).tolist() == [1, 2, 3, 1, 3]
    np.testing.assert_array_equal(scores[np.isfinite(scores)], TABLE[np.isfinite(scores)])
    assert sorted(remaining) == [2, 4]


def test_all_are_scored_on_every_fold_if_all_are_kept():
    scores, remaining = halved(TABLE, 1.0)
    np.testing.assert_array_equal(scores, TABLE)
    assert sorted(remaining) == [0, 1, 2, 3, 4]


def test_a_candidate_without_a_score_is_dropped_first():
    table = np.where(TABLE == 0.7, np.nan, TABLE)
    assert 4 not in halved(table, 0.8)[1]
    with pytest.raises(ValueError, match="no candidate has a finite score; check X, y and scoring"):
        halved(np.full((3, 2), np.nan), 0.5)


@pytest.mark.parametrize(("keep", "most"), [(0.1, 9), (0.5, 10), (1.0, 15)])
def test_fits_are_counted_up_to_their_number(keep, most):
    calls = []
    halved(TABLE, keep, callback=lambda *call: calls.append(call))
    assert calls == [(done, most) for done in range(1, most + 1)]


def test_a_line_is_written_after_each_fold(capsys):
    halved(TABLE, 0.5, is_verbose=True)
    lines = ["fold 1: 5 candidates, best score 0.7000", "fold 2: 3 candidates, best score 0.6500"]
    assert capsys.readouterr().err.splitlines()[:2] == lines


def test_means_are_over_the_folds_that_were_scored():
    means = mean_scores(np.array([[1.0, 3.0], [2.0, np.nan], [np.nan, np.nan]]))
    np.testing.assert_array_equal(means, [2.0, 2.0, np.nan])
