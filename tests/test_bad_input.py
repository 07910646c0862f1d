"""Every mistake gets a message that says what was given, what is wanted and what to do, before any work."""

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
        "X holds NaN at row 2, column 3; wanted finite counts of at least 0; replace missing counts by 0",
    ),
    "infinity": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(np.inf)),
        "X holds infinity (inf) at row 2, column 3; wanted finite counts of at least 0; replace missing counts by 0",
    ),
    "negative": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(-1)),
        "Negative values in data: X holds -1 at row 2, column 3; wanted finite counts of at least 0; "
        "check how X was made",
    ),
    "negative, sparse": (
        lambda: cg.CountingGrid((4, 4), 2).fit(with_entry(-2, as_sparse=True)),
        "Negative values in data: X holds -2 at row 2, column 3; wanted finite counts of at least 0; "
        "check how X was made",
    ),
    "strings": (
        lambda: cg.CountingGrid((4, 4), 2).fit([["a", "b"], ["c", "d"]]),
        "; wanted counts; count the words first, for instance with scikit-learn's CountVectorizer",
    ),
    "wrong number of columns": (
        lambda: cg.MixtureOfUnigrams(2, max_iter=9, tol=9).fit(GOOD).transform(GOOD[:, :5]),
        "X has 5 features, but MixtureOfUnigrams is expecting 6 features as input; "
        "build X with the sections and the vocabulary that were fitted.",
    ),
    "columns no multiple of the sections": (
        lambda: cg.CountingGrid((4, 4), 2, 2).fit(GOOD),
        "X has 6 columns; wanted a multiple of the 4 sections; "
        "build X with the same sections, for instance with countinggrids.bag",
    ),
    "one feature": (
        lambda: cg.CountingGrid((4, 4), 2, (2, 1)).fit(GOOD[:, :2]),
        "X has n_features=1 feature in each of 2 sections; wanted at least 2, for one feature fits anywhere "
        "equally well; give more features or fewer sections",
    ),
    "one bag": (
        lambda: cg.CountingGrid((4, 4), 2).fit(GOOD[:1]),
        "X has n_samples=1 bag; wanted at least 2 to relate to each other; give more bags",
    ),
    "no counts": (
        lambda: cg.CountingGrid((4, 4), 2).fit(np.zeros((3, 4))),
        "X holds no counts at all; wanted at least one bag with a feature; check how X was made",
    ),
    "window larger than grid": (
        lambda: cg.CountingGrid((4, 4), (8, 2)).fit(GOOD),
        "window (8, 2) must fit into grid (4, 4); try window (4, 2) or grid (8, 4)",
    ),
    "sections that do not divide": (
        lambda: cg.CountingGrid((9, 9), (8, 8), (3, 3)).fit(GOOD),
        "sections (3, 3) must divide window (8, 8); try sections (2, 2) or window (9, 9)",
    ),
    "paint that does not divide": (
        lambda: cg.CountingGrid((9, 9), (8, 8), None, (3, 3)).fit(GOOD),
        "paint (3, 3) must divide window (8, 8); try paint (2, 2) or window (9, 9)",
    ),
    "sections finer than paint": (
        lambda: cg.CountingGrid((9, 9), (8, 8), (4, 4), (2, 2)).fit(GOOD),
        "sections (4, 4) must divide paint (2, 2); try sections (2, 2) or paint (4, 4)",
    ),
    "grid of zero": (
        lambda: cg.CountingGrid((4, 0), 2).fit(GOOD),
        "grid is (4, 0); wanted one positive integer per axis; give for instance grid=(8, 8)",
    ),
    "grid of text": (
        lambda: cg.CountingGrid("4x4", 2).fit(GOOD),
        "grid is '4x4'; wanted one positive integer per axis; give for instance grid=(8, 8)",
    ),
    "other number of axes": (
        lambda: cg.CountingGrid((4, 4), (2, 2, 2)).fit(GOOD),
        "window (2, 2, 2) has 3 axes but the grid has 2; give window 2 lengths, one per axis",
    ),
    "no components": (
        lambda: cg.MixtureOfUnigrams(0).fit(GOOD),
        "n_components is (0,); wanted one positive integer per axis; give for instance n_components=(8, 8)",
    ),
    "location_prior": (
        lambda: cg.CountingGrid((4, 4), 2, location_prior="flat").fit(GOOD),
        "location_prior is 'flat'; wanted one of 'smoothed', 'exact', 'uniform'; "
        "give for instance location_prior='smoothed'",
    ),
    "device": (
        lambda: cg.CountingGrid((4, 4), 2, device=0).fit(GOOD),
        "device is 0; wanted None for NumPy, or the name of a torch device; give for instance device=None",
    ),
    "eta as text": (
        lambda: cg.CountingGrid((4, 4), 2, eta="much").fit(GOOD),
        "eta is 'much'; wanted one of 'auto'; give for instance eta='auto'",
    ),
    "eta of the wrong length": (
        lambda: cg.CountingGrid((4, 4), 2, eta=[1, 2]).fit(GOOD),
        "eta has shape (2,); wanted 'auto', a number or one number per feature, (6,)",
    ),
    "negative eta": (
        lambda: cg.CountingGrid((4, 4), 2, eta=-1.0).fit(GOOD),
        "eta is -1.0; wanted finite numbers of at least 0; give for instance eta='auto'",
    ),
    "anneal": (
        lambda: cg.CountingGrid((4, 4), 2, anneal=(0.5, 0.9, 1)).fit(GOOD),
        "anneal is (0.5, 0.9, 1); wanted 'auto', None or (start, rate, end) with 0 < start <= end <= 1 and rate > 1; "
        "give for instance anneal=(0.01, 1.03, 1.0)",
    ),
    "init": (
        lambda: cg.CountingGrid((4, 4), 2, init=np.ones((4, 4, 5))).fit(GOOD),
        "init has shape (4, 4, 5); wanted that of pi_, (4, 4, 6); give such an array or 'uniform'",
    ),
    "max_iter": (
        lambda: cg.CountingGrid((4, 4), 2, max_iter=0).fit(GOOD),
        "max_iter is 0; wanted an integer of at least 1; give for instance max_iter=10",
    ),
    "tol": (
        lambda: cg.CountingGrid((4, 4), 2, tol="small").fit(GOOD),
        "tol is 'small'; wanted a number of at least 0; give for instance tol=1e-5",
    ),
    "weights of the wrong length": (
        lambda: cg.CountingGrid((4, 4), 2).fit(GOOD, sample_weight=[1, 2]),
        "sample_weight has shape (2,); wanted one weight for each of the 4 bags, (4,)",
    ),
    "negative weights": (
        lambda: cg.CountingGrid((4, 4), 2).fit(GOOD, sample_weight=[1, 2, 3, -1]),
        "sample_weight holds NaN, infinity or a negative number; wanted finite weights of at least 0",
    ),
    "label too large": (
        lambda: cg.bag([np.array([[0, 7]])], 1, 5),
        "map 0 has label 7; labels must lie in 0 to 4; raise n_features or relabel the map",
    ),
    "negative label": (
        lambda: cg.bag([np.array([[0, 1]]), np.array([[-3, 1]])], 1, 5),
        "map 1 has label -3; labels must lie in 0 to 4; raise n_features or relabel the map",
    ),
    "float labels": (
        lambda: cg.bag([np.array([[0.5, 1]])], 1, 5),
        "map 0 is float64 with 2 axes; wanted an integer array of feature labels; quantise the features first",
    ),
    "maps with other axes": (
        lambda: cg.bag([np.zeros((2, 2), int), np.zeros(3, int)], (1, 1), 5),
        "map 1 has shape (3,) but sections (1, 1) has 2 axes; give every map the same number of axes",
    ),
    "no maps": (
        lambda: cg.bag([], 1, 5),
        "maps is empty; wanted at least one feature map; give a list of integer arrays",
    ),
}


@pytest.mark.parametrize("mistake", MESSAGES)
def test_mistake_is_named(mistake):
    act, message = MESSAGES[mistake]
    with pytest.raises(ValueError, match=re.escape(message)):
        act()
