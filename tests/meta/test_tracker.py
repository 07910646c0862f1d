"""Chains in logs against hmmlearn and against all paths; the tracker on walks with known places."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hmmlearn import hmm
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.meta import chain as chains
from countinggrids.meta.tracker import UNKNOWN

GRID = cg.CountingGrid((4, 4), (2, 2), anneal=None, max_iter=200, random_state=0)


@parametrize_with_checks(
    [cg.PlaceTracker(GRID, gamma=0.5)],
    expected_failed_checks=lambda _: {
        "check_methods_sample_order_invariance": "where a frame was taken depends on the frames before it",
        "check_methods_subset_invariance": "where a frame was taken depends on the frames before it",
    },
)
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def random_chain(rng, n):
    return chains.Chain(np.log(rng.dirichlet(np.ones(n))), np.log(rng.dirichlet(np.ones(n), n)))


def their_model(chain, emission):
    """Make hmmlearn's model with given parameters; emissions are categorical."""
    model = hmm.CategoricalHMM(len(chain.log_start))
    model.startprob_, model.transmat_, model.emissionprob_ = np.exp(chain.log_start), np.exp(chain.log_move), emission
    model.n_features = emission.shape[1]
    return model


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    chain = random_chain(rng, 4)
    emission = rng.dirichlet(np.ones(6), 4)
    seen = rng.integers(6, size=50)
    return chain, emission, seen, np.log(emission[:, seen]).T


def test_hmmlearn_agrees(case):
    chain, emission, seen, scores = case
    theirs = their_model(chain, emission)
    evidence, posterior = theirs.score_samples(seen[:, None])
    assert abs(chains.forward(chain, scores)[1].sum() - evidence) < 1e-8
    np.testing.assert_allclose(np.exp(chains.smooth(chain, scores)), posterior, atol=1e-8)
    log_p, path = theirs.decode(seen[:, None])
    ours, our_log_p = chains.best_path(chain, scores)
    np.testing.assert_array_equal(ours, path)
    assert abs(our_log_p - log_p) < 1e-8


def test_hmmlearn_re_estimates_the_same_chain(case):
    chain, emission, seen, scores = case
    theirs = their_model(chain, emission)
    theirs.n_iter, theirs.params, theirs.init_params = 1, "st", ""
    theirs.fit(seen[:, None])
    first, moves, _ = chains.expected_moves(chain, scores)
    ours = chains.re_estimate(first, moves, 0.0)
    np.testing.assert_allclose(np.exp(ours.log_move), theirs.transmat_, atol=1e-8)
    np.testing.assert_allclose(np.exp(ours.log_start), theirs.startprob_, atol=1e-8)


def test_all_paths_agree():
    rng = np.random.default_rng(1)
    chain, scores = random_chain(rng, 3), rng.normal(size=(5, 3))
    paths = list(itertools.product(range(3), repeat=5))

    def log_p(path):
        moves = sum(chain.log_move[a, b] for a, b in itertools.pairwise(path))
        return chain.log_start[path[0]] + moves + sum(scores[t, k] for t, k in enumerate(path))

    logs = np.array([log_p(path) for path in paths])
    assert abs(logsumexp(logs) - chains.forward(chain, scores)[1].sum()) < 1e-10
    weights = np.exp(logs - logsumexp(logs))
    smoothed = np.array([[weights[[p[t] == k for p in paths]].sum() for k in range(3)] for t in range(5)])
    np.testing.assert_allclose(np.exp(chains.smooth(chain, scores)), smoothed, atol=1e-10)
    assert tuple(chains.best_path(chain, scores)[0]) == paths[int(logs.argmax())]


def test_a_hundred_thousand_frames_do_not_underflow():
    rng = np.random.default_rng(2)
    chain = random_chain(rng, 3)
    scores = rng.normal(size=(100_000, 3)) * 500 - 4000
    smoothed = chains.smooth(chain, scores)
    assert np.isfinite(smoothed.max(axis=1)).all()
    np.testing.assert_allclose(np.exp(smoothed).sum(axis=1), 1)
    assert np.isfinite(chains.best_path(chain, scores)[1])


def test_what_seemed_impossible_can_come_back():
    stay = chains.Chain(np.log([0.5, 0.5]), np.log(np.eye(2) + 1e-320))
    scores = np.array([[0.0, -900.0], [-2000.0, 0.0]])
    with np.errstate(divide="ignore"):
        stay = stay._replace(log_move=np.log(np.eye(2)))
    assert np.exp(chains.forward(stay, scores)[0][1]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("forbidden", [0.0, 0.4])
@pytest.mark.parametrize("spread", [1.0, 3000.0])
def test_products_lose_nothing_against_sums_in_logs(forbidden, spread):
    rng = np.random.default_rng(3)
    move = np.where(rng.random((4, 4)) < forbidden, 0, rng.dirichlet(np.ones(4), 4)) + 0.3 * np.eye(4)
    with np.errstate(divide="ignore"):
        chain = chains.Chain(np.log(np.full(4, 0.25)), np.log(move / move.sum(axis=1, keepdims=True)))
    scores = rng.normal(size=(40, 4)) * spread
    filtered, evidence = chains.forward(chain, scores)
    before, after = chain.log_start, np.zeros(4)
    for t in range(40):
        expected = before if t == 0 else logsumexp(before[:, None] + chain.log_move, axis=0)
        np.testing.assert_allclose(evidence[t], logsumexp(expected + scores[t]), rtol=1e-10, atol=1e-10)
        before = expected + scores[t] - evidence[t]
        np.testing.assert_allclose(filtered[t], before, rtol=1e-10, atol=1e-10)
    moves = np.zeros((4, 4))
    for t in range(38, -1, -1):
        joint = filtered[t][:, None] + chain.log_move + scores[t + 1] + after
        moves += np.exp(joint - logsumexp(joint))
        after = logsumexp(chain.log_move + scores[t + 1] + after, axis=1)
    np.testing.assert_allclose(chains.expected_moves(chain, scores)[1], moves, atol=1e-8)


@pytest.fixture(scope="module")
def walk():
    """Six walks through three places, ten frames in each, over eight features."""
    rng = np.random.default_rng(0)
    places = rng.dirichlet(np.ones(8), 3)
    order = np.concatenate([np.repeat(rng.permutation(3), 10) for _ in range(6)])
    X = np.array([rng.multinomial(12, places[k]) for k in order], dtype=float)
    return X, np.array(["hall", "lift", "roof"])[order], [30] * 6


def test_the_chain_helps(walk):
    X, y, lengths = walk
    tracker = cg.PlaceTracker(GRID, gamma=1.0).fit(X, y, lengths)
    alone = np.mean(tracker.classes_[tracker._raw(X)[0].argmax(axis=1)] == y)
    smoothed = np.mean(tracker.classes_[tracker.smooth(X, lengths).argmax(axis=1)] == y)
    assert alone < tracker.score(X, y, lengths) <= smoothed
    assert np.mean(tracker.viterbi(X, lengths) == y) > 0.95
    np.testing.assert_allclose(tracker.filter(X, lengths).sum(axis=1), 1)


def test_sequences_do_not_touch_each_other(walk):
    X, y, lengths = walk
    tracker = cg.PlaceTracker(GRID, gamma=0.5).fit(X, y, lengths)
    whole = tracker.filter(X, lengths)
    np.testing.assert_allclose(whole[30:60], tracker.filter(X[30:60]), atol=1e-6)
    np.testing.assert_allclose(tracker.smooth(X, lengths)[90:120], tracker.smooth(X[90:120]), atol=1e-6)


def test_one_frame_at_a_time_is_the_same(walk):
    X, y, lengths = walk
    tracker = cg.PlaceTracker(GRID, gamma=0.5).fit(X, y, lengths)
    online = tracker.begin()
    np.testing.assert_allclose([online.step(X[t : t + 1]) for t in range(30)], tracker.filter(X[:30]), atol=1e-6)
    with pytest.raises(ValueError, match="bag has 2 rows but must be one frame"):
        online.step(X[:2])


def test_gamma_is_chosen_on_held_out_sequences(walk):
    X, y, lengths = walk
    tracker = cg.PlaceTracker(GRID, gammas=(1.0, 1e-6)).fit(X, y, lengths)
    assert tracker.gamma_ == 1.0
    assert tracker.gamma_scores_[1.0] > tracker.gamma_scores_[1e-6]
    single = cg.PlaceTracker(GRID, gammas=(1.0, 1e-6)).fit(X, y)
    assert single.gamma_ in (1.0, 1e-6)


def test_cross_validation_never_joins_two_walks(monkeypatch):
    rng = np.random.default_rng(0)
    places = rng.dirichlet(np.full(8, 0.3), 3)
    order = np.tile(np.repeat([0, 1, 2], 4), 9)  # always hall, lift, roof: nobody goes from the roof to the hall
    X = np.array([rng.multinomial(20, places[k]) for k in order], dtype=float)
    seen = []
    count_moves = chains.count_moves
    monkeypatch.setattr(chains, "count_moves", lambda *given: seen.append(count_moves(*given)) or seen[-1])
    cg.PlaceTracker(GRID).fit(X, np.array(["hall", "lift", "roof"])[order], [12] * 9)
    assert len(seen) == 4
    assert all(moves[2, 0] == 0 for _, moves in seen)


def test_cross_validation_copes_with_places_that_a_fold_lacks(walk):
    X, y, lengths = walk
    labels = y.copy()
    labels[:30] = "cellar"
    tracker = cg.PlaceTracker(GRID, gammas=(1.0, 0.1), start=[1, 0, 0, 0, 0], unknown=5.0).fit(X, labels, lengths)
    assert tracker.gamma_ in (1.0, 0.1)
    with pytest.raises(ValueError, match="gamma='cv' needs folds that leave two places to fit"):
        cg.PlaceTracker(GRID, cv=2).fit(X[:20], ["a"] * 10 + ["b"] * 10, [10, 10])


def test_a_pipeline_tracks_like_the_classifier_in_it(walk):
    X, y, lengths = walk
    classifier = cg.GridClassifier(GRID)
    plain = cg.PlaceTracker(classifier, gamma=1.0, unknown=0.5).fit(X, y, lengths)
    piped = cg.PlaceTracker(make_pipeline(cg.BagScaler(None), classifier), gamma=1.0, unknown=0.5).fit(X, y, lengths)
    np.testing.assert_allclose(piped.filter(X, lengths), plain.filter(X, lengths), atol=1e-6)
    with pytest.raises(
        ValueError, match=r"unknown=0\.5 needs an estimator with likelihoods, which LogisticRegression does not have"
    ):
        cg.PlaceTracker(LogisticRegression(), gamma=1.0, unknown=0.5).fit(X, y, lengths)
    assert cg.PlaceTracker(LogisticRegression(), gamma=1.0).fit(X, y, lengths).score(X, y, lengths) > 0.9


def test_impossible_frames_are_named():
    with np.errstate(divide="ignore"):
        chain = chains.Chain(np.log([1.0, 0.0]), np.log(np.eye(2)))
    with pytest.raises(ValueError, match="frame 1 is impossible in every state"):
        chains.forward(chain, np.array([[0.0, 0.0], [-np.inf, 0.0]]))


def test_em_rises_with_pseudocounts_too(walk):
    X, y, lengths = walk
    tracker = cg.PlaceTracker(GRID, gamma=1.0, transitions="em", pseudocount=5.0, max_iter=1).fit(X, y, lengths)
    longer = cg.PlaceTracker(GRID, gamma=1.0, transitions="em", pseudocount=5.0, tol=0.0).fit(X, y, lengths)

    def objective(model):
        return model.log_likelihood(X, lengths) + 5 * model.chain_.log_move.sum()

    assert objective(longer) > objective(tracker)


def test_em_never_lowers_the_likelihood_of_the_walks(walk):
    X, y, lengths = walk
    labels = cg.PlaceTracker(GRID, gamma=1.0, start="labels", pseudocount=1e-9).fit(X, y, lengths)
    em = cg.PlaceTracker(GRID, gamma=1.0, start="labels", transitions="em", pseudocount=1e-9).fit(X, y, lengths)
    assert em.log_likelihood(X, lengths) >= labels.log_likelihood(X, lengths)


def test_known_chains_are_taken_as_they_are(walk):
    X, y, lengths = walk
    move = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]])
    tracker = cg.PlaceTracker(GRID, gamma=1.0, transitions=move, start=[1.0, 0.0, 0.0]).fit(X, y, lengths)
    np.testing.assert_allclose(np.exp(tracker.chain_.log_move), move)
    np.testing.assert_allclose(np.exp(tracker.chain_.log_start), [1, 0, 0])
    assert tracker.filter(X[:1]).argmax() == 0


def test_what_no_place_explains_is_unknown(walk):
    X, y, lengths = walk
    X = np.column_stack([X, np.zeros(len(X))])
    tracker = cg.PlaceTracker(GRID, gamma=1.0, unknown=0.5).fit(X, y, lengths)
    strange = np.zeros((5, 9))
    strange[:, -1] = 12
    assert tracker.classes_.tolist() == ["hall", "lift", "roof", UNKNOWN]
    assert set(tracker.viterbi(strange)) == {UNKNOWN}
    assert np.mean(tracker.predict(X, lengths) == y) > 0.8


@pytest.mark.parametrize(
    ("options", "lengths", "message"),
    [
        ({}, [180, 0], r"lengths=\[180, 0\] must be integers of at least 1; leave out empty sequences"),
        ({}, [], r"lengths=\[\] must be integers of at least 1"),
        ({}, [10], r"lengths=\[10\] sums to 10 but X has 180 frames"),
        (
            {"transitions": "guess"},
            None,
            "transitions='guess' must be 'auto', 'labels', 'walk', 'learn', 'em' or",
        ),
        ({"transitions": np.eye(2)}, None, r"transitions of shape \(2, 2\) must be probabilities of shape \(3, 3\)"),
        ({"start": "here"}, None, r"start='here' must be 'uniform', 'labels' or an array of shape \(3,\)"),
        ({"start": [0.5, 0.2, 0.2]}, None, "whose rows sum to 1"),
        ({"gamma": -1}, None, "gamma=-1 must be 'cv' or a number above 0; use gamma='cv'"),
        ({"gamma": float("nan")}, None, "gamma=nan must be"),
        ({"gamma": "foo"}, None, "gamma='foo' must be 'cv' or a number above 0"),
        ({"gamma": "cv", "gammas": ()}, None, r"gammas=\(\) must be"),
        ({"gamma": "cv", "cv": 1}, None, "cv=1 must be at least 2 folds"),
        ({"pseudocount": -5}, None, "pseudocount=-5 must be finite and at least 0"),
        ({}, [90.7, 89.3], "must be integers of at least 1"),
    ],
)
def test_wrong_use_is_refused(walk, options, lengths, message):
    X, y, _ = walk
    with pytest.raises(ValueError, match=message):
        cg.PlaceTracker(GRID, **{"gamma": 1.0} | options).fit(X, y, lengths)


def test_labels_of_the_wrong_length_are_refused(walk):
    X, y, lengths = walk
    with pytest.raises(ValueError, match=r"y has shape \(10,\) but X has 180 frames; give one place for each frame"):
        cg.PlaceTracker(GRID).fit(X, y[:10], lengths)
    tracker = cg.PlaceTracker(GRID, gamma=1.0).fit(X, y, lengths)
    with pytest.raises(ValueError, match=r"y has shape \(1,\) but X has 180 frames; give one place for each frame"):
        tracker.score(X, y[:1])
    with pytest.raises(ValueError, match=r"y holds the place 'unknown', which unknown=1\.0 reserves"):
        cg.PlaceTracker(GRID, gamma=1.0, unknown=1.0).fit(X, np.where(y == "hall", "unknown", y), lengths)


def test_lists_and_tables_do_as_well_as_arrays(walk):
    X, y, lengths = walk
    wanted = cg.PlaceTracker(GRID, gamma=1.0).fit(X, y, lengths).filter(X, lengths)
    np.testing.assert_allclose(
        cg.PlaceTracker(GRID, gamma=1.0).fit(X.tolist(), y.tolist(), lengths).filter(pd.DataFrame(X), lengths), wanted
    )


def test_the_lengths_of_walks_reach_an_estimator_that_takes_them(rng):
    class Matcher(cg.GridNeighbors):
        def fit(self, X, y=None, lengths=None):
            self.lengths_ = lengths
            return super().fit(X, y)

    X = rng.poisson(2.0, (24, 12))
    tracker = cg.PlaceTracker(Matcher(cg.CountingGrid((6, 6), 2, anneal=None, tol=0.1, random_state=0)), gamma=0.5)
    assert tracker.fit(X, lengths=[10, 14]).classifier_.lengths_ == [10, 14]


def test_positions_along_a_line_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"Unknown label type: continuous; .*np\.column_stack\(\[y, 0 \* y\]\)"):
        cg.PlaceTracker().fit(np.eye(20), np.linspace(0, 1, 20))
