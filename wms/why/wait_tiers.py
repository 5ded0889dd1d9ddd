"""Tiers of waiting: one code for all jobs of a task queue, from the fitting elements and the competition."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wms.job.reasons import Wait
from wms.matching.clauses import CPU_TIME, takes_private_alone
from wms.matching.grouping import Requirements
from wms.site import folded
from wms.why.verdict import Verdict


class QueueOutlook(NamedTuple):
    """The outlook of a task queue's waiting jobs, in numbers of elements and pilots."""

    contradiction: str = ""
    """The reason why no element can ever meet the requirements; empty if there is none."""
    known: int = 0
    """The number of computing elements that advertise themselves, or did recently."""
    fresh: int = 0
    """The number of computing elements that advertise themselves now."""
    could: int = 0
    """The number of known elements that could run the jobs."""
    longest: int | None = None
    """The longest CPU time in seconds of a known element that excludes the jobs by CPU time alone; None if there is none."""
    asked: int = 0
    """The CPU time that the jobs request, in seconds."""
    fitting: int = 0
    """The number of elements that advertise themselves now and could run the jobs."""
    held: int = 0
    """The number of fitting elements that are avoided, or where a limit holds the jobs back."""
    avoided: int = 0
    """The number of fitting elements that are avoided."""
    limit: str = ""
    """The text of one limit that holds the jobs back; if all fitting elements are avoided, the reason for one of them."""
    pilots: int = 0
    """Running pilots that accept jobs, at fitting elements where the jobs are not held back."""
    coming: int = 0
    """Pilots on their way to fitting elements where the jobs are not held back."""
    slots: int = 0
    free_slots: int = 0
    chance: float = 1.0
    """The share of the draws for the free slots that goes to this queue, 0 to 1."""


class Judgement(NamedTuple):
    """A tier of waiting and its explanation."""

    code: Wait
    text: str


PLACED = Judgement(Wait.PLACED, "the broker placed it: it waits for the pilot of its placement")
"""Why a job waits that only a pilot of its own gets."""


def contradiction(requirements: Requirements) -> str:
    """Return the reason why requirements contradict themselves; empty if they do not."""
    sites = set(folded(requirements.sites))
    if sites and sites <= set(folded(requirements.banned_sites)):
        return "every site that the job may run at is also banned by it"
    return ""


def standing(requirements: Requirements, found: Iterable[Verdict], *, chance: float = 1.0) -> QueueOutlook:
    """Return the outlook of a task queue as the sum of the verdicts of computing elements."""
    all_ = list(found)
    could = [each for each in all_ if each.fits]
    short = [each for each in all_ if each.failing and {no.clause for no in each.failing} == {CPU_TIME.name}]
    fitting = [each for each in could if each.place.fresh]
    held = [each for each in fitting if each.held]
    shut = [each for each in held if each.avoided]
    why = next((each for each in held if not each.avoided), held[0] if held else None)
    open_ = [each.place for each in fitting if not each.held]
    return QueueOutlook(
        contradiction=contradiction(requirements),
        known=len(all_),
        fresh=sum(each.place.fresh for each in all_),
        could=len(could),
        longest=max((each.place.element.max_cpu_time for each in short), default=None),
        asked=requirements.cpu_segment,
        fitting=len(fitting),
        held=len(held),
        avoided=len(shut),
        limit=why.held[0].detail if why else "",
        pilots=sum(place.running for place in open_),
        coming=sum(place.coming for place in open_),
        slots=sum(place.slots for place in open_),
        free_slots=sum(place.free_slots for place in open_),
        chance=chance,
    )


def judge(at: QueueOutlook) -> Judgement:
    """Return the tier: the first obstacle, from the requirements themselves to the draw."""
    if at.contradiction:
        return Judgement(Wait.NEVER_POSSIBLE, at.contradiction)
    if not at.known:
        return Judgement(Wait.IMPOSSIBLE_NOW, "no computing element advertises itself, nor did one lately")
    if not at.could:
        return Judgement(Wait.NEVER_POSSIBLE, f"{_none(at.known, 'known')} could ever run it{_too_long(at)}")
    if not at.fitting:
        others = f"{_elements(at.could)} that could {_do(at.could)} not advertise now"
        return Judgement(Wait.IMPOSSIBLE_NOW, f"{_none(at.fresh, 'advertised now')} could run it; {others}")
    if at.held == at.fitting:
        return _judge_held(at, f"{_elements(at.fitting)} could run it")
    return _judge_open(at, _elements(at.fitting - at.held))


SERVED = frozenset({Wait.NO_PILOT, Wait.SLOTS_BUSY, Wait.BEHIND_OTHERS, Wait.SOON})
"""Tiers that do not apply to work of private pilots while there is no such pilot."""


def judge_private(
    judged: Judgement, requirements: Requirements, private: Mapping[tuple[str, str, str], int]
) -> Judgement:
    """Return the tier of work that may run on private pilots alone. `private` is the number of these pilots by VO, group and owner.

    An owner's pilots count for the whole group; the matcher checks whether the group shares its jobs.
    """
    if judged.code not in SERVED or not takes_private_alone(requirements):
        return judged
    group = requirements.vo, requirements.owner_group
    if any(private.get((*group, owner)) for owner in (requirements.owner, "")):
        return judged
    whose = f"{requirements.owner}@{requirements.owner_group}"
    return Judgement(
        Wait.NO_PRIVATE_PILOT,
        f"it takes private pilots alone, and there is none for {whose}, neither running nor on the way",
    )


def _judge_held(at: QueueOutlook, could: str) -> Judgement:
    if at.avoided == at.held:
        return Judgement(Wait.ALL_AVOIDED, f"{could}, and each is avoided now: {at.limit}")
    others = f", but for {at.avoided:,} that are avoided" if at.avoided else ""
    return Judgement(Wait.HELD_BY_LIMIT, f"{could}, and each holds it back now{others}: {at.limit}")


def _too_long(at: QueueOutlook) -> str:
    if at.longest is None:
        return ""
    most = f"the most there is where nothing else is in its way is {at.longest:,} s"
    return f": none gives a pilot long enough, for it asks for {at.asked:,} s and {most}"


def _judge_open(at: QueueOutlook, where: str) -> Judgement:
    if not at.pilots:
        coming = f"; {at.coming:,} on the way" if at.coming else ""
        return Judgement(Wait.NO_PILOT, f"no pilot runs at the {where} that could run it{coming}")
    if not at.free_slots:
        return Judgement(
            Wait.SLOTS_BUSY,
            f"all {at.slots:,} slots of {at.pilots:,} pilots are busy at the {where} that could run it",
        )
    free = f"{at.free_slots:,} slots are free at the {where} that could run it"
    if at.chance * at.free_slots < 1:
        draws = f"{at.chance:.1%} of" if at.chance >= 0.001 else "next to none of"
        return Judgement(Wait.BEHIND_OTHERS, f"{free}, and {draws} their draws fall to its task queue")
    return Judgement(Wait.SOON, f"{free}")


def _elements(count: int) -> str:
    return "1 computing element" if count == 1 else f"{count:,} computing elements"


def _none(count: int, which: str) -> str:
    return (
        f"no computing element {which}" if count < 2 else f"none of the {count:,} computing elements {which}"
    )


def _do(count: int) -> str:
    return "does" if count == 1 else "do"
