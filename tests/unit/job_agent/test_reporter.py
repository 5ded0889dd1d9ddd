"""The reporter by itself: what it sends, when, and how it ends."""

import asyncio

import pytest
import uvloop

from services.job_agent.payload.outcome import not_begun
from services.job_agent.payload.shepherd import now
from services.job_agent.reporter import RESULTS_SECONDS
from tests.unit.job_agent.examples import reporter
from wms.ids import AttemptId, Epoch, JobId
from wms.job.reasons import Code, Reason


@pytest.mark.parametrize("steps", range(6))
async def test_reporting_ends_though_something_falls_due_as_it_is_told_to(steps: int) -> None:
    telling = reporter()
    task = asyncio.create_task(telling.run())
    await turns(3)
    telling.report_status()
    await turns(steps)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5)
    assert done
    assert task.cancelled()


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("left_ms", [0.9, 0.5, 0.3, 0.01])
def test_reports_fall_due_within_less_than_a_millisecond(left_ms: float) -> None:
    async def finish_twice() -> None:
        telling = reporter()
        telling._results_at = now() - RESULTS_SECONDS + left_ms / 1000
        for number in (1, 2):
            telling.finish(not_begun(AttemptId(JobId(number), Epoch(1)), Reason(Code.DONE)))
        telling._due_within(left_ms / 1000)
        telling._due_within(left_ms / 2000)
        await telling._due.wait()

    uvloop.run(finish_twice())


def test_what_falls_due_sooner_replaces_what_falls_due_later() -> None:
    async def hurried() -> None:
        telling = reporter()
        telling._due_within(1000.0)
        telling._due_within(0.0004)
        telling._due_within(500.0)
        async with asyncio.timeout(30):
            await telling._due.wait()

    uvloop.run(hurried())
