"""What the broker does next with a job: choose sites, ask them for agreements, take the best, place it, wait, or give up.

A job goes through phases. *Choosing*: its elements are ranked, and the best that grant reservations are asked side by side. *Deciding*: the
answers are there, or their time is over; the elements are ranked again by what was granted, the best is confirmed, the others are
cancelled. *Confirming*: the job is placed once its site has confirmed. *Placed*: nothing is to be done until the placement fails.

Every step is a pure function of what the database says, so that whoever takes a job over does the same.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from services.resource_broker.job_group import JobGroup
from wms.broker.start_window import StartWindow
from wms.db.job_record import Phase
from wms.ids import CeId, JobId
from wms.job.reasons import Code
from wms.messages.replies.rankings import RankedElement

GRANTED = frozenset({"Temporary", "Confirmed"})
WAIT_AT_LEAST = 0.5
"""Seconds after which a job is looked at again at the earliest."""
TEXT_LIMIT = 900


class StepTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of steps."""

    sites_asked: int
    decision_seconds: float
    look_again_seconds: float
    most_attempts: int


class HeldAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement that was asked for on behalf of a job, as the database tells."""

    agreement_id: str
    place: CeId
    state: str
    start_at: datetime | None = None
    reservation: str = ""
    reason: str = ""


class FailedPlacement(msgspec.Struct, frozen=True):
    """A placement that did not run the job."""

    place: CeId
    why: str
    again_at: datetime | None = None
    """When its element may be chosen again, as nothing was wrong with it or it could not be reached; None: not by itself."""


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the hands of the broker."""

    job_id: JobId
    seq: int
    """The number of its move to Checking."""
    phase: Phase
    round: int
    is_checking: bool
    """Whether it is still to be placed."""
    window: StartWindow
    wants_reservation: bool
    asked: tuple[str, ...] = ()
    agreements: Mapping[str, HeldAgreement] = {}
    """The agreements by their ids."""
    failed: tuple[FailedPlacement, ...] = ()
    """The placements that failed since it was submitted or released, first to last."""
    ranking: tuple[RankedElement, ...] = ()
    """The ranking that led to the agreements asked for."""
    group: JobGroup | None = None
    """The jobs that start together with it, if it is co-allocated."""

    def avoided(self, now: datetime) -> frozenset[CeId]:
        """Return the elements that are not to be chosen now, as placements failed there."""
        return frozenset(each.place for each in self.failed if each.again_at is None or each.again_at > now)


class AgreementRequest(msgspec.Struct, frozen=True):
    """A request for a temporary agreement at an element."""

    agreement_id: str
    place: CeId
    start: datetime | None = None
    """The earliest start, by which the site is not to move it; None: as the job's window says."""


class ChosenElement(msgspec.Struct, frozen=True):
    """The element where a job is placed, and the agreement for it, if there is one."""

    element: RankedElement
    agreement: HeldAgreement | None = None


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with a job now, all of it in one transaction."""

    phase: Phase
    seconds: float = 0.0
    """Until the next step is due."""
    round: int
    asked: tuple[str, ...] = ()
    """The agreements that are not settled after this step, the best first."""
    ranking: tuple[RankedElement, ...] | None = None
    """The new ranking; None: it is as before."""
    reason: str = ""
    text: str = ""
    requests: tuple[AgreementRequest, ...] = ()
    confirm: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    place: ChosenElement | None = None
    companions: tuple[ChosenElement, ...] = ()
    """Where the other jobs of its group are placed with it, in their order: all of them, or none."""
    end: Literal["", "hold", "fail"] = ""
    """How the job ends here, by `reason`."""

    @property
    def placed(self) -> tuple[ChosenElement, ...]:
        """Where jobs are placed: the job itself, and its companions."""
        return (self.place, *self.companions) if self.place else ()


Assess: TypeAlias = Callable[[Mapping[CeId, datetime], Collection[CeId]], tuple[RankedElement, ...]]
"""Ranks the elements for the job: by the starts of granted reservations, and without the elements given second."""
NO_STARTS: Mapping[CeId, datetime] = {}


def next_step(
    facts: StepFacts, assess: Assess, reservable: Collection[CeId], now: datetime, terms: StepTerms
) -> NextStep:
    """Return the next step of a job; `reservable` are the elements that decide on agreements."""
    if over := settled(facts, now):
        return over
    match facts.phase:
        case "Deciding":
            return _decide(facts, assess, now, terms)
        case "Confirming":
            return _confirm(facts, terms)
    return _choose(facts, assess, reservable, now, terms)


def settled(facts: StepFacts, now: datetime) -> NextStep | None:
    """Return the last step of a job that is not to be placed any more; None if it is."""
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
    elements = assess(NO_STARTS, facts.avoided(now))
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
    """Return the last step of a job that was placed as often as it may be; None if it may be placed again."""
    counted = [each for each in facts.failed if each.again_at is None]
    if len(counted) < terms.most_attempts:
        return None
    return ended(facts, "hold", Code.NOT_PLACED, f"{len(counted)} placements failed{tried(facts)}")


def _ask(
    facts: StepFacts, elements: tuple[RankedElement, ...], those: list[RankedElement], terms: StepTerms
) -> NextStep:
    """Ask several elements for temporary agreements at once."""
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
    """Place the job without a reservation; before its earliest start nothing is sent."""
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
    """No element fits now: wait for one, unless all that fit were tried and none may be tried again."""
    later = [each.again_at for each in facts.failed if each.again_at is not None and each.again_at > now]
    if facts.failed and not later and ranked(assess(NO_STARTS, ())):
        text = f"all elements that fit were tried{tried(facts)}"
        return replace(ended(facts, "hold", Code.NOT_PLACED, text), ranking=elements)
    return wait(facts, elements, "NO_CANDIDATE", why_nowhere(elements), terms.look_again_seconds)


def why_nowhere(elements: tuple[RankedElement, ...]) -> str:
    """Return in words why no element fits."""
    if not elements:
        return "no computing element is known"
    some = "; ".join(f"{each.site}/{each.ce}: {', '.join(each.reasons)}" for each in elements[:5])
    more = f"; and {len(elements) - 5:,} more" if len(elements) > 5 else ""
    return f"no element fits now: {some}{more}"[:TEXT_LIMIT]


# --- deciding -----------------------------------------------------------------------------------------------------


def _decide(facts: StepFacts, assess: Assess, now: datetime, terms: StepTerms) -> NextStep:
    """Rank again by what was granted; what has not been decided by now is left out."""
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
    """Return what was granted of that which was asked for."""
    return {
        each.place: each
        for each in map(facts.agreements.get, facts.asked)
        if each is not None and each.state in GRANTED and each.start_at is not None
    }


def annotated(elements: tuple[RankedElement, ...], facts: StepFacts) -> tuple[RankedElement, ...]:
    """Add to each element what became of the agreement that it was asked for."""
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
    """Place the job at the element whose agreement is confirmed; else begin again."""
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
    """Return the elements that were not rejected, the best first."""
    return sorted((each for each in elements if each.rank), key=lambda each: each.rank)


def place_of(element: RankedElement) -> CeId:
    """Return site and name of a ranked element."""
    return CeId(element.site, element.ce)


def wait(
    facts: StepFacts, elements: tuple[RankedElement, ...] | None, reason: str, text: str, seconds: float
) -> NextStep:
    """Return a step to wait for so many seconds and begin anew; agreements that were asked for are cancelled."""
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
    """Return the last step of a job that cannot be placed; agreements that were asked for are cancelled."""
    return NextStep(
        phase="Over", round=facts.round, reason=code, text=text[:TEXT_LIMIT], cancel=facts.asked, end=end
    )


def tried(facts: StepFacts) -> str:
    """Return in words where it was tried, to be put behind other words."""
    said = "; ".join(f"{each.place.site}/{each.place.ce}: {each.why}" for each in facts.failed)
    return f"; tried: {said}" if said else ""


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
