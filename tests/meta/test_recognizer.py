"""What is compared is chosen on the reference walk; measures of recognition against loops."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score

import countinggrids as cg
from countinggrids.baselines import RootBags
from countinggrids.meta import pose_matches, precision_recall, recall_at, true_matches
from countinggrids.meta.candidates import Tessellations
from countinggrids.meta.recognizer import Choice, coarser, finest_of_the_best, significantly_better, summed

GRID = cg.CountingGrid((10, 10), (4, 4), anneal=(0.1, 1.3, 1.0), max_iter=300, random_state=0)


@pytest.fixture(scope="module")
def walk():
    rng = np.random.default_rng(0)
    anchors = rng.dirichlet(np.full(20, 0.2), 12)
    at = np.linspace(0, 10.99, 50)
    low, part = at.astype(int), (at % 1)[:, None]
    return np.array([rng.multinomial(200, p) for p in (1 - part) * anchors[low] + part * anchors[low + 1]], float)


def test_bags_are_kept_unless_something_is_clearly_better():
    rng = np.random.default_rng(0)
    bags = rng.normal(1, 0.1, 100)
    better, noisy = Choice("sum"), Choice("grid")
    losses = {Choice("bags"): bags, better: bags - 0.1 + rng.normal(0, 0.01, 100), noisy: bags + rng.normal(0, 1, 100)}
    assert significantly_better(losses) == better
    del losses[better]
    losses[noisy] -= losses[noisy].mean() - bags.mean() + 0.01
    assert significantly_better(losses) == Choice("bags")


def test_every_choice_is_a_matcher(walk):
    found = {use: cg.PlaceRecognizer(use, grids=GRID).fit(walk) for use in ("auto", "bags", "grid", "sum")}
    for use, recognizer in found.items():
        assert recognizer.choice_.name == use or use == "auto"
        best = recognizer.similarity(walk).argmax(axis=1)
        assert np.mean(np.abs(best - np.arange(50)) <= 2) > 0.9
    bags, grid, both = (found[use] for use in ("bags", "grid", "sum"))
    np.testing.assert_allclose(bags.similarity(walk), RootBags().fit(walk).similarity(walk))
    assert both.choice_.temper in (0.1, 0.3)
    wanted = summed(bags.similarity(walk), both.neighbors_.similarity(both._grid_bags(walk)), both.choice_.weight)
    np.testing.assert_allclose(both.similarity(walk), wanted)
    assert grid.locate(walk).shape == (50, 2)
    assert grid.log_likelihood(walk).shape == (50,)
    with pytest.raises(ValueError, match="use='bags' fits no grid"):
        bags.locate(walk)
    assert cg.PlaceTracker(found["auto"]).fit(walk).score(walk, np.arange(50)) == 1.0


def test_coarser_sections_are_tried(walk):
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 40, (50, 20)).astype(float)
    both = np.hstack([walk - np.minimum(walk, noise), np.minimum(walk, noise)])
    recognizer = cg.PlaceRecognizer("bags", sections=(2, 1)).fit(both)
    assert set(recognizer.losses_) == {"bags 2x1", "bags 1x1"}
    assert coarser((4, 2)) == [(4, 2), (4, 1), (2, 2), (2, 1), (1, 2), (1, 1)]


def test_the_finest_sections_whose_loss_is_near_the_lowest_are_chosen():
    rng = np.random.default_rng(0)
    best = rng.normal(1, 0.1, 100)
    losses = {(1, 1): best, (2, 1): best + rng.normal(0, 0.5, 100), (2, 2): best + 0.3 + rng.normal(0, 0.01, 100)}
    losses[2, 1] -= losses[2, 1].mean() - best.mean() - 0.01
    assert finest_of_the_best(losses) == (2, 1)
    losses[2, 1] += 0.5
    assert finest_of_the_best(losses) == (1, 1)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_bags_are_compared_at_the_chosen_sections_and_finer_ones(walk, form):
    rng = np.random.default_rng(1)
    left = np.minimum(walk, rng.integers(0, 40, walk.shape))
    both = np.hstack([walk - left, left])
    recognizer = cg.PlaceRecognizer("bags", sections=(2, 1)).fit(form(both))
    for sections, tables in (((1, 1), [both, walk]), ((2, 1), [both])):
        recognizer.sections_ = sections
        recognizer.bags_ = RootBags().fit(recognizer._pyramid(Tessellations(form(both), (2, 1))))
        wanted = np.mean([RootBags().fit(table).similarity(table[:5]) for table in tables], axis=0)
        np.testing.assert_allclose(recognizer.similarity(form(both[:5])), wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use": "gist"}, "use='gist' must be 'auto', 'bags', 'grid' or 'sum'"),
        ({"tolerance": "two"}, "tolerance='two' must be a number of frames"),
        ({"sections": (3, 1)}, "needs a multiple of 3"),
    ],
)
def test_wrong_use_is_refused(walk, options, message):
    with pytest.raises(ValueError, match=message):
        cg.PlaceRecognizer(**options).fit(walk)


def test_recall_counts_queries_with_a_correct_frame():
    rng = np.random.default_rng(0)
    similarity, matches = rng.random((30, 12)), rng.random((30, 12)) < 0.1
    for k, recall in recall_at(similarity, matches, (1, 3, 10)).items():
        n = correct = 0
        for row, is_match in zip(similarity, matches, strict=True):
            if not is_match.any():
                continue
            n += 1
            ranked = sorted(range(12), key=lambda j: -row[j])[:k]
            correct += any(is_match[j] for j in ranked)
        assert recall == correct / n
    assert np.isnan(recall_at(similarity, np.zeros((30, 12)))[1])


def test_precision_and_recall_at_every_threshold():
    rng = np.random.default_rng(1)
    similarity = rng.random((40, 15)).round(1)
    matches = true_matches(
        np.where(np.arange(40) < 30, similarity.argmax(axis=1) + rng.integers(0, 4, 40), -1) % 15, 15
    )
    matches[30:] = False
    curve = precision_recall(similarity, matches)
    best, score = similarity.argmax(axis=1), similarity.max(axis=1)
    is_correct = matches[np.arange(40), best]
    for p, r, threshold in zip(curve.precision, curve.recall, sorted(set(score), reverse=True), strict=True):
        accepted = score >= threshold
        assert p == is_correct[accepted].mean()
        assert r == is_correct[accepted].sum() / 30
    assert abs(curve.area - average_precision_score(is_correct, score) * is_correct.sum() / 30) < 1e-12
    perfect = precision_recall(np.eye(5), np.eye(5, dtype=bool))
    assert (perfect.area, perfect.recall_at_full_precision) == (1.0, 1.0)
    assert precision_recall(np.eye(5), np.roll(np.eye(5, dtype=bool), 1, axis=1)).recall_at_full_precision == 0.0


def test_truth_is_frames_or_poses():
    np.testing.assert_array_equal(
        true_matches([0, -1, np.nan, 3], 4, 1), np.array([[1, 1, 0, 0], [0] * 4, [0] * 4, [0, 0, 1, 1]], bool)
    )
    poses = np.array([[0.0, 0], [3, 4], [9, 9]])
    assert pose_matches(poses, poses, 5).tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    with pytest.raises(ValueError, match="truth has 9 for query 1 but the reference has 4 frames"):
        true_matches([0, 9], 4)
    with pytest.raises(ValueError, match="poses have NaN or infinity in 1 of 3 frames"):
        pose_matches(np.where(poses == 9, np.nan, poses), poses, 1)
    with pytest.raises(ValueError, match="must agree"):
        recall_at(np.zeros((3, 4)), np.zeros((3, 5)))
