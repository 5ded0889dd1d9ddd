"""Limits on jobs: how many run at a place, at which rate they are matched there, and how many wait.

A limit names a place and a pair of attribute and value. The place is a site or one of its computing elements; `*` applies the limit to
each of them separately. The value `*` likewise means each value separately. Jobs are counted by `LimitKey`: one place and one pair. A
job is counted under every key that some limit applies to, and may start only where all these keys have room.

Limits are AND-ed, so that a second limit never lifts the first. (DIRAC ORs its negative conditions: there, reaching a second limit
lifts the first.)

A rate limit, or match delay, is a token bucket. It gains `per_second` tokens a second and holds at most `most`; each match takes one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from wms.bounded_cache import BoundedCache
from wms.bounds import Count as Quantity
from wms.bounds import Name
from wms.ids import CeId
from wms.matching.closed_pairs import NAMED, Attribute, Pair, values
from wms.matching.grouping import Requirements
from wms.site import is_wild

EACH = "*"
Kind: TypeAlias = Literal["running", "rate", "waiting"]
OF_WAITING: tuple[Attribute, ...] = ("owner", "owner_group", "vo")
_REMEMBERED = 100_000


class LimitKey(NamedTuple):
    """What a limit counts: the jobs with one value of an attribute at one place. `ce` is empty for the site as a whole."""

    site: Name
    ce: Name
    attribute: Attribute
    value: Name

    def text(self) -> str:
        """Return the key as a text for people: the attribute, the value and the place."""
        return f"{_pair(self.attribute, self.value)}{_at(self.site, self.ce)}"


def compared(key: LimitKey) -> LimitKey:
    """Return the key under which jobs are counted. Its value is in lower case if the attribute is compared without regard to case."""
    return key._replace(value=key.value.casefold()) if key.attribute in NAMED else key


def all_jobs(site: str, ce: str) -> LimitKey:
    """Return the key that counts all jobs at a computing element, to which the limits of its ad apply."""
    return LimitKey(site, ce, "any", "")


def pairs_by_place(places_of: Iterable[LimitKey], closed: Iterable[LimitKey]) -> dict[CeId, list[Pair]]:
    """Return the pairs (attribute and value) of the `closed` keys, by site and computing element.

    The result has every place that a key in `places_of` has, with an empty list if nothing is closed there, and no other place.
    """
    pairs: dict[CeId, list[Pair]] = {CeId(key.site, key.ce): [] for key in places_of}
    for key in closed if pairs else ():
        if CeId(key.site, key.ce) in pairs:
            pairs[CeId(key.site, key.ce)].append((key.attribute, key.value))
    return pairs


class LimitRule(Struct, frozen=True, kw_only=True):
    """One limit as configured; `*` as site, computing element or value makes a separate limit for each.

    `running`: at most `most` jobs are with pilots at the place at a time. `rate`: at most `per_second` jobs are matched there,
    and up to `most` at once after a pause. `waiting`: a submission is refused after which more than `most` jobs would wait, at
    any place.
    """

    kind: Kind = "running"
    site: Name = ""
    ce: Name = ""
    attribute: Attribute = "any"
    value: Name = ""
    most: Quantity
    per_second: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "value", compared(self.key).value)

    @property
    def key(self) -> LimitKey:
        """The place and pair that the limit names, with any `*`; two limits of one kind and key replace each other."""
        return LimitKey(self.site, self.ce, self.attribute, self.value)

    def fault(self) -> str | None:
        """Return what is wrong with the limit as text, such as a rate without jobs per second; None if it is valid."""
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
        """Return the limit as a text for people: what it counts, where, and the most that it allows."""
        if self.kind == "rate":
            return f"{self.key.text()}: at most {self.per_second:g} a second, {self.most:,} at once"
        return f"{self.key.text()}: at most {self.most:,} {self.kind}"


class StrictestLimit(NamedTuple):
    """The strictest limits that apply to one key: the most running jobs, and the burst and rate of matches. None: no such limit."""

    running: int | None = None
    burst: int | None = None
    per_second: float = 0.0


class Count(NamedTuple):
    """The counts of one key: running jobs, and the tokens left in the bucket of its rate limit `idle_seconds` ago (None: it is full).

    For a computing element, `allowed` is how many jobs its ad lets be matched (None: no limit). `matched` and `sent` are the jobs
    matched and pilots sent there since that ad.
    """

    running: int = 0
    tokens: float = 0.0
    idle_seconds: float | None = None
    allowed: int | None = None
    matched: int = 0
    sent: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether as many jobs were matched as the element's ad allows."""
        return self.allowed is not None and self.matched >= self.allowed


Counts: TypeAlias = Mapping[LimitKey, Count]
Bounds: TypeAlias = Mapping[LimitKey, StrictestLimit]


class BlockingLimit(Struct, frozen=True):
    """A limit that keeps a job from starting at a place now: a code for programs, and a text with the numbers for people."""

    code: Literal["SITE_LIMIT", "CE_LIMIT", "MATCH_DELAY", "CE_ALLOWANCE"]
    text: str


class _Table(NamedTuple):
    """The strictest limits by value, for one attribute at one place.

    `bounds` has one mapping for each way in which limits name the place: by site and element, or with `*`.
    """

    ce: str
    attribute: Attribute
    bounds: tuple[Mapping[str, StrictestLimit], ...]


class LimitSet:
    """All limits on running jobs and on rates, to be looked up by place and attribute. Limits on waiting jobs are ignored."""

    def __init__(self, limits: Iterable[LimitRule] = ()) -> None:
        self._said: dict[tuple[str, str, Attribute], dict[str, StrictestLimit]] = {}
        for limit in limits:
            if limit.kind != "waiting":
                bounds = self._said.setdefault((limit.site, limit.ce, limit.attribute), {})
                bounds[limit.value] = _with(bounds.get(limit.value, StrictestLimit()), limit)
        self._at = BoundedCache[tuple[str, str], tuple[_Table, ...]](_REMEMBERED)

    def __bool__(self) -> bool:
        return bool(self._said)

    @property
    def attributes(self) -> frozenset[Attribute]:
        """The attributes, such as `owner` or `tag`, by which limits of the set count jobs."""
        return frozenset(attribute for _, _, attribute in self._said)

    def concerning(self, requirements: Requirements, site: str, ce: str) -> Bounds:
        """Return the keys under which a job with these requirements is counted at a place, each with its strictest limits."""
        found: dict[LimitKey, StrictestLimit] = {}
        for table in self._tables(site, ce):
            for value in values(requirements, table.attribute):
                bound = _held(table, value)
                if bound is not None:
                    found[LimitKey(site, table.ce, table.attribute, value)] = bound
        return found

    def of(self, key: LimitKey) -> StrictestLimit | None:
        """Return the strictest limits that apply to a key; None if none does."""
        of_key = (each for each in self._tables(key.site, key.ce) if (each.ce, each.attribute) == key[1:3])
        return next((_held(each, key.value) for each in of_key), None)

    def full(self, counts: Counts) -> dict[CeId, set[Pair]]:
        """Return the pairs (attribute and value) whose limits are reached by these counts, by site and computing element.

        Looked at are the keys in `counts`, and the keys that a limit names without `*`.
        """
        said = {LimitKey(*place, value) for place, bounds in self._said.items() for value in bounds}
        closed: dict[CeId, set[Pair]] = {}
        for key in counts.keys() | {each for each in said if EACH not in each}:
            bound = self.of(key)
            count = counts.get(key, Count())
            if count.exhausted or (bound and not room(bound, count)):
                closed.setdefault(CeId(key.site, key.ce), set()).add((key.attribute, key.value))
        return closed

    def _tables(self, site: str, ce: str) -> tuple[_Table, ...]:
        """Return the limits at a place, one table for each attribute. They are cached, since there are fewer places than jobs."""
        known = self._at.get((site, ce))
        if known is None:
            known = self._at[site, ce] = tuple(self._tables_of(site, ce))
        return known

    def _tables_of(self, site: str, ce: str) -> Iterator[_Table]:
        for here, written in (("", ("",)), (ce, (ce, EACH))) if ce else (("", ("",)),):
            for attribute in dict.fromkeys(name for _, _, name in self._said):
                places = [(at, on, attribute) for at in (site, EACH) for on in written]
                bounds = tuple(self._said[each] for each in places if each in self._said)
                if bounds:
                    yield _Table(here, attribute, bounds)


def room(bound: StrictestLimit, count: Count) -> int:
    """Return how many more jobs the limits of a key let start now; a billion if there is no limit."""
    lets = [max(0, bound.running - count.running)] if bound.running is not None else []
    if count.allowed is not None:
        lets.append(max(0, count.allowed - count.matched))
    if bound.burst is not None:
        lets.append(int(tokens(bound, count)))
    return min(lets, default=1_000_000_000)


def tokens(bound: StrictestLimit, count: Count) -> float:
    """Return how many tokens the bucket of a key's rate limit has now; 0 for a key without a rate limit."""
    if bound.burst is None:
        return 0.0
    if count.idle_seconds is None:
        return float(bound.burst)
    return min(float(bound.burst), count.tokens + max(0.0, count.idle_seconds) * bound.per_second)


def after(bound: StrictestLimit, count: Count, matched: int) -> Count:
    """Return the counts of a key after `matched` more jobs were matched under its limits."""
    taken = count._replace(running=count.running + matched, matched=count.matched + matched)
    if bound.burst is None:
        return taken._replace(tokens=0.0, idle_seconds=None)
    return taken._replace(tokens=max(0.0, tokens(bound, count) - matched), idle_seconds=0.0)


def admitted(asked: Sequence[Bounds], counts: Counts) -> list[bool]:
    """Return for each job, in order, whether it may start: all its keys must have room left by the jobs before it.

    `asked` holds the limits that apply to each job, by key. A key that is missing in `counts` has no room.
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


def blocking_limits(
    requirements: Requirements, site: str, ce: str, limits: LimitSet, counts: Counts
) -> list[BlockingLimit]:
    """Return every limit that keeps jobs with these requirements from starting at a place now; an empty list if none does."""
    found = []
    for key, bound in sorted(limits.concerning(requirements, site, ce).items()):
        count = counts.get(key, Count())
        if bound.running is not None and count.running >= bound.running:
            words = f"{key.text()}: {count.running:,} of {bound.running:,} running"
            found.append(BlockingLimit("CE_LIMIT" if key.ce else "SITE_LIMIT", words))
        if bound.burst is not None and tokens(bound, count) < 1:
            wait = seconds_until_token(bound, count)
            words = f"{key.text()}: {bound.per_second:g} jobs a second, the next in {wait:.1f} s"
            found.append(BlockingLimit("MATCH_DELAY", words))
    count = counts.get(all_jobs(site, ce), Count())
    if count.exhausted:
        words = f"{count.matched:,} jobs matched since its ad, which lets {count.allowed:,} come"
        found.append(BlockingLimit("CE_ALLOWANCE", words))
    return found


def seconds_until_token(bound: StrictestLimit, count: Count) -> float:
    """Return the seconds until the rate limit of a key allows the next match; 0 without a rate limit."""
    return max(0.0, 1 - tokens(bound, count)) / bound.per_second if bound.burst is not None else 0.0


def _with(bound: StrictestLimit, limit: LimitRule) -> StrictestLimit:
    if limit.kind == "running":
        return bound._replace(running=limit.most)
    return bound._replace(burst=limit.most, per_second=limit.per_second or 0.0)


def _held(table: _Table, value: str) -> StrictestLimit | None:
    # All jobs have one value, which is empty: it is named by itself, and has no wild card.
    named = [by[each] for by in table.bounds for each in (value, EACH) if each in by]
    return _strictest(named) if named else None


def _strictest(bounds: Sequence[StrictestLimit]) -> StrictestLimit:
    if len(bounds) == 1:
        return bounds[0]
    running = [each.running for each in bounds if each.running is not None]
    rated = [each for each in bounds if each.burst is not None]
    return StrictestLimit(
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
