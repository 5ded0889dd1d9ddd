"""Slices: preparations take turns in one thread, each owner within an allowance, and a fault is its message's own."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

import pytest

from wms.bus.delivery import Steps
from wms.bus.time_slices import PreparationOutcome, PreparationWork, TimeSlices


@pytest.fixture
async def slices() -> AsyncIterator[TimeSlices]:
    found = TimeSlices()
    yield found
    found.close()


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def work(steps: Steps, owner: str = "ann") -> PreparationWork:
    return PreparationWork(owner=owner, steps=steps, outcome=PreparationOutcome())


def returning(value: object, *, steps: int = 1, seconds: float = 0.0) -> Steps:
    for _ in range(steps):
        burn(seconds)
        yield
    return value


def failing() -> Steps:
    yield
    raise ValueError("of this message")


async def test_works_are_done_in_their_order_with_their_values(slices: TimeSlices) -> None:
    works = [work(returning(n)) for n in range(50)]
    await slices.run(works, 10.0)
    assert [each.outcome.value for each in works] == list(range(50))
    assert all(each.outcome.is_done for each in works)


async def test_a_fault_is_the_messages_own(slices: TimeSlices) -> None:
    works = [work(failing()), work(returning("fine"))]
    await slices.run(works, 10.0)
    bad, good = (each.outcome for each in works)
    assert isinstance(bad.error, ValueError)
    assert (bad.is_done, bad.value) == (True, None)
    assert (good.is_done, good.value, good.error) == (True, "fine", None)


async def test_who_has_used_the_allowance_is_given_up_and_others_are_not(slices: TimeSlices) -> None:
    closed: list[bool] = []

    def endless() -> Steps:
        try:
            while True:
                burn(0.005)
                yield
        finally:
            closed.append(True)

    works = [work(endless()), work(returning("late"), "ann"), work(returning("other"), "bob")]
    await slices.run(works, 0.03)
    assert [each.outcome.is_done for each in works] == [False, False, True]
    assert works[0].outcome.seconds == pytest.approx(0.03, abs=0.02)
    assert closed == [True]


async def test_two_that_prepare_take_turns_by_the_slice(slices: TimeSlices) -> None:
    order: list[str] = []

    def noted(name: str) -> Iterator[None]:
        for _ in range(40):
            burn(0.002)
            order.append(name)
            yield

    async def run(name: str) -> None:
        await slices.run([work(noted(name), name)], 10.0)  # type: ignore[arg-type]  # it returns nothing

    await asyncio.gather(run("a"), run("b"))
    turns = sum(one != two for one, two in pairwise(order))
    assert 2 <= turns < 20, "neither waits for the other's end, and not each step changes turns"


async def test_all_is_done_in_one_thread_beside_the_loop(slices: TimeSlices) -> None:
    threads: set[int] = set()

    def where() -> Steps:
        threads.add(threading.get_ident())
        yield
        return None

    steps: list[int] = []
    await slices.run([work(where()) for _ in range(3)], 1.0, lambda: steps.append(1))
    await slices.call(lambda: threads.add(threading.get_ident()))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert steps
