"""The health of computing elements: states and moves as a table, and the judgement of elements by their jobs' outcomes.

An element that cannot be reached, or that loses pilots, gets none for a while (backing-off). A black hole, where
jobs fail within seconds of their start, is *quarantined*: it gets no work but, now and then, a *canary*, a small
job of the system's own. While a canary is out the element is probing. If the canary succeeds the element is
healthy, otherwise the next pause is twice as long. An operator may ban or drain an element.

A job that fails at once may itself be at fault. So failures count against an element only if nothing contradicts
them: work that fails elsewhere as often does not count, and work that nobody tried elsewhere counts only if it is
of several owners. (HTCondor's black holes are judged by rate alone, and one user's broken jobs take away all
machines.)
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
"""The next state for each state and event; other events leave the element as it is."""

AVOIDED: Final[frozenset[State]] = frozenset({"quarantined", "probing", "banned", "draining"})
"""States in which an element gets no work, and no pilots but for canaries."""

Seconds = Annotated[float, Meta(gt=0, le=1e9)]


class HealthPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an element counts as a black hole, and how it is tried again."""

    window_seconds: Seconds = 600.0
    """Attempts that ended within so many seconds count."""
    quick_seconds: Seconds = 30.0
    """A failure within so many seconds of the start is a quick one."""
    failures: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    """The least number of failures that count against the element."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.8
    """The least share of these in all attempts there."""
    owners: Annotated[int, Meta(ge=1, le=1_000_000)] = 3
    """The least number of their owners, unless jobs of the same kind do better elsewhere."""
    first_pause_seconds: Seconds = 60.0
    """Seconds until a quarantined element gets a canary; they double with each canary that fails."""
    longest_pause_seconds: Seconds = 14_400.0
    probe_seconds: Seconds = 900.0
    """A canary that has not ended within so many seconds has failed."""

    def pause(self, relapses: int) -> timedelta:
        """Return the pause after so many failed canaries."""
        seconds = self.first_pause_seconds * 2 ** min(relapses, 64)
        return timedelta(seconds=min(seconds, self.longest_pause_seconds))


class ElementHealth(Struct, frozen=True, kw_only=True):
    """The state of an element: since when and why, by whom, and until when it stays (None: until changed)."""

    state: State = "healthy"
    since: datetime | None = None
    until: datetime | None = None
    reason: str = ""
    said_by: str = ""
    relapses: int = 0
    """Consecutive canaries that failed."""

    @property
    def avoided(self) -> bool:
        """Whether the element gets no work."""
        return self.state in AVOIDED

    def text(self) -> str:
        """Return it in words."""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.state}{f' by {self.said_by}' if self.said_by else ''}{why}"


class HealthChange(NamedTuple):
    """An event at an element; `pause` is its duration, where the event does not determine it."""

    event: Event
    reason: str = ""
    said_by: str = ""
    pause: timedelta | None = None


def apply(
    health: ElementHealth, move: HealthChange, now: datetime, terms: HealthPolicy
) -> ElementHealth | None:
    """Return the health after a change; None if it stays as it is."""
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
    """Tell whether the pause of an element is over."""
    return health.state == "quarantined" and health.until is not None and now >= health.until


class Tried(NamedTuple):
    """Outcomes of the recent attempts of one task queue at one element."""

    site: str
    ce: str
    queue: int
    kind: str
    """Equal for queues whose jobs have equal requirements, whoever owns them."""
    owner: str
    ended: int
    """Attempts that ended there, without those that were killed or withdrawn."""
    quick: int
    """Quick failures."""


class BlackHole(NamedTuple):
    """A black hole, and why it counts as one."""

    site: str
    ce: str
    reason: str


class _Toll(NamedTuple):
    ended: int
    quick: int

    @property
    def rate(self) -> float:
        return self.quick / self.ended if self.ended else 0.0


def judge(tried: Iterable[Tried], terms: HealthPolicy) -> list[BlackHole]:
    """Return the black holes, by the outcomes of recent attempts."""
    all_ = list(tried)
    everywhere = _tolls(all_)
    at: dict[CeId, list[Tried]] = {}
    for each in all_:
        at.setdefault(CeId(each.site, each.ce), []).append(each)
    found = (_judged(place, each, everywhere, terms) for place, each in sorted(at.items()))
    return [verdict for verdict in found if verdict]


def _tolls(tried: Iterable[Tried]) -> dict[str, _Toll]:
    ended, quick = Counter[str](), Counter[str]()
    for each in tried:
        ended[each.kind] += each.ended
        quick[each.kind] += each.quick
    return {kind: _Toll(ended[kind], quick[kind]) for kind in ended}


def _judged(
    place: CeId, tried: list[Tried], everywhere: Mapping[str, _Toll], terms: HealthPolicy
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
