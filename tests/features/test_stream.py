"""Streams: lazy, in order, bounded, and without bad items if these are skipped."""

import threading
import time

import pytest

from countinggrids.features import BadItemError, Stream


def picky(number):
    if number % 3 == 0:
        raise BadItemError(f"{number} is divisible by three")
    return number * 10


def test_results_come_in_order_whatever_the_number_of_threads():
    def work(number):
        time.sleep(0.001 * (number % 5))
        return number

    for n_jobs in (1, 2, 7, -1, None):
        assert list(Stream(range(40), work, n_jobs)) == list(range(40))


def test_a_list_can_be_gone_through_again_and_a_generator_once():
    again = Stream([1, 2], str)
    once = Stream(iter([1, 2]), str)
    assert (list(again), list(again)) == (["1", "2"], ["1", "2"])
    assert (list(once), list(once)) == (["1", "2"], [])


def test_only_a_few_items_are_read_ahead():
    read = []

    def source():
        for i in range(10_000):
            read.append(i)
            yield i

    stream = iter(Stream(source(), str, n_jobs=2))
    next(stream)
    assert len(read) < 20
    stream.close()


def test_nothing_goes_on_when_nobody_asks_any_more():
    stream = iter(Stream(range(1000), lambda number: time.sleep(0.001), n_jobs=3))
    next(stream)
    stream.close()
    assert not [thread for thread in threading.enumerate() if "countinggrids-features" in thread.name]


def test_a_stream_left_half_read_does_not_hold_blas_back():
    from threadpoolctl import threadpool_info

    before = threadpool_info()
    half = iter(Stream(range(3), str))
    next(half)
    time.sleep(0.1)
    assert threadpool_info() == before
    half.close()


def test_bad_items_are_raised_or_skipped():
    with pytest.raises(BadItemError, match="0 is divisible"):
        list(Stream(range(5), picky))
    stream = Stream(range(7), picky, on_error="skip")
    assert list(stream.enumerate()) == [(1, 10), (2, 20), (4, 40), (5, 50)]
    assert [place for place, _ in stream.skipped] == [0, 3, 6]
    assert stream.skipped[1].reason == "3 is divisible by three"
    list(stream)
    assert len(stream.skipped) == 3


def test_other_errors_are_never_swallowed():
    with pytest.raises(ZeroDivisionError):
        list(Stream([1, 0], lambda number: 1 / number, on_error="skip"))


def test_work_can_be_chained_and_parts_taken():
    stream = Stream(range(8), picky, on_error="skip").then(lambda number: number + 1)
    assert list(stream) == [11, 21, 41, 51, 71]
    assert list(stream.subset([7, 1])) == [71, 11]


def test_progress_is_reported():
    calls = []
    list(Stream([1, 2], str, callback=lambda done, total: calls.append((done, total))))
    list(Stream(iter([1]), str, callback=lambda done, total: calls.append((done, total))))
    assert calls == [(1, 2), (2, 2), (1, None)]


def test_progress_is_written_every_two_seconds(capsys, monkeypatch):
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr("countinggrids.features.stream.time.monotonic", lambda: next(clock))
    list(Stream([1, 2], str, verbose=1))
    assert capsys.readouterr().err == "1 of 2, 3 s left\n2 of 2, 0 s left\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("photo.jpg", str), "source='photo.jpg' must be several items, such as a list of paths; use a list of one"),
        ((3, str), "source=3 must be several items"),
        (([], str, 0), "n_jobs=0 must be None or a number of threads"),
        (([], str, None, "ignore"), "on_error='ignore' must be 'raise' or 'skip'"),
    ],
)
def test_wrong_use_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Stream(*arguments)
