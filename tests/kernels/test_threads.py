import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from countinggrids.kernels import threads


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

    assert list(threads.Threads(n_threads).map(late, range(20))) == [n * n for n in range(20)]


@pytest.mark.parametrize(("name", "value", "wanted"), [("COUNTINGGRIDS_THREADS", "3", 3), ("OMP_NUM_THREADS", "5", 5)])
def test_the_environment_sets_the_number_of_threads(monkeypatch, name, value, wanted):
    monkeypatch.delenv("COUNTINGGRIDS_THREADS", raising=False)
    monkeypatch.setenv(name, value)
    assert threads.default().n_threads == wanted


def test_nonsense_in_the_environment_is_passed_over(monkeypatch):
    monkeypatch.setenv("COUNTINGGRIDS_THREADS", "many")
    assert threads.default().n_threads >= 1


def test_an_engine_is_in_use_inside_its_block_only():
    mine = threads.Threads(7)
    with threads.use(mine):
        assert threads.default() is mine
    assert threads.default() is not mine


def test_blas_gets_its_threads_back_when_the_last_of_overlapping_fits_ends():
    before = blas_threads()
    with threads.one_blas_thread():
        with threads.one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_blas_gets_its_threads_back_after_an_error():
    def fail():
        with threads.one_blas_thread():
            raise RuntimeError

    before = blas_threads()
    with pytest.raises(RuntimeError):
        fail()
    assert blas_threads() == before


def test_the_limit_holds_whichever_thread_sets_it():
    def inside_and_after():
        with threads.one_blas_thread():
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
        with threads.one_blas_thread():
            entered.set()
            first_has_left.wait(10)

    entered, first_has_left = threading.Event(), threading.Event()
    with threadpool_limits(2, user_api="blas"):
        with threads.one_blas_thread():
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
        threads.Threads(3).map(work, range(20))
    n_done = len(done)
    time.sleep(0.05)
    assert len(done) == n_done


def test_pieces_run_beside_each_other():
    barrier = threading.Barrier(3, timeout=10)
    assert list(threads.Threads(3).map(lambda _: barrier.wait() >= 0, range(3))) == [True] * 3


def test_work_may_be_cut_again_inside_a_piece():
    pool = threads.Threads(2)
    assert list(pool.map(lambda n: sum(pool.map(abs, range(n))), range(5))) == [0, 0, 1, 3, 6]
