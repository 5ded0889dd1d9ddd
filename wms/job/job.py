"""Pure decisions about one job: how pilots' reports, orders and the end of a lease change its state.

Each function returns the steps that the job takes, in order. The steps are empty if the table of states does not allow them. The
caller stores all of them in one transaction. A job with a pending kill order ends as Killed, whatever its pilot reports.
"""

from typing import Literal

import msgspec

from wms.ids import Epoch, JobId, PilotId, TaskQueueId
from wms.job.reasons import HOLDING, UNCOUNTED, Code, Reason
from wms.job.state import AT_A_PILOT, ENDED, Event, State, after
from wms.lease import Lease

Outcome = Literal["done", "failed", "killed", "lost", "withdrawn"]

HANDOUT_LIMIT = 10
"""The most consecutive attempts that pilots may accept and lose before the payload begins. After them the job is held."""

Stop = Literal["", "kill", "reschedule", "hold"]
"""The pending order for which a job's pilot must stop the payload. Empty if there is none."""


class StopOrder(msgspec.Struct, frozen=True, gc=False):
    """The user or service that gave a pending order to stop a job (`source`), and the reason."""

    source: str
    reason: str

    @property
    def is_of_user(self) -> bool:
        """Whether a user gave the order, and not a service of the system."""
        return self.source.startswith("user ")


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The facts of one job that decisions need, as read from its database row while that row is locked."""

    job_id: JobId
    state: State
    epoch: Epoch
    event_seq: int
    attempts: int
    """How many attempts to run the job have begun. An open offer or lease counts too."""
    max_attempts: int
    unstarted: int = 0
    """The number of consecutive attempts, up to now, that a pilot accepted and lost before the payload began."""
    stop_requested: Stop
    stop_order: StopOrder | None = None
    """Who gave the order of `stop_requested`, and why. None if there is none or it is unknown."""
    tq_id: TaskQueueId
    user_priority: float
    owner: str
    owner_group: str
    vo: str
    site: str | None = None
    pilot_id: PilotId | None = None
    lease: Lease | None = None
    brokered: bool = False
    """Whether the resource broker chooses the computing element of this job. Only a pilot sent for that choice gets it."""

    @property
    def has_begun(self) -> bool:
        """Whether the payload is known to have started in the present attempt."""
        return self.state in AT_A_PILOT and self.state is not State.MATCHED

    @property
    def was_taken(self) -> bool:
        """Whether a pilot has accepted the offer of this job and holds its lease."""
        return self.lease is not None and self.lease.phase == "accepted"


class Step(msgspec.Struct, frozen=True, gc=False):
    """One state change of a job, from `before` to `state` by `event`, with its reason."""

    before: State
    event: Event
    state: State
    reason: Reason
    source: str = ""
    """The user or service that caused the change. Empty if it is the service that stores it."""


Steps = tuple[Step, ...]

STARTED = Reason(Code.STARTED)


def path(state: State, *moves: tuple[Event, Reason]) -> Steps:
    """Return the steps of a job that begins in `state` and makes these moves, given as (event, reason), one after the other.

    Return an empty tuple if the table of states does not allow one of the moves.
    """
    steps = []
    for event, reason in moves:
        following = after(state, event)
        if following is None:
            return ()
        steps.append(Step(state, event, following, reason))
        state = following
    return tuple(steps)


def to_broker(steps: Steps) -> Steps:
    """Return the steps of a job that the resource broker places. `steps` is not empty.

    If they end in Waiting without a placement, a step to Checking follows: there the job waits for the broker.
    """
    last = steps[-1]
    if last.state is not State.WAITING or last.reason.code is Code.PLACED:
        return steps
    return steps + path(State.WAITING, (Event.CHECK, Reason(Code.TO_BROKER)))


def started(job: Job) -> Steps:
    """Return the step to Running of a job whose payload has started. Empty if the job is Running already or cannot start."""
    return path(job.state, (Event.START, STARTED))


def ended(
    job: Job, outcome: Outcome, reason: Reason, *, began: bool = True, retry: Reason | None = None
) -> Steps:
    """Return the steps of a job whose pilot reports the end of its attempt. The caller has checked the lease.

    `outcome` and `reason` are those of the report, and `began` says whether the payload had started. `retry` is the reason with which the
    job starts again if it failed; None: it does not. A pending stop order comes before the outcome.
    """
    if job.stop_requested == "kill":
        return _by_user(job, killed(job, _of_order(job, Code.KILLED_BY_USER, reason.text)))
    if job.stop_requested in ("reschedule", "hold") and outcome == "killed":
        return _stopped(job, reason)
    if outcome in ("lost", "withdrawn"):
        return lost(job, reason, began=began)
    if outcome == "failed" and retry is not None and (steps := _again(job, retry)):
        return steps
    last = {"done": Event.FINISH, "failed": Event.FAIL, "killed": Event.KILL}[outcome]
    if job.state is State.MATCHED and outcome == "done":
        return path(job.state, (Event.START, STARTED), (last, reason))
    return path(job.state, (last, reason))


def lost(job: Job, reason: Reason, *, began: bool = False) -> Steps:
    """Return the steps of a job that its pilot no longer has, through no fault of the payload.

    The job goes back to its queue. It becomes Failed if its payload `began` and this attempt was the last of `max_attempts`. It becomes Held after
    too many losses before its payload began, or if an input file cannot be fetched.
    """
    if job.stop_requested == "kill":
        return _by_user(job, killed(job, _of_order(job, Code.KILLED_BY_USER, reason.text)))
    if job.stop_requested in ("reschedule", "hold"):
        return _stopped(job, reason)
    last = f"the last: {reason.text or reason.code}"
    if not (began or job.has_begun):
        if reason.code in HOLDING:
            return path(job.state, (Event.RESCHEDULE, reason), (Event.HOLD, reason))
        if is_handout(job, reason.code) and job.unstarted + 1 >= HANDOUT_LIMIT:
            text = f"handed out {job.unstarted + 1} times and never begun; {last}"
            return path(job.state, (Event.RESCHEDULE, reason), (Event.HOLD, Reason(Code.NEVER_STARTED, text)))
    elif job.attempts >= job.max_attempts:
        text = f"{job.attempts} attempts of {job.max_attempts}; {last}"
        return path(job.state, (Event.FAIL, Reason(Code.TOO_MANY_ATTEMPTS, text)))
    # A job whose payload is over cannot run again: what was to follow is lost with the pilot.
    return _again(job, reason) or path(job.state, (Event.FAIL, reason))


def never_offered(job: Job, offer_bytes: int) -> Steps:
    """Return the steps to Held of a job whose offer is too large for a message. `offer_bytes` is the size of the offer.

    A matcher had already chosen the job for a pilot. Held, it is not chosen again.
    """
    withdrawn = Reason(Code.OFFER_EXPIRED, "no pilot was told of it")
    held = Reason(Code.TOO_LARGE, f"its offer takes {offer_bytes:,} bytes, more than a message holds")
    return path(job.state, (Event.RESCHEDULE, withdrawn), (Event.HOLD, held))


def is_handout(job: Job, code: Code) -> bool:
    """Return whether a lost attempt counts towards `HANDOUT_LIMIT`: the pilot had accepted the job. `code` is the reason for the loss.

    An attempt whose offer expired or was declined does not count.
    """
    return job.was_taken and code not in UNCOUNTED


def _again(job: Job, reason: Reason) -> Steps:
    return path(job.state, (Event.RESCHEDULE, reason), (Event.ENQUEUE, Reason(Code.QUEUED)))


def _stopped(job: Job, reason: Reason) -> Steps:
    """Return the steps of a job that its pilot has stopped as its user ordered: it waits again, or is held."""
    again = _of_order(job, Code.RESCHEDULED_BY_USER, reason.text)
    if job.stop_requested == "reschedule":
        return _by_user(job, _again(job, again))
    by_user = job.stop_order is None or job.stop_order.is_of_user
    hold = _of_order(job, Code.HELD_BY_USER if by_user else Code.COALLOCATION_BROKEN)
    held = path(job.state, (Event.RESCHEDULE, again), (Event.HOLD, hold))
    return _by_user(job, held) or path(job.state, (Event.FAIL, reason))


def _of_order(job: Job, code: Code, text: str = "") -> Reason:
    """Return the reason for a job's stop: the text of the order, and after it `text`, the pilot's report on the payload's end."""
    given = job.stop_order.reason if job.stop_order else ""
    return Reason(code, "; ".join(filter(None, (given, text)))[:TEXT_LIMIT])


TEXT_LIMIT = 1_000
"""The largest number of characters in the text of a step's reason. Longer texts are cut."""

BY_USER = frozenset({Code.KILLED_BY_USER, Code.HELD_BY_USER, Code.RESCHEDULED_BY_USER})


def _by_user(job: Job, steps: Steps) -> Steps:
    """Return the steps with their source set to the user who ordered the stop."""
    if job.stop_order is None:
        return steps
    source = job.stop_order.source
    return tuple(
        msgspec.structs.replace(each, source=source) if each.reason.code in BY_USER else each
        for each in steps
    )


def killed(job: Job, reason: Reason) -> Steps:
    """Return the steps that end the job as Killed, or as Failed where the table allows no kill."""
    return path(job.state, (Event.KILL, reason)) or path(job.state, (Event.FAIL, reason))


Action = Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
_STOPS: dict[Action, Stop] = {"kill": "kill", "reschedule": "reschedule", "stop_and_hold": "hold"}
"""Orders for which a pilot that has the job must stop it first."""


class OrderEffect(msgspec.Struct, frozen=True):
    """The effect of a user's order on one job. Exactly one field is set.

    `steps`: the job changes its state. `stop`: its pilot is asked to stop it first. `refused`: why nothing happens, for people.
    """

    steps: Steps = ()
    stop: Stop = ""
    refused: str = ""


def ordered(job: Job, action: Action, reason: str, changes: str = "") -> OrderEffect:
    """Decide what a user's order does to a job. `reason` is the user's own text and may be empty.

    `changes` lists in words what is changed of the job's requirements or priority, or is empty. An order that the job's state
    does not allow is refused with a remedy.
    """
    if changes and job.state in AT_A_PILOT:
        # The pilot runs what it was offered.
        return OrderEffect(refused=_refusal(job, "edit"))
    if (stop := _STOPS.get(action)) and job.state in AT_A_PILOT:
        # The pilot must stop the payload first; its report, or the end of its lease, moves the job.
        if job.stop_requested == "kill" and action != "kill":
            return OrderEffect(refused=f"job {job.job_id} is being killed")
        return OrderEffect(stop=stop)
    steps = path(job.state, *_moves(action, reason, job.state, changes))
    return OrderEffect(steps) if steps else OrderEffect(refused=_refusal(job, action))


_Moves = tuple[tuple[Event, Reason], ...]


def _moves(action: Action, text: str, state: State, changes: str) -> _Moves:
    match action:
        case "kill":
            return ((Event.KILL, Reason(Code.KILLED_BY_USER, text)),)
        case "hold" | "stop_and_hold":
            return ((Event.HOLD, Reason(Code.HELD_BY_USER, text)),)
        case "release":
            return ((Event.RELEASE, Reason(Code.RELEASED, text)),)
        case "remove":
            return ((Event.REMOVE, Reason(Code.REMOVED_BY_USER, text)),)
        case "edit":
            return _edit_moves(state, _edited(text, changes))
        case "reschedule":
            again = Reason(Code.RESCHEDULED_BY_USER, text)
            queued = _edited("", changes) if changes else Reason(Code.QUEUED)
            return ((Event.RESCHEDULE, again), (Event.ENQUEUE, queued))


def _edit_moves(state: State, edited: Reason) -> _Moves:
    """Return the moves by which an edit is recorded. The job ends in the state in which it was, with `edited` as a reason in its history."""
    if state is State.HELD:
        return ((Event.RELEASE, edited), (Event.HOLD, Reason(Code.HELD_BY_USER)))
    if state in (State.WAITING, State.CHECKING):
        return ((Event.RESCHEDULE, edited), (Event.ENQUEUE, Reason(Code.QUEUED)))
    return ()


def _edited(text: str, changes: str) -> Reason:
    return Reason(Code.EDITED_BY_USER, "; ".join(filter(None, (text, changes)))[:TEXT_LIMIT])


def _refusal(job: Job, action: Action) -> str:
    return f"job {job.job_id} is {job.state}: {_remedy(job.state, action)}"


_AGAIN = "it stays so; `wms submit --retry-of` submits it again"
_ENDED_REMEDY: dict[Action, str] = {"reschedule": _AGAIN, "edit": _AGAIN}
_PILOT_REMEDY: dict[Action, str] = {
    "hold": "a pilot has it; `wms hold --running` stops it and holds it",
    "remove": "kill it first",
    "edit": "a pilot has it; `wms hold --running` stops it, so that it can be edited",
}
_HELD_REMEDY: dict[Action, str] = {
    "reschedule": "release it; `wms edit` changes what it asks for before that"
}
_REMEDY: dict[Action, str] = {"release": "only a held job can be released", "remove": "kill it first"}


def _remedy(state: State, action: Action) -> str:
    """Return a text on what the user may do instead of a refused order. Any order that it names is allowed in this state."""
    if state is State.DELETED:
        return "it stays so"
    if state is State.FAILED and action == "edit":
        return "`wms reschedule` with the same options runs it again"
    if state in ENDED:
        return _ENDED_REMEDY.get(action, "it has ended already")
    if state in AT_A_PILOT and action in _PILOT_REMEDY:
        return _PILOT_REMEDY[action]
    if state is State.HELD and action != "release":
        return _HELD_REMEDY.get(action, "it is held already")
    return _REMEDY.get(action, "it was not queued yet; try again")
