"""How an attempt ended, as the job manager is told it."""

import msgspec
import pytest

from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.outcome import (
    PayloadOutcome,
    not_begun,
    reason_of_end,
    result_of,
    whole_usage,
)
from services.job_agent.payload.shepherd_messages import ProcessEnd
from wms.ids import AttemptId, Epoch, JobId
from wms.job.reasons import Code, Reason
from wms.messages.reports import Usage


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


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (ProcessEnd(exit_code=0), Code.DONE),
        (ProcessEnd(exit_code=3), Code.EXIT_CODE),
        (ProcessEnd(signal=9), Code.SIGNAL),
        (ProcessEnd(signal=9, out_of_memory=True), Code.MEMORY_LIMIT),
        (ProcessEnd(exit_code=0, out_of_memory=True), Code.DONE),
        (ProcessEnd(signal=9, expired=True, out_of_memory=True), Code.LEASE_EXPIRED),
    ],
)
def test_why_a_payload_ended_that_nobody_stopped(ended: ProcessEnd, code: Code) -> None:
    assert reason_of_end(ended, (0,), PayloadLimits(memory_bytes=1 << 20)).code is code


@pytest.mark.parametrize(
    ("in_image", "killed", "bytes_of_memory"), [(False, False, 70), (True, False, 40), (True, True, 70)]
)
def test_memory_in_an_image_is_without_podman_unless_the_kernel_ended_all(
    *, in_image: bool, killed: bool, bytes_of_memory: int
) -> None:
    ended = ProcessEnd(max_rss_bytes=70, out_of_memory=killed)
    assert whole_usage(ended, Usage(max_rss_bytes=40), 0, in_image=in_image).max_rss_bytes == bytes_of_memory


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
