"""Which queues fit a resource: views that alike resources share, kept up to date, and counts of what failed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, mismatches, offers, requirements, resources
from tests.unit.matching.test_ads import canonical
from wms.matching.ads import advertised
from wms.matching.clauses import CPU_TIME
from wms.matching.grouping import Requirements
from wms.queue_index.effort import Effort
from wms.queue_index.fit_cache import ClauseCount, FitCache, FittingQueues, NoFit
from wms.queue_index.queue_pools import Pools
from wms.queue_index.significant_attributes import SignificantAttributes
from wms.queue_index.weights import Weights
from wms.site import Resource, with_ad


class Cached:
    """A cache with the pools that its views draw from."""

    def __init__(self, *wanted: Requirements, cached: int = 100) -> None:
        self.weights = Weights({})
        self.pools = Pools(self.weights, "dirac")
        self.effort = Effort()
        self.cache = FitCache(self.pools, SignificantAttributes(), cached=cached, effort=self.effort)
        self.queues: list[Requirements] = []
        for each in wanted:
            self.append(each)

    def append(self, wanted: Requirements) -> None:
        self.weights.append(wanted)
        self.pools.append(wanted)
        self.cache.append(wanted)
        self.queues.append(wanted)

    def view(self, resource: Resource) -> FittingQueues:
        view = self.cache.view(resource)
        assert view is not None
        return view

    def fitting(self, resource: Resource) -> set[int]:
        fit = np.frombuffer(self.view(resource).fit, dtype=np.uint8)
        return set(np.flatnonzero(np.unpackbits(fit, count=len(self.queues), bitorder="little")).tolist())

    def failures(self, resource: Resource, jobs: list[int], **more: Any) -> list[ClauseCount]:
        closed = more.pop("closed", None)
        return self.cache.failures(
            resource, np.array(jobs), closed, lambda _, slot: f"limit of {slot}", **more
        )


def fits_but_for_time(wanted: Requirements, resource: Resource) -> bool:
    return {each.clause for each in mismatches(wanted, resource)} <= {CPU_TIME.name}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(requirements(), min_size=1, max_size=8),
    st.lists(resources().filter(lambda each: each.fault() is None), min_size=1, max_size=4),
    st.integers(1, 100),
)
def test_views_follow_the_queues_that_come(
    wanted: list[Requirements], there: list[Resource], cached: int
) -> None:
    found = Cached(cached=cached)
    for each in wanted:
        found.append(each)
        for resource in there:
            expected = {n for n, queue in enumerate(found.queues) if fits_but_for_time(queue, resource)}
            assert found.fitting(resource) == expected


def test_resources_that_differ_in_what_nobody_names_share_a_view() -> None:
    found = Cached(asks(sites=("A",), min_ram_mb=1_000))
    view = found.view(offers(site="B", memory_mb=1_500, grid_ce="y"))
    assert found.view(offers(site="C", memory_mb=1_999, grid_ce="x")) is view
    assert found.view(offers(site="a", memory_mb=1_500)) is not view
    found.append(asks(sites=("C",)))
    assert found.view(offers(site="B", memory_mb=1_500)) is not found.view(offers(site="C", memory_mb=1_999))


def test_a_resource_that_contradicts_itself_has_no_view() -> None:
    assert Cached(asks()).cache.view(offers(required_tags=("gpu",))) is None


def test_views_are_bounded_and_the_oldest_goes_first() -> None:
    found = Cached(*(asks(sites=(f"S{n}",)) for n in range(5)), cached=3)
    views = [found.view(offers(site=f"S{n}")) for n in range(5)]
    assert found.view(offers(site="S4")) is views[4]
    assert found.view(offers(site="S0")) is not views[0]


def test_an_ad_is_seen_from_the_next_view_on() -> None:
    found = Cached(asks(requirements="other.a > 1"))
    resource, place = offers(site="A", grid_ce="c"), ("A", "c")
    assert found.fitting(resource) == set()
    for number, expected in ((2, {0}), (1, set()), (3, {0})):
        found.cache.advertise(place, advertised({"a": number}, {}, "", ""))
        assert found.fitting(resource) == expected
    found.cache.advertise(place, "")
    assert found.fitting(resource) == set()


def test_ads_that_nobody_looks_at_make_no_kinds_of_resources() -> None:
    found = Cached(asks())
    views = []
    for n in range(50):
        found.cache.advertise(("A", f"c{n}"), advertised({"a": n}, {}, "", "3"))
        views.append(found.view(offers(site="A", grid_ce=f"c{n}")))
    assert all(each is views[0] for each in views)


def test_failures_are_counted_by_the_first_clause_that_does_not_hold() -> None:
    found = Cached(
        asks(vo="w", sites=("B",)), asks(sites=("B",)), asks(sites=("B",), cpu_segment=9_000), asks(cpu_segment=5_000),
        asks(cpu_segment=9_000), asks(),
    )  # fmt: skip
    closed = np.array([False] * 5 + [True])
    counts = found.failures(offers(site="A"), [1, 2, 4, 8, 16, 32], closed=closed)
    assert [(each.clause, each.queues, each.jobs) for each in counts] == [
        ("vo", 1, 1), ("site", 2, 6), (CPU_TIME.name, 2, 24), ("limit", 1, 32),
    ]  # fmt: skip
    assert counts[-1].example == "limit of 5"
    assert "5000" in counts[2].example.replace(",", ""), "the least of those that are too long"
    assert counts[1].example == "the job may run at B, this is A"
    brief = found.failures(offers(site="A"), [1] * 6, with_examples=False)
    assert [each.example for each in brief][:2] == ["", ""]


def test_queues_without_jobs_are_not_counted() -> None:
    assert Cached(asks(sites=("B",))).failures(offers(site="A"), [0]) == []


COUNT = ClauseCount(clause="site", queues=2, jobs=5, example="x" * 300)


@pytest.mark.parametrize(
    ("why", "whole", "to_pilots"),
    [
        (NoFit(refusal="bad tags"), "refused: bad tags", "refused: bad tags"),
        (NoFit(), "no job waits", "no job waits"),
        (
            NoFit(waiting_queues=3, waiting_jobs=9, fitting_queues=1),
            "1 of 3 queues fit",
            "what fits is taken or held back by limits",
        ),
        (
            NoFit(waiting_queues=2, waiting_jobs=5, failed=(COUNT,)),
            f"none of the 5 jobs in 2 queues fits: site (5 jobs in 2 queues, such as: {'x' * 200})",
            "nothing that waits fits: site",
        ),
    ],
)
def test_pilots_are_not_told_what_is_not_their_business(why: NoFit, whole: str, to_pilots: str) -> None:
    assert (why.text(), why.for_pilots()) == (whole, to_pilots)


def test_queues_that_are_not_decided_do_not_fit_until_they_are() -> None:
    dear = [canonical(f'regexp(".*.*[xy]", strcat("{"a" * 640}{n}", other.b))') for n in range(3)]
    cached = Cached(asks(), *(asks(requirements=each) for each in dear))
    resource = with_ad(offers(), advertised({"b": "x"}, {}, "", ""))
    seen: list[set[int]] = []
    while not seen or not cached.view(resource).is_whole:
        cached.effort.renew(2_000)
        seen.append(cached.fitting(resource))
        assert len(seen) < 9
    assert 0 in seen[0]
    assert len(seen[0]) < 4
    assert cached.fitting(resource) == {0, 1, 2, 3}


def assert_judged_in_parts(cached: Cached, resource: Resource) -> None:
    """A view is whole after more than two calls, each with a little effort."""
    calls = 0
    while not calls or not cached.view(resource).is_whole:
        cached.effort.renew(2_000)
        cached.view(resource)
        calls += 1
        assert calls < 9
    assert calls > 2


@pytest.mark.parametrize("is_rank", [False, True])
def test_queues_that_a_site_has_not_judged_yet_are_judged_later(*, is_rank: bool) -> None:
    cached = Cached(*(asks(owner=f"o{n}") for n in range(6)))
    dear = f'regexp(".*.*[xy]", strcat("{"a" * 640}", other.Owner, "x"))'
    ad = advertised({}, {}, "", f"ifThenElse({dear}, 1, 2)") if is_rank else advertised({}, {}, dear, "")
    resource = with_ad(offers(), ad)
    assert_judged_in_parts(cached, resource)
    assert cached.fitting(resource) == {*range(6)}


def test_attributes_that_are_expressions_over_the_job_are_judged_later_too() -> None:
    cached = Cached(*(asks(owner=f"o{n}", requirements=canonical("other.open")) for n in range(6)))
    dear = f'regexp(".*.*[xy]", strcat("{"a" * 640}", other.Owner, "x"))'
    resource = with_ad(offers(), advertised({}, {"open": dear}, "", ""))
    assert_judged_in_parts(cached, resource)
    assert cached.fitting(resource) == {*range(6)}
