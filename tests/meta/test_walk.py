"""Walks in linear time against chains with the same matrix, and trackers of reference walks."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import countinggrids as cg
from countinggrids.baselines import RootBags
from countinggrids.meta import chain as chains
from countinggrids.meta import reference
from countinggrids.meta.tracker import UNKNOWN
from countinggrids.meta.walk import make_walk

GRID = cg.CountingGrid((12, 12), (4, 4), random_state=0)


def naive_matrix(lengths, steps, probabilities, has_new):
    """Write every transition down, one after another."""
    n = sum(lengths)
    walk = np.repeat(np.arange(len(lengths)), lengths)
    move = np.zeros((n + has_new, n + has_new))
    for i in range(n):
        jump = 1 - sum(probabilities)
        for step, p in zip(steps, probabilities, strict=True):
            if 0 <= i + step < n and walk[i + step] == walk[i]:
                move[i, i + step] += p
            else:
                jump += p
        move[i, :n] += jump * (0.5 if has_new else 1) / n
        if has_new:
            move[i, n] = jump * 0.5
    if has_new:
        move[n, :n], move[n, n] = 0.1 / n, 0.9
    return move


@pytest.mark.parametrize("has_new", [False, True])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_a_walk_is_the_chain_of_its_matrix(direction, has_new):
    walk = make_walk([5, 1, 7], direction, 2, 0.1, has_new)
    matrix = naive_matrix([5, 1, 7], walk.steps, walk.probabilities, has_new)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(walk.log_move), matrix, atol=1e-12)
    chain = chains.Chain(walk.log_start, np.log(matrix))
    scores = np.random.default_rng(0).normal(size=(30, 13 + has_new)) * 3
    for work in (chains.smooth, lambda c, s: chains.forward(c, s)[0], lambda c, s: chains.forward(c, s)[1]):
        np.testing.assert_allclose(work(walk, scores), work(chain, scores), atol=1e-9)
    ours, theirs = chains.best_path(walk, scores), chains.best_path(chain, scores)
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert abs(ours[1] - theirs[1]) < 1e-9


def test_the_end_of_a_walk_is_not_absorbing():
    walk = make_walk([50], "forward", 2, 0.01)
    stay = np.exp(walk.log_move[-1, -1])
    assert stay < 0.4
    assert (np.exp(walk.log_move) > 0).all()


def test_steps_are_learned_from_frames():
    walk = make_walk([60], "forward", 3, 0.05)
    scores = -8.0 * np.abs(np.arange(0, 60, 2)[:, None] - np.arange(60))
    from countinggrids.meta.transitions import learn_walk

    learned, n_iter = learn_walk(walk, [scores], 0.01, 20, 1e-4)
    assert n_iter > 1
    assert learned.steps[int(np.argmax(learned.probabilities))] == 2
    assert learned.probabilities[2] > 0.8
    assert 0 < learned.jump < 0.1


def test_frames_nearby_look_no_more_alike_than_those_beyond_the_gap():
    similarity = np.exp(-np.abs(np.arange(9)[:, None] - np.arange(9)) / 3.0)
    distance = reference.frame_distance([9], np.arange(9), np.arange(9))
    seen = reference.seen_from_afar(similarity, distance, 2)
    for t in range(9):
        for j in range(9):
            beyond = max(similarity[t, k] for k in range(9) if 2 < abs(t - k) <= 4)
            assert seen[t, j] == (similarity[t, j] if abs(t - j) > 2 else min(similarity[t, j], beyond))
    assert np.isinf(reference.frame_distance([4, 5], np.array([0]), np.array([5]))).all()


@pytest.fixture(scope="module")
def walks():
    """A reference walk of sixty frames, and the same walk again, noisier and with less tokens."""
    rng = np.random.default_rng(0)
    anchors = rng.dirichlet(np.full(25, 0.15), 16)
    at = np.linspace(0, 15, 60)
    low, part = np.minimum(at.astype(int), 14), (at - np.minimum(at.astype(int), 14))[:, None]
    places = (1 - part) * anchors[low] + part * anchors[low + 1]
    other = 0.7 * places + 0.3 * rng.dirichlet(np.full(25, 0.3), 60)
    reference, query = (np.array([rng.multinomial(n, p) for p in ps]) for n, ps in ((150, places), (60, other)))
    return reference.astype(float), query.astype(float)


@pytest.mark.parametrize("estimator", [RootBags(), cg.GridNeighbors(GRID, gamma=0.3), GRID], ids=str)
def test_the_filter_recognizes_a_second_walk(walks, estimator):
    reference_walk, query = walks
    tracker = cg.PlaceTracker(estimator).fit(reference_walk)
    single = np.mean(np.abs(tracker.similarity(query).argmax(axis=1) - np.arange(60)) <= 2)
    assert single <= tracker.score(query, np.arange(60)) > 0.9
    assert tracker.gamma_ in reference.GAMMAS
    assert tracker.gamma_scores_[tracker.gamma_] == max(tracker.gamma_scores_.values())
    np.testing.assert_allclose(tracker.predict_proba(query).sum(axis=1), 1)
    online = tracker.begin()
    steps = [online.step(query[t : t + 1]) for t in range(60)]
    np.testing.assert_allclose(steps, tracker.filter(query), atol=1e-3)
    assert np.mean(np.abs(tracker.viterbi(query) - np.arange(60)) <= 2) > 0.9


def test_labels_that_differ_keep_the_order_of_the_walk(walks):
    reference_walk, query = walks
    names = np.array([f"frame {(17 * i) % 60}" for i in range(60)])
    tracker = cg.PlaceTracker(RootBags(), gamma=0.5).fit(reference_walk, names)
    assert tracker.classes_.tolist() == names.tolist()
    plain = cg.PlaceTracker(RootBags(), gamma=0.5).fit(reference_walk)
    np.testing.assert_allclose(tracker.filter(query), plain.filter(query))


def test_poses_are_predicted(walks):
    reference_walk, query = walks
    poses = np.column_stack([np.linspace(0, 30, 60), np.zeros(60)])
    tracker = cg.PlaceTracker(RootBags()).fit(reference_walk, poses)
    assert tracker.predict(query).shape == (60, 2)
    assert -2 < tracker.score(query, poses) < 0
    neighbors = cg.GridNeighbors(GRID, n_neighbors=3, weights="distance").fit(reference_walk, poses)
    assert neighbors.predict(query).shape == (60, 2)
    assert -6 < neighbors.score(query, poses) < 0


def test_new_places_have_a_probability(walks):
    reference_walk, query = walks
    tracker = cg.PlaceTracker(RootBags(), new_place=True, tolerance=1).fit(reference_walk[:40])
    new = tracker.predict_proba(query)[:, -1]
    assert tracker.classes_[-1] == UNKNOWN
    assert new[:38].mean() < 0.3 < 0.6 < new[46:].mean()
    assert UNKNOWN in tracker.predict(query)
    poses = cg.PlaceTracker(RootBags(), new_place=True, tolerance=1).fit(reference_walk[:40], np.zeros((40, 2)))
    assert np.isnan(poses.predict(query)[-1]).all()


def test_learned_steps_and_given_matrices(walks):
    reference_walk, query = walks
    learned = cg.PlaceTracker(RootBags(), transitions="learn").fit(reference_walk)
    assert learned.chain_.steps[int(np.argmax(learned.chain_.probabilities))] == 1
    move = np.exp(make_walk([60], "forward", 2, 0.01).log_move)
    given = cg.PlaceTracker(RootBags(), transitions=move, gamma=0.5).fit(reference_walk)
    ready = cg.PlaceTracker(RootBags(), gamma=0.5).fit(reference_walk)
    np.testing.assert_allclose(given.filter(query), ready.filter(query), atol=1e-9)
    start = np.eye(60)[7]
    assert cg.PlaceTracker(RootBags(), start=start, gamma=0.5).fit(reference_walk).filter(query[:1]).argmax() == 7


def test_backward_walks(walks):
    reference_walk, query = walks
    tracker = cg.PlaceTracker(RootBags(), direction="backward").fit(reference_walk)
    forward = cg.PlaceTracker(RootBags()).fit(reference_walk)
    truth = np.arange(60)[::-1]
    assert tracker.score(query[::-1], truth) > forward.score(query[::-1], truth)


def test_matchers_track_places_of_several_frames(walks):
    reference_walk, query = walks
    rooms = np.repeat([f"room {i}" for i in range(6)], 10)
    tracker = cg.PlaceTracker(RootBags(), gamma=0.5).fit(reference_walk, rooms)
    assert tracker.classes_.shape == (6,)
    assert tracker.score(query, rooms) > 0.8
    assert cg.PlaceTracker(cg.GridNeighbors(GRID)).fit(reference_walk, rooms).score(query, rooms) > 0.7


def test_neighbors_in_pipelines(walks):
    reference_walk, query = walks
    rooms = np.repeat([f"room {i}" for i in range(6)], 10)
    before = make_pipeline(cg.BagScaler(100, 0.7), cg.GridNeighbors(GRID)).fit(reference_walk, rooms)
    inside = cg.GridNeighbors(make_pipeline(cg.BagScaler(100, 0.7), GRID)).fit(sp.csr_array(reference_walk), rooms)
    np.testing.assert_allclose(before.predict_proba(query), inside.predict_proba(query))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(inside.predict_log_proba(query)), inside.predict_proba(query))
    piped = cg.PlaceTracker(make_pipeline(cg.BagScaler(100, 0.7), cg.GridNeighbors(GRID))).fit(reference_walk)
    assert piped.score(query, np.arange(60)) > 0.8


def test_overlaps_are_the_coefficients_of_bhattacharyya(walks):
    reference_walk, query = walks
    fitted = cg.CountingGrid((12, 12), (4, 4), random_state=0).fit(reference_walk)
    here, there = fitted.transform(query), fitted.transform(reference_walk)
    y = np.arange(60)
    overlap = cg.GridNeighbors(fitted).fit(reference_walk, y).similarity(query)
    likelihood = cg.GridNeighbors(fitted, metric="likelihood").fit(reference_walk, y).similarity(query)
    for i in (0, 17, 59):
        for j in (3, 17, 40):
            assert abs(overlap[i, j] - sum(np.sqrt(a * b) for a, b in zip(here[i], there[j], strict=True))) < 2e-2
            common = sum(a * b for a, b in zip(here[i], there[j], strict=True))
            assert abs(likelihood[i, j] - np.log(common + 1e-6)) < 1e-3
    cells = cg.GridNeighbors(fitted, metric="cells").fit(reference_walk, y)
    np.testing.assert_allclose(cells.kneighbors(query, 2)[0], np.sort(-cells.similarity(query))[:, :2])


def test_weights_of_bags_count_in_votes(walks):
    reference_walk, query = walks
    rooms = np.tile(["a", "b"], 30)
    neighbors = cg.GridNeighbors(GRID, n_neighbors=60)
    weights = np.where(rooms == "a", 3.0, 1.0)
    found = neighbors.fit(reference_walk, rooms, sample_weight=weights).predict_proba(query)
    np.testing.assert_allclose(found, np.tile([0.75, 0.25], (60, 1)))


def nan_at(row):
    poses = np.zeros((60, 2))
    poses[row, 1] = np.nan
    return poses


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, nan_at(7), r"poses have NaN or infinity in 1 of 60 frames, first in frame 7"),
        ({}, np.full((60, 2), "x"), "must be numbers"),
        ({}, np.zeros((60, 2, 2)), r"y of shape \(60, 2, 2\) must be one place for each frame, or poses"),
        ({}, np.zeros((59, 2)), r"but X has 60 frames"),
        ({"direction": "up"}, None, "direction='up' must be 'forward', 'backward' or 'both'"),
        ({"width": 0}, None, "width=0 must be an integer of at least 1"),
        ({"jump": 0.0}, None, "jump=0.0 must be a probability above 0 and below 1"),
        ({"jump": 1}, None, "jump=1 must be"),
        ({"tolerance": -1}, None, "tolerance=-1 must be a number of frames"),
        ({"transitions": np.eye(3)}, None, r"transitions of shape \(3, 3\) must be probabilities of shape \(60, 60\)"),
        ({"transitions": np.full((60, 60), np.nan)}, None, "whose rows sum to 1"),
        ({"estimator": LogisticRegression()}, None, "every place has one frame; use GridNeighbors, RootBags"),
        ({"new_place": True, "unknown": 1.0}, None, "new_place=True needs one frame a place"),
        ({"new_place": True}, np.repeat([0, 1], 30), "new_place=True needs one frame a place"),
        ({"unknown": 1.0}, None, "unknown=1.0 needs an estimator with likelihoods, which RootBags does not have"),
    ],
)
def test_wrong_use_is_refused(walks, options, y, message):
    with pytest.raises(ValueError, match=message):
        cg.PlaceTracker(**{"estimator": RootBags()} | options).fit(walks[0], y)


def test_a_reference_of_one_frame_is_refused(walks):
    for estimator in (cg.PlaceTracker(RootBags()), cg.PlaceRecognizer()):
        with pytest.raises(ValueError, match=r"n_samples=1 frame but a (reference )?walk must have at least 2"):
            estimator.fit(walks[0][:1])
    short = cg.PlaceTracker(RootBags()).fit(walks[0][:4])
    assert short.gamma_ == reference.USUAL_GAMMA
    with pytest.raises(ValueError, match="new_place=True needs a reference walk of at least 16 frames"):
        cg.PlaceTracker(RootBags(), new_place=True).fit(walks[0][:4])
    with pytest.raises(ValueError, match=r"lengths=\[10, 20\] sums to 30 but X has 60 frames"):
        cg.PlaceTracker(RootBags(), gamma=1.0).fit(walks[0]).filter(walks[1], [10, 20])
