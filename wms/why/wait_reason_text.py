"""Wait reasons: a code and a text for all jobs of a task queue, by the elements that they fit and the competition of other queues."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wms.job.wait_reason_codes import WaitCode
from wms.matching.clauses import CPU_TIME, takes_private_alone
from wms.matching.grouping import Requirements
from wms.site import folded
from wms.why.verdict import Verdict


class QueueOutlook(NamedTuple):
    """Why the jobs of a task queue wait: at how many elements they could run, and how many pilots these have."""

    contradiction: str = ""
    """Why no element could ever meet the requirements, since they contradict themselves; empty if they do not."""
    known: int = 0
    """How many computing elements have an ad that is valid, or was recently."""
    fresh: int = 0
    """How many computing elements have a valid ad."""
    could: int = 0
    """How many of the known elements could run the jobs."""
    longest: int | None = None
    """The longest CPU time, in seconds, of known elements that exclude the jobs by CPU time alone; None: there are none."""
    asked: int = 0
    """The CPU time that a job of the queue requests, in seconds, rounded up to a CPU segment."""
    fitting: int = 0
    """How many elements have a valid ad and could run the jobs."""
    held: int = 0
    """How many of the fitting elements are avoided, or have a limit that holds the jobs back."""
    avoided: int = 0
    """How many of the fitting elements are avoided."""
    limit: str = ""
    """A text on one limit that holds the jobs back; or, if all fitting elements are avoided, why one is."""
    pilots: int = 0
    """How many running pilots accept jobs, at the fitting elements where no limit and no avoidance holds the jobs back."""
    coming: int = 0
    """How many pilots were sent and have not started, at the fitting elements where no limit and no avoidance holds the jobs back."""
    slots: int = 0
    free_slots: int = 0
    chance: float = 1.0
    """The share, 0 to 1, of the free slots at these elements that the matcher's draw would give to this queue."""


class Judgement(NamedTuple):
    """The reason why jobs wait: a code and a text."""

    code: WaitCode
    text: str


PLACED = Judgement(WaitCode.PLACED, "the broker placed it: it waits for the pilot of its placement")
"""The judgement on a job that the broker has placed: only the pilot sent for it may run it."""


def contradiction(requirements: Requirements) -> str:
    """Return why requirements contradict themselves, such as sites that are all banned; empty if they do not."""
    sites = set(folded(requirements.sites))
    if sites and sites <= set(folded(requirements.banned_sites)):
        return "every site that the job may run at is also banned by it"
    return ""


def standing(requirements: Requirements, found: Iterable[Verdict], *, chance: float = 1.0) -> QueueOutlook:
    """Return the outlook of a task queue, as the sum of the verdicts of computing elements on its jobs.

    `chance` is the share, 0 to 1, of these elements' free slots that the matcher's draw would give to the queue.
    """
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
    """Return why the jobs of a queue wait: the first obstacle found. The requirements are examined first, the competition of other queues last."""
    if at.contradiction:
        return Judgement(WaitCode.NEVER_POSSIBLE, at.contradiction)
    if not at.known:
        return Judgement(
            WaitCode.IMPOSSIBLE_NOW, "no computing element advertises itself, nor did one lately"
        )
    if not at.could:
        return Judgement(
            WaitCode.NEVER_POSSIBLE, f"{_none(at.known, 'known')} could ever run it{_too_long(at)}"
        )
    if not at.fitting:
        others = f"{_elements(at.could)} that could {_do(at.could)} not advertise now"
        return Judgement(
            WaitCode.IMPOSSIBLE_NOW, f"{_none(at.fresh, 'advertised now')} could run it; {others}"
        )
    if at.held == at.fitting:
        return _judge_held(at, f"{_elements(at.fitting)} could run it")
    return _judge_open(at, _elements(at.fitting - at.held))


SERVED = frozenset({WaitCode.NO_PILOT, WaitCode.SLOTS_BUSY, WaitCode.BEHIND_OTHERS, WaitCode.SOON})
"""Reasons that are true only if pilots exist that may take the jobs. Jobs that need private pilots may have none."""


def judge_private(
    judged: Judgement, requirements: Requirements, private: Mapping[tuple[str, str, str], int]
) -> Judgement:
    """Return why jobs wait, considering whether they need private pilots (pilots for one owner or group).

    `judged` is the reason without regard to that. `private` counts private pilots by VO, group and owner. A pilot of the job's owner, or of the whole
    group (owner ""), is enough.
    """
    if judged.code not in SERVED or not takes_private_alone(requirements):
        return judged
    group = requirements.vo, requirements.owner_group
    if any(private.get((*group, owner)) for owner in (requirements.owner, "")):
        return judged
    whose = f"{requirements.owner}@{requirements.owner_group}"
    return Judgement(
        WaitCode.NO_PRIVATE_PILOT,
        f"it takes private pilots alone, and there is none for {whose}, neither running nor on the way",
    )


def _judge_held(at: QueueOutlook, could: str) -> Judgement:
    if at.avoided == at.held:
        return Judgement(WaitCode.ALL_AVOIDED, f"{could}, and each is avoided now: {at.limit}")
    others = f", but for {at.avoided:,} that are avoided" if at.avoided else ""
    return Judgement(WaitCode.HELD_BY_LIMIT, f"{could}, and each holds it back now{others}: {at.limit}")


def _too_long(at: QueueOutlook) -> str:
    if at.longest is None:
        return ""
    most = f"the most there is where nothing else is in its way is {at.longest:,} s"
    return f": none gives a pilot long enough, for it asks for {at.asked:,} s and {most}"


def _judge_open(at: QueueOutlook, where: str) -> Judgement:
    if not at.pilots:
        coming = f"; {at.coming:,} on the way" if at.coming else ""
        return Judgement(WaitCode.NO_PILOT, f"no pilot runs at the {where} that could run it{coming}")
    if not at.free_slots:
        return Judgement(
            WaitCode.SLOTS_BUSY,
            f"all {at.slots:,} slots of {at.pilots:,} pilots are busy at the {where} that could run it",
        )
    free = f"{at.free_slots:,} slots are free at the {where} that could run it"
    if at.chance * at.free_slots < 1:
        draws = f"{at.chance:.1%} of" if at.chance >= 0.001 else "next to none of"
        return Judgement(WaitCode.BEHIND_OTHERS, f"{free}, and {draws} their draws fall to its task queue")
    return Judgement(WaitCode.SOON, f"{free}")


def _elements(count: int) -> str:
    return "1 computing element" if count == 1 else f"{count:,} computing elements"


def _none(count: int, which: str) -> str:
    return (
        f"no computing element {which}" if count < 2 else f"none of the {count:,} computing elements {which}"
    )


def _do(count: int) -> str:
    return "does" if count == 1 else "do"
