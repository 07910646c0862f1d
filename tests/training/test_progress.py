import io

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

import countinggrids as cg
from countinggrids.core.em import Grid
from countinggrids.training import plans, progress
from countinggrids.training.callbacks import Iteration

X = np.random.default_rng(0).poisson(1.0, (60, 12)).astype(float)
QUICK = {"max_iter": 12, "tol": 1e-2, "random_state": 0}


@pytest.fixture
def terminal(monkeypatch):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, force_jupyter=False, width=120, _environ={})
    monkeypatch.setattr(progress, "_console", lambda: console)
    return stream


def iteration(stage, number, side, restart=0):
    grid = Grid(np.ones((2, side, side)), np.zeros((side, side)))
    return Iteration(stage, restart, 0, number, 100, 1.0, -1.0, grid)


def test_nothing_is_shown_unless_it_is_asked_for(capsys):
    cg.CountingGrid((8, 8), 4, **QUICK).fit(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("model", [cg.CountingGrid((8, 8), 4, **QUICK), cg.ComponentialGrid((8, 8), 2, **QUICK)])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_an_estimate_of_time_and_memory_comes_first(model, capsys):
    model.set_params(verbose=1).fit(X)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("about 1 s to fit, 0 MB of memory, and a model of 0 MB\n")


def test_a_terminal_has_a_bar_with_the_stage_the_objective_and_the_time_left(terminal):
    with progress.bar(plans.Plan(0.0, 1.0, 10, 4.0, 1, 0, 0)) as callback:
        callback(iteration("learning", 3, 2))
        callback(iteration("learning", 4, 2))
    shown = terminal.getvalue()
    assert "learning" in shown
    assert "iteration 4, objective -1.0000, 1 s left" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1


def test_an_interrupted_fit_leaves_the_terminal_and_the_model_as_they_were(terminal):
    model = cg.CountingGrid((8, 8), 4, **QUICK).fit(X)
    before = model.pi_

    def interrupt(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(verbose=1).fit(X, callback=interrupt)
    assert model.pi_ is before
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 1


def test_the_bar_changes_no_bits(terminal):
    plain, shown = (cg.CountingGrid((8, 8), 4, verbose=verbose, **QUICK).fit(X) for verbose in (0, 1))
    assert plain.pi_.tobytes() == shown.pi_.tobytes()


def test_the_time_left_goes_by_the_pace_of_the_iterations():
    seconds = iter(np.arange(0.0, 100.0, 2.0))
    tracker = plans.ProgressTracker(plans.Plan(16.0, 1.0, 10, 4.0, 1, 0, 0), lambda: next(seconds))
    fractions = [tracker.update(iteration("candidates", number, 2))[0] for number in (1, 2)]
    assert fractions == [4 / 56, 8 / 56]
    tracker.update(iteration("learning", 1, 4))
    fraction, left = tracker.update(iteration("learning", 5, 4))
    assert fraction == pytest.approx((16 + 5 * 4) / 56)
    assert left == pytest.approx(5 * 2 / 4)
    assert tracker.update(iteration("learning", 30, 4))[0] < 1


def test_later_restarts_count_into_the_time_left():
    seconds = iter(np.arange(0.0, 100.0, 2.0))
    tracker = plans.ProgressTracker(plans.Plan(0.0, 1.0, 10, 4.0, 2, 0, 0), lambda: next(seconds))
    tracker.update(iteration("learning", 1, 2))
    _, first = tracker.update(iteration("learning", 5, 2))
    tracker.update(iteration("learning", 1, 2, restart=1))
    fraction, second = tracker.update(iteration("learning", 5, 2, restart=1))
    assert fraction == pytest.approx(0.75)
    assert first > second


def test_the_estimate_grows_with_cells_bags_and_features():
    small, large = (planned(X, side) for side in (16, 32))
    assert large.seconds > 3 * small.seconds
    assert large.n_model_bytes == 4 * small.n_model_bytes
    assert planned(sp.csr_array(np.tile(X, (10, 1))), 16).seconds > small.seconds
    assert planned(np.tile(X, (1, 10)), 16).n_bytes == 10 * small.n_bytes


def planned(counts, side):
    model = cg.CountingGrid((side, side), 4)
    geometry = model._geometry()
    table, weights, n_features, _ = model._open(counts, None, geometry, is_fitting=True)
    return plans.annealed(model, geometry, table, weights, n_features)


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (41.3, "41 s"), (290, "5 min"), (9000, "2.5 h")])
def test_times_are_spelled_out(seconds, text):
    assert plans.spelled(seconds) == text
