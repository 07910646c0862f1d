"""Where several are tried, the best is kept, wherever among them it comes."""

import numpy as np
import pytest

import countinggrids as cg
from countinggrids import backends, baselines
from countinggrids.training import initialization, loop, restart

RNG = np.random.default_rng(0)
KINDS = RNG.dirichlet(np.full(12, 0.3), 4)
X = np.vstack([RNG.multinomial(30, kind, 15) for kind in KINDS])
Y = np.repeat(["a", "b"], 30)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("options", [{"anneal": None}, {}], ids=["plain EM", "annealed"])
def test_the_best_restart_is_kept(options):
    runs = {}
    model = cg.CountingGrid((8, 8), 2, n_init=5, max_iter=40, random_state=3, **options)
    model.fit(X, callback=lambda now: runs.setdefault((now.stage, now.restart), []).append(now.objective))
    objectives = [runs["learning", restart] for restart in range(5)]
    best = int(np.argmax([run[-1] for run in objectives]))
    assert 0 < best < 4, "the best must be neither the first nor the last for this test to tell"
    assert model.history_.tolist() == objectives[best]


def test_the_full_grid_starts_from_the_best_candidate():
    started, values = [], iter([0.1, 0.5, 0.3, 0.9, 0.2, 0.8, 0.4, 0.7])

    class Scored(restart.Runs):
        def run(self, chunks, start, **how):
            started.append(start.take().grid)
            score = next(values)
            return loop.TrainingResult(started[-1], [score], True, 0, score)

    model = cg.CountingGrid((32, 32), 8, random_state=0)
    table, backend = backends.open_bags(model, X, is_fitting=True)
    rng, ones = np.random.RandomState(0), np.ones(len(X), "f4")
    one = restart.Restart(model, table, ones, 12, rng, Scored(), lambda now: None, None, backend, 0)
    small = initialization.downsampled(model._geometry())
    how = initialization.schedule_of(model, table, ones, 12)
    found = one._best_candidate(small, initialization.candidates(small, len(X), 12, how, None))
    scores = [0.1, 0.5, 0.3, 0.9, 0.2, 0.8, 0.4, 0.7][: len(started)]
    best = int(np.argmax(scores))
    assert 0 < best < len(started) - 1, "the best must be neither the first nor the last for this test to tell"
    np.testing.assert_array_equal(found.pi, started[best].pi)


def test_the_best_restart_of_a_class_is_kept():
    grid = cg.CountingGrid((8, 8), 2, anneal=None, max_iter=20)
    every = cg.GridClassifier(grid, n_estimators=4, random_state=1).fit(X, Y)
    kept = cg.GridClassifier(grid, n_estimators=4, combine="best", random_state=1).fit(X, Y)
    places = []
    for label, models, [best] in zip("ab", every.models_, kept.models_, strict=True):
        scores = [model.score(X[label == Y]) for model in models]
        assert best.score(X[label == Y]) == max(scores)
        places.append(int(np.argmax(scores)))
    assert any(0 < place < 3 for place in places), "a best one must be neither first nor last for this test to tell"


def test_the_best_candidate_is_kept():
    grid = cg.CountingGrid(anneal=None, max_iter=10)
    for keep in (1.0, 0.5):
        search = cg.CapacitySearch(grid, grids=(8, 3, 2), windows=(1,), capacities=(1, 99), keep=keep, random_state=0)
        search.fit(X)
        results = search.cv_results_
        means = np.where(results["n_folds"] == 3, results["mean_test_score"], -np.inf)
        best = int(np.argmax(means))
        assert best == search.best_index_ == 1
        assert search.best_params_ == results["params"][best]
        assert search.best_params_["grid"] == (3, 3)
        assert search.best_score_ == means[best]


def test_a_candidate_that_is_overtaken_on_the_last_fold_does_not_win():
    scores = iter([0.5, 0.4, 0.5, 0.4, 0.1, 0.9])
    how = {"windows": (1,), "capacities": (1, 99), "scoring": lambda *_: next(scores), "random_state": 0}
    search = cg.CapacitySearch(cg.CountingGrid(anneal=None, max_iter=2), grids=(2, 3), **how).fit(X)
    assert search.best_params_["grid"] == (3, 3)


@pytest.mark.parametrize(
    "make", [baselines.PolyaMixture, lambda n, **how: baselines.ReconfigurableBags(n, (1, 1), **how)]
)
def test_the_best_restart_of_a_baseline_is_kept(make, monkeypatch):
    model = make(4, n_init=5, max_iter=15, random_state=1)
    runs, run_em = [], type(model)._run_em

    def noted(self, *given):
        runs.append(run_em(self, *given))
        return runs[-1]

    monkeypatch.setattr(type(model), "_run_em", noted)
    model.fit(X)
    best = int(np.argmax([history[-1] for _, history in runs]))
    assert 0 < best < 4, "the best must be neither the first nor the last for this test to tell"
    assert model.history_ == runs[best][1]
    assert model.parts_ is runs[best][0]


def test_the_best_gamma_is_kept():
    class Sure(cg.CountingGrid):
        """Sure of itself, and often wrong: what the chain says must count for more."""

        def __init__(self, place=0.0):
            self.place = place

        def fit(self, X, y=None):
            self.place_ = float(X[:, 0].mean())
            return self

        def score_samples(self, X):
            return -20 * np.abs(X[:, 0] - self.place_)

    rng = np.random.default_rng(0)
    labels = np.tile(np.repeat(["hall", "stairs"], 12), 4)
    frames = np.where(labels == "hall", 0.0, 1.0)[:, None] + rng.normal(0, 0.6, (96, 2))
    tracker = cg.PlaceTracker(Sure(), gammas=(1.0, 0.05, 1e-6)).fit(frames + 5, labels, [24] * 4)
    assert tracker.gamma_scores_[0.05] > max(tracker.gamma_scores_[1.0], tracker.gamma_scores_[1e-6])
    assert tracker.gamma_ == 0.05
