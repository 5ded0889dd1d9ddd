"""What orders and ends do to a job that waits for others."""

from tests.unit.jobdesc.test_predecessors import job
from wms.job.dependency import failed, held, ordered, released, waits
from wms.job.reasons import Code, Reason
from wms.job.state import State

AWAITS = waits("job 7")


def test_a_users_hold_lies_over_the_dependency() -> None:
    decided = ordered(job(), "hold", "not yet", Code.DEPENDENCY, AWAITS)
    assert decided is not None
    assert decided.steps[-1].reason == Reason(Code.HELD_BY_USER, "not yet")
    again = ordered(job(), "release", "now", Code.HELD_BY_USER, AWAITS)
    assert again is not None
    assert [each.state for each in again.steps] == [State.WAITING, State.HELD]
    assert again.steps[-1].reason == AWAITS


def test_a_release_is_for_what_failed_alone() -> None:
    refused = ordered(job(), "release", "", Code.DEPENDENCY, AWAITS)
    assert refused is not None
    assert not refused.steps
    assert "waits for others" in refused.refused
    assert ordered(job(), "release", "", Code.DEPENDENCY_FAILED, AWAITS) is None
    assert ordered(job(), "kill", "", Code.DEPENDENCY, AWAITS) is None
    assert ordered(job(State.WAITING), "hold", "", "", AWAITS) is None


def test_steps_end_where_they_say() -> None:
    broken = failed(7, State.KILLED, "job 7")
    assert held(State.WAITING, AWAITS)[-1].state is State.HELD
    assert held(State.HELD, broken)[-1].reason.code is Code.DEPENDENCY_FAILED
    assert [each.state for each in released()] == [State.WAITING]
