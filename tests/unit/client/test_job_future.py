"""Results of calls in order, with a bound on how many calls are ahead."""

import threading
from itertools import count, islice
from typing import Any

import pytest

from wms.client.job_future import CallWindow, JobFuture


class Calls:
    """An executor that ends each call at once, or never if its argument is negative."""

    def __init__(self, places: int) -> None:
        self.room = threading.Semaphore(places)
        self.futures: list[JobFuture[int]] = []

    def submit(self, row: tuple[Any, ...]) -> JobFuture[int]:
        future: JobFuture[int] = JobFuture()
        self.futures.append(future)
        if row[0] >= 0:
            self.room.release()
            future.set_result(row[0] ** 2)
        return future

    def window(self, numbers: Any, ahead: int = 100, timeout: float | None = 60) -> CallWindow[int]:
        return CallWindow(self.submit, zip(numbers), self.room, ahead=ahead, timeout=timeout)


def test_endless_arguments_are_taken_a_few_ahead() -> None:
    calls = Calls(50)
    results = calls.window(count(), ahead=3).results()
    assert len(calls.futures) == 3
    assert list(islice(results, 4)) == [0, 1, 4, 9]
    assert len(calls.futures) == 7


def test_more_calls_than_there_is_room_for_wait_for_it() -> None:
    calls = Calls(2)
    assert list(calls.window(range(100)).results()) == [n**2 for n in range(100)]
    assert calls.room.acquire(blocking=False)
    assert calls.room.acquire(blocking=False)
    threading.Timer(0.05, calls.room.release).start()  # another call ends
    assert list(calls.window(range(2)).results()) == [0, 1]


def test_what_is_too_late_is_cancelled_and_told() -> None:
    calls = Calls(3)
    with pytest.raises(TimeoutError):
        list(calls.window([4, -1, -1], timeout=0.01).results())
    assert [future.cancelled() for future in calls.futures] == [False, True, True]
    with pytest.raises(TimeoutError):
        Calls(0).window([1], timeout=0.01)


def test_an_error_of_the_arguments_takes_no_room() -> None:
    calls = Calls(1)
    with pytest.raises(ZeroDivisionError):
        calls.window(1 // n for n in [0])
    assert calls.room.acquire(blocking=False)


def test_a_future_runs_from_the_start_of_its_job_to_its_result() -> None:
    future: JobFuture[int] = JobFuture()
    told = [future.running()]
    future.started = True
    told.append(future.running())
    future.set_result(1)
    assert [*told, future.running()] == [False, True, False]
