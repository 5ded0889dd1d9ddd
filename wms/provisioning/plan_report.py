"""The report on a plan: for each element how many pilots were ordered and why, and what hindered more."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from wms.bounds import Count, CpuTime, LongText, LongTexts, StoredName, Total
from wms.provisioning.open_work import OpenWork
from wms.provisioning.supply import PilotSort, PlannedElement

SHARES = 50
"""The largest number of classes of work that the decision on one element lists: those with the most jobs."""

Hindrance: TypeAlias = Literal[
    "", "NO_DEMAND", "LIMIT", "NO_ROOM", "CAP", "BACKOFF", "QUARANTINE", "BANNED", "DRAINING"
]
"""The code of what hindered sending more pilots to an element; empty if nothing did."""


class WorkDecision(Struct, frozen=True, kw_only=True):
    """The decision on one class of work at one element: its jobs, the pilots for them, and what hindered sending more."""

    vo: StoredName
    cpu_segment: CpuTime
    """The CPU time of the jobs, in seconds, rounded up to a CPU segment."""
    processors: Count
    """How many slots of a pilot one job needs."""
    wanted: Total
    """How many waiting jobs could run at the element."""
    taken: Total
    """How many of the jobs that could run at the element are assigned to its pilots that run or are on their way."""
    sent: Count
    """How many pilots are ordered for the work at the element."""
    elsewhere: Total
    """How many of the jobs that could run at the element are assigned to pilots of other elements, or to pilots newly ordered at any element."""
    held: Hindrance
    """What hinders sending more pilots, as a code."""
    why: LongText
    """What hinders sending more pilots, as a text for people."""


class ElementDecision(Struct, frozen=True, kw_only=True):
    """The decision on one computing element in a plan, for all VOs together."""

    site: StoredName
    ce: StoredName
    ordered: Count
    """How many pilots this plan orders for the element."""
    reasons: LongTexts
    """Why pilots were or were not ordered, as texts for people."""
    submitted: Count = 0
    waiting: Count = 0
    running: Count = 0
    idle_slots: Total = 0
    ending: Count = 0
    """How many pilots run at the element that take no more jobs."""
    room: Total = 0
    """How many more pilots could be sent to the element, by the limits in its ad."""
    shares: Annotated[tuple[WorkDecision, ...], Meta(max_length=1_000)] = ()
    """The decisions on single classes of work at the element, those with the most jobs first."""


_UNTRIED = "only its nodes can tell whether they do: pilots go as others find work there"
_AT_RANDOM = "drawn at random among the elements that fit and have room"
_CAPPED = "the cap on pilots is reached"


def decision(
    element: PlannedElement, works: Sequence[OpenWork], unreached: Counter[str], *, at_random: bool
) -> ElementDecision:
    """Return the decision on an element, after the whole plan is made.

    `works` are all kinds of work of the plan. `unreached` counts the jobs that may not run there, by the first clause that fails. `at_random` says
    that pilots' elements were drawn at random.
    """
    sent = tuple(_sent(element, sort, at_random=at_random) for sort in element.ordered)
    return ElementDecision(
        site=element.ad.site,
        ce=element.ad.ce,
        ordered=element.total,
        reasons=sent or (f"none sent because {_why_none(element, works, unreached)}",),
        submitted=sum(each.submitted for each in element.pilots),
        waiting=sum(each.waiting for each in element.pilots),
        running=sum(each.running for each in element.pilots),
        idle_slots=element.idle,
        ending=sum(each.ending for each in element.pilots),
        room=element.room,
        shares=_shares(element, works),
    )


def order_reasons(element: PlannedElement, sort: PilotSort, *, at_random: bool) -> tuple[str, ...]:
    """Return texts on why pilots of a sort (VO, class and owner) were ordered for an element: the jobs, the room, and the class or owner."""
    _, hosts, owner = sort
    return (
        _unmet(element.taken[sort], element.ad.slots_per_pilot),
        f"room for {element.room} pilots, {element.under_way} on the way, {element.idle} idle slots",
        *((_AT_RANDOM,) if at_random else ()),
        *((str(hosts),) if hosts else ()),
        *((f"private pilots of {owner.text}",) if owner else ()),
    )


def _sent(element: PlannedElement, sort: PilotSort, *, at_random: bool) -> str:
    unmet, _, *others = order_reasons(element, sort, at_random=at_random)
    return "; ".join((f"{element.ordered[sort]} of VO {sort[0]}: {unmet}", *others))


def _unmet(jobs: int, slots: int) -> str:
    waiting = "1 waiting job fits" if jobs == 1 else f"{jobs} waiting jobs fit"
    return f"sent because {waiting} no existing pilot ({slots} {'slot' if slots == 1 else 'slots'} each)"


def _shares(element: PlannedElement, works: Sequence[OpenWork]) -> tuple[WorkDecision, ...]:
    """Return the decisions on the classes of work that could run at an element, those with the most jobs first."""
    number = element.number
    classes: dict[tuple[str, int, int], list[OpenWork]] = {}
    for work in works:
        if number in work.elements or number in work.kind.avoided:
            asked = work.kind.requirements
            classes.setdefault((work.vo, asked.cpu_segment, work.processors), []).append(work)
    found = [_share(element, name, of_class) for name, of_class in classes.items()]
    return tuple(sorted(found, key=lambda each: -each.wanted)[:SHARES])


def _share(element: PlannedElement, name: tuple[str, int, int], works: Sequence[OpenWork]) -> WorkDecision:
    taken = sum(work.taken.get(element.number, 0) for work in works)
    held, why = _what_held(element, works)
    wanted = sum(work.kind.jobs for work in works)
    return WorkDecision(
        vo=name[0],
        cpu_segment=name[1],
        processors=name[2],
        wanted=wanted,
        taken=taken,
        sent=sum(work.sent.get(element.number, 0) for work in works),
        elsewhere=wanted - taken - sum(work.left for work in works),
        held=held,
        why=why,
    )


def _what_held(element: PlannedElement, works: Sequence[OpenWork]) -> tuple[Hindrance, str]:
    """Return the code and the text of the first obstacle to sending more pilots for a class of work."""
    number = element.number
    for work in works:
        if found := work.kind.avoided.get(number):
            return found.code, found.why
    wanting = [work for work in works if work.left]
    if not wanting:
        sent = any(work.sent.get(number) for work in works)
        return ("", "") if sent else ("NO_DEMAND", "pilots that there are or were ordered take it up")
    if not element.open:
        return "NO_ROOM", element.full
    for work in wanting:
        if not element.startable(work):
            return "LIMIT", element.leeway.fullest(work.kind.keys[number])
        if element.untried(work) <= 0:
            return "LIMIT", _UNTRIED
    return "CAP", _CAPPED


def _why_none(element: PlannedElement, works: Sequence[OpenWork], unreached: Counter[str]) -> str:
    """Return the text of the reason why no pilot was ordered for an element."""
    number = element.number
    if element.ad.fault():
        return element.full
    reaching = [work for work in works if number in work.elements]
    if not reaching:
        shut = next((work.kind.avoided[number] for work in works if number in work.kind.avoided), None)
        return f"it is avoided, {shut.why}" if shut else _why_unreached(unreached)
    if not any(work.left for work in reaching):
        return f"the work it could do is taken up by pilots there are ({element.under_way} on the way here, {element.idle} idle slots) or ordered elsewhere"
    if not element.open:
        return f"it is {element.full}" if element.full.startswith("full") else element.full
    startable = [work for work in reaching if element.startable(work)]
    if not startable:
        keys = next(work.kind.keys[number] for work in reaching if work.left)
        return f"a limit lets no more jobs start: {element.leeway.fullest(keys)}"
    untried = all(element.untried(work) <= 0 for work in startable)
    return _UNTRIED if untried else _CAPPED


def _why_unreached(unreached: Counter[str]) -> str:
    counts = unreached.most_common(5)
    if not counts:
        return "no job waits"
    return "no waiting job may run there: " + ", ".join(
        f"{clause} ({'1 job' if n == 1 else f'{n} jobs'})" for clause, n in counts
    )
