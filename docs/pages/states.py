"""`docs/states.md`: the state table as a diagram and as tables."""

from textwrap import fill

from docs.pages.structs import head, row
from services.job_agent.payload.outcome import LOST_CODES
from wms.job.reasons import ADVICE, UNCOUNTED, Code
from wms.job.state import AT_A_PILOT, ENDED, FIRST, TRANSITIONS, Event, State, sources

CAUSES = {
    Event.RECEIVE: "the job manager, when it takes a submission",
    Event.CHECK: "the job manager and the pilot submitter: a brokered job needs a placement, or another one",
    Event.SCOUT: "no service yet",
    Event.STAGE: "no service yet",
    Event.ENQUEUE: "the job manager: at submission, and after every reschedule; the broker, when it places a job",
    Event.MATCH: "the matcher, when it claims the job for a pilot's request",
    Event.START: "the job manager, told by the job agent that the payload runs",
    Event.STALL: "no service yet",
    Event.RESUME: "no service yet",
    Event.COMPLETE: "no service yet",
    Event.DELIVER: "no service yet",
    Event.FINISH: "the job manager, told by the job agent that the payload ended well",
    Event.FAIL: "the job manager: the payload failed, or too many attempts were lost",
    Event.KILL: "the job manager, on a user's order; of a job that a pilot has, once the pilot reports its end or loses it",
    Event.RESCHEDULE: "the job manager: an offer or a lease ran out, a pilot gave the job back, or a user ordered it",
    Event.HOLD: "the job manager: on a user's order, after ten hand-outs lost before the payload began, or until others have ended",
    Event.RELEASE: "the job manager, on a user's order, or once what it was to start after has ended",
    Event.REMOVE: "the job manager, on a user's order",
}

RESERVED = {
    State.SUBMITTING: "a submission in several steps, as by a gateway that takes input files first",
    State.SCOUTING: "DIRAC's trial jobs, which go before the others of their kind",
    State.STAGING: "input files are brought to the site, or from tape to disk",
    State.STALLED: "DIRAC's jobs whose pilot is silent; here their lease runs out, and they are rescheduled",
    State.COMPLETING: "outputs are delivered after the payload's end, while the pilot has the job",
    State.COMPLETED: "the outputs are delivered, and their registration is not confirmed",
}
"""States that no service brings a job to yet, and what each is for: they are DIRAC's, and part of every message's schema."""
UNUSED = {Event.SCOUT, Event.STAGE, Event.STALL, Event.RESUME, Event.COMPLETE, Event.DELIVER}
"""The events that only lead to or from such states."""

TAKEN_BACK = {Code.LEASE_EXPIRED, Code.PILOT_STOPPED}
"""Why the job manager takes a job back from a pilot; `LOST_CODES` are why a pilot gives one back."""

LEAD = """# States of a job

The one table is `TRANSITIONS` in [`wms/job/state.py`](../wms/job/state.py). This page, the CHECK constraints of the
tables `job` and `job_event` ([`wms/job/constraint.py`](../wms/job/constraint.py)) and the property tests are made from
it. What the table does not name is refused and leaves the job as it was. The states are DIRAC's, and Held.

A job begins as {first}. It is over in {ended}; only a user's order leads out of those: a failed job may be rescheduled,
and each of them may be removed. While it is {at_a_pilot}, a pilot has it, or is being offered it, under a
[lease](adr/0005-leases-with-epochs.md), and in no other state there is a lease.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_lead(), *_diagram(), *_moves(), *_events(), *_reserved(), *_reasons()]) + "\n"


def _lead() -> str:
    title, *paragraphs = LEAD.format(
        first=_names(FIRST), ended=_names(ENDED), at_a_pilot=_names(AT_A_PILOT)
    ).split("\n\n")
    filled = [fill(text, 120, break_long_words=False, break_on_hyphens=False) for text in paragraphs]
    return "\n\n".join([title, *filled]) + "\n"


def _names(states: frozenset[State]) -> str:
    *others, last = [state for state in State if state in states]
    return f"{', '.join(others)} or {last}"


def _diagram() -> list[str]:
    """Draw every move; those that lead to one state under one event by name, so that lines stay few."""
    lines = ["## Diagram", "", "```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {state}: receive" for state in State if state in FIRST]
    for before in State:
        targets: dict[State, list[str]] = {}
        for event, after in TRANSITIONS[before].items():
            targets.setdefault(after, []).append(event)
        lines += [f"    {before} --> {after}: {', '.join(events)}" for after, events in targets.items()]
    return [*lines, "    Deleted --> [*]", "```", ""]


def _moves() -> list[str]:
    lines = ["## Moves", "", *head("From", "Event", "To")]
    for before in State:
        moves = TRANSITIONS[before].items()
        lines += [
            row(f"**{before}**" if n == 0 else "", event, after) for n, (event, after) in enumerate(moves)
        ]
        if not moves:
            lines.append(row(f"**{before}**", "none", ""))
    return [*lines, ""]


def _events() -> list[str]:
    lines = ["## Events", "", *head("Event", "From", "Who causes it")]
    for event in Event:
        before = ["(birth)"] if event is Event.RECEIVE else []
        lines.append(row(event, ", ".join([*before, *sources(event)]), CAUSES[event]))
    return [*lines, ""]


def _reserved() -> list[str]:
    lines = [
        "## Reserved",
        "",
        f"No service brings a job to these states yet, nor causes {_words(UNUSED)}.",
        "They stay in the table, since users of DIRAC know them and staging, brokers and gateways need most of them.",
        "",
        *head("State", "For"),
    ]
    return [*lines, *(row(state, purpose) for state, purpose in RESERVED.items()), ""]


def _words(events: set[Event]) -> str:
    *others, last = [f"`{event}`" for event in Event if event in events]
    return f"{', '.join(others)} or {last}"


def _reasons() -> list[str]:
    lines = [
        "## Reasons",
        "",
        "Every move carries a code and a text. Codes never change their meaning.",
        "From [`wms/job/reasons.py`](../wms/job/reasons.py).",
        "",
        *head("Code", "Tried again", "What to do"),
    ]
    return [*lines, *(row(f"`{code}`", _again(code), ADVICE.get(code, "")) for code in Code)]


def _again(code: Code) -> str:
    if code in UNCOUNTED:
        return "yes, and the attempt does not count"
    return "yes, up to the job's `max_attempts` if it had begun" if code in LOST_CODES | TAKEN_BACK else ""
