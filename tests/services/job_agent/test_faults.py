"""What goes wrong with one job, or with one message, ends that alone: the pilot goes on with the others."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import pytest_asyncio
import uvloop

from services.job_agent.__main__ import crash_words
from services.job_agent.leased_jobs import LeasedJob, LeasedJobs
from services.job_agent.offered import read
from services.job_agent.payload.limits import PayloadLimits
from services.job_agent.payload.outcome import not_begun
from services.job_agent.payload.processes import Processes, SpawnOrder
from services.job_agent.payload.run import Workplace
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.usage_sampling import Watched
from services.job_agent.prefetch import Prefetch
from services.job_agent.reporter import RESULTS_SECONDS, PilotStatus, Reporter
from services.job_agent.slots import Slots
from tests.services.job_agent.payload.processes import until
from tests.services.job_agent.test_parts import Nobody, offered
from wms.dispatch.port import LAST_LINE_LIMIT, last_line
from wms.errors import Unavailable
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.messages.reports import Result
from wms.transfer import open_store


def reporter() -> Reporter:
    return Reporter(Nobody(), PilotId("p"), lambda: PilotStatus("running", 1, 0))  # type: ignore[arg-type]


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


def test_a_lease_that_goes_on_while_the_shepherd_dies_is_no_fault(tmp_path: Path) -> None:
    async def renew_on_and_on() -> None:
        async with Processes() as processes:
            process = await processes.spawn(order(tmp_path, "sleep", "1000"))
            assert processes.shepherd_pid is not None
            os.kill(processes.shepherd_pid, signal.SIGKILL)
            while not process.ended.done():
                process.live_until(now() + 60)
                process.signal(signal.SIGTERM)
                await asyncio.sleep(0)
            process.live_until(None)
            assert (await process.ended).lost

    uvloop.run(renew_on_and_on())


def order(directory: Path, *argv: str, **more: Any) -> SpawnOrder:
    where: dict[str, Any] = {
        "cwd": str(directory),
        "stdout": f"{directory}/out",
        "stderr": f"{directory}/err",
    }
    return SpawnOrder(argv=argv, env={"PATH": os.defpath}, **where, **more)


async def test_an_order_that_cannot_be_carried_out_fails_alone(tmp_path: Path) -> None:
    async with Processes() as processes:
        other = await processes.spawn(order(tmp_path, "sleep", "1000"))
        with pytest.raises(Unavailable, match="its limits cannot be set"):
            await processes.spawn(order(tmp_path, "true", rlimits={"NOTHING": 1}))
        assert not other.ended.done()
        await (await processes.spawn(order(tmp_path, "true"))).ended
        other.kill()


@pytest_asyncio.fixture(loop_scope="session")
async def workplace(tmp_path: Path) -> AsyncIterator[Workplace]:
    store = open_store(f"file://{tmp_path / 'store'}")
    async with Workplace(
        root=tmp_path / "run", store=store, site=SiteName("S"), pilot_id=PilotId("p")
    ) as each:
        yield each


class Heard:
    """Stands for a reporter, and keeps what it is told."""

    def __init__(self) -> None:
        self.results: dict[AttemptId, Result] = {}

    def start(self, held: AttemptId) -> None: ...

    def decline(self, held: list[AttemptId]) -> None: ...

    def finish(self, result: Result) -> None:
        self.results[result.attempt_id] = result


class Running:
    """Slots at work, with what they hold and report."""

    def __init__(self, workplace: Workplace) -> None:
        self.holdings = LeasedJobs(slots=8, memory_mb=1_000)
        self.heard = Heard()
        self.slots = Slots(workplace, self.holdings, self.heard, Prefetch(0.5), lambda: None)  # type: ignore[arg-type]

    def hold(self, number: int, *argv: str) -> LeasedJob:
        return self.holdings.take(read(offered(number, executable=argv[0], arguments=argv[1:])))

    def code(self, holding: LeasedJob) -> Code | None:
        result = self.heard.results.get(holding.attempt_id)
        return None if result is None else result.code


class FaultError(Exception):
    """A fault injected by a test."""


def failing(*_: object, **__: object) -> Any:
    raise FaultError("injected")


async def test_a_lease_that_cannot_be_taken_up_fails_its_own_job(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(workplace)
    real = workplace.payload
    with monkeypatch.context() as patched:
        patched.setattr(
            workplace,
            "payload",
            lambda job_id, *more: failing() if job_id == 1 else real(job_id, *more),
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


async def test_who_cannot_be_watched_is_ended_and_nobody_else() -> None:
    faults: list[Exception] = []
    watched = Watched(None, PayloadLimits(), lambda: 0, failing, faults.append)  # type: ignore[arg-type]
    with watched.answering():
        watched.saw_disk(1, 0.0)
    assert [str(error) for error in faults] == ["injected"]


def test_a_pilots_crash_is_one_plain_sentence() -> None:
    words = crash_words(ExceptionGroup("unhandled errors", [ExceptionGroup("more", [_raised()])]))
    assert words.startswith("the pilot ended through a fault of its own: AttributeError: no such ")
    assert "(test_agent_faults.py, line " in words
    assert len(words) < LAST_LINE_LIMIT


def _raised() -> Exception:
    try:
        _raise(AttributeError("no such\n thing " + "word " * 100))
    except AttributeError as error:
        return error


def _raise(error: Exception) -> NoReturn:
    raise error


def test_the_last_line_of_a_log_is_for_people() -> None:
    log = '{"event": "pilot drains", "level": "info", "reason": "told to end"}\n\n'
    assert last_line(log) == "pilot drains: told to end"
    assert last_line('{"event": "agent failed", "exception": "Traceback ..."}') == "agent failed"
    long = last_line("word " * 200)
    assert long.endswith("word ...")
    assert len(long) <= LAST_LINE_LIMIT + 4
