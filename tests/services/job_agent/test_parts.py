"""Parts of the agent by themselves: the bet on short jobs, the line of those that may start, results in words, reports."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.job_agent.leased_jobs import LeasedJob, LeasedJobs
from services.job_agent.match_requests import MatchRequests
from services.job_agent.node import NodeJudge
from services.job_agent.offered import read
from services.job_agent.payload.limits import limits_of
from services.job_agent.payload.outcome import not_begun, result_of
from services.job_agent.payload.run import PayloadOutcome
from services.job_agent.prefetch import AHEAD_LIMIT, Prefetch
from services.job_agent.reporter import PilotStatus, Reporter
from services.job_agent.resource import describe
from wms.errors import Unavailable
from wms.ids import AttemptId, Epoch, JobId, PilotId, RequestId
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.messages.site_inbox import Offer, OfferedJob
from wms.runtime.pilot_config import PilotConfig


def offered(number: int, **description: object) -> OfferedJob:
    text = msgspec.json.encode({"executable": "true", **description})
    return OfferedJob(
        job_id=JobId(number),
        epoch=Epoch(1),
        owner="a",
        owner_group="g",
        vo="v",
        description=msgspec.Raw(text),
    )


def in_line(holdings: LeasedJobs, number: int, at: float = 0.0, **description: object) -> LeasedJob:
    holding = holdings.take(read(offered(number, **description)))
    holding.expires_at = 1e9
    holdings.make_ready(holding, at)
    return holding


def begin(holdings: LeasedJobs) -> LeasedJob | None:
    holding = holdings.next_to_start()
    if holding is not None:
        holding.payload = object()  # type: ignore[assignment]
    return holding


def test_nothing_is_fetched_ahead_until_a_job_has_ended() -> None:
    assert Prefetch(0.5).ahead(4, []) == 0


def test_one_short_job_is_enough_to_learn() -> None:
    pace = Prefetch(0.5)
    pace.ended(0.01)
    assert pace.ahead(4, []) == 4 * AHEAD_LIMIT


def test_what_is_fetched_ahead_lasts_for_about_the_time_asked_for() -> None:
    pace = Prefetch(0.5)
    pace.ended(0.1)
    assert pace.ahead(4, []) == 20


def test_jobs_that_run_on_make_it_forget_at_once() -> None:
    pace = Prefetch(0.5)
    for _ in range(100):
        pace.ended(0.01)
    assert pace.ahead(4, [3.0, 3.0, 3.0, 0.0]) == 0
    # One of four that is long does not: the others' slots would wait.
    assert pace.ahead(4, [300.0, 0.0, 0.0, 0.0]) == 4 * AHEAD_LIMIT


def test_a_few_long_jobs_are_enough_to_unlearn() -> None:
    pace = Prefetch(0.5)
    for seconds in [0.01] * 100 + [5.0] * 5:
        pace.ended(seconds)
    assert pace.ahead(4, []) == 0


def test_who_stands_in_the_line_begins_in_turn_as_there_is_room() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000)
    wide = [in_line(holdings, number, processors=2) for number in (1, 2, 3)]
    narrow = in_line(holdings, 4)
    assert [begin(holdings), begin(holdings)] == wide[:2]
    assert begin(holdings) is None
    holdings.drop(wide[0])
    assert begin(holdings) is wide[2]
    assert begin(holdings) is None
    holdings.drop(wide[1])
    assert begin(holdings) is narrow
    assert holdings.busy == 3


def test_memory_is_room_too() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000)
    first, second = in_line(holdings, 1, memory_mb=600), in_line(holdings, 2, memory_mb=600)
    assert begin(holdings) is first
    assert begin(holdings) is None
    holdings.drop(first)
    assert begin(holdings) is second


def test_who_can_use_more_processors_gets_those_that_nobody_holds() -> None:
    holdings = LeasedJobs(slots=8, memory_mb=1_000)
    narrow = in_line(holdings, 1, processors=2)
    some, any_number = (
        in_line(holdings, 2, min_processors=1, max_processors=3),
        in_line(holdings, 3, min_processors=1),
    )
    assert [begin(holdings) for _ in range(3)] == [narrow, some, any_number]
    assert [each.processors for each in (narrow, some, any_number)] == [2, 3, 3]
    assert holdings.busy == 8


def test_who_wants_a_whole_node_runs_alone() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000)
    narrow, whole = in_line(holdings, 1), in_line(holdings, 2, whole_node=True)
    assert begin(holdings) is narrow
    assert begin(holdings) is None
    holdings.drop(narrow)
    assert begin(holdings) is whole
    assert holdings.processors == 4


def pilot_config(directory: Path, slots: int = 4, **resource: Any) -> PilotConfig:
    pilot = {"pilot_id": "p", "site": "s", "ce": "c", "vo": "v", "slots": slots}
    more = {"token_file": "t", "directory": str(directory)}
    told = {"pilot": pilot | more, "sandboxes": {"url": "file:///s"}, "resource": resource}
    return msgspec.convert(told, PilotConfig)


def test_a_pilot_tells_its_free_disk_in_two_digits_without_what_it_promised(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free // 2**20
    config = pilot_config(tmp_path)
    whole = describe(config, free=4, memory_taken_mb=0, seconds_left=60).disk_mb
    assert free * 0.85 < whole <= free
    assert not str(whole)[2:].strip("0")
    less = describe(config, free=3, memory_taken_mb=0, disk_taken_mb=free // 2, seconds_left=60).disk_mb
    assert less < 0.6 * whole
    assert describe(config, free=3, memory_taken_mb=0, disk_taken_mb=10**9, seconds_left=60).disk_mb == 1
    gone = pilot_config(tmp_path / "nowhere")
    assert describe(gone, free=4, memory_taken_mb=0, seconds_left=60).disk_mb == 0


def test_a_pilot_that_runs_something_has_no_whole_node_to_give(tmp_path: Path) -> None:
    config = pilot_config(tmp_path, tags=["WholeNode", "gpu"])
    assert describe(config, free=4, memory_taken_mb=0, seconds_left=60).tags == ("WholeNode", "gpu")
    assert describe(config, free=3, memory_taken_mb=0, seconds_left=60).tags == ("gpu",)


def test_the_most_memory_is_the_limit_where_it_is_said() -> None:
    assert limits_of(JobDescription(executable="x", memory_mb=1, max_memory_mb=2)).memory_bytes == 2 * 2**20
    assert limits_of(JobDescription(executable="x", memory_mb=1)).memory_bytes == 2**20
    assert limits_of(JobDescription(executable="x", max_memory_mb=2)).memory_bytes == 2 * 2**20


def test_who_is_wider_than_the_pilot_runs_alone() -> None:
    holdings = LeasedJobs(slots=1, memory_mb=1)
    assert begin(holdings) is None
    wide = in_line(holdings, 1, processors=8, memory_mb=64)
    assert begin(holdings) is wide


def test_the_end_of_the_line_is_stale_once_it_has_waited() -> None:
    holdings = LeasedJobs(slots=1, memory_mb=1)
    first, second, third = (in_line(holdings, number, at=float(number)) for number in (1, 2, 3))
    assert holdings.stale(0, since=2.0) == [first, second]
    assert holdings.stale(1, since=3.0) == [second, third]
    assert holdings.stale(3, since=9.0) == []


def test_a_pilot_holds_no_more_than_its_slots_and_what_it_may_fetch_ahead() -> None:
    slots, pace = 2, Prefetch(0.5)
    for _ in range(10):
        pace.ended(0.0001)
    pilot = {"pilot_id": "p", "site": "s", "ce": "c", "vo": "v", "slots": slots}
    more = {"token_file": "t", "directory": "d"}
    config = msgspec.convert({"pilot": pilot | more, "sandboxes": {"url": "file:///s"}}, PilotConfig)
    holdings = LeasedJobs(slots, memory_mb=1_000)
    asking = MatchRequests(config, Nobody(), holdings, pace, NodeJudge(config, {}))  # type: ignore[arg-type]
    for request in range(5):
        jobs = tuple(offered(100 * request + number) for number in range(40))
        offer = Offer(pilot_id=PilotId("p"), request_id=RequestId(str(request)), hold_seconds=9, jobs=jobs)
        for job in asking.sort(offer)[0]:
            holdings.take(job)
    assert len(holdings) == slots + slots * AHEAD_LIMIT


def test_each_lease_is_taken_once() -> None:
    holdings = LeasedJobs(slots=1, memory_mb=1)
    holding = holdings.take(read(offered(1)))
    holdings.drop(holding)
    assert holdings.knows(holding.attempt_id)
    assert not holdings.knows(AttemptId(JobId(1), Epoch(2)))


@pytest.mark.parametrize(
    "description", [b"{}", b'{"executable": 1}', b"nonsense", b'{"executable": "x", "of_tomorrow": 1}']
)
def test_a_description_of_tomorrow_is_a_fault_of_the_holding(description: bytes) -> None:
    job = msgspec.structs.replace(offered(1), description=msgspec.Raw(description))
    assert "cannot read" in LeasedJobs(slots=1, memory_mb=1).take(read(job)).fault


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Code.DONE, "done"),
        (Code.EXIT_CODE, "failed"),
        (Code.INPUT_FAILED, "failed"),
        (Code.OUTPUT_FAILED, "failed"),
        (Code.KILLED_BY_USER, "killed"),
        (Code.AGENT_ERROR, "lost"),
        (Code.PILOT_STOPPED, "lost"),
    ],
)
def test_whose_doing_an_end_was(code: Code, outcome: str) -> None:
    assert not_begun(AttemptId(JobId(1), Epoch(1)), Reason(code)).outcome == outcome


def test_what_no_message_can_hold_is_replaced() -> None:
    outcome = PayloadOutcome(
        reason=Reason(Code.DONE), stdout_tail="a\0b", refused=("\udcff: a link",), unmatched=("*.x",) * 7
    )
    result = result_of(AttemptId(JobId(1), Epoch(1)), outcome)
    assert result.stdout_tail == "a\ufffdb"
    assert result.text == "no file matches *.x, *.x, *.x, *.x, *.x and 2 more; not kept: ?: a link"
    msgspec.json.encode(result)


def test_a_job_that_left_no_file_for_a_pattern_is_done_and_says_so() -> None:
    held = AttemptId(JobId(1), Epoch(1))
    whole = result_of(held, PayloadOutcome(reason=Reason(Code.DONE)))
    missing = result_of(held, PayloadOutcome(reason=Reason(Code.DONE), unmatched=("*.x",)))
    failed = result_of(held, PayloadOutcome(reason=Reason(Code.EXIT_CODE), unmatched=("*.x",)))
    assert [(each.outcome, each.code) for each in (whole, missing, failed)] == [
        ("done", Code.DONE),
        ("done", Code.OUTPUT_MISSING),
        ("failed", Code.EXIT_CODE),
    ]


class Nobody:
    """A link to nobody."""

    async def report(self, report: object) -> None:
        raise Unavailable("nobody is there")


@pytest.mark.parametrize("steps", range(6))
async def test_reporting_ends_though_something_falls_due_as_it_is_told_to(steps: int) -> None:
    reporter = Reporter(Nobody(), PilotId("p"), lambda: PilotStatus("running", 1, 0))  # type: ignore[arg-type]
    task = asyncio.create_task(reporter.run())
    await turns(3)
    reporter.tell_standing()
    await turns(steps)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5)
    assert done
    assert task.cancelled()


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
