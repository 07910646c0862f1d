"""Baselines of place recognition against their definitions in loops."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import countinggrids as cg
from countinggrids.baselines import VLAD, FabMap, RootBags, SequenceMatcher, StandardizedVectors
from countinggrids.baselines.fabmap import chow_liu_tree, mutual_information


@pytest.fixture
def walks(rng):
    """A reference walk of forty frames that change slowly, and the same walk again."""
    anchors, part = rng.dirichlet(np.full(30, 0.2), 11), np.linspace(0, 1, 4, endpoint=False)[:, None]
    places = np.vstack([(1 - part) * a + part * b for a, b in itertools.pairwise(anchors)])
    return tuple(np.array([rng.multinomial(80, place) for place in places]) for _ in range(2))


def test_standardized_vectors_are_what_loops_say(rng):
    reference, query = rng.normal(5, 1, (9, 4)), rng.normal(5, 1, (3, 4))
    found = StandardizedVectors().fit(reference).similarity(query)
    for i, j in itertools.product(range(3), range(9)):
        a = [(query[i, c] - reference[:, c].mean()) / reference[:, c].std() for c in range(4)]
        b = [(reference[j, c] - reference[:, c].mean()) / reference[:, c].std() for c in range(4)]
        cosine = sum(x * y for x, y in zip(a, b, strict=True)) / np.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
        assert abs(found[i, j] - cosine) < 1e-12


def test_vlad_sums_differences_to_the_nearest_words(rng):
    images = [rng.random((3, 4, 5)) for _ in range(6)]
    vlad = VLAD(3, random_state=0).fit(images)

    def vector(image):
        sums = [np.zeros(5) for _ in range(3)]
        for descriptor in image.reshape(-1, 5):
            word = min(range(3), key=lambda k: sum((descriptor - vlad.centers_[k]) ** 2))
            sums[word] += descriptor - vlad.centers_[word]
        whole = np.concatenate([each / np.sqrt((each**2).sum()) if each.any() else each for each in sums])
        return whole / np.sqrt((whole**2).sum())

    wanted = [[vector(a) @ vector(b) for b in images] for a in images]
    np.testing.assert_allclose(vlad.similarity(images), wanted, atol=1e-6)


def test_mutual_information_is_the_sum_over_four_cells(rng):
    seen = rng.random((25, 5)) < 0.4
    found = mutual_information((seen.T.astype(float) @ seen), seen.sum(axis=0).astype(float), 25)
    for i, j in itertools.product(range(5), range(5)):
        total = 0.0
        for a, b in itertools.product((False, True), repeat=2):
            joint = np.mean((seen[:, i] == a) & (seen[:, j] == b))
            if joint:
                total += joint * np.log(joint / np.mean(seen[:, i] == a) / np.mean(seen[:, j] == b))
        assert abs(found[i, j] - total) < 1e-12


def test_no_tree_has_more_mutual_information(rng):
    seen = rng.random((30, 5)) < 0.5
    seen[:, 3] = seen[:, 1] ^ (rng.random(30) < 0.1)
    both, ones = seen.T.astype(float) @ seen, seen.sum(axis=0).astype(float)
    parents, information = chow_liu_tree(both, ones, 30), mutual_information(both, ones, 30)
    assert (parents < 0).sum() == 1
    ours = sum(information[i, parents[i]] for i in range(5) if parents[i] >= 0)
    edges = list(itertools.combinations(range(5), 2))

    def is_tree(chosen):
        reached = {0}
        for _ in chosen:
            reached |= {b for a, b in chosen if a in reached} | {a for a, b in chosen if b in reached}
        return len(reached) == 5

    best = max(sum(information[e] for e in tree) for tree in itertools.combinations(edges, 4) if is_tree(tree))
    assert abs(ours - best) < 1e-12


def test_fab_map_is_what_loops_say(rng):
    reference, query = rng.random((12, 6)) < 0.4, rng.random((4, 6)) < 0.4
    model = FabMap(0.6, false_alarm=0.05).fit(reference.astype(float))
    found, new = model.similarity(query.astype(float)), model.log_new_place(query.astype(float))

    def observed(word, image, p):
        """p(observation of a word | p of the detector, its parent): odds of the tree over those of the marginal."""
        parent = model.parents_[word]
        tree = model.marginal_[word] if parent < 0 else model.conditional_[word, int(image[parent])]
        odds = p / (1 - p) * tree / (1 - tree) * (1 - model.marginal_[word]) / model.marginal_[word]
        one = odds / (1 + odds)
        return one if image[word] else 1 - one

    def exists(word):
        return min(max((model.marginal_[word] - 0.05) / (0.6 - 0.05), 1e-3), 1 - 1e-3)

    def log_likelihood(image, existence):
        return sum(
            np.log((1 - existence[w]) * observed(w, image, 0.05) + existence[w] * observed(w, image, 0.6))
            for w in range(6)
        )

    for i, image in enumerate(query):
        assert abs(new[i] - log_likelihood(image, [exists(w) for w in range(6)])) < 1e-9
        for j, place in enumerate(reference):
            existence = []
            for w in range(6):
                yes, no = (0.6, 0.05) if place[w] else (0.4, 0.95)
                existence.append(yes * exists(w) / (yes * exists(w) + no * (1 - exists(w))))
            assert abs(found[i, j] - log_likelihood(image, existence)) < 1e-5
    np.testing.assert_allclose(model.predict_proba(query.astype(float)).sum(axis=1), 1)


def test_fab_map_tells_new_places(rng):
    reference = np.kron(np.eye(10), np.ones((1, 4)))
    reference = np.hstack([reference, np.zeros((10, 8))]) + (rng.random((10, 48)) < 0.05)
    model = FabMap(0.9, false_alarm=0.02).fit(reference)
    strange = np.zeros((1, 48))
    strange[0, 40:] = 1
    assert model.predict_proba(strange)[0, -1] > 0.9
    assert (model.predict_proba(reference).argmax(axis=1) == np.arange(10)).mean() >= 0.9


@pytest.mark.parametrize("speeds", [(1.0,), (0.5, 1.0, 2.0), (-1.0,)])
def test_sequences_are_lines_through_the_matrix(walks, speeds):
    reference, query = (each[:15] for each in walks)
    single = RootBags().fit(reference).similarity(query)
    enhanced = np.zeros_like(single)
    for i, j in itertools.product(range(15), range(15)):
        near = single[i, max(0, j - 4) : j + 5]
        enhanced[i, j] = (single[i, j] - near.mean()) / np.sqrt(near.var() + 1e-12)
    wanted = np.full((15, 15), -np.inf)
    for i, j in itertools.product(range(15), range(15)):
        for speed in speeds:
            places = [(i - back, j - round(back * speed)) for back in range(5)]
            values = [enhanced[a, b] for a, b in places if a >= 0 and 0 <= b < 15]
            wanted[i, j] = max(wanted[i, j], np.mean(values))
    found = SequenceMatcher(length=5, speeds=speeds, contrast=4).fit(reference).similarity(query)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_sequences_do_not_cross_walks(walks):
    reference, query = walks
    matcher = SequenceMatcher(length=5).fit(reference)
    cut = matcher.similarity(query, [10, 30])
    np.testing.assert_allclose(cut[10:], matcher.similarity(query[10:]))


@pytest.mark.parametrize("matcher", [FabMap(threshold=1), SequenceMatcher(length=4), StandardizedVectors()], ids=str)
def test_every_baseline_has_the_same_filter(walks, matcher):
    reference, query = (each.astype(float) for each in walks)
    tracker = cg.PlaceTracker(matcher).fit(reference)
    single = np.mean(np.abs(tracker.similarity(query).argmax(axis=1) - np.arange(40)) <= 2)
    assert tracker.score(query, np.arange(40)) >= max(single, 0.9)


def test_sparse_words_do_as_well(walks):
    reference, query = walks
    model = FabMap(threshold=1)
    dense = model.fit(reference).similarity(query)
    np.testing.assert_allclose(model.fit(sp.csr_array(reference)).similarity(sp.csr_array(query)), dense)


@pytest.mark.parametrize(
    ("matcher", "X", "message"),
    [
        (FabMap(1.5), np.eye(3), r"detection=1\.5 must be a probability above 0 and below 1"),
        (FabMap(0.1, false_alarm=0.2), np.eye(3), r"false_alarm=0\.2 must be below detection=0\.1"),
        (SequenceMatcher(length=0), np.eye(3), "length=0 must be an integer of at least 1"),
        (SequenceMatcher(speeds=()), np.eye(3), r"speeds=\(\) must be finite numbers"),
        (VLAD(0), np.ones((3, 4, 4)), "n_words=0 must be an integer of at least 1"),
        (VLAD(90), np.ones((3, 4, 4)), "n_words=90 must not exceed the 12 descriptors"),
        (VLAD(2), [np.ones(4)], r"descriptors of shape \(4,\) and dtype float64 must be floats of shape"),
        (VLAD(2), [np.ones((4, 4), int)], "must be floats"),
    ],
)
def test_wrong_use_is_refused(matcher, X, message):
    with pytest.raises(ValueError, match=message):
        matcher.fit(X)


def test_descriptors_of_another_extractor_are_refused():
    vlad = VLAD(2, random_state=0).fit(np.random.default_rng(0).random((3, 4, 5)))
    with pytest.raises(ValueError, match="descriptors have 6 dimensions but must have the 5 of the reference"):
        vlad.similarity(np.ones((1, 4, 6)))
