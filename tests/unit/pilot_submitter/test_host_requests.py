"""Requests for hosts: which classes of pilots are left alone, and for how long."""

from typing import Any

from msgspec.structs import replace

from tests.unit.provisioning.hosts import PICKY, asking, asks, element, hosts, sent
from wms.db.pilot import EqualPilots
from wms.provisioning.demand import Avoidance
from wms.provisioning.pilot_class import PilotClass


def test_a_class_that_is_refused_or_untried_is_left_alone_for_a_while_and_no_other() -> None:
    it, _ = asking()
    picky = hosts(it, PICKY)
    it.refused(sent(picky), "no such node")
    shut = it.hosts(asks(PICKY), element())
    assert isinstance(shut, Avoidance)
    assert shut.why == "backing-off: no such node"
    assert isinstance(it.hosts(asks("other.GlueHostMainMemoryRAMSize >= 5000"), element()), PilotClass)
    unsure = "other.GlueHostBenchmarkSI00 != 400"
    found = hosts(it, unsure)
    assert not found.sure
    it.sent([sent(found)] * 2)
    assert isinstance(it.hosts(asks(unsure), element()), Avoidance)


def test_a_class_that_found_work_is_trusted_again() -> None:
    it, _ = asking()
    picky = hosts(it, PICKY)
    it.refused(sent(picky), "no such node")
    said: dict[str, Any] = dict.fromkeys(("slots", "lasts", "pilots"), 1)
    there = EqualPilots(
        site="A", ce="ce", vo="v", state="Running", busy=0, resource="", asks=picky.name, owner_group="", idle_node="",
        free_memory_mb=None, worked=1, silent=False, **said,
    )  # fmt: skip
    it.seen([replace(there, worked=0)])
    assert isinstance(it.hosts(asks(PICKY), element()), Avoidance)
    it.seen([there])
    assert it.hosts(asks(PICKY), element()) == picky
