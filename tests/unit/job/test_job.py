"""Decisions about a job, for every state and every fact that a decision looks at."""

from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from wms.ids import Epoch, JobId, PilotId, TaskQueueId
from wms.job.job import (
    HANDOUT_LIMIT,
    Action,
    Job,
    Outcome,
    Steps,
    ended,
    killed,
    lost,
    ordered,
    path,
    started,
    to_broker,
)
from wms.job.reasons import UNCOUNTED, Code, Reason
from wms.job.state import AT_A_PILOT, ENDED, Event, State, after
from wms.lease import Lease

RETRYABLE = {
    *UNCOUNTED,
    Code.PILOT_DIED,
    Code.NODE_LOST,
    Code.PILOT_FORGOTTEN,
    Code.LEASE_EXPIRED,
    Code.PILOT_STOPPED,
    Code.AGENT_ERROR,
}
"""Reasons that are the system's or the site's, not the payload's: the job is tried again."""

# Where jobs are today: the others are kept for stages of a job's life that no service leads yet.
LED = {
    State.WAITING,
    State.MATCHED,
    State.RUNNING,
    State.HELD,
    State.DONE,
    State.FAILED,
    State.KILLED,
    State.DELETED,
}


HELD = LED & AT_A_PILOT


def reasons(codes=tuple(Code)):
    return st.builds(Reason, st.sampled_from(codes), st.text(max_size=5))


@st.composite
def jobs(draw, states=tuple(State)):
    state = draw(st.sampled_from(sorted(states)))
    bound = draw(st.integers(1, 5))
    epoch = Epoch(draw(st.integers(0, 9)))
    held = state in AT_A_PILOT
    lease = Lease(
        job_id=JobId(7),
        epoch=epoch,
        pilot_id=PilotId("p"),
        phase=draw(st.sampled_from(["offered", "accepted"])),
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )
    return Job(
        job_id=JobId(7),
        state=state,
        epoch=epoch,
        event_seq=draw(st.integers(1, 99)),
        attempts=draw(st.integers(0, bound)),
        max_attempts=bound,
        stop_requested=draw(st.sampled_from(["", "kill", "reschedule"])) if held else "",
        tq_id=TaskQueueId(1),
        user_priority=1.0,
        owner="o",
        owner_group="g",
        vo="v",
        site="A" if held else None,
        pilot_id=PilotId("p") if held else None,
        lease=lease if held else None,
    )


def is_a_path(start: State, steps: Steps) -> bool:
    here = start
    for step in steps:
        if step.before is not here or after(here, step.event) is not step.state:
            return False
        here = step.state
    return True


@given(st.sampled_from(State), st.lists(st.tuples(st.sampled_from(Event), reasons()), max_size=6))
def test_a_path_is_legal_whole_or_is_none(state, moves):
    steps = path(state, *moves)
    assert is_a_path(state, steps)
    assert len(steps) in (0, len(moves))
    here: State | None = state
    for event, _ in moves:
        here = after(here, event) if here is not None else None
    assert (here is None) == (not steps and bool(moves))


@given(jobs(), st.sampled_from(get_args(Outcome)), reasons())
def test_no_decision_takes_a_job_along_an_illegal_path(job, outcome, reason):
    for steps in (started(job), ended(job, outcome, reason), lost(job, reason), killed(job, reason)):
        assert is_a_path(job.state, steps)
    for action in get_args(Action):
        assert is_a_path(job.state, ordered(job, action, "").steps)


@given(jobs(HELD), st.sampled_from(get_args(Outcome)), reasons())
def test_the_end_of_a_lease_always_leads_away_from_the_pilot(job, outcome, reason):
    """Else a job would be at a pilot without a lease, for ever."""
    for steps in (ended(job, outcome, reason), lost(job, reason)):
        assert steps
        assert steps[-1].state not in AT_A_PILOT


@given(jobs(LED))
def test_a_kill_leads_to_killed_or_to_a_request_or_finds_the_job_ended(job):
    order = ordered(job, "kill", "")
    if job.state in ENDED:
        assert order.refused
    elif job.state in AT_A_PILOT:
        assert order.stop == "kill"
        assert not order.steps
    else:
        assert order.steps[-1].state is State.KILLED


@given(jobs(HELD), st.sampled_from(get_args(Outcome)), reasons())
def test_what_is_to_be_killed_ends_killed_whatever_else_is_said_of_it(job, outcome, reason):
    asked = replace(job, stop_requested="kill")
    for steps in (ended(asked, outcome, reason), lost(asked, reason)):
        assert steps[-1].state is State.KILLED
        assert steps[-1].reason.code is Code.KILLED_BY_USER


@given(jobs(), st.sampled_from(get_args(Action)))
def test_an_order_moves_asks_or_refuses_and_never_two_of_them(job, action):
    order = ordered(job, action, "why")
    assert [bool(order.steps), bool(order.stop), bool(order.refused)].count(True) == 1
    if order.stop:
        assert job.lease is not None
        assert action in ("kill", "reschedule", "stop_and_hold")
    if order.refused:
        assert f"job {job.job_id}" in order.refused


NAMED: dict[str, Action] = {
    "kill it": "kill",
    "release it": "release",
    "wms hold --running": "stop_and_hold",
    "`wms edit` changes": "edit",
    "`wms reschedule` with": "reschedule",
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("action", get_args(Action))
def test_a_refusal_names_only_orders_that_this_state_allows(state, action):
    job = Job(
        job_id=JobId(7),
        state=state,
        epoch=Epoch(0),
        event_seq=1,
        attempts=0,
        max_attempts=3,
        stop_requested="",
        tq_id=TaskQueueId(1),
        user_priority=1.0,
        owner="o",
        owner_group="g",
        vo="v",
    )
    refused = ordered(job, action, "").refused
    for words, named in NAMED.items():
        if words in refused:
            assert not ordered(job, named, "").refused, refused
    if "submit it again" in refused:
        assert state in ENDED


@given(jobs(HELD))
def test_an_edit_leaves_a_job_where_it_is(job):
    for action in ("edit", "reschedule"):
        assert ordered(job, action, "", "memory_mb 5").refused, "its pilot runs what it was offered"
    for state in (State.WAITING, State.HELD):
        steps = ordered(replace(job, state=state, lease=None), "edit", "why", "memory_mb 5").steps
        assert (steps[-1].state, steps[0].reason) == (state, Reason(Code.EDITED_BY_USER, "why; memory_mb 5"))
    checking = ordered(replace(job, state=State.CHECKING, lease=None), "edit", "", "memory_mb 5").steps
    assert to_broker(checking)[-1].state is State.CHECKING
    for state in set(State) - {State.WAITING, State.HELD, State.CHECKING}:
        assert ordered(replace(job, state=state, lease=None), "edit", "", "memory_mb 5").refused


@given(jobs(HELD))
def test_a_kill_is_never_taken_back_by_a_reschedule(job):
    for other in ("reschedule", "stop_and_hold"):
        assert ordered(replace(job, stop_requested="kill"), other, "").refused
    assert ordered(replace(job, stop_requested="reschedule"), "kill", "").stop == "kill"


@given(jobs(HELD), reasons(sorted(RETRYABLE)), st.booleans())
def test_a_lost_attempt_that_began_is_tried_again_up_to_the_bound(job, reason, began):
    job = replace(job, stop_requested="", unstarted=0)
    last = lost(job, reason, began=began)[-1]
    if (job.state is State.MATCHED and not began) or job.attempts < job.max_attempts:
        assert last.state is State.WAITING
    else:
        assert last.state is State.FAILED
        assert last.reason.code is Code.TOO_MANY_ATTEMPTS


@given(jobs({State.MATCHED}), reasons(sorted(RETRYABLE)), st.integers(0, 2 * HANDOUT_LIMIT))
def test_what_is_lost_again_and_again_before_it_begins_is_held(job, reason, unstarted):
    job = replace(job, stop_requested="", unstarted=unstarted)
    last = lost(job, reason)[-1]
    handed_out = job.lease.phase == "accepted" and reason.code not in UNCOUNTED
    if handed_out and unstarted + 1 >= HANDOUT_LIMIT:
        assert (last.state, last.reason.code) == (State.HELD, Code.NEVER_STARTED)
    else:
        assert last.state is State.WAITING


@given(jobs(HELD), st.sampled_from(["done", "failed"]), reasons())
def test_what_ended_by_its_payload_is_not_tried_again(job, outcome, reason):
    steps = ended(replace(job, stop_requested=""), outcome, reason)
    assert steps[-1].state is (State.DONE if outcome == "done" else State.FAILED)


@given(jobs(set(State) - HELD))
def test_a_start_that_comes_again_changes_nothing(job):
    assert started(job) == ()
