"""Pilots ask for the hosts that waiting jobs require: a pilot for each class of them, the others as usual."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.pilot_submitter.asking import Asking
from services.pilot_submitter.doors import Door, Doors, Terms
from wms.db.ad import Matchable
from wms.db.pilot import Pilot, Sent
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.mapping import HostMapping
from wms.dispatch.port import Request
from wms.ids import PilotId
from wms.provisioning.demand import Waiting
from wms.site import AdvertisedElement
from wms.taskqueue.ads import advertised
from wms.taskqueue.grouping import Requirements

PLACE = ("A", "ce")
SOFTWARE = "GlueHostApplicationSoftwareRunTimeEnvironment"
TOLD: dict[str, Any] = {
    "GlueHostMainMemoryRAMSize": 4_000,
    "GlueCEPolicyMaxCPUTime": 1_500,
    SOFTWARE: ["avx512"],
}
ELEMENT = AdvertisedElement(
    site="A",
    ce="ce",
    slots=8,
    max_cpu_time=1_000,
    dispatcher="slurm",
    memory_mb=100,
    ad=advertised(TOLD, {}, "", ""),
)
WANTED = f'other.GlueHostMainMemoryRAMSize >= 200 && member("avx512", other.{SOFTWARE}) && other.GlueCEPolicyMaxCPUTime > 60'


def doors(mapping: HostMapping | None) -> Doors:
    nothing = LocalDispatcher(Path("/nowhere"), (), {})
    door = Door(PLACE, nothing, lambda: 0.0, Terms(kind="slurm", constraint="intel", mapping=mapping))
    return Doors(nothing, lambda: 0.0, [door])


def asking() -> Asking:
    return Asking(doors(HostMapping("slurm", {SOFTWARE: "--constraint={value}"})))


def sent(count: int, vo: str = "v") -> list[Sent]:
    return [
        Sent(pilot_id=PilotId(f"p-{vo}-{n}"), site="A", ce="ce", vo=vo, dispatcher="slurm", slots=1, reason="work waits")
        for n in range(count)
    ]  # fmt: skip


def waiting(jobs: int, requirements: str = "", vo: str = "v") -> Waiting:
    asked = Requirements(
        owner="a", owner_group="g", vo=vo, setup="", cpu_segment=500, requirements=requirements
    )
    return Waiting(asked, jobs)


def ads(**told: object) -> list[Matchable]:
    attributes = {**TOLD, **told}
    return [Matchable(site="A", ce="ce", attributes=attributes, expressions={}, requirements="", rank="")]


def requests(asking: Asking, chosen: list[Sent]) -> list[Request]:
    door = asking._doors.to("A", "ce", "slurm")
    assert door is not None
    return [asking.request(each.pilot_id, door, ELEMENT) for each in chosen]


USUAL = Request(memory_mb=100, constraint="intel")
PICKY = Request(memory_mb=200, constraint="intel&avx512")


def test_a_pilot_for_picky_work_asks_for_the_host_and_says_so() -> None:
    it = asking()
    chosen = it.share(sent(1), [waiting(1, WANTED)], {PLACE: ELEMENT}, ads(), [])
    assert requests(it, chosen) == [PICKY]
    assert "asks for gluehostmainmemoryramsize >= 200 as memory_mb=200" in chosen[0].reason
    assert "GlueCEPolicyMaxCPUTime".lower() not in chosen[0].reason


def test_pilots_are_shared_by_the_jobs_that_wait() -> None:
    it = asking()
    work = [waiting(6), waiting(3, WANTED), waiting(100, WANTED, vo="other")]
    chosen = it.share(sent(3), work, {PLACE: ELEMENT}, ads(), [])
    assert sorted(requests(it, chosen), key=str) == sorted([PICKY, USUAL, USUAL], key=str)


def test_those_on_the_way_are_counted() -> None:
    it = asking()
    work = [waiting(1), waiting(1, WANTED)]
    first = it.share(sent(1), work, {PLACE: ELEMENT}, ads(), [])
    alive = Pilot(
        pilot_id=first[0].pilot_id, site="A", ce="ce", vo="v", dispatcher="slurm", reference=None, state="Waiting",
        slots=1, busy=0, submitted_at=datetime.now(UTC), seen_at=None, reason="", age=1.0, silent=None,
    )  # fmt: skip
    second = it.share(sent(2)[1:], work, {PLACE: ELEMENT}, ads(), [alive])
    assert requests(it, [*first, *second]) == [PICKY, USUAL]


def test_what_cannot_be_asked_for_is_said_and_left_to_the_node() -> None:
    it = asking()
    wanted = "other.GlueHostMainMemoryRAMSize != 5"
    chosen = it.share(sent(1), [waiting(1, wanted)], {PLACE: ELEMENT}, ads(), [])
    assert requests(it, chosen) == [USUAL]
    assert (
        "looked at on the node: other.gluehostmainmemoryramsize != 5: != says what a host is not"
        in chosen[0].reason
    )


def test_what_is_not_read_or_has_no_mapping_is_asked_for_as_usual() -> None:
    it = asking()
    chosen = it.share(
        sent(1), [waiting(1, "other.GlueCEPolicyMaxCPUTime > 9999")], {PLACE: ELEMENT}, ads(), []
    )
    assert requests(it, chosen) == [USUAL]
    plain = Asking(doors(None))
    assert requests(plain, plain.share(sent(1), [waiting(1, WANTED)], {PLACE: ELEMENT}, ads(), [])) == [USUAL]
    broken = [Matchable(site="A", ce="ce", attributes={}, expressions={"X": "("}, requirements="", rank="")]
    assert requests(it, it.share(sent(1), [waiting(1, WANTED)], {PLACE: ELEMENT}, broken, [])) == [USUAL]
    assert it.ad(ELEMENT) == ""


def test_pilots_are_told_what_their_element_told() -> None:
    it = asking()
    it.share(sent(1), [], {PLACE: ELEMENT}, ads(), [])
    assert "gluehostmainmemoryramsize = 4000" in it.ad(ELEMENT)
