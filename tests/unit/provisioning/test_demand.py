"""Demand: waiting work by what is one kind of it, and where it may run."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from tests.unit.matching.strategies import asks, mismatches, requirements
from tests.unit.provisioning.elements import element, elements
from tests.unit.why.elements import elements as any_elements
from wms.matching.ads import advertised
from wms.matching.grouping import Requirements
from wms.provisioning.demand import WAYS, JobDemand, QueuedWork, gather, reach
from wms.site import AdvertisedElement, ComputingElement


@pytest.mark.parametrize(
    ("clause", "wanted", "ad"),
    [
        ("VO", {}, {"vos": ("w",)}),
        ("submit pool", {"submit_pools": ("p",)}, {"submit_pools": ("q",)}),
        ("grid middleware", {"grid_middlewares": ("arc",)}, {"dispatcher": "local"}),
        ("site", {"sites": ("B",)}, {}),
        ("CPU time", {"cpu_segment": 5_000}, {}),
        ("memory", {"min_ram_mb": 10}, {}),
        (None, {"submit_pools": ("p",)}, {}),
        (None, {"grid_middlewares": ("arc",)}, {"grid_middleware": "arc"}),
        (None, {"sites": ("A",), "grid_ces": ("ce0",)}, {"vos": ("v", "w")}),
    ],
)
def test_reach(clause, wanted, ad):
    mismatch = reach(asks(**wanted), element(**ad))
    assert (mismatch.clause if mismatch else None) == clause


def test_owners_are_one_kind_of_work():
    queues = [QueuedWork(asks(owner=o, owner_group=g), 2) for o in "abc" for g in "gh"]
    assert [(kind.jobs, kind.elements) for kind in gather(queues, elements(2)).kinds] == [(12, (0, 1))]


def test_who_somebody_is_splits_work_only_where_a_site_requires_something_by_it():
    waiting = [QueuedWork(asks(owner=name, certificate_subject=f"/CN={name}"), 1) for name in ("ann", "bob")]

    def kinds(requirements: str) -> int:
        check = {"AuthorizationCheck": 'member(other.CertificateSubject, {"/CN=ann"})'}
        ad = advertised({}, check, requirements, "")
        there = AdvertisedElement(**asdict(element()), ad=ad)
        demand = gather(waiting, [there])
        return len(demand.kinds) + len(demand.unservable)

    assert kinds("") == kinds("other.CPUTime > 1") == 1
    assert kinds("AuthorizationCheck") == 2


@given(requirements(), any_elements())
def test_the_first_obstacle_is_what_the_planner_stops_at(wanted: Requirements, at: ComputingElement) -> None:
    every = JobDemand(wanted).obstacles(at)
    first = reach(wanted, at)
    assert first in every if first else not every


@settings(deadline=None)
@given(requirements(), st.lists(any_elements(), max_size=5))
def test_many_elements_are_judged_as_each_alone(wanted: Requirements, there: list[ComputingElement]) -> None:
    together = JobDemand(wanted)
    for at in there:
        resource = at.pilot_resource(vo=wanted.vo)
        found = together.obstacles(at)
        assert found == JobDemand(wanted).obstacles(at)
        ways = {way.name for way in WAYS}
        by_matcher = {each for each in found if each.clause not in ways}
        assert by_matcher == set(mismatches(wanted, resource))
