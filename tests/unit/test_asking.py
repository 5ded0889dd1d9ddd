"""Pilots ask for the hosts that waiting jobs require: a pilot for each class of them, the others as usual."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from services.pilot_submitter.asking import Asking
from services.pilot_submitter.doors import Door, Doors, Terms
from wms.db.pilot import Sent
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.mapping import HostMapping
from wms.dispatch.port import Request
from wms.ids import PilotId
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


def wants(text: str = "") -> Requirements:
    return Requirements(owner="a", owner_group="g", vo="v", setup="", cpu_segment=500, requirements=text)


def chosen(it: Asking, text: str, element: AdvertisedElement = ELEMENT) -> tuple[Sent, Request]:
    """Return a pilot that is sent for jobs with such requirements, and what it asks for."""
    asks = it.hosts(wants(text), element)
    pilot = it.explained(
        Sent(pilot_id=PilotId("p"), site="A", ce="ce", vo="v", dispatcher="slurm", slots=1, reason="work waits", asks=asks)
    )  # fmt: skip
    door = it._doors.to(*PLACE, "slurm")
    assert door is not None
    return pilot, it.request(pilot, door, element)


USUAL = Request(memory_mb=100, constraint="intel")
PICKY = Request(memory_mb=200, constraint="intel&avx512")


def test_a_pilot_for_picky_work_asks_for_the_host_and_says_so() -> None:
    pilot, request = chosen(asking(), WANTED)
    assert request == PICKY
    assert "asks for gluehostmainmemoryramsize >= 200 as memory_mb=200" in pilot.reason
    assert "GlueCEPolicyMaxCPUTime".lower() not in pilot.reason


def test_work_that_asks_for_the_same_hosts_is_of_one_class() -> None:
    it = asking()
    reordered = " && ".join(reversed(WANTED.split(" && ")))
    assert it.hosts(wants(WANTED), ELEMENT) == it.hosts(wants(WANTED.replace("60", "61")), ELEMENT) != ""
    assert it.hosts(wants(WANTED), ELEMENT) != it.hosts(wants("other.GlueHostMainMemoryRAMSize > 9"), ELEMENT)
    assert chosen(it, reordered)[1].memory_mb == PICKY.memory_mb
    assert it.hosts(wants(), ELEMENT) == ""


def test_what_cannot_be_asked_for_is_said_and_left_to_the_node() -> None:
    pilot, request = chosen(asking(), "other.GlueHostMainMemoryRAMSize != 5")
    assert request == USUAL
    assert (
        "looked at on the node: other.gluehostmainmemoryramsize != 5: != says what a host is not"
        in pilot.reason
    )


def test_what_is_not_read_or_has_no_mapping_is_asked_for_as_usual() -> None:
    assert chosen(asking(), "other.GlueCEPolicyMaxCPUTime > 9999")[1] == USUAL
    assert chosen(Asking(doors(None)), WANTED)[1] == USUAL
    broken = replace(ELEMENT, ad="(")
    assert chosen(asking(), WANTED, broken)[1] == USUAL
