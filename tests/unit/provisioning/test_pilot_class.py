"""Pilots ask for the hosts that waiting jobs require: a class of pilots for each, planned for the work that it does for."""

from collections.abc import Sequence
from typing import Any

import pytest

from services.pilot_submitter.host_requests import HostRequests
from tests.unit.provisioning.hosts import PICKY, TOLD, asking, asks, element, hosts, sent
from wms.matching.clauses import fits
from wms.provisioning.demand import QueuedWork
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.plan import PlannedPilots, plan
from wms.provisioning.supply import PilotSupply
from wms.site import as_it_is, without_ad


def test_an_attribute_that_the_ad_lacks_or_has_as_the_least_of_its_hosts_keeps_no_job_away() -> None:
    for told in (TOLD, {"GlueCEPolicyMaxCPUTime": 1_500}):
        at = element(told=told)
        pilot = at.pilot_resource(vo="v")
        assert fits(asks(PICKY), pilot) is None, "such a pilot can be asked for"
        assert fits(asks(PICKY), as_it_is(pilot)) is not None, "one that is there is as it is"
        assert fits(asks(PICKY), as_it_is(pilot, (("gluehostmainmemoryramsize", 7_999),))) is not None
        assert fits(asks(PICKY), as_it_is(pilot, (("gluehostmainmemoryramsize", 8_000),))) is None


@pytest.mark.parametrize(
    "requirements",
    [
        "other.GlueCEPolicyMaxCPUTime > 9999",
        "other.Nowhere > 1",
        "other.GlueHostMainMemoryRAMSize >= 8000 && other.Nowhere > 1",
        "other.GlueHostMainMemoryRAMSize + other.Nowhere > 1",
        "false",
    ],
)
def test_what_neither_the_ad_meets_nor_any_host_could_is_no_fit(requirements: str) -> None:
    assert fits(asks(requirements), element().pilot_resource(vo="v")) is not None


def test_what_is_measured_alone_is_looked_at_by_a_pilot_that_is_there() -> None:
    it, _ = asking(mapped=False)
    at = element(forwards=())
    wanted = "other.GlueHostProcessorClockSpeed > 2000"
    found = hosts(it, wanted, at)
    assert not found.sure
    assert found.unasked == ("gluehostprocessorclockspeed > 2000: this element is asked for no hosts",)
    assert fits(asks("other.GlueHostMainMemoryRAMSize > 5000"), at.pilot_resource(vo="v")) is not None, (
        "what its ad says stands where nothing is forwarded"
    )


def test_the_job_may_compare_with_what_it_says_of_itself() -> None:
    it, _ = asking()
    found = hosts(it, "other.GlueHostMainMemoryRAMSize >= 2 * my.Needs", attributes="[needs = 3000]")
    assert found.asked == ("gluehostmainmemoryramsize >= 6000 as --mem=6000M",)
    assert found.sure


def test_what_every_batch_system_can_be_asked_for_is_asked_where_the_ad_says_nothing_of_it() -> None:
    it, _ = asking()
    wanted = "other.MaxRAM >= 2000 && other.GlueCEPolicyMaxWallClockTime >= 90"
    at = element(memory_mb=0)
    found = hosts(it, wanted, at)
    assert found.asked == ("maxram >= 2000 as --mem=2000M", "gluecepolicymaxwallclocktime >= 90 as --time=90")
    assert found.sure
    assert fits(asks(wanted), element().pilot_resource(vo="v")) is not None, "it brings 100 MB, and says so"


def test_alternatives_with_what_nobody_has_are_none() -> None:
    it, _ = asking()
    found = hosts(it, "other.Nowhere == 1 || other.GlueHostMainMemoryRAMSize >= 8000")
    assert found.asked == ("gluehostmainmemoryramsize >= 8000 as --mem=8000M",)
    assert found.sure


SI00, LIMIT = "GlueHostBenchmarkSI00", "GlueCEPolicyMaxCPUTime"


def test_what_asks_for_nothing_beyond_the_usual_gets_usual_pilots() -> None:
    it, _ = asking()
    assert it.hosts(asks(), element()) is None
    assert it.hosts(asks("other.GlueCEPolicyMaxCPUTime > 60"), element()) is None


def orders(
    it: HostRequests, waiting: list[QueuedWork], pilots: Sequence[PilotSupply] = (), **more: Any
) -> list[PlannedPilots]:
    elements = more.pop("elements", [element()])
    return list(plan(waiting, elements, pilots, hosts=it.hosts, **more).orders)


def counted(made: list[PlannedPilots]) -> dict[tuple[str, ...], int]:
    return {each.hosts.asked if each.hosts else (): each.count for each in made}


MEM = ("gluehostmainmemoryramsize >= 8000 as --mem=8000M",)


def under_way(found: PilotClass | None = None, **counts: Any) -> PilotSupply:
    node = found.node if found else ()
    resource = without_ad(as_it_is(element().pilot_resource(vo="v"), node))
    return PilotSupply(
        site="A", ce="ce", vo="v", asks=found.name if found else "", resource=resource, **counts
    )


def test_a_pilot_is_sent_for_each_class_and_says_so() -> None:
    it, _ = asking()
    made = orders(it, [QueuedWork(asks(), 2), QueuedWork(asks(PICKY), 3)])
    assert counted(made) == {(): 2, MEM: 3}
    assert made[1].reasons[2] == f"asks for {MEM[0]}"


def test_usual_pilots_do_not_take_up_what_needs_a_host() -> None:
    it, _ = asking()
    made = orders(it, [QueuedWork(asks(PICKY), 1)], [under_way(waiting=1, running=2, idle_slots=2)])
    assert counted(made) == {MEM: 1}


def test_pilots_with_a_host_take_up_what_needs_it_and_less_and_usual_work() -> None:
    it, _ = asking()
    there = [under_way(hosts(it, PICKY), waiting=3)]
    less = asks("other.GlueHostMainMemoryRAMSize >= 6000")
    assert not orders(it, [QueuedWork(asks(PICKY), 1), QueuedWork(asks(), 1), QueuedWork(less, 1)], there)
    more = asks("other.GlueHostMainMemoryRAMSize >= 9000")
    assert len(orders(it, [QueuedWork(more, 1)], there)) == 1


def test_where_only_the_node_can_tell_as_many_go_as_found_work() -> None:
    it, _ = asking()
    work = [QueuedWork(asks("other.GlueHostBenchmarkSI00 != 400"), 10)]
    found = hosts(it, work[0].requirements.requirements)
    assert sum(each.count for each in orders(it, work)) == 1
    made = plan(work, [element()], [under_way(found, waiting=1)], hosts=it.hosts)
    assert not made.orders
    assert made.decisions[0].shares[0].held == "LIMIT"
    assert "only its nodes can tell" in made.decisions[0].reasons[0]
    assert sum(each.count for each in orders(it, work, [under_way(found, running=3)])) == 3
    assert not orders(it, work, [under_way(found, running=3, idle_slots=2, submitted=1)])


def test_a_class_that_backs_off_gets_no_pilots_and_the_plan_says_why() -> None:
    it, _ = asking()
    it.refused(sent(hosts(it, PICKY)), "no such node")
    made = plan([QueuedWork(asks(PICKY), 1)], [element()], hosts=it.hosts)
    assert not made.orders
    assert made.decisions[0].shares[0].held == "BACKOFF"
    assert "no such node" in made.decisions[0].reasons[0]


def test_work_gets_its_pilots_where_its_rank_is_greater_as_long_as_there_is_room() -> None:
    there = [element(name, {"Speed": speed}, 2) for name, speed in (("slow", 1), ("fast", 3), ("middle", 2))]
    work = [QueuedWork(asks(rank="other.Speed"), 5)]
    made = plan(work, there)
    assert {each.ce: each.count for each in made.orders} == {"fast": 2, "middle": 2, "slow": 1}
    assert {each.ce for each in plan([QueuedWork(asks(rank="other.Nowhere"), 2)], there).orders} == {
        "slow",
        "fast",
    }


def test_a_disk_that_an_element_does_not_tell_is_left_to_pilots_one_by_one() -> None:
    it, _ = asking()
    work = [QueuedWork(asks(min_disk_mb=10**9), 1_000)]
    [order] = plan(work, [element(slots=1_000)], hosts=it.hosts).orders
    assert order.count == 1
    it.sent([sent(order.hosts)])
    assert not plan(work, [element(slots=1_000)], hosts=it.hosts).orders, "the first has found no such node"
    told = element(slots=1_000, disk_mb=10**9)
    assert sum(each.count for each in plan(work, [told], hosts=it.hosts).orders) > 1
    assert not plan(work, [element(disk_mb=1)], hosts=it.hosts).orders
