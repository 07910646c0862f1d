import numpy as np
import pytest

from countinggrids.core.schedule import (
    FORMING_RATE,
    GRADUALLY_FORMED,
    KEEPING,
    QUICK_RATE,
    REFINING,
    Annealing,
    Phase,
    Pseudocounts,
    Schedule,
    critical_beta,
    smoothed,
)

FORMING, SETTLED = Pseudocounts(2.0), Pseudocounts(1.0)


def schedule(annealing=Annealing(0.25, 2.0, 1.0), **options):  # noqa: B008
    return Schedule(annealing, FORMING, SETTLED, "smoothed", options.pop("max_iter", 100), 1e-4, **options)


def test_annealing_never_slows_down_when_the_layout_has_formed():
    quick = Annealing(0.1, 2.0, 1.0, formed=0.15).betas()
    assert quick == Annealing(0.1, 2.0, 1.0).betas()
    slow = Annealing(0.1, 1.01, 0.15, formed=0.1).betas()
    np.testing.assert_allclose(np.divide(slow[1:], slow[:-1]), QUICK_RATE)


def test_annealing_within_enough_iterations_is_left_alone():
    annealing = Annealing(0.1, 2.0, 1.0, formed=0.5)
    assert annealing.within(4) is annealing
    faster = annealing.within(2)
    assert faster.formed == np.inf
    assert faster.betas() == pytest.approx([0.1, 10**-0.5])
    assert len(annealing.within(0).betas()) == 1


def test_pseudocounts_of_a_user_are_the_same_for_all_bags():
    totals = np.array([4.0, 0.0, 12.0])
    assert Pseudocounts(0.3).of(totals, 2).tolist() == [0.3, 0.3, 0.3]
    assert Pseudocounts(np.array([1.0, 2.0, 3.0])).of(totals, 2).tolist() == [1, 2, 3]


def test_smoothing_gives_unseen_features_what_seen_ones_count_once_more():
    totals = np.array([4.0, 0.0, 12.0, 0.0])
    np.testing.assert_allclose(smoothed(totals), np.array([4.5, 0.5, 12.5, 0.5]) / 18)


def test_pseudocounts_are_a_fraction_of_the_tokens_of_a_cell():
    totals = np.array([4.0, 0.0, 12.0, 0.0])
    eta = Pseudocounts(None, fraction=0.25).of(totals, 8)
    np.testing.assert_allclose(eta, smoothed(totals) * 0.25 * 16 / 8)
    even = Pseudocounts(None, fraction=0.25, is_even=True).of(totals, 8)
    np.testing.assert_allclose(even, np.full(4, 0.25 * 16 / 8 / 4))


def test_pseudocounts_are_bounded_by_the_effective_number_of_features():
    totals = np.array([8.0, 8.0, 8.0, 8.0, 0.0])  # four effective features
    eta = Pseudocounts(None, fraction=1.0, at_most=3.0).of(totals, 2)
    assert eta.sum() == pytest.approx(3 * np.sqrt(4))


@pytest.mark.parametrize(
    ("previous", "settled"), [(1.0, True), (1.01, True), (0.99, True), (1.02, False), (0.98, False)]
)
def test_a_phase_settles_when_the_objective_changes_by_at_most_tol(previous, settled):
    phase = Phase(1.0, SETTLED, 0.0101)
    assert phase.has_settled(1.0, previous) is settled
    assert not phase.is_annealing
    assert Phase(0.5, FORMING, np.inf).is_annealing


def test_a_layout_settles_before_pseudocounts_are_weakened():
    one_each = [Phase(0.25, FORMING, np.inf), Phase(0.5, FORMING, np.inf)]
    last = Phase(1.0, SETTLED, 1e-4)
    assert schedule().phases() == [*one_each, Phase(1.0, FORMING, 1e-3), last]
    assert schedule(has_batches=True).phases() == [*one_each, last]
    assert schedule(is_validated=True).phases() == [*one_each, last]
    assert schedule(None).phases() == [last]


def test_candidates_keep_strong_pseudocounts():
    candidates = schedule().for_candidates()
    assert candidates.settled == FORMING
    assert candidates.tol == pytest.approx(1e-3)
    assert candidates.phases()[-1] == Phase(1.0, FORMING, candidates.tol)


def test_comparing_takes_its_iterations_with_weak_pseudocounts():
    compared = schedule().for_comparing(7)
    assert (compared.forming, compared.max_iter, compared.tol) == (SETTLED, 7, 0.0)


def test_a_gradual_layout_forms_between_two_betas():
    forming = schedule(Annealing(0.01, 1.1, 1.0), is_validated=True, max_iter=1000).for_forming()
    betas = [phase.beta for phase in forming.phases()]
    assert betas[0] == pytest.approx(REFINING * 0.01)
    assert betas[-1] < GRADUALLY_FORMED * 0.01 <= betas[-1] * 1.07
    assert all(phase.is_annealing and phase.eta == FORMING for phase in forming.phases())
    assert forming.max_iter == len(betas)
    assert not forming.is_validated
    late = schedule(Annealing(0.3, 1.1, 1.0), max_iter=1000).for_forming()
    assert 0.6 <= late.phases()[0].beta <= late.phases()[-1].beta < 1


def test_the_full_grid_starts_from_where_its_layout_is():
    refined = schedule(Annealing(0.01, 1.1, 1.0), max_iter=1000).for_refining().annealing
    assert (refined.start, refined.rate, refined.end) == (pytest.approx(REFINING * 0.01), QUICK_RATE, 1.0)
    formed = schedule(Annealing(0.01, 1.1, 1.0), max_iter=1000).for_refining(is_formed=True).annealing
    assert (formed.start, formed.rate) == (pytest.approx(KEEPING * 0.01), FORMING_RATE)
    hot = schedule(Annealing(0.9, 1.1, 1.0)).for_refining().annealing
    assert hot.start == 1.0
    hurried = schedule(Annealing(0.01, 1.1, 1.0), max_iter=20).for_refining().annealing
    assert len(hurried.betas()) in (10, 11)


@pytest.mark.parametrize(
    ("start", "is_validated", "is_gradual"), [(0.01, True, True), (0.01, False, False), (0.02, True, False)]
)
def test_held_out_bags_end_a_gradual_run_early(start, is_validated, is_gradual):
    given = schedule(Annealing(start, 1.1, 1.0), is_validated=is_validated)
    assert given.is_gradual is is_gradual
    assert given.for_refining().scored_from == (pytest.approx(KEEPING * start) if is_gradual else np.inf)


def test_settling_starts_where_it_is_told_and_at_most_at_the_end():
    assert schedule().for_settling(0.5).annealing.start == 0.5
    assert schedule(Annealing(0.1, 2.0, 0.7)).for_settling(0.9).annealing == Annealing(0.7, QUICK_RATE, 0.7)
    assert schedule(None).for_settling(3.0).annealing.end == 1.0


@pytest.mark.parametrize("lengths", [[1, 1, 1], [1, 2, 5]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bags_that_are_all_alike_have_no_critical_beta(lengths, dtype):
    counts = np.outer(lengths, [3.0, 0.0, 1.0, 0.5]).astype(dtype)
    assert critical_beta(counts, np.ones(3)) == np.inf
    counts[0, 0] += 1
    assert critical_beta(counts, np.ones(3)) < 1e4
