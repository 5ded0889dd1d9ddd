"""Which limits concern a job where, what they let through, and what they say; against the literal reference."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching import reference
from tests.unit.matching.strategies import asks
from wms.ids import CeId
from wms.matching.closed_pairs import pairs
from wms.matching.grouping import Requirements
from wms.matching.limits import (
    BlockingLimit,
    Count,
    LimitKey,
    LimitRule,
    LimitSet,
    StrictestLimit,
    admitted,
    after,
    blocking_limits,
    room,
    seconds_until_token,
    tokens,
)

SITES, CES = ("A", "B"), ("x", "y")
JOBS = [
    asks(owner=owner, owner_group=group, tags=tags, job_types=types)
    for owner in ("o", "p")
    for group in ("g", "h")
    for tags in ((), ("t",), ("t", "u"))
    for types in ((), ("m",))
]
VALUES = {"owner": "op", "owner_group": "gh", "vo": "v", "setup": "s", "job_type": "m", "tag": "tu"}


def limits_of(attribute: Any) -> st.SearchStrategy[LimitRule]:
    named = [*VALUES[attribute], "*"] if attribute != "any" else [""]
    return st.builds(
        LimitRule,
        site=st.sampled_from([*SITES, "*"]),
        ce=st.sampled_from(["", *CES, "*"]),
        attribute=st.just(attribute),
        value=st.sampled_from(named),
        most=st.integers(0, 4),
    )


SOME_LIMITS = st.lists(
    st.sampled_from([*VALUES, "any"]).flatmap(limits_of), max_size=4, unique_by=lambda e: e.key
)
Place = tuple[Requirements, str, str]
PLACES = st.tuples(st.sampled_from(JOBS), st.sampled_from(SITES), st.sampled_from(CES))


def counted(limits: LimitSet, running: list[Place]) -> dict[LimitKey, Count]:
    sums = Counter(key for each in running for key in limits.concerning(*each))
    return {key: Count(number) for key, number in sums.items()}


@settings(deadline=None, max_examples=300)
@given(SOME_LIMITS, st.lists(PLACES, max_size=12), PLACES)
def test_what_is_held_back_is_what_the_reference_says(
    some: list[LimitRule], running: list[Place], asked: Place
) -> None:
    limits = LimitSet(some)
    by_reference = reference.limited(*asked, some, running)
    assert bool(blocking_limits(*asked, limits, counted(limits, running))) is by_reference
    every = {key: Count() for key in limits.concerning(*asked)} | counted(limits, running)
    assert admitted([limits.concerning(*asked)], every) == [not by_reference]


@settings(deadline=None, max_examples=200)
@given(SOME_LIMITS, st.lists(PLACES, max_size=12), PLACES)
def test_what_is_full_holds_back_the_same(some: list[LimitRule], running: list[Place], asked: Place) -> None:
    """Of keys that were counted: the one asked about is, even if at nothing."""
    limits = LimitSet(some)
    counts = dict.fromkeys(limits.concerning(*asked), Count()) | counted(limits, running)
    wanted, site, ce = asked
    full = limits.full(counts)
    here = full.get(CeId(site, ""), set()) | full.get(CeId(site, ce), set())
    assert bool(here & pairs(wanted)) is bool(blocking_limits(*asked, limits, counts))


@settings(deadline=None, max_examples=300)
@given(SOME_LIMITS, st.lists(PLACES, max_size=12))
def test_who_comes_later_is_counted_with_who_came_before(some: list[LimitRule], asked: list[Place]) -> None:
    """Judged at once, jobs pass exactly as if each had been judged and counted after the other."""
    limits = LimitSet(some)
    running: list[Place] = []
    one_by_one = []
    for each in asked:
        one_by_one.append(not reference.limited(*each, some, running))
        running += [each] if one_by_one[-1] else []
    concerned = [limits.concerning(*each) for each in asked]
    counts = {key: Count() for each in concerned for key in each}
    assert admitted(concerned, counts) == one_by_one


def test_reaching_one_limit_never_lifts_another() -> None:
    limits = LimitSet(
        [limit(attribute="owner", value="o", most=1), limit(attribute="tag", value="t", most=1)]
    )
    job = asks(tags=("t",))
    for full in ({"owner": 1}, {"tag": 1}, {"owner": 1, "tag": 1}):
        counts = {key: Count(full.get(key.attribute, 0)) for key in limits.concerning(job, "A", "x")}
        assert len(blocking_limits(job, "A", "x", limits, counts)) == len(full)
        assert admitted([limits.concerning(job, "A", "x")], counts) == [False]


def limit(**said: Any) -> LimitRule:
    return LimitRule(**{"site": "A", **said})


def test_the_strictest_of_several_holds() -> None:
    limits = LimitSet(
        [limit(attribute="owner", value="*", most=5), limit(attribute="owner", value="o", most=9)]
    )
    assert limits.concerning(asks(), "A", "") == {LimitKey("A", "", "owner", "o"): StrictestLimit(running=5)}


def test_what_was_not_counted_has_no_room() -> None:
    assert admitted([{LimitKey("A", "", "any", ""): StrictestLimit(running=5)}], {}) == [False]


def test_a_bucket_fills_and_empties() -> None:
    bound = StrictestLimit(burst=3, per_second=2.0)
    fresh = Count()
    assert (tokens(bound, fresh), room(bound, fresh)) == (3, 3)
    empty = after(bound, fresh, 3)
    assert (room(bound, empty), seconds_until_token(bound, empty)) == (0, 0.5)
    assert room(bound, empty._replace(idle_seconds=0.49)) == 0
    assert room(bound, empty._replace(idle_seconds=0.5)) == 1
    assert room(bound, empty._replace(idle_seconds=100.0)) == 3


@settings(deadline=None)
@given(
    st.floats(0.1, 50),
    st.integers(1, 20),
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 30)), max_size=40),
)
def test_no_span_of_time_sees_more_than_rate_and_burst(rate: float, burst: int, story: Any) -> None:
    bound = StrictestLimit(burst=burst, per_second=rate)
    count, now = Count(), 0.0
    matched: list[tuple[float, int]] = []
    for pause, wanted in story:
        now += pause
        if count.idle_seconds is not None:
            count = count._replace(idle_seconds=pause)
        let = min(wanted, room(bound, count))
        count = after(bound, count, let)
        matched.append((now, let))
    for start, (begun, _) in enumerate(matched):
        total = 0
        for at, let in matched[start:]:
            total += let
            assert total <= burst + rate * (at - begun) + 1e-6


def test_words_have_the_numbers() -> None:
    limits = LimitSet(
        [
            limit(attribute="owner", value="*", most=50),
            limit(ce="x", most=1000),
            limit(kind="rate", attribute="tag", value="t", most=10, per_second=2.0),
        ]
    )
    job = asks(owner="alice", tags=("t",))
    counts = {
        LimitKey("A", "", "owner", "alice"): Count(50),
        LimitKey("A", "x", "any", ""): Count(1200),
        LimitKey("A", "", "tag", "t"): Count(0, 0.0, 0.25),
    }
    assert blocking_limits(job, "A", "x", limits, counts) == [
        BlockingLimit("SITE_LIMIT", "owner=alice at A: 50 of 50 running"),
        BlockingLimit("MATCH_DELAY", "tag=t at A: 2 jobs a second, the next in 0.2 s"),
        BlockingLimit("CE_LIMIT", "all jobs at A/x: 1,200 of 1,000 running"),
    ]
    assert blocking_limits(job, "B", "x", limits, counts) == []


@pytest.mark.parametrize(
    ("good", "said"),
    [
        (limit(most=5), "all jobs at A: at most 5 running"),
        (limit(site="*", attribute="owner", value="*", most=5), "owner=* at each site: at most 5 running"),
        (limit(ce="*", most=5), "all jobs at A/each CE: at most 5 running"),
        (limit(kind="rate", most=5, per_second=0.5), "all jobs at A: at most 0.5 a second, 5 at once"),
        (LimitRule(kind="waiting", attribute="vo", value="v", most=5_000), "vo=v: at most 5,000 waiting"),
    ],
)
def test_a_limit_in_words(good: LimitRule, said: str) -> None:
    assert good.fault() is None
    assert good.text() == said
