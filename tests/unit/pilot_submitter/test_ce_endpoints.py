"""Doors to computing elements: when one is left alone, and for how long."""

from collections.abc import Sequence

import pytest

from services.pilot_submitter.ce_endpoints import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    CeEndpoint,
    CeEndpoints,
    EndpointSettings,
)
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import Request
from wms.ids import CeId
from wms.site import ComputingElement


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nothing(tmp_path_factory: pytest.TempPathFactory) -> LocalDispatcher:
    return LocalDispatcher(tmp_path_factory.mktemp("pilots"), (), {})


@pytest.fixture
def door(clock: Clock, nothing: LocalDispatcher) -> CeEndpoint:
    return CeEndpoint(
        CeId("A", "ce"), nothing, clock, EndpointSettings(kind="slurm", follow_every_seconds=10.0)
    )


def pauses(door: CeEndpoint, clock: Clock, failures: int) -> Sequence[float]:
    """Fail so often, each time as soon as the door is open again; return how long it was closed each time."""
    found = []
    for _ in range(failures):
        door.unreachable("no route")
        began = clock.now
        while not door.open:
            clock.now += 0.25
        found.append(clock.now - began)
    return found


def test_a_door_that_fails_is_left_alone_ever_longer_but_not_for_ever(door: CeEndpoint, clock: Clock) -> None:
    found = pauses(door, clock, 14)
    assert FIRST_PAUSE / 2 <= found[0] <= FIRST_PAUSE + 0.25
    assert found[5] > 8 * found[0]
    assert LONGEST_PAUSE / 2 <= found[-1] <= LONGEST_PAUSE + 0.25


def test_failures_within_a_pause_are_one(door: CeEndpoint, clock: Clock) -> None:
    for _ in range(20):
        door.unreachable("no route")
    clock.now += FIRST_PAUSE + 0.01
    assert door.open


def test_who_answers_again_begins_anew(door: CeEndpoint, clock: Clock) -> None:
    pauses(door, clock, 6)
    door.reached()
    assert pauses(door, clock, 1)[0] <= FIRST_PAUSE + 0.25


def test_where_pilots_die_unseen_none_are_sent_but_those_there_are_followed(
    door: CeEndpoint, clock: Clock
) -> None:
    door.lost("no such account")
    assert (door.open, door.due) == (False, True)
    door.served()
    assert (door.open, door.due) == (True, True)


def test_who_does_not_answer_is_not_asked_either(door: CeEndpoint, clock: Clock) -> None:
    door.unreachable("no route")
    assert not door.due
    clock.now += FIRST_PAUSE + 0.01
    assert door.due


def test_pilots_are_looked_at_as_often_as_is_said(door: CeEndpoint, clock: Clock) -> None:
    door.followed()
    clock.now += 9.9
    assert not door.due
    clock.now += 0.2
    assert door.due


def test_a_pilot_asks_for_what_it_is_said_to_bring(clock: Clock, nothing: LocalDispatcher) -> None:
    asks = HostRequestTerms(
        kind="slurm", walltime_seconds=900, constraint="avx", gres="gpu:1", attributes={"qos": "low"}
    )
    terms = EndpointSettings(kind="slurm", asks=asks)
    element = ComputingElement(
        site="A", ce="ce", slots=8, max_cpu_time=60, memory_mb=4_000, cores_per_pilot=4, slots_per_pilot=4
    )
    assert CeEndpoint(CeId("A", "ce"), nothing, clock, terms).request(element) == Request(
        cores=4,
        memory_mb=4_000,
        walltime_seconds=900,
        constraint="avx",
        gres="gpu:1",
        attributes={"qos": "low"},
    )


def test_a_door_leads_only_where_and_how_it_is_configured(
    door: CeEndpoint, clock: Clock, nothing: LocalDispatcher
) -> None:
    doors = CeEndpoints(nothing, clock, [door], local_sites=["B", "C-*"])
    assert doors.to("A", "ce", "slurm") is door
    assert doors.to("A", "ce", "arc") is None
    assert doors.to("A", "other", "slurm") is None
    local = doors.to("B", "here", "local")
    assert local is not None
    assert local.terms.kind == "local"
    assert doors.to("B", "here", "local") is local


def test_a_strangers_ad_opens_no_door_to_this_machine(clock: Clock, nothing: LocalDispatcher) -> None:
    doors = CeEndpoints(nothing, clock, local_sites=["home", "lab-*"])
    assert doors.to("home", "any", "local")
    assert doors.to("lab-2", "any", "local")
    for site in ("stranger", "homes", "HOME", "lab", "*", ""):
        assert doors.to(site, "any", "local") is None
    assert CeEndpoints(nothing, clock).to("home", "any", "local") is None
