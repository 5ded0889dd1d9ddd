"""What happens to a job when its pilot, its user or time says something: pure decisions over one job's facts.

Each function returns the steps that the job takes, in order, or none where the state table refuses; the caller writes
them all in one transaction. A job whose killing was asked for ends Killed whatever else is reported of it.
"""

from typing import Literal

import msgspec

from wms.ids import Epoch, JobId, PilotId, TaskQueueId
from wms.job.reasons import HOLDING, UNCOUNTED, Code, Reason
from wms.job.state import AT_A_PILOT, ENDED, Event, State, after
from wms.lease import Lease

Outcome = Literal["done", "failed", "killed", "lost", "withdrawn"]

HANDOUT_LIMIT = 10
"""The number of consecutive losses before the payload began after which a job is held."""

Stop = Literal["", "kill", "reschedule", "hold"]
"""The order for which a pilot was asked to stop its job; empty if there is none."""


class StopOrder(msgspec.Struct, frozen=True, gc=False):
    """The user who ordered a pilot to stop a job, and the user's reason."""

    source: str
    reason: str

    @property
    def is_of_user(self) -> bool:
        """Whether a user gave it, not a service."""
        return self.source.startswith("user ")


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The facts of one job that decisions need, as they stand under its row lock."""

    job_id: JobId
    state: State
    epoch: Epoch
    event_seq: int
    attempts: int
    """The number of attempts that began, plus the open one: an offer or a lease."""
    max_attempts: int
    unstarted: int = 0
    """The number of consecutive attempts that a pilot accepted and lost before the payload began."""
    stop_requested: Stop
    stop_order: StopOrder | None = None
    """The order behind `stop_requested`, if it is known."""
    tq_id: TaskQueueId
    user_priority: float
    owner: str
    owner_group: str
    vo: str
    site: str | None = None
    pilot_id: PilotId | None = None
    lease: Lease | None = None
    brokered: bool = False
    """Whether the broker places it: it waits only for the pilot of its placement."""

    @property
    def has_begun(self) -> bool:
        """Whether the payload is known to have begun in the open attempt."""
        return self.state in AT_A_PILOT and self.state is not State.MATCHED

    @property
    def was_taken(self) -> bool:
        """Whether a pilot accepted the job."""
        return self.lease is not None and self.lease.phase == "accepted"


class Step(msgspec.Struct, frozen=True, gc=False):
    """One move along the state table, with its reason."""

    before: State
    event: Event
    state: State
    reason: Reason
    source: str = ""
    """The originator of the move, if it is not the service that reports it."""


Steps = tuple[Step, ...]

STARTED = Reason(Code.STARTED)


def path(state: State, *moves: tuple[Event, Reason]) -> Steps:
    """Return the steps of the moves one after the other, or none at all if one of them is illegal."""
    steps = []
    for event, reason in moves:
        following = after(state, event)
        if following is None:
            return ()
        steps.append(Step(state, event, following, reason))
        state = following
    return tuple(steps)


def to_broker(steps: Steps) -> Steps:
    """Return the steps of a brokered job, followed by one to the broker if it would wait without a placement."""
    last = steps[-1]
    if last.state is not State.WAITING or last.reason.code is Code.PLACED:
        return steps
    return steps + path(State.WAITING, (Event.CHECK, Reason(Code.TO_BROKER)))


def started(job: Job) -> Steps:
    """Return the steps of a job whose payload started; none if it was reported before."""
    return path(job.state, (Event.START, STARTED))


def ended(job: Job, outcome: Outcome, reason: Reason, *, began: bool = True) -> Steps:
    """Return the steps of a job whose attempt under a valid lease ended; `began`: whether the payload had begun."""
    if job.stop_requested == "kill":
        return _by_user(job, killed(job, _of_order(job, Code.KILLED_BY_USER, reason.text)))
    if job.stop_requested in ("reschedule", "hold") and outcome == "killed":
        return _stopped(job, reason)
    if outcome in ("lost", "withdrawn"):
        return lost(job, reason, began=began)
    last = {"done": Event.FINISH, "failed": Event.FAIL, "killed": Event.KILL}[outcome]
    if job.state is State.MATCHED and outcome == "done":
        return path(job.state, (Event.START, STARTED), (last, reason))
    return path(job.state, (last, reason))


def lost(job: Job, reason: Reason, *, began: bool = False) -> Steps:
    """The pilot has it no more, through no fault of the payload: back to its queue, or Failed after too many attempts.

    Only an attempt that began counts. A job that is lost again and again before it begins is held,
    and so is one with a file that cannot come.
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
    """It was drawn, but is too large to be offered to any pilot: Held, so that it is not drawn again and again."""
    withdrawn = Reason(Code.OFFER_EXPIRED, "no pilot was told of it")
    held = Reason(Code.TOO_LARGE, f"its offer takes {offer_bytes:,} bytes, more than a message holds")
    return path(job.state, (Event.RESCHEDULE, withdrawn), (Event.HOLD, held))


def is_handout(job: Job, code: Code) -> bool:
    """Return whether a pilot that accepted the job was lost with it, rather than returned it."""
    return job.was_taken and code not in UNCOUNTED


def _again(job: Job, reason: Reason) -> Steps:
    return path(job.state, (Event.RESCHEDULE, reason), (Event.ENQUEUE, Reason(Code.QUEUED)))


def _stopped(job: Job, reason: Reason) -> Steps:
    """Its pilot has stopped it as its user wanted: it waits again, or is held."""
    again = _of_order(job, Code.RESCHEDULED_BY_USER, reason.text)
    if job.stop_requested == "reschedule":
        return _by_user(job, _again(job, again))
    by_user = job.stop_order is None or job.stop_order.is_of_user
    hold = _of_order(job, Code.HELD_BY_USER if by_user else Code.COALLOCATION_BROKEN)
    held = path(job.state, (Event.RESCHEDULE, again), (Event.HOLD, hold))
    return _by_user(job, held) or path(job.state, (Event.FAIL, reason))


def _of_order(job: Job, code: Code, text: str = "") -> Reason:
    """Return the reason that the user gave, and after it how the payload ended."""
    given = job.stop_order.reason if job.stop_order else ""
    return Reason(code, "; ".join(filter(None, (given, text)))[:TEXT_LIMIT])


TEXT_LIMIT = 1_000
"""Characters of a move's text."""

BY_USER = frozenset({Code.KILLED_BY_USER, Code.HELD_BY_USER, Code.RESCHEDULED_BY_USER})


def _by_user(job: Job, steps: Steps) -> Steps:
    """Return the steps with the user who ordered the stop as their source."""
    if job.stop_order is None:
        return steps
    source = job.stop_order.source
    return tuple(
        msgspec.structs.replace(each, source=source) if each.reason.code in BY_USER else each
        for each in steps
    )


def killed(job: Job, reason: Reason) -> Steps:
    """Return the steps that end the job as Killed, or as Failed where the state table allows no kill."""
    return path(job.state, (Event.KILL, reason)) or path(job.state, (Event.FAIL, reason))


Action = Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
_STOPS: dict[Action, Stop] = {"kill": "kill", "reschedule": "reschedule", "stop_and_hold": "hold"}
"""Orders for which a pilot that has the job must stop it first."""


class Ordered(msgspec.Struct, frozen=True):
    """What a user's order does to one job: steps now, or a request to its pilot, or nothing and why."""

    steps: Steps = ()
    stop: Stop = ""
    refused: str = ""


def ordered(job: Job, action: Action, reason: str, changes: str = "") -> Ordered:
    """Decide a user's order; `changes` says, in words, what the job asks for from now on."""
    if changes and job.state in AT_A_PILOT:
        # The pilot runs what it was offered.
        return Ordered(refused=_refusal(job, "edit"))
    if (stop := _STOPS.get(action)) and job.state in AT_A_PILOT:
        # The pilot must stop the payload first; its report, or the end of its lease, moves the job.
        if job.stop_requested == "kill" and action != "kill":
            return Ordered(refused=f"job {job.job_id} is being killed")
        return Ordered(stop=stop)
    steps = path(job.state, *_moves(action, reason, job.state, changes))
    return Ordered(steps) if steps else Ordered(refused=_refusal(job, action))


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
    """Return the moves of an edit, which ends in the state that it began in."""
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
    """Return what may be done instead: an order that it names is legal from this state."""
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
