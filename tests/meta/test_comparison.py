"""Comparisons find planted differences, and raise false alarms at most as often as they say."""

import json

import numpy as np
import pytest
from scipy import stats

import countinggrids as cg
from countinggrids.core.log_odds import log_odds
from countinggrids.meta.comparison import compare, region_means
from countinggrids.meta.regions import find_regions
from countinggrids.meta.selections import select

N = 120


@pytest.fixture(scope="module")
def noise_map():
    """Bursty texts without any structure: a document repeats its own few words."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(1, (N, 40)) * rng.poisson(0.7, (N, 40)) * rng.integers(1, 5, (N, 1))
    counts[:, 0] += 1
    days = [f"2024-{1 + i % 12:02}-15" for i in range(N)]
    labels = np.where(np.arange(N) % 3, "b", "a")
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(40)]
    times = [float(np.datetime64(day, "s").astype(int)) for day in days]
    collection = cg.Collection.from_counts(counts, words, label=labels, time=times, price=np.arange(N))
    model = cg.CountingGrid((8, 8), (2, 2), tol=1e-3, random_state=0).fit(collection)
    return model, collection, find_regions(model, collection)


def test_words_are_those_of_the_definition(noise_map):
    model, collection, regions = noise_map
    found = compare(model, collection, "a", "b", regions=regions, n_permutations=0)
    counts, is_a = collection.counts.toarray(), collection.items["label"] == "a"
    expected = log_odds(counts[is_a].sum(axis=0), counts[~is_a].sum(axis=0), 0.01 * counts.sum(axis=0))
    for row in found.words:
        i = collection.vocabulary.names.index(row["word"])
        assert row["log_odds"] == pytest.approx(expected[0][i], abs=1e-6)
        assert row["z"] == pytest.approx(expected[1][i], abs=1e-6)
        assert row["count_a"] == counts[is_a, i].sum()
        assert np.isnan(row["p_value"])
    assert [row["z"] for row in found.words] == sorted((row["z"] for row in found.words), reverse=True)
    assert sum(row["n_a"] for row in found.regions if row["level"] == 1) == is_a.sum() == found.n_a


def test_null_data_give_at_most_five_percent_false_alarms(noise_map):
    model, collection, regions = noise_map
    rng = np.random.default_rng(1)
    n_trials, alarms = 200, np.zeros(2)
    for trial in range(n_trials):
        group = rng.permutation(N)[:40]
        found = compare(model, collection, group, regions=regions, n_permutations=99, random_state=trial)
        alarms += [any(row["is_significant"] for row in rows) for rows in (found.words, found.regions)]
    # The bar is 5%; more than 9.5% of 200 trials has a probability of 0.5% if it holds.
    assert (alarms <= stats.binom.ppf(0.995, n_trials, 0.05)).all(), alarms


def test_z_scores_alone_would_raise_false_alarms(noise_map):
    """Words are bursty, so that the permutation test is needed: |z| > 1.96 is reached by some word nearly always."""
    model, collection, regions = noise_map
    group = np.random.default_rng(1).permutation(N)[:40]
    found = compare(model, collection, group, regions=regions)
    assert max(abs(row["z"]) for row in found.words) > 1.96
    assert not any(row["is_significant"] for row in found.words)


def test_planted_differences_are_found(noise_map):
    _model, collection, _ = noise_map
    counts = collection.counts.toarray()
    group = np.arange(0, N, 2)
    counts[group, 7] += 6
    planted = cg.Collection.from_counts(counts, collection.vocabulary.names)
    map_of_it = cg.CountingGrid((8, 8), (2, 2), tol=1e-3, random_state=0).fit(planted)
    found = compare(map_of_it, planted, group)
    [alarm] = [row for row in found.words if row["is_significant"]]
    assert alarm["word"] == planted.vocabulary.names[7]
    assert alarm["z"] > 3


def test_a_region_with_all_items_of_a_group_is_found(noise_map):
    model, collection, regions = noise_map
    target = regions.level(2)[0]
    found = compare(model, collection, regions.items[2] == target.id, regions=regions)
    row = found.regions[target.id]
    assert row["is_significant"]
    assert row["log_odds"] > 0
    assert row["n_a"] == target.n_items
    assert all(not other["is_significant"] or other["z"] * (other["n_a"] - 0.5) > 0 for other in found.regions)


def test_swapping_the_groups_changes_the_signs(noise_map):
    model, collection, regions = noise_map
    one, other = (compare(model, collection, *ab, regions=regions) for ab in (("a", "b"), ("b", "a")))
    by_word = {row["word"]: row["z"] for row in other.words}
    assert all(row["z"] == pytest.approx(-by_word[row["word"]]) for row in one.words)
    json.dumps(one.to_json())


def test_the_same_call_has_the_same_result(noise_map):
    model, collection, _ = noise_map
    assert compare(model, collection, "a").to_json() == compare(model, collection, "a").to_json()


def test_groups_by_time_column_mask_and_rows(noise_map):
    _, collection, _ = noise_map
    is_a = collection.items["label"] == "a"
    assert (select(collection, is_a) == is_a).all()
    assert (select(collection, np.flatnonzero(is_a)) == is_a).all()
    assert (select(collection, {"label": "a"}) == is_a).all()
    early = select(collection, {"time": ("2024-01-01", "2024-07-01")})
    assert early.sum() == N / 2
    assert (select(collection, {"time": ("2024-07-01", None)}) == ~early).all()
    assert select(collection, {"price": (10, 20), "label": "a"}).sum() == 3


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("z", None, r"a: no item has 'z' in the column 'label'; use one of 'a', 'b'"),
        ({"split": "x"}, None, "a: items have no column 'split'; use one of label, time"),
        ([], None, r"a=\[\] selects none of 120 items"),
        ({}, None, "selects none"),
        (range(N), None, "selects all 120 items, so that none are left for b"),
        ("a", [0, 1], "share 1 items and must not overlap"),
        ([500], None, "500"),
        ({"label": (1, 2)}, None, "column 'label' holds 'a' and must hold numbers"),
        ({"time": ("soon", None)}, None, "'soon' must be a number or a date"),
        ({"time": (1, 2, 3)}, None, "must be two limits"),
    ],
)
def test_wrong_groups_are_named(noise_map, a, b, message):
    model, collection, regions = noise_map
    with pytest.raises((ValueError, IndexError), match=message):
        compare(model, collection, a, b, regions=regions)


def test_a_label_with_one_item_is_compared(noise_map):
    model, collection, regions = noise_map
    found = compare(model, collection, [3], regions=regions)
    assert found.n_a == 1
    assert not any(row["is_significant"] for row in found.regions)


def test_means_by_region_with_confidence(noise_map):
    model, collection, regions = noise_map
    for row in region_means(model, collection, "price", regions=regions):
        inside = np.arange(N)[regions.items[row["level"]] == row["id"]]
        assert row["n"] == len(inside)
        assert row["mean"] == pytest.approx(inside.mean())
        expected = stats.ttest_1samp(inside, 0).confidence_interval() if len(inside) > 1 else (np.nan, np.nan)
        assert (row["low"], row["high"]) == pytest.approx(tuple(expected), nan_ok=True)


def test_empty_entries_have_no_part_in_means():
    rows = {"text": ["tea milk", "tea", "milk", "rails"], "price": [1, None, 3, None]}
    collection = cg.Collection.from_frame(rows)
    model = cg.CountingGrid((4, 4), (2, 2), tol=0.1, random_state=0).fit(collection)
    assert region_means(model, collection, "price")[0]["mean"] == 2
    with pytest.raises(ValueError, match="column 'text' holds 'tea milk' and must hold numbers"):
        region_means(model, collection, "text")
    with pytest.raises(ValueError, match="items have no column 'cost'; use one of"):
        region_means(model, collection, "cost")


def test_tables_of_a_comparison(noise_map):
    pytest.importorskip("pandas")
    model, collection, regions = noise_map
    found = compare(model, collection, "a", regions=regions, n_permutations=9)
    assert found.to_frame()["word"].tolist() == [row["word"] for row in found.words]
    assert len(found.to_frame("regions")) == len(regions.regions)
    with pytest.raises(ValueError, match="what='cells' must be"):
        found.to_frame("cells")
