"""How an attempt ended, as the job manager is told it."""

import signal

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
        (ProcessEnd(exit_code=137, out_of_memory=True), Code.MEMORY_LIMIT),
        (ProcessEnd(exit_code=0, out_of_memory=True), Code.DONE),
        (ProcessEnd(signal=9, expired=True, out_of_memory=True), Code.LEASE_EXPIRED),
    ],
)
def test_why_a_payload_ended_that_nobody_stopped(ended: ProcessEnd, code: Code) -> None:
    assert reason_of_end(ended, (0,), PayloadLimits(memory_bytes=1 << 20)).code is code


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            137,
            ", which a shell makes of signal 9 (SIGKILL): the kernel does that when the node's memory runs out",
        ),
        (139, ", which a shell makes of signal 11 (SIGSEGV): it reached for memory"),
        (134, ", which a shell makes of signal 6 (SIGABRT): it gave up by itself"),
        (143, ", which a shell makes of signal 15 (SIGTERM)"),
        (255, ""),
    ],
)
def test_exit_codes_of_signals_are_told_as_signals_with_the_memory_that_was_used(
    code: int, said: str
) -> None:
    limits = PayloadLimits(memory_bytes=2 << 30)
    text = reason_of_end(ProcessEnd(exit_code=code), (0,), limits, peak_bytes=3 << 29).text
    assert text.startswith(f"ended with exit code {code}{said}")
    tells = "it was seen to use 1.5 GiB of memory of the 2.0 GiB asked for"
    assert text.endswith(tells) == (code in (137, 139, 134))


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_kill_by_the_batch_system_at_its_limit_is_told_so(number: int) -> None:
    ended = ProcessEnd(signal=number)
    told = reason_of_end(ended, (0,), PayloadLimits(), overrun=180.0)
    assert told.code is Code.SIGNAL
    assert told.text.endswith("the batch system's limit of 180 s for its pilot was over")
    assert "limit of" not in reason_of_end(ended, (0,), PayloadLimits()).text
