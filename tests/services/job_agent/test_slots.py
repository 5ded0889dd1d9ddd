"""What goes wrong with one job, or with one message, ends that alone: the pilot goes on with the others."""

import asyncio
import sys

import pytest

from services.job_agent import slots
from services.job_agent.leased_jobs import LeasedJob, LeasedJobs
from services.job_agent.offered_job import read
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.workplace import Workplace
from services.job_agent.slots import Slots
from tests.services.job_agent.payload.processes import until
from tests.unit.job_agent.examples import failing, offered
from wms.ids import AttemptId
from wms.job.reasons import Code
from wms.messages.reports import Result, UsageOverTime


class Heard:
    """Stands for a reporter, and keeps what it is told."""

    def __init__(self) -> None:
        self.results: dict[AttemptId, Result] = {}

    def start(self, held: AttemptId) -> None: ...

    def decline(self, held: list[AttemptId]) -> None: ...

    def finish(self, result: Result, usage: UsageOverTime | None = None) -> None:
        self.results[result.attempt_id] = result


class Running:
    """Slots at work, with what they hold and report."""

    def __init__(self, workplace: Workplace) -> None:
        self.holdings = LeasedJobs(slots=8, memory_mb=1_000)
        self.heard = Heard()
        self.slots = Slots(workplace, self.holdings, self.heard, lambda: None)  # type: ignore[arg-type]

    def hold(self, number: int, *argv: str) -> LeasedJob:
        return self.holdings.take(read(offered(number, executable=argv[0], arguments=argv[1:])))

    def code(self, holding: LeasedJob) -> Code | None:
        result = self.heard.results.get(holding.attempt_id)
        return None if result is None else result.code


async def test_a_lease_that_cannot_be_taken_up_fails_its_own_job(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(workplace)
    with monkeypatch.context() as patched:
        patched.setattr(
            slots,
            "Payload",
            lambda where, job_id, *more, **named: (
                failing() if job_id == 1 else Payload(where, job_id, *more, **named)
            ),
        )
        async with asyncio.TaskGroup() as group:
            running.slots.group = group
            both = [running.hold(1, "true"), running.hold(2, "true")]
            running.slots.on_each(both, lambda each: running.slots.grant(each, now() + 60))
            running.slots.fill()
    assert [running.code(each) for each in both] == [Code.AGENT_ERROR, Code.DONE]
    assert (
        running.heard.results[both[0].attempt_id].text == "a fault of the agent's own: FaultError: injected"
    )
    assert running.heard.results[both[0].attempt_id].outcome == "lost"
    assert not len(running.holdings)


async def test_an_order_about_one_job_that_fails_ends_that_job(workplace: Workplace) -> None:
    running = Running(workplace)
    async with asyncio.TaskGroup() as group:
        running.slots.group = group
        first, second = running.hold(1, "sleep", "1000"), running.hold(2, "sleep", "1000")
        for each in (first, second):
            running.slots.grant(each, now() + 60)
        running.slots.fill()
        await until(lambda: all(each.payload and each.payload.pid for each in (first, second)))
        running.slots.on_each([first], failing)
        await until(lambda: running.code(first))
        assert running.code(second) is None
        running.slots.kill(second)
    assert (running.code(first), running.code(second)) == (Code.AGENT_ERROR, Code.KILLED_BY_USER)


async def test_a_result_that_cannot_be_told_is_told_as_a_fault(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.job_agent.slots.result_of", failing)
    running = Running(workplace)
    async with asyncio.TaskGroup() as group:
        running.slots.group = group
        holding = running.hold(1, "true")
        running.slots.grant(holding, now() + 60)
        running.slots.fill()
    assert running.code(holding) is Code.AGENT_ERROR


DEEP = """
import os
for _ in range(3000):
    os.mkdir("a-directory")
    os.chdir("a-directory")
"""


async def test_directories_deeper_than_the_stack_and_any_path_are_removed(workplace: Workplace) -> None:
    running = Running(workplace)
    async with asyncio.TaskGroup() as group:
        running.slots.group = group
        holding = running.hold(1, sys.executable, "-c", DEEP)
        running.slots.grant(holding, now() + 60)
        running.slots.fill()
        await until(lambda: holding.payload is not None)
        assert holding.payload is not None
        directory = holding.payload._place.directory
    assert not directory.exists()
