"""A job that starts after others: why it is Held, and what its user's orders do to it meanwhile. Pure decisions."""

from typing import Final

from wms.job.job import Action, Job, Ordered, Steps, path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State

WAITS: Final = frozenset({Code.DEPENDENCY, Code.DEPENDENCY_FAILED})
"""The reasons of Held jobs that are released by themselves once their predecessors have ended as required."""


def waits(predecessors: str) -> Reason:
    """Return the reason of a job that waits for these predecessors, given as text for people."""
    return Reason(Code.DEPENDENCY, f"starts after {predecessors}")


def failed(job_id: int, state: State, predecessors: str) -> Reason:
    """Return the reason of a job one of whose predecessors, `job_id`, has ended otherwise than required."""
    return Reason(Code.DEPENDENCY_FAILED, f"job {job_id} is {state}; it starts after {predecessors}")


def held(state: State, reason: Reason) -> Steps:
    """Return the steps after which a job is Held for this reason, even if it was Held for another."""
    if state is State.HELD:
        return path(state, (Event.RELEASE, reason), (Event.HOLD, reason))
    return path(state, (Event.HOLD, reason))


def released() -> Steps:
    """Return the steps of a Held job whose predecessors have ended as required."""
    return path(State.HELD, (Event.RELEASE, Reason(Code.DEPENDENCY_MET)))


def ordered(job: Job, action: Action, text: str, code: str, awaits: Reason | None) -> Ordered | None:
    """Decide an order about a held job that has predecessors; None where these do not matter.

    `code` is why it is held, `awaits` what it waits for once its user lets it.
    """
    if job.state is not State.HELD:
        return None
    if action in ("hold", "stop_and_hold") and code in WAITS:
        return Ordered(held(State.HELD, Reason(Code.HELD_BY_USER, text)))
    if action == "release" and code == Code.DEPENDENCY:
        return Ordered(
            refused=f"job {job.job_id} waits for others: `wms edit {job.job_id} --unset after` lets it start without them"
        )
    if action == "release" and code not in WAITS and awaits is not None:
        moves = (Event.RELEASE, Reason(Code.RELEASED, text)), (Event.HOLD, awaits)
        return Ordered(path(State.HELD, *moves))
    return None
