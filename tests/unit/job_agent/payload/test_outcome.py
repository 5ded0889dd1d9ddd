"""How an attempt ended, as the job manager is told it."""

import msgspec
import pytest

from services.job_agent.payload.outcome import PayloadOutcome, not_begun, result_of
from wms.ids import AttemptId, Epoch, JobId
from wms.job.reasons import Code, Reason


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
