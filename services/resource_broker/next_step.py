"""What the broker does next with a job: rank elements, ask for agreements, confirm one, place the job, wait, or give up.

A job goes through phases. *Choosing*: elements are ranked, and the best that can be reserved are asked for agreements at a
time. *Deciding*: the sites have answered, or their time is over. Elements are ranked again by the granted starts, the best
agreement is confirmed, the others are cancelled. *Confirming*: the job is placed once its site has confirmed. *Placed*: nothing
is to be done until the placement fails. Every step is a pure function of what the database says. So whichever broker takes a
job over does the same.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from services.resource_broker.failed_placements import FailedPlacement, avoided
from services.resource_broker.job_group import JobGroup
from wms.broker.start_window import StartWindow
from wms.db.job_record import Phase
from wms.ids import CeId, JobId
from wms.job.reasons import Code
from wms.messages.replies.rankings import RankedElement

GRANTED = frozenset({"Temporary", "Confirmed"})
WAIT_AT_LEAST = 0.5
"""The least seconds until the next step of a waiting job, even if its wait is shorter."""
TEXT_LIMIT = 900


class StepTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the broker that bound its steps.

    `sites_asked` sites are asked for reservations at a time and have `decision_seconds`. A job that fits nowhere is tried again
    after `look_again_seconds`, and held after `most_attempts` failed placements.
    """

    sites_asked: int
    decision_seconds: float
    look_again_seconds: float
    most_attempts: int


class HeldAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement (reservation) that was asked for on behalf of a job, as stored; `start_at` is None until it is granted."""

    agreement_id: str
    place: CeId
    state: str
    start_at: datetime | None = None
    reservation: str = ""
    reason: str = ""


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the database says of a brokered job. `round` counts how often agreements were asked for; `asked` are the open ones, best first."""

    job_id: JobId
    seq: int
    """The number, in the job's history, of its last change to state Checking (being placed by the broker)."""
    phase: Phase
    round: int
    is_checking: bool
    """Whether the job is still in state Checking. If it is not, the broker does not place it."""
    window: StartWindow
    wants_reservation: bool
    asked: tuple[str, ...] = ()
    agreements: Mapping[str, HeldAgreement] = {}
    """Those of the agreements in `asked` whose offers sites have stored, by id."""
    failed: tuple[FailedPlacement, ...] = ()
    """The placements that failed since the job was submitted or last released, the oldest first."""
    ranking: tuple[RankedElement, ...] = ()
    """The job's last ranking of elements, by which agreements were asked for."""
    group: JobGroup | None = None
    """The jobs that must start together with it; None if it is not co-allocated."""

    def avoided(self, now: datetime) -> frozenset[CeId]:
        """Return the ids of the elements that must not be chosen at the time `now`, since placements of the job failed there."""
        return avoided(self.failed, now)


class AgreementRequest(msgspec.Struct, frozen=True):
    """A temporary agreement that is to be asked for at the element `place`, under an id that the broker chose."""

    agreement_id: str
    place: CeId
    start: datetime | None = None
    """The earliest start to ask for; the site may not move the reservation then. None: the job's own window of starts applies."""
    moving_seconds: float = 0.0
    """The seconds to reserve for moving the job's files, in addition to the time for which its program runs."""
    fetching_seconds: float = 0.0
    """Those of them in which its files are fetched, before its program starts."""


class ChosenElement(msgspec.Struct, frozen=True):
    """The computing element where a job is placed, and its agreement there; None: the job is placed without one."""

    element: RankedElement
    agreement: HeldAgreement | None = None


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """What the broker does with a job now, in one transaction; `phase` is the job's phase after it.

    `confirm` and `cancel` are ids of agreements. `place` is where the job is placed; None: nowhere. `reason` is a code, and
    `text` explains it to users.
    """

    phase: Phase
    seconds: float = 0.0
    """Seconds from this step until the job's next one is due."""
    round: int
    asked: tuple[str, ...] = ()
    """The ids of the agreements that stay open after this step, best first: all that are not cancelled."""
    ranking: tuple[RankedElement, ...] | None = None
    """The new ranking of elements for the job; None: the last one stays."""
    reason: str = ""
    text: str = ""
    requests: tuple[AgreementRequest, ...] = ()
    confirm: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    place: ChosenElement | None = None
    companions: tuple[ChosenElement, ...] = ()
    """Where the other jobs of its group are placed together with it, in the order of their ids; empty if none is placed."""
    end: Literal["", "hold", "fail"] = ""
    """Whether the job is put on hold or fails, with `reason` as its code; empty: neither."""

    @property
    def placed(self) -> tuple[ChosenElement, ...]:
        """Where this step places jobs: the job itself first, then the others of its group. Empty if it places none."""
        return (self.place, *self.companions) if self.place else ()


Assess: TypeAlias = Callable[[Mapping[CeId, datetime] | None, Collection[CeId]], tuple[RankedElement, ...]]
"""A function that ranks the elements for a job, by the granted starts (by element) and the elements that must not be chosen.

The starts are None before sites are asked for any.
"""


def next_step(
    facts: StepFacts, assess: Assess, reservable: Collection[CeId], now: datetime, terms: StepTerms
) -> NextStep:
    """Return the next step of a job that is not co-allocated; nothing is written. `reservable` are the elements that can be reserved."""
    if over := settled(facts, now):
        return over
    match facts.phase:
        case "Deciding":
            return _decide(facts, assess, now, terms)
        case "Confirming":
            return _confirm(facts, terms)
    return _choose(facts, assess, reservable, now, terms)


def settled(facts: StepFacts, now: datetime) -> NextStep | None:
    """Return the last step of a job that must not be placed any more: it left Checking or its latest start passed; None for any other."""
    if not facts.is_checking:
        return NextStep(phase="Over", round=facts.round, cancel=facts.asked)
    if facts.window.is_over(now):
        text = f"it was to start by {_time(facts.window.latest or now)}, and has not{tried(facts)}"
        return ended(facts, "fail", Code.TOO_LATE_TO_START, text)
    return None


# --- choosing -----------------------------------------------------------------------------------------------------


def _choose(
    facts: StepFacts, assess: Assess, reservable: Collection[CeId], now: datetime, terms: StepTerms
) -> NextStep:
    elements = assess(None, facts.avoided(now))
    best = ranked(elements)
    if not best:
        return _nowhere(facts, assess, elements, now, terms)
    if held := tried_out(facts, terms):
        return held
    those = [each for each in best if place_of(each) in reservable][: terms.sites_asked]
    if facts.wants_reservation and those:
        return _ask(facts, elements, those, terms)
    return _place_unreserved(facts, elements, now)


def tried_out(facts: StepFacts, terms: StepTerms) -> NextStep | None:
    """Return the step that holds a job of which `most_attempts` placements failed for good; None if it may be placed again."""
    counted = [each for each in facts.failed if each.again_at is None]
    if len(counted) < terms.most_attempts:
        return None
    return ended(facts, "hold", Code.NOT_PLACED, f"{len(counted)} placements failed{tried(facts)}")


def _ask(
    facts: StepFacts, elements: tuple[RankedElement, ...], those: list[RankedElement], terms: StepTerms
) -> NextStep:
    """Return the step that asks the elements `those` for temporary agreements at the same time; `elements` is the whole ranking."""
    number = facts.round + 1
    requests = tuple(
        AgreementRequest(f"{facts.job_id}-{facts.seq}-{number}-{n}", place_of(each))
        for n, each in enumerate(those, start=1)
    )
    ids = {each.place: each.agreement_id for each in requests}
    told = tuple(
        replace(each, agreement_id=ids[place_of(each)], agreement="Requested")
        if place_of(each) in ids
        else each
        for each in elements
    )
    return NextStep(
        phase="Deciding",
        seconds=terms.decision_seconds,
        round=number,
        asked=tuple(each.agreement_id for each in requests),
        ranking=told,
        reason="ASKING",
        text=f"{len(requests)} elements were asked for a reservation",
        requests=requests,
        cancel=facts.asked,
    )


def _place_unreserved(facts: StepFacts, elements: tuple[RankedElement, ...], now: datetime) -> NextStep:
    """Return the step that places the job at the best element without a reservation; before its earliest start, a step that waits."""
    ahead = (facts.window.earliest - now).total_seconds()
    if ahead > 0:
        text = f"it starts at {_time(facts.window.earliest)} at the earliest"
        return wait(facts, elements, "NOT_BEFORE", text, min(ahead, 60.0))
    return NextStep(
        phase="Placed",
        round=facts.round,
        ranking=elements,
        cancel=facts.asked,
        place=ChosenElement(ranked(elements)[0]),
    )


def _nowhere(
    facts: StepFacts, assess: Assess, elements: tuple[RankedElement, ...], now: datetime, terms: StepTerms
) -> NextStep:
    """Return the step of a job that fits no element now: to wait, or to hold it if placements failed for good at all that fit."""
    later = [each.again_at for each in facts.failed if each.again_at is not None and each.again_at > now]
    if facts.failed and not later and ranked(assess(None, ())):
        text = f"all elements that fit were tried{tried(facts)}"
        return replace(ended(facts, "hold", Code.NOT_PLACED, text), ranking=elements)
    return wait(facts, elements, "NO_CANDIDATE", why_nowhere(elements), terms.look_again_seconds)


def why_nowhere(elements: tuple[RankedElement, ...]) -> str:
    """Return a text on why no element of a ranking fits the job, with the reasons of the first five elements."""
    if not elements:
        return "no computing element is known"
    some = "; ".join(f"{each.site}/{each.ce}: {', '.join(each.reasons)}" for each in elements[:5])
    more = f"; and {len(elements) - 5:,} more" if len(elements) > 5 else ""
    return f"no element fits now: {some}{more}"[:TEXT_LIMIT]


# --- deciding -----------------------------------------------------------------------------------------------------


def _decide(facts: StepFacts, assess: Assess, now: datetime, terms: StepTerms) -> NextStep:
    """Return the step that confirms the best granted agreement, after a new ranking; all others are cancelled, also undecided ones.

    If an element without an agreement is best, the job is placed there without one.
    """
    granted = granted_of(facts)
    starts = {place: each.start_at for place, each in granted.items() if each.start_at is not None}
    elements = annotated(assess(starts, facts.avoided(now)), facts)
    best = ranked(elements)
    if not best:
        return wait(facts, elements, "NO_AGREEMENT", why_nowhere(elements), terms.look_again_seconds)
    chosen = granted.get(place_of(best[0]))
    if chosen is None:
        return _place_unreserved(facts, elements, now)
    return NextStep(
        phase="Confirming",
        seconds=terms.decision_seconds,
        round=facts.round,
        asked=(chosen.agreement_id,),
        ranking=elements,
        reason="CONFIRMING",
        text=f"{best[0].site}/{best[0].ce} granted a reservation, which is being confirmed",
        confirm=(chosen.agreement_id,),
        cancel=tuple(each for each in facts.asked if each != chosen.agreement_id),
    )


def granted_of(facts: StepFacts) -> dict[CeId, HeldAgreement]:
    """Return the open agreements of a job that have been granted, by computing element."""
    return {
        each.place: each
        for each in map(facts.agreements.get, facts.asked)
        if each is not None and each.state in GRANTED and each.start_at is not None
    }


def annotated(elements: tuple[RankedElement, ...], facts: StepFacts) -> tuple[RankedElement, ...]:
    """Return a ranking in which each element shows the state, start and reason of the agreement asked for there, if any."""
    known = {each.place: each for each in facts.agreements.values() if each.agreement_id in facts.asked}
    return tuple(_with_agreement(each, known.get(place_of(each))) for each in elements)


def _with_agreement(element: RankedElement, held: HeldAgreement | None) -> RankedElement:
    if held is None:
        return element
    said = (f"reservation: {held.reason}",) if held.reason else ()
    return replace(
        element,
        agreement_id=held.agreement_id,
        agreement=held.state,
        start_at=held.start_at,
        reasons=(*element.reasons, *said),
    )


# --- confirming ---------------------------------------------------------------------------------------------------


def _confirm(facts: StepFacts, terms: StepTerms) -> NextStep:
    """Return the step that places the job at the element whose agreement is confirmed. If it is not, the job is ranked anew."""
    held = facts.agreements.get(facts.asked[0]) if facts.asked else None
    chosen = next((each for each in facts.ranking if held and each.agreement_id == held.agreement_id), None)
    if held is None or chosen is None or held.state != "Confirmed":
        why = f"{held.state}: {held.reason}" if held else "gone"
        return NextStep(
            phase="Choosing",
            seconds=min(1.0, terms.look_again_seconds),
            round=facts.round,
            cancel=facts.asked,
            reason="AGREEMENT_LOST",
            text=f"the chosen reservation was not confirmed ({why})",
        )
    elements = tuple(
        replace(each, agreement="Confirmed") if each is chosen else each for each in facts.ranking
    )
    return NextStep(
        phase="Placed",
        round=facts.round,
        asked=facts.asked,
        ranking=elements,
        place=ChosenElement(chosen, held),
    )


# --- words --------------------------------------------------------------------------------------------------------


def ranked(elements: tuple[RankedElement, ...]) -> list[RankedElement]:
    """Return the elements of a ranking that fit the job, best first."""
    return sorted((each for each in elements if each.rank), key=lambda each: each.rank)


def place_of(element: RankedElement) -> CeId:
    """Return the id of a ranked computing element: its site and its name."""
    return CeId(element.site, element.ce)


def wait(
    facts: StepFacts, elements: tuple[RankedElement, ...] | None, reason: str, text: str, seconds: float
) -> NextStep:
    """Return the step of a job that waits `seconds` and then is ranked anew; its agreements are cancelled.

    `reason` is a code and `text` the explanation for users. `elements` is the new ranking; None keeps the last one.
    """
    return NextStep(
        phase="Choosing",
        seconds=max(WAIT_AT_LEAST, seconds),
        round=facts.round,
        ranking=elements,
        reason=reason,
        text=text,
        cancel=facts.asked,
    )


def ended(facts: StepFacts, end: Literal["hold", "fail"], code: Code, text: str) -> NextStep:
    """Return the last step of a job that cannot be placed: it is held or fails, as `end` says, and its agreements are cancelled.

    `code` and `text` are the reason that its user sees.
    """
    return NextStep(
        phase="Over", round=facts.round, reason=code, text=text[:TEXT_LIMIT], cancel=facts.asked, end=end
    )


def tried(facts: StepFacts) -> str:
    """Return a text on where placements of the job failed and why, to be appended to a message; empty if none failed."""
    said = "; ".join(f"{each.place.site}/{each.place.ce}: {each.why}" for each in facts.failed)
    return f"; tried: {said}" if said else ""


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
