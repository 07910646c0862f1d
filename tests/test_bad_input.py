"""Every mistake raises before any work, with the argument and its value, what it must be, and what to do."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg

GOOD = np.arange(1, 25).reshape(4, 6)


def with_entry(value, as_sparse=False):
    X = GOOD.astype(float)
    X[2, 3] = value
    return sp.csr_array(X) if as_sparse else X


MESSAGES = {
    "NaN": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(np.nan)),
        "X has NaN in row 2, column 3 and must have finite counts of at least 0; replace missing counts by 0.",
    ),
    "infinity": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(np.inf)),
        "X has infinity (inf) in row 2, column 3 and must have finite counts of at least 0; "
        "replace missing counts by 0.",
    ),
    "negative": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(-1)),
        "Negative values in data: X has -1 in row 2, column 3 and must have finite counts of at least 0; "
        "check how X was made.",
    ),
    "negative, sparse": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(-2, as_sparse=True)),
        "Negative values in data: X has -2 in row 2, column 3 and must have finite counts of at least 0; "
        "check how X was made.",
    ),
    "strings": (
        lambda: cg.CountingGrid((4, 4), 2).fit([["a", "b"], ["c", "d"]]),
        " and must have counts; count the words first, for instance with scikit-learn's CountVectorizer.",
    ),
    "wrong number of columns": (
        lambda: cg.MixtureOfUnigrams(2, max_iter=9, tol=9).fit(GOOD).transform(GOOD[:, :5]),
        "X has 5 features, but MixtureOfUnigrams is expecting 6 features as input; "
        "build X with the sections and the vocabulary that were fitted.",
    ),
    "columns no multiple of the sections": (
        lambda: cg.CountingGrid((4, 4), 2, 2).fit(GOOD),
        "X has 6 columns and must have a multiple of its 4 sections; "
        "build X with the same sections, for instance with countinggrids.bag.",
    ),
    "one feature": (
        lambda: cg.CountingGrid((4, 4), 2, (2, 1)).fit(GOOD[:, :2]),
        "X has n_features=1 in each of 2 sections and must have at least 2; use more features or fewer sections.",
    ),
    "one bag": (
        lambda: cg.CountingGrid((4, 4), 2).fit(GOOD[:1]),
        "X has n_samples=1 and must have at least 2 bags; pass more bags.",
    ),
    "no counts": (
        lambda: cg.CountingGrid((4, 4), 2).fit(np.zeros((3, 4))),
        "X has no counts and must have at least one; check how X was made.",
    ),
    "window larger than grid": (
        lambda: cg.CountingGrid((4, 4), (8, 2)).fit(GOOD),
        "window=(8, 2) must fit into grid=(4, 4); use window=(4, 2) or grid=(8, 4).",
    ),
    "sections that do not divide": (
        lambda: cg.CountingGrid((9, 9), (8, 8), (3, 3)).fit(GOOD),
        "sections=(3, 3) must divide window=(8, 8); use sections=(2, 2) or window=(9, 9).",
    ),
    "paint that does not divide": (
        lambda: cg.CountingGrid((9, 9), (8, 8), None, (3, 3)).fit(GOOD),
        "paint=(3, 3) must divide window=(8, 8); use paint=(2, 2) or window=(9, 9).",
    ),
    "sections finer than paint": (
        lambda: cg.CountingGrid((9, 9), (8, 8), (4, 4), (2, 2)).fit(GOOD),
        "sections=(4, 4) must divide paint=(2, 2); use sections=(2, 2) or paint=(4, 4).",
    ),
    "grid of zero": (
        lambda: cg.CountingGrid((4, 0), 2).fit(GOOD),
        "grid=(4, 0) must be one positive integer per axis; use for instance grid=(8, 8).",
    ),
    "grid of text": (
        lambda: cg.CountingGrid("4x4", 2).fit(GOOD),
        "grid='4x4' must be one positive integer per axis; use for instance grid=(8, 8).",
    ),
    "other number of axes": (
        lambda: cg.CountingGrid((4, 4), (2, 2, 2)).fit(GOOD),
        "window=(2, 2, 2) has 3 axes, but the grid has 2; use 2 lengths for window, one per axis.",
    ),
    "no components": (
        lambda: cg.MixtureOfUnigrams(0).fit(GOOD),
        "n_components=0 must be an integer of at least 1; use for instance n_components=16.",
    ),
    "location_prior": (
        lambda: cg.CountingGrid((4, 4), 2, location_prior="flat").fit(GOOD),
        "location_prior='flat' must be one of 'smoothed', 'exact', 'uniform'; "
        "use for instance location_prior='smoothed'.",
    ),
    "device": (
        lambda: cg.CountingGrid((4, 4), 2, device=0).fit(GOOD),
        "device=0 must be None or the name of a torch device; use for instance device=None.",
    ),
    "eta as text": (
        lambda: cg.CountingGrid((4, 4), 2, eta="much").fit(GOOD),
        "eta='much' must be 'auto', a number of at least 0 and at most 1e+13 or one number per feature; "
        "use for instance eta='auto'.",
    ),
    "eta of the wrong length": (
        lambda: cg.CountingGrid((4, 4), 2, eta=[1, 2]).fit(GOOD),
        "eta of shape (2,) must have shape (6,), one number per feature; use such an array, a number or eta='auto'.",
    ),
    "negative eta": (
        lambda: cg.CountingGrid((4, 4), 2, eta=-1.0).fit(GOOD),
        "eta=-1.0 must be 'auto', a number of at least 0 and at most 1e+13 or one number per feature; "
        "use for instance eta='auto'.",
    ),
    "anneal": (
        lambda: cg.CountingGrid((4, 4), 2, anneal=(0.5, 0.9, 1)).fit(GOOD),
        "anneal=(0.5, 0.9, 1) must be 'auto', None or (start, rate, end) with 0 < start <= end <= 1 and rate > 1; "
        "use for instance anneal='auto'.",
    ),
    "init": (
        lambda: cg.CountingGrid((4, 4), 2, init=np.ones((4, 4, 5))).fit(GOOD),
        "init of shape (4, 4, 5) must have that of pi_, (4, 4, 6); use such an array or 'uniform'.",
    ),
    "max_iter": (
        lambda: cg.CountingGrid((4, 4), 2, max_iter=0).fit(GOOD),
        "max_iter=0 must be an integer of at least 1; use for instance max_iter=500.",
    ),
    "tol": (
        lambda: cg.CountingGrid((4, 4), 2, tol="small").fit(GOOD),
        "tol='small' must be a number of at least 0; use for instance tol=1e-05.",
    ),
    "weights of the wrong length": (
        lambda: cg.CountingGrid((4, 4), 2).fit(GOOD, sample_weight=[1, 2]),
        "sample_weight of shape (2,) must have shape (4,); pass one weight for each bag.",
    ),
    "negative weights": (
        lambda: cg.CountingGrid((4, 4), 2).fit(GOOD, sample_weight=[1, 2, 3, -1]),
        "sample_weight has NaN, infinity or a negative number; use finite weights of at least 0.",
    ),
    "label too large": (
        lambda: cg.bag([np.array([[0, 7]])], 1, 5),
        "maps[0] has label 7 and must have labels from 0 to 4; increase n_features or relabel the map.",
    ),
    "negative label": (
        lambda: cg.bag([np.array([[0, 1]]), np.array([[-3, 1]])], 1, 5),
        "maps[1] has label -3 and must have labels from 0 to 4; increase n_features or relabel the map.",
    ),
    "float labels": (
        lambda: cg.bag([np.array([[0.5, 1]])], 1, 5),
        "maps[0] of dtype float64 with 2 axes must be an array of integer labels; quantize the features first.",
    ),
    "maps with other axes": (
        lambda: cg.bag([np.zeros((2, 2), int), np.zeros(3, int)], (1, 1), 5),
        "maps[1] of shape (3,) must have 2 axes, as sections=(1, 1); pass maps with the same number of axes.",
    ),
    "no maps": (
        lambda: cg.bag([], 1, 5),
        "maps=[] must hold at least one feature map; pass a list of integer arrays.",
    ),
}


@pytest.mark.parametrize("mistake", MESSAGES)
def test_mistake_is_named(mistake):
    act, message = MESSAGES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        act()


def test_a_grid_larger_than_the_memory_is_refused_before_any_work():
    X = sp.csr_array(([1.0, 2.0], ([0, 1], [0, 10**10])), shape=(2, 10**10 + 1))
    with pytest.raises(ValueError, match=r"grid=\(64, 64\) with 10000000001 features takes .* GB"):
        cg.CountingGrid((64, 64), (8, 8)).fit(X)
