"""Jobs that start after other jobs (their predecessors): why they are held, and what a user's orders do to them. Pure decisions."""

from typing import Final

from wms.job.job import Action, Job, OrderEffect, Steps, path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State

WAITS: Final = frozenset({Code.DEPENDENCY, Code.DEPENDENCY_FAILED})
"""The codes of jobs that are Held because of their predecessors. Such a job is released once all predecessors have ended as it requires."""


def waits(predecessors: str) -> Reason:
    """Return the reason of a job that is Held until its predecessors end. `predecessors` lists them as text for people."""
    return Reason(Code.DEPENDENCY, f"starts after {predecessors}")


def failed(job_id: int, state: State, predecessors: str) -> Reason:
    """Return the reason of a job that is Held because a predecessor ended in another state than required.

    `job_id` and `state` are those of that predecessor. `predecessors` lists all predecessors as text for people.
    """
    return Reason(Code.DEPENDENCY_FAILED, f"job {job_id} is {state}; it starts after {predecessors}")


def held(state: State, reason: Reason) -> Steps:
    """Return the steps that bring a job from `state` to Held with this reason. A job that is Held already gets the new reason."""
    if state is State.HELD:
        return path(state, (Event.RELEASE, reason), (Event.HOLD, reason))
    return path(state, (Event.HOLD, reason))


def released() -> Steps:
    """Return the steps from Held to Waiting of a job whose predecessors have all ended as it requires."""
    return path(State.HELD, (Event.RELEASE, Reason(Code.DEPENDENCY_MET)))


def ordered(job: Job, action: Action, text: str, code: str, awaits: Reason | None) -> OrderEffect | None:
    """Decide what a user's order does to a Held job that has predecessors.

    `text` is the user's reason and `code` the code for which the job is Held. `awaits` is the reason for which it stays Held after a release, or None
    if all predecessors have ended. Return None if the ordinary rules for orders apply.
    """
    if job.state is not State.HELD:
        return None
    if action in ("hold", "stop_and_hold") and code in WAITS:
        return OrderEffect(held(State.HELD, Reason(Code.HELD_BY_USER, text)))
    if action == "release" and code == Code.DEPENDENCY:
        return OrderEffect(
            refused=f"job {job.job_id} waits for others: `wms edit {job.job_id} --unset after` lets it start without them"
        )
    if action == "release" and code not in WAITS and awaits is not None:
        moves = (Event.RELEASE, Reason(Code.RELEASED, text)), (Event.HOLD, awaits)
        return OrderEffect(path(State.HELD, *moves))
    return None
