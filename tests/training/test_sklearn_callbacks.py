"""The callback protocol of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone

import countinggrids as cg

pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before 1.9")


class Recorder:
    """Record the hooks that are called, and the score of the fitted estimator that they receive."""

    def __init__(self, stop_after=None):
        self.stop_after, self.events, self.scores = stop_after, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.events.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X))
        return len(self.scores) == self.stop_after


@pytest.fixture
def model():
    return cg.CountingGrid((5, 5), (2, 2), anneal=None, random_state=0, dtype="float64")


@pytest.fixture
def bags(rng):
    return rng.poisson(1, (20, 8))


def test_every_iteration_is_a_task(model, bags):
    recorder = Recorder()
    model.set_callbacks(recorder).fit(bags)
    iterations = [("begin", "learning iteration"), ("end", "learning iteration")] * model.n_iter_
    assert recorder.events == ["setup", ("begin", "fit"), *iterations, ("end", "fit"), "teardown"]
    assert recorder.scores[-1] == model.score(bags)
    assert len(recorder.scores) == model.n_iter_ + 1


def test_callbacks_change_no_bit_and_can_stop_a_fit(model, bags):
    plain = clone(model).fit(bags)
    assert model.set_callbacks(Recorder()).fit(bags).pi_.tobytes() == plain.pi_.tobytes()
    assert model.set_callbacks(Recorder(stop_after=3)).fit(bags).n_iter_ == 3


def test_a_fit_that_fails_is_torn_down(model, bags):
    recorder = Recorder()
    recorder.on_fit_task_begin = lambda estimator, context: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.set_callbacks(recorder).fit(bags)
    assert recorder.events == ["setup", "teardown"]
    assert not hasattr(model, "pi_")


def test_candidates_have_no_fitted_estimator(bags):
    model = cg.CountingGrid((12, 12), (6, 6), max_iter=300, tol=1e-3, random_state=0)
    recorder = Recorder()
    model.set_callbacks(recorder).fit(np.tile(bags, (2, 1)))
    assert ("end", "candidates iteration") in recorder.events
    assert len(recorder.scores) == model.n_iter_ + 1
