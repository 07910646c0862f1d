import threading
import time
from functools import reduce

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from countinggrids import engine


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_come_in_the_order_of_the_items(n_threads):
    barrier = threading.Event()

    def late(item):
        if item == 0 and n_threads > 1:
            barrier.wait(5)
        barrier.set()
        return item * item

    assert list(engine.Threads(n_threads).map(late, range(20))) == [n * n for n in range(20)]


@pytest.mark.parametrize(("name", "value", "wanted"), [("COUNTINGGRIDS_THREADS", "3", 3), ("OMP_NUM_THREADS", "5", 5)])
def test_the_environment_sets_the_number_of_threads(monkeypatch, name, value, wanted):
    monkeypatch.delenv("COUNTINGGRIDS_THREADS", raising=False)
    monkeypatch.setenv(name, value)
    assert engine.default().n_threads == wanted


def test_nonsense_in_the_environment_is_passed_over(monkeypatch):
    monkeypatch.setenv("COUNTINGGRIDS_THREADS", "many")
    assert engine.default().n_threads >= 1


def test_an_engine_is_in_use_inside_its_block_only():
    mine = engine.Threads(7)
    with engine.use(mine):
        assert engine.default() is mine
    assert engine.default() is not mine


def test_blas_gets_its_threads_back_when_the_last_of_overlapping_fits_ends():
    before = blas_threads()
    with engine.one_blas_thread():
        with engine.one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_blas_gets_its_threads_back_after_an_error():
    def fail():
        with engine.one_blas_thread():
            raise RuntimeError

    before = blas_threads()
    with pytest.raises(RuntimeError):
        fail()
    assert blas_threads() == before


def test_the_limit_holds_whichever_thread_sets_it():
    def inside_and_after():
        with engine.one_blas_thread():
            inside = blas_threads()
        seen.append((inside, blas_threads()))

    seen = []
    with threadpool_limits(2, user_api="blas"):
        for _ in range(3):
            thread = threading.Thread(target=inside_and_after)
            thread.start()
            thread.join()
        inside_and_after()
    assert seen == [({1}, {2})] * 4


def test_the_limit_may_be_lifted_in_another_thread_than_it_was_set_in():
    def last():
        with engine.one_blas_thread():
            entered.set()
            first_has_left.wait(10)

    entered, first_has_left = threading.Event(), threading.Event()
    with threadpool_limits(2, user_api="blas"):
        with engine.one_blas_thread():
            thread = threading.Thread(target=last)
            thread.start()
            assert entered.wait(10)
        assert blas_threads() == {1}
        first_has_left.set()
        thread.join()
        assert blas_threads() == {2}


@pytest.mark.parametrize("bad", [0, 3, 19])
def test_an_error_in_any_piece_comes_out_and_nothing_runs_on(bad):
    def work(piece):
        done.append(piece)
        if piece == bad:
            raise ValueError(f"piece {piece}")

    done = []
    with pytest.raises(ValueError, match=f"piece {bad}"):
        engine.Threads(3).map(work, range(20))
    n_done = len(done)
    time.sleep(0.05)
    assert len(done) == n_done


def test_pieces_run_beside_each_other():
    barrier = threading.Barrier(3, timeout=10)
    assert list(engine.Threads(3).map(lambda _: barrier.wait() >= 0, range(3))) == [True] * 3


def test_work_may_be_cut_again_inside_a_piece():
    threads = engine.Threads(2)
    assert list(threads.map(lambda n: sum(threads.map(abs, range(n))), range(5))) == [0, 0, 1, 3, 6]


@pytest.mark.parametrize("n_parts", [1, 2, 7, 8, 9, 64, 65, 200])
def test_parts_are_added_in_one_fixed_tree(n_parts):
    def plus(total, part):
        return f"({total}+{part})"

    wanted, fan = [str(n) for n in range(n_parts)], engine.FAN
    while len(wanted) > 1:
        wanted, fan = [reduce(plus, wanted[i : i + fan]) for i in range(0, len(wanted), fan)], engine.HIGHER
    assert engine.added_up(map(str, range(n_parts)), plus) == wanted[0]


def test_few_sums_are_held_while_adding_up():
    class Sum:
        alive = 0
        most = 0

        def __init__(self):
            Sum.alive += 1
            Sum.most = max(Sum.most, Sum.alive)

        def __del__(self):
            Sum.alive -= 1

        def plus(self, other):
            return self

    engine.Threads(1).total(lambda share, engine: Sum(), range(64))
    assert Sum.most == 4
