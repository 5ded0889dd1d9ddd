"""Co-allocation: what the broker does next with jobs that start together, each at another computing element, all or none.

The first job of the group, its leader, decides for all. It asks elements for agreements at the same time, and takes those that
start earliest. As each element grants the earliest start that it can, the starts differ at first. Agreements that start before
the latest of these are cancelled. They are asked for again, from that latest start on. A site that is asked for a later start
grants no earlier one, so the latest start only grows. Where it grows no more, it is the earliest start that all have in common.
Then all agreements are confirmed, and all jobs are placed at once. Otherwise nothing stays reserved.
"""

import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from services.resource_broker.job_group import JobGroup
from services.resource_broker.next_step import (
    AgreementRequest,
    Assess,
    ChosenElement,
    HeldAgreement,
    NextStep,
    StepFacts,
    StepTerms,
    annotated,
    ended,
    granted_of,
    place_of,
    ranked,
    settled,
    tried,
    tried_out,
    wait,
    why_nowhere,
)
from wms.ids import CeId
from wms.job.reasons import Code
from wms.messages.replies.rankings import RankedElement

ASKED_LIMIT = 40
"""The most computing elements that are asked for agreements at the same time, for one group of jobs."""
ROUNDS = 10
"""How many times in a row agreements are asked for to find a common start. After that all are cancelled, and the group begins again later."""
TOGETHER = timedelta(seconds=1)
"""The most by which the starts of a group's agreements may differ to count as a common start."""
AHEAD = timedelta(seconds=10)
"""The least time from now to the start that is asked for, since agreements take so long to make."""
LEAST_AHEAD = timedelta(seconds=2)
"""The least time from now to a start that sites are asked for again. A nearer one would be past when they decide.

Then a start is asked for that is `AHEAD` from now.
"""


class GroupStepInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the next step of a group depends on besides its jobs: the ranking of elements, the time and the settings."""

    assess: Assess
    reservable: Collection[CeId]
    """The computing elements that can be reserved, as their sites decide on agreements."""
    now: datetime
    terms: StepTerms

    def able(self, elements: tuple[RankedElement, ...]) -> list[CeId]:
        """Return the ids of the elements in a ranking that fit the job and can be reserved, best first; at most `ASKED_LIMIT`."""
        places = (place_of(each) for each in ranked(elements))
        return [each for each in places if each in self.reservable][:ASKED_LIMIT]


def group_step(facts: StepFacts, group: JobGroup, inputs: GroupStepInputs) -> NextStep:
    """Return the next step of a job that must start together with the others of its group. Nothing is written.

    The leader's step is for the whole group. Any other job waits for the leader. A group of which a job has ended or was
    removed fails: no release could start its jobs together.
    """
    if over := settled(facts, inputs.now):
        return over
    if breach := group.breach():
        return ended(facts, "fail", Code.COALLOCATION_BROKEN, breach)
    return _followed(facts, group, inputs.terms.look_again_seconds) or _led(facts, group.size, inputs)


def _followed(facts: StepFacts, group: JobGroup, seconds: float) -> NextStep | None:
    """Return a step to wait `seconds`, for jobs that cannot be placed yet or for the leader; None if this job is to decide for all."""
    if away := group.awaited():
        return wait(facts, None, "WITH_OTHERS", away, seconds)
    if facts.job_id == group.leader:
        return None
    text = f"it starts together with job {group.leader}, which tells how far the broker is"
    return wait(facts, None, "WITH_LEADER", text, seconds)


def _led(facts: StepFacts, size: int, inputs: GroupStepInputs) -> NextStep:
    match facts.phase:
        case "Deciding":
            return _decide(facts, size, inputs)
        case "Confirming":
            return _confirm(facts, size, inputs.terms)
    return _begin(facts, size, inputs)


# --- asking -------------------------------------------------------------------------------------------------------


def _begin(facts: StepFacts, size: int, inputs: GroupStepInputs) -> NextStep:
    """Return the leader's step that asks all fitting elements for agreements; `size` is the number of jobs in the group.

    If fewer elements fit than there are jobs, or placements have failed too often, the step waits or holds the group.
    """
    if held := tried_out(facts, inputs.terms):
        return held
    elements = inputs.assess(None, facts.avoided(inputs.now))
    those = inputs.able(elements)
    if len(those) < size:
        return _too_few(facts, size, elements, inputs)
    first = -(-facts.round // ROUNDS) * ROUNDS + 1
    start = max(facts.window.earliest, _ahead(inputs.now))
    return _ask(replace(facts, round=first), elements, _requests(facts, first, those, start), inputs)


def _too_few(
    facts: StepFacts, size: int, elements: tuple[RankedElement, ...], inputs: GroupStepInputs
) -> NextStep:
    """Return the leader's step if fewer than `size` elements of a ranking fit: to wait for more, or to hold the group.

    It is held if placements that failed for good leave too few of the elements.
    """
    has_failed = any(each.again_at is None for each in facts.failed)
    if has_failed and len(inputs.able(inputs.assess(None, ()))) >= size:
        text = f"too few of the elements that fit are left{tried(facts)}"
        return replace(ended(facts, "hold", Code.NOT_PLACED, text), ranking=elements)
    text = f"{size} elements that take reservations are needed, and {len(inputs.able(elements))} fit now"
    if not ranked(elements):
        text = f"{text}: {why_nowhere(elements)}"
    return wait(facts, elements, "NO_AGREEMENT", text, inputs.terms.look_again_seconds)


def _requests(
    facts: StepFacts, number: int, places: Sequence[CeId], start: datetime
) -> tuple[AgreementRequest, ...]:
    start = min(start, facts.window.latest or start)
    return tuple(
        AgreementRequest(f"{facts.job_id}-{facts.seq}-{number}-{n}", place, start)
        for n, place in enumerate(places, start=1)
    )


def _ask(
    facts: StepFacts,
    elements: tuple[RankedElement, ...],
    requests: tuple[AgreementRequest, ...],
    inputs: GroupStepInputs,
    kept: Sequence[str] = (),
) -> NextStep:
    """Return the leader's step that asks elements for agreements (`requests`) and cancels all earlier ones but those in `kept`."""
    ids = {each.place: each.agreement_id for each in requests}
    told = tuple(
        replace(each, agreement_id=ids[place_of(each)], agreement="Requested", start_at=None)
        if place_of(each) in ids
        else each
        for each in elements
    )
    return NextStep(
        phase="Deciding",
        seconds=inputs.terms.decision_seconds,
        round=facts.round,
        asked=(*kept, *ids.values()),
        ranking=told,
        reason="ASKING",
        text=f"{len(requests)} elements were asked for slots that start together, from {_time(requests[0].start)} on",
        requests=requests,
        cancel=tuple(each for each in facts.asked if each not in kept),
    )


def _ahead(now: datetime) -> datetime:
    return _whole(now + AHEAD)


def _whole(moment: datetime) -> datetime:
    """Return a time rounded up to a whole second: batch systems have no fractions of seconds."""
    return datetime.fromtimestamp(math.ceil(moment.timestamp()), UTC)


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "now"


# --- deciding -----------------------------------------------------------------------------------------------------


def _decide(facts: StepFacts, size: int, inputs: GroupStepInputs) -> NextStep:
    """Return the leader's step after sites have decided: confirm the `size` agreements that start earliest, if they start together.

    Else ask again for agreements that start too early. With too few grants, or after `ROUNDS` rounds, wait and begin again.
    """
    granted = granted_of(facts)
    starts = {place: each.start_at for place, each in granted.items() if each.start_at is not None}
    elements = annotated(inputs.assess(starts, facts.avoided(inputs.now)), facts)
    fit = [place_of(each) for each in ranked(elements) if place_of(each) in granted]
    chosen = sorted(fit, key=lambda place: starts[place])[:size]
    seconds = inputs.terms.look_again_seconds
    if len(chosen) < size:
        text = f"{size} reservations are needed at a time, and {len(fit)} were granted"
        return wait(facts, elements, "NO_AGREEMENT", text, seconds)
    latest = starts[chosen[-1]]
    if latest - starts[chosen[0]] <= TOGETHER:
        return _confirming(facts, elements, [granted[place] for place in chosen], inputs.terms)
    if facts.round % ROUNDS == 0:
        text = f"no common start was found in {ROUNDS} rounds; the last one tried was {_time(latest)}"
        return wait(facts, elements, "NO_AGREEMENT", text, seconds)
    start = _whole(latest) if latest - inputs.now >= LEAST_AHEAD else _ahead(inputs.now)
    early = [place for place in fit if start - starts[place] > TOGETHER]
    kept = [granted[place].agreement_id for place in fit if place not in early]
    again = replace(facts, round=facts.round + 1)
    return _ask(again, elements, _requests(facts, again.round, early, start), inputs, kept)


def _confirming(
    facts: StepFacts, elements: tuple[RankedElement, ...], chosen: Sequence[HeldAgreement], terms: StepTerms
) -> NextStep:
    names = tuple(each.agreement_id for each in chosen)
    start = max(each.start_at for each in chosen if each.start_at)
    return NextStep(
        phase="Confirming",
        seconds=terms.decision_seconds,
        round=facts.round,
        asked=names,
        ranking=elements,
        reason="CONFIRMING",
        text=f"{len(names)} reservations from {_time(start)} on are being confirmed",
        confirm=names,
        cancel=tuple(each for each in facts.asked if each not in names),
    )


# --- confirming ---------------------------------------------------------------------------------------------------


def _confirm(facts: StepFacts, size: int, terms: StepTerms) -> NextStep:
    """Return the leader's step that places all `size` jobs once as many agreements are confirmed.

    Else all agreements are cancelled, and the group begins again.
    """
    held = {each.agreement_id: each for each in map(facts.agreements.get, facts.asked) if each}
    found = [
        ChosenElement(element, held[element.agreement_id])
        for element in ranked(facts.ranking)
        if element.agreement_id in held and held[element.agreement_id].state == "Confirmed"
    ]
    if len(found) < size:
        text = f"{len(found)} of {size} reservations were confirmed"
        return wait(facts, None, "AGREEMENT_LOST", text, min(1.0, terms.look_again_seconds))
    first, *others = found
    return NextStep(
        phase="Placed",
        round=facts.round,
        asked=facts.asked,
        ranking=tuple(_confirmed(each, held) for each in facts.ranking),
        place=first,
        companions=tuple(others),
    )


def _confirmed(element: RankedElement, held: Collection[str]) -> RankedElement:
    return replace(element, agreement="Confirmed") if element.agreement_id in held else element
