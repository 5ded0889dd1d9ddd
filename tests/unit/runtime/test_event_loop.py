"""How long one callback keeps the event loop is measured by processor time, and told with its task."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

import pytest

from wms.runtime.event_loop import GARBAGE, IO, LoopHolds, MeasuredLoop, measured
from wms.runtime.service_health import LoopHealth, LoopHold


def longest(main: Callable[[], Awaitable[None]]) -> LoopHold:
    """Run a coroutine on a measured loop, and return the longest hold; what was before it does not count."""

    async def run() -> LoopHealth:
        compute(0.1)
        await asyncio.sleep(0)
        health = measured(asyncio.get_running_loop())
        await main()
        await asyncio.sleep(0)
        return health()

    with asyncio.Runner(loop_factory=MeasuredLoop) as runner:
        found = runner.run(run())
    return found.last_minute or LoopHold(name="", processor_ms=0, ms=0, at=0)


def compute(seconds: float) -> None:
    """Use so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        """Stand for work that gives way to nobody."""


async def work(seconds: float, steps: int = 1) -> None:
    for _ in range(steps):
        compute(seconds)
        await asyncio.sleep(0)


def test_a_long_step_is_told_with_its_task() -> None:
    async def main() -> None:
        await asyncio.create_task(work(0.08), name="sums")

    hold = longest(main)
    assert hold.name == "sums"
    assert 80 <= hold.processor_ms < 100
    assert hold.ms >= hold.processor_ms - 6
    assert LoopHealth(last_minute=hold).in_words().endswith(": sums")


def test_a_task_without_a_name_is_told_by_its_coroutine() -> None:
    async def main() -> None:
        await asyncio.gather(work(0.02))

    assert longest(main).name == "work"


def test_short_steps_are_no_long_hold_together() -> None:
    async def main() -> None:
        await asyncio.gather(*(work(0.002, steps=10) for _ in range(10)))

    assert longest(main).processor_ms < 20


def test_a_step_that_waits_for_the_processor_is_no_hold() -> None:
    async def main() -> None:
        time.sleep(0.2)  # as on a machine that gives the thread no processor

    hold = longest(main)
    assert hold.processor_ms < 20
    assert LoopHealth(last_minute=hold).in_words() == ""


def test_what_runs_between_tasks_is_not_laid_at_their_door() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, compute, 0.08)
        await asyncio.create_task(asyncio.sleep(0.02), name="innocent")

    hold = longest(main)
    assert hold.name == IO
    assert 75 <= hold.processor_ms < 100


def test_a_hold_by_garbage_collection_is_told_as_such() -> None:
    async def main() -> None:
        many = [[n] for n in range(100_000)]
        for _ in range(3):
            gc.collect()
        assert many

    gc.disable()
    try:
        assert longest(main).name == GARBAGE
    finally:
        gc.enable()


def test_the_longest_of_the_last_minute_gives_way_to_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("wms.runtime.clock.timestamp", lambda: now)
    holds = LoopHolds()
    told = []
    for seconds in (0.02, 0.08, 0.04):
        holds._note("task", seconds, seconds, now)
        now += 25
        told.append(holds.health().last_minute)
    assert [each and each.processor_ms for each in told] == [20, 80, 80]
    now += 20  # 70 s after the longest
    health = holds.health()
    assert health.last_minute is not None
    assert health.last_minute.processor_ms == 40
    assert health.since_start is not None
    assert health.since_start.processor_ms == 80


def test_a_loop_that_is_not_measured_tells_nothing() -> None:
    async def main() -> LoopHealth:
        return measured(asyncio.get_running_loop())()

    assert asyncio.run(main()) == LoopHealth()
