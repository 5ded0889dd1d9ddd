"""Limits: how many jobs of a kind may run at a place, how fast they may be matched there, and how many may wait.

A limit names a place - a site, one of its computing elements, or `*` for each by itself - and a pair of an attribute and
its value, `*` for each value by itself. What it counts is a `Key`: one place and one pair. A job is counted by every key
that some limit makes of it, and may start only where all of them have room: limits are AND-ed, so that a second one never
makes up for the first. (DIRAC ORs its negative conditions: there, reaching a second limit lifts the first.)

A delay is a token bucket: `per_second` tokens come in, at most `most` are kept, each match takes one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from wms.site import Name, is_wild
from wms.taskqueue.closed import Attribute, Pair, pairs
from wms.taskqueue.grouping import Requirements

EACH = "*"
Kind: TypeAlias = Literal["running", "rate", "waiting"]
OF_WAITING: tuple[Attribute, ...] = ("owner", "owner_group", "vo")
_REMEMBERED = 100_000


class Key(NamedTuple):
    """What is counted: jobs with this value of the attribute at this place; `ce` empty for the site as a whole."""

    site: str
    ce: str
    attribute: Attribute
    value: str

    def text(self) -> str:
        """Return it in words."""
        return f"{_pair(self.attribute, self.value)}{_at(self.site, self.ce)}"


class Limit(Struct, frozen=True, kw_only=True):
    """One limit; `*` as site, computing element or value stands for each by itself.

    `running`: at most `most` jobs at a time have a pilot there. `rate`: at most `per_second` are matched there, and `most`
    at once after a pause. `waiting`: no more than `most` jobs wait after a submission, wherever they may run.
    """

    kind: Kind = "running"
    site: Name = ""
    ce: Name = ""
    attribute: Attribute = "any"
    value: Name = ""
    most: Annotated[int, Meta(ge=0, le=1_000_000_000)]
    per_second: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    @property
    def key(self) -> Key:
        """Return what it names, wild cards and all: two limits of a kind with one key are one limit."""
        return Key(self.site, self.ce, self.attribute, self.value)

    def fault(self) -> str | None:
        """Return what is wrong with it; None when nothing is."""
        if (self.attribute == "any") != (not self.value):
            return "a limit on all jobs names no value, any other does: owner=alice, or owner=* for each"
        if (self.per_second is not None) != (self.kind == "rate"):
            return "jobs per second are said of a rate, and of nothing else"
        if self.kind == "waiting":
            return self._fault_of_waiting()
        if not self.site or self.site.casefold() == "any" or is_wild(self.ce or "-"):
            return "a limit at a place names its site, or * for each"
        if self.kind == "rate" and self.most < 1:
            return "a rate must let at least one job through at once"
        return None

    def _fault_of_waiting(self) -> str | None:
        if self.site or self.ce:
            return "jobs wait at no site: a limit on waiting jobs names none"
        if self.attribute not in OF_WAITING:
            return f"waiting jobs are limited by {', '.join(OF_WAITING)}"
        return None

    def text(self) -> str:
        """Return it in words."""
        if self.kind == "rate":
            return f"{self.key.text()}: at most {self.per_second:g} a second, {self.most:,} at once"
        return f"{self.key.text()}: at most {self.most:,} {self.kind}"


class Bound(NamedTuple):
    """What holds of one key: the strictest of all limits that make it."""

    running: int | None = None
    burst: int | None = None
    per_second: float = 0.0


class Count(NamedTuple):
    """How far a key is: jobs that have a pilot, and tokens left as of `idle_seconds` ago (None: all are there)."""

    running: int = 0
    tokens: float = 0.0
    idle_seconds: float | None = None


Counts: TypeAlias = Mapping[Key, Count]
Bounds: TypeAlias = Mapping[Key, Bound]


class Held(Struct, frozen=True):
    """A limit that holds a job back somewhere now: a code for programs, words with the numbers for people."""

    code: Literal["SITE_LIMIT", "CE_LIMIT", "MATCH_DELAY"]
    text: str


class Limits:
    """The limits at places, found by what they concern."""

    def __init__(self, limits: Iterable[Limit] = ()) -> None:
        self._by_key: dict[Key, Bound] = {}
        for limit in limits:
            if limit.kind != "waiting":
                self._by_key[limit.key] = _stricter(self._by_key.get(limit.key, Bound()), limit)
        self._known: dict[tuple[Requirements, str, str], Bounds] = {}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def concerning(self, requirements: Requirements, site: str, ce: str) -> Bounds:
        """Return the keys that count such a job at such a place, with what holds of each."""
        asked = (requirements, site, ce)
        known = self._known.get(asked)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[asked] = dict(self._concerning(requirements, site, ce))
        return known

    def _concerning(self, requirements: Requirements, site: str, ce: str) -> Iterator[tuple[Key, Bound]]:
        for attribute, value in pairs(requirements):
            for here in ("", ce) if ce else ("",):
                key = Key(site, here, attribute, value)
                if bound := self.of(key):
                    yield key, bound

    def of(self, key: Key) -> Bound | None:
        """Return what holds of what a key counts; None where no limit makes it."""
        named = [
            self._by_key[named]
            for at in (key.site, EACH)
            for on in ((key.ce, EACH) if key.ce else ("",))
            for of in ((key.value, EACH) if key.value else ("",))
            if (named := Key(at, on, key.attribute, of)) in self._by_key
        ]
        return _strictest(named) if named else None

    def full(self, counts: Counts) -> dict[tuple[str, str], set[Pair]]:
        """Return by site and element the pairs that no job more may start of, of what was counted or is named itself."""
        closed: dict[tuple[str, str], set[Pair]] = {}
        for key in counts.keys() | {each for each in self._by_key if EACH not in each}:
            bound = self.of(key)
            if bound and not room(bound, counts.get(key, Count())):
                closed.setdefault((key.site, key.ce), set()).add((key.attribute, key.value))
        return closed


def room(bound: Bound, count: Count) -> int:
    """Return how many jobs more a key lets through now."""
    lets = [max(0, bound.running - count.running)] if bound.running is not None else []
    if bound.burst is not None:
        lets.append(int(tokens(bound, count)))
    return min(lets, default=1_000_000_000)


def tokens(bound: Bound, count: Count) -> float:
    """Return how many tokens are in a key's bucket now."""
    if bound.burst is None:
        return 0.0
    if count.idle_seconds is None:
        return float(bound.burst)
    return min(float(bound.burst), count.tokens + max(0.0, count.idle_seconds) * bound.per_second)


def after(bound: Bound, count: Count, matched: int) -> Count:
    """Return how far a key is once so many jobs more were matched."""
    if bound.burst is None:
        return Count(count.running + matched)
    return Count(count.running + matched, max(0.0, tokens(bound, count) - matched), 0.0)


def admitted(asked: Sequence[Bounds], counts: Counts) -> list[bool]:
    """Tell of jobs, one after the other, which may start: those whose keys all have room left by the ones before.

    A key without a count has no room.
    """
    left = {
        key: room(bound, counts[key]) if key in counts else 0 for each in asked for key, bound in each.items()
    }
    verdicts = []
    for each in asked:
        may = all(left[key] > 0 for key in each)
        for key in each if may else ():
            left[key] -= 1
        verdicts.append(may)
    return verdicts


def held(requirements: Requirements, site: str, ce: str, limits: Limits, counts: Counts) -> list[Held]:
    """Return every limit that holds such a job back at such a place now; an empty list when none does."""
    found = []
    for key, bound in sorted(limits.concerning(requirements, site, ce).items()):
        count = counts.get(key, Count())
        if bound.running is not None and count.running >= bound.running:
            words = f"{key.text()}: {count.running:,} of {bound.running:,} running"
            found.append(Held("CE_LIMIT" if key.ce else "SITE_LIMIT", words))
        if bound.burst is not None and tokens(bound, count) < 1:
            wait = seconds_until_token(bound, count)
            words = f"{key.text()}: {bound.per_second:g} jobs a second, the next in {wait:.1f} s"
            found.append(Held("MATCH_DELAY", words))
    return found


def seconds_until_token(bound: Bound, count: Count) -> float:
    """Return how long it takes until a job may be matched by a key's rate."""
    return max(0.0, 1 - tokens(bound, count)) / bound.per_second if bound.burst is not None else 0.0


def _stricter(bound: Bound, limit: Limit) -> Bound:
    if limit.kind == "running":
        return bound._replace(running=limit.most)
    return bound._replace(burst=limit.most, per_second=limit.per_second or 0.0)


def _strictest(bounds: Sequence[Bound]) -> Bound:
    if len(bounds) == 1:
        return bounds[0]
    running = [each.running for each in bounds if each.running is not None]
    rated = [each for each in bounds if each.burst is not None]
    return Bound(
        running=min(running, default=None),
        burst=min((each.burst for each in rated if each.burst is not None), default=None),
        per_second=min((each.per_second for each in rated), default=0.0),
    )


def _pair(attribute: Attribute, value: str) -> str:
    return "all jobs" if attribute == "any" else f"{attribute}={value}"


def _at(site: str, ce: str) -> str:
    if not site:
        return ""
    where = "each site" if site == EACH else site
    return f" at {where}" + (f"/{'each CE' if ce == EACH else ce}" if ce else "")
