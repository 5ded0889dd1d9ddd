"""The health of computing elements: a table of states and events, and the detection of elements that fail jobs.

An element that cannot be reached, or that loses pilots, gets no pilots for a while (backing-off). A black hole, where jobs fail within seconds of
their start, is *quarantined*. It gets no jobs except, from time to time, a *canary*, which is a small test job of the system. While a canary has not
ended the element is *probing*. If the canary succeeds the element is healthy, otherwise the next pause is twice as long. An operator may ban or drain
an element.

A job that fails at once may itself be faulty. So a failure does not count against an element if jobs of the same kind fail as often elsewhere. If
such jobs were not tried elsewhere, failures count only if they are of several owners. HTCondor judges black holes by rate alone, so that one user's
broken jobs can take away all machines.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from wms.ids import CeId

State: TypeAlias = Literal["healthy", "backing-off", "quarantined", "probing", "banned", "draining"]
Event: TypeAlias = Literal["fail", "recover", "eat", "probe", "release", "relapse", "ban", "unban", "drain"]

MOVES: Final[Mapping[State, Mapping[Event, State]]] = {
    "healthy": {"fail": "backing-off", "eat": "quarantined", "ban": "banned", "drain": "draining"},
    "backing-off": {
        "fail": "backing-off",
        "recover": "healthy",
        "eat": "quarantined",
        "ban": "banned",
        "drain": "draining",
    },
    "quarantined": {"probe": "probing", "unban": "healthy", "ban": "banned", "drain": "draining"},
    "probing": {
        "release": "healthy",
        "relapse": "quarantined",
        "unban": "healthy",
        "ban": "banned",
        "drain": "draining",
    },
    "banned": {"unban": "healthy", "ban": "banned", "drain": "draining"},
    "draining": {"unban": "healthy", "ban": "banned", "drain": "draining"},
}
"""The next health state of an element for each state and event. Events that are not listed leave the state unchanged."""

AVOIDED: Final[frozenset[State]] = frozenset({"quarantined", "probing", "banned", "draining"})
"""The health states in which an element gets no jobs except canaries, and pilots only for canaries."""

Seconds = Annotated[float, Meta(gt=0, le=1e9)]


class HealthPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an element counts as a black hole (it fails jobs as fast as it gets them), and when it is tried again."""

    window_seconds: Seconds = 600.0
    """Attempts to run a job count if they ended within this time."""
    quick_seconds: Seconds = 30.0
    """An attempt counts as a quick failure if it fails within this time after its start."""
    failures: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    """The least number of quick failures that makes an element a black hole."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.8
    """The least share of quick failures in all attempts at an element that makes it a black hole."""
    owners: Annotated[int, Meta(ge=1, le=1_000_000)] = 3
    """The least number of owners with quick failures that makes an element a black hole, unless jobs of the same kind do better elsewhere."""
    first_pause_seconds: Seconds = 60.0
    """Seconds until a quarantined element gets a canary (a small test job); they double with each canary that fails."""
    longest_pause_seconds: Seconds = 14_400.0
    """The most seconds until a quarantined element gets a canary."""
    probe_seconds: Seconds = 900.0
    """Seconds after which a canary that has not ended counts as failed."""

    def pause(self, relapses: int) -> timedelta:
        """Return the pause before the next canary, after `relapses` canaries that failed one after another."""
        seconds = self.first_pause_seconds * 2 ** min(relapses, 64)
        return timedelta(seconds=min(seconds, self.longest_pause_seconds))


class ElementHealth(Struct, frozen=True, kw_only=True):
    """The health of a computing element: its state, the reason, and who set it (an operator or a service)."""

    state: State = "healthy"
    since: datetime | None = None
    """When the state began; None if it was never changed."""
    until: datetime | None = None
    """When the state ends by itself; None: it lasts until it is changed."""
    reason: str = ""
    said_by: str = ""
    relapses: int = 0
    """How many canaries failed one after another."""

    @property
    def avoided(self) -> bool:
        """Whether the element gets no jobs except canaries."""
        return self.state in AVOIDED

    def text(self) -> str:
        """Return the state, who set it, and the reason as one text."""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.state}{f' by {self.said_by}' if self.said_by else ''}{why}"


class HealthChange(NamedTuple):
    """An event in the health of an element, with its reason. `pause` is for how long no pilots are sent after a failure."""

    event: Event
    reason: str = ""
    said_by: str = ""
    pause: timedelta | None = None


def apply(
    health: ElementHealth, move: HealthChange, now: datetime, terms: HealthPolicy
) -> ElementHealth | None:
    """Return the health of an element after an event at time `now`; None if the event leaves the state unchanged.

    `terms` is the policy that gives the pauses between canaries.
    """
    after = MOVES[health.state].get(move.event)
    if after is None:
        return None
    relapses = health.relapses + 1 if move.event == "relapse" else health.relapses
    if after in ("healthy", "backing-off"):
        relapses = 0
    return ElementHealth(
        state=after,
        since=now if after != health.state else health.since,
        until=_until(after, relapses, move.pause, now, terms),
        reason=move.reason,
        said_by=move.said_by,
        relapses=relapses,
    )


def _until(
    state: State, relapses: int, pause: timedelta | None, now: datetime, terms: HealthPolicy
) -> datetime | None:
    match state:
        case "quarantined":
            return now + terms.pause(relapses)
        case "probing":
            return now + timedelta(seconds=terms.probe_seconds)
        case "backing-off":
            return now + (pause or timedelta())
        case _:
            return None


def wants_probe(health: ElementHealth, now: datetime) -> bool:
    """Return whether a canary must be sent to an element: it is quarantined and its pause is over."""
    return health.state == "quarantined" and health.until is not None and now >= health.until


class QueueOutcomes(NamedTuple):
    """The outcomes of the recent attempts to run jobs of one task queue at one computing element."""

    site: str
    ce: str
    queue: int
    kind: str
    """A text that is equal for queues whose jobs have equal requirements, regardless of owner."""
    owner: str
    ended: int
    """How many attempts ended, without those that were killed or withdrawn."""
    quick: int
    """How many of the ended attempts were quick failures."""


class BlackHole(NamedTuple):
    """A computing element that fails jobs as fast as it gets them, and the reason in words."""

    site: str
    ce: str
    reason: str


class _Toll(NamedTuple):
    ended: int
    quick: int

    @property
    def rate(self) -> float:
        return self.quick / self.ended if self.ended else 0.0


def judge(tried: Iterable[QueueOutcomes], terms: HealthPolicy) -> list[BlackHole]:
    """Return the elements that are black holes by the outcomes of recent attempts, sorted by site and name."""
    all_ = list(tried)
    everywhere = _tolls(all_)
    at: dict[CeId, list[QueueOutcomes]] = {}
    for each in all_:
        at.setdefault(CeId(each.site, each.ce), []).append(each)
    found = (_judged(place, each, everywhere, terms) for place, each in sorted(at.items()))
    return [verdict for verdict in found if verdict]


def _tolls(tried: Iterable[QueueOutcomes]) -> dict[str, _Toll]:
    ended, quick = Counter[str](), Counter[str]()
    for each in tried:
        ended[each.kind] += each.ended
        quick[each.kind] += each.quick
    return {kind: _Toll(ended[kind], quick[kind]) for kind in ended}


def _judged(
    place: CeId, tried: list[QueueOutcomes], everywhere: Mapping[str, _Toll], terms: HealthPolicy
) -> BlackHole | None:
    excused, proven = set(), False
    for kind, here in _tolls(tried).items():
        elsewhere = _Toll(everywhere[kind].ended - here.ended, everywhere[kind].quick - here.quick)
        if elsewhere.ended and here.quick:
            if elsewhere.rate >= here.rate / 2:
                excused.add(kind)
            else:
                proven = True
    blamed = [each for each in tried if each.kind not in excused]
    toll = _Toll(sum(each.ended for each in blamed), sum(each.quick for each in blamed))
    owners = {each.owner for each in blamed if each.quick}
    if toll.quick < terms.failures or toll.rate < terms.share:
        return None
    if not proven and len(owners) < terms.owners:
        return None
    whose = "the same kinds do well elsewhere" if proven else f"they are of {len(owners)} owners"
    reason = f"it eats jobs: {toll.quick} of {toll.ended} attempts failed within {terms.quick_seconds:g} s, and {whose}"
    return BlackHole(*place, reason)
