"""Whether jobs that start together can, told from their states."""

import pytest

from services.resource_broker.job_group import GroupMember, JobGroup
from wms.ids import JobId
from wms.job.state import State


def group(*states: State, size: int | None = None) -> JobGroup:
    members = tuple(GroupMember(JobId(n), state, 3) for n, state in enumerate(states, start=7))
    return JobGroup(members, size or len(states), JobId(7))


def test_jobs_that_are_all_at_the_broker_can_start_together() -> None:
    found = group(State.CHECKING, State.CHECKING)
    assert (found.breach(), found.awaited()) == ("", "")


@pytest.mark.parametrize(
    "state", [State.HELD, State.WAITING, State.RESCHEDULED, State.RUNNING, State.MATCHED]
)
def test_a_job_that_may_come_back_to_the_broker_is_awaited(state: State) -> None:
    found = group(State.CHECKING, state)
    assert (found.breach(), found.awaited()) == ("", f"job 8 of it is {state}")


@pytest.mark.parametrize("state", [State.KILLED, State.DONE])
def test_a_job_that_has_ended_breaks_the_group(state: State) -> None:
    assert group(State.CHECKING, state).breach() == f"job 8 of it is {state}"


def test_a_removed_job_breaks_the_group() -> None:
    assert group(State.CHECKING, size=3).breach() == "2 of its 3 jobs were removed"
