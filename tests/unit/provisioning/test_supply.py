"""The supply of a plan: the room of an element, what its free places take up, and which of them comes first."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.matching.strategies import asks
from tests.unit.provisioning.elements import element, limited, of_owner, under_way
from tests.unit.provisioning.test_plan import GPU, WITH_GPUS, WITH_SSDS
from wms.matching.grouping import Requirements, processor_tags, processors_needed
from wms.provisioning.demand import WorkKind
from wms.provisioning.limit_headroom import LimitHeadroom
from wms.provisioning.open_work import OpenWork
from wms.provisioning.pilot_class import PilotClass
from wms.provisioning.supply import PilotSupply, PlannedElement, room_of


def work(requirements: Requirements, jobs: int = 10, **fields: Any) -> OpenWork:
    wide = processors_needed(requirements)
    return OpenWork(WorkKind(requirements=requirements, jobs=jobs, processors=wide, elements=(0,), **fields))


def planned(*pilots: PilotSupply, leeway: LimitHeadroom | None = None, **fields: Any) -> PlannedElement:
    return PlannedElement(0, element(**fields), pilots, leeway or LimitHeadroom())


@pytest.mark.parametrize(
    ("fields", "under_way_", "running", "room", "full"),
    [
        ({"max_pilots": 5}, 1, 2, 2, "full: 3 of 5 pilots"),
        ({"max_pilots": 5}, 4, 4, 0, "full: 8 of 5 pilots"),
        ({"max_waiting_pilots": 2}, 1, 0, 1, "1 pilots are on the way, of at most 2"),
        ({"max_pilots": 2, "max_waiting_pilots": 9}, 1, 0, 1, "full: 1 of 2 pilots"),
        ({"slots_per_pilot": 0}, 0, 0, 0, "its ad is faulty"),
    ],
)
def test_room_is_under_the_tightest_bound(
    fields: dict[str, Any], under_way_: int, running: int, room: int, full: str
) -> None:
    found, said = room_of(element(**fields), under_way_, running)
    assert found == room
    assert said.startswith(full)


def test_an_element_is_open_until_its_room_is_ordered() -> None:
    one = planned(max_pilots=1)
    assert one.open
    one.ordered["v", None, None] += 1
    assert (one.total, one.open) == (1, False)


def test_free_places_take_up_work_job_by_job() -> None:
    there = planned(under_way(waiting=2, running=1, idle_slots=1), slots_per_pilot=4, cores_per_pilot=4)
    wide = work(asks(tags=processor_tags(3)), jobs=5)
    there.use(wide)
    assert wide.left == 3, "one job in each pilot on its way; the idle slot is too narrow"
    narrow = work(asks(), jobs=20)
    there.use(narrow)
    assert narrow.left == 20 - 3


def test_places_of_another_vo_and_busy_pilots_take_up_nothing() -> None:
    there = planned(under_way(vo="w", waiting=3), under_way(running=3, ending=3))
    wanted = work(asks())
    there.use(wanted)
    assert wanted.left == 10


def test_what_a_limit_holds_back_takes_no_places() -> None:
    leeway = limited(of_owner("o", 2))
    requirements = asks()
    keys = leeway.keys(requirements, element())
    there = planned(under_way(waiting=5), leeway=leeway)
    wanted = work(requirements, keys={0: keys})
    assert there.startable(wanted) == 2
    there.use(wanted)
    assert (wanted.left, there.startable(wanted)) == (8, 0)


@pytest.mark.parametrize(("asked_for", "taken"), [(WITH_GPUS.name, 1), (WITH_SSDS.name, 0), ("", 0)])
def test_a_pilot_on_its_way_takes_work_of_the_hosts_that_it_asked_for(asked_for: str, taken: int) -> None:
    there = planned(under_way(waiting=1, asks=asked_for))
    wanted = work(GPU, hosts={0: WITH_GPUS})
    there.use(wanted)
    assert wanted.left == 10 - taken


def test_places_that_less_work_can_use_come_first() -> None:
    usual = element().pilot_resource(vo="v")
    small = under_way(running=1, idle_slots=1, resource=replace(usual, cpu_time=100))
    there = planned(under_way(waiting=1), under_way(waiting=1, asks=WITH_GPUS.name), small)
    assert [(each.usual, each.asks) for each in there.supplies] == [
        (False, None),
        (True, ""),
        (True, WITH_GPUS.name),
    ]


def test_pilots_for_hosts_that_are_not_sure_go_one_by_one_until_some_found_work() -> None:
    unsure = PilotClass(asked=("GPUs",), sure=False)
    wanted = work(GPU, hosts={0: unsure})
    assert planned().untried(wanted) == 1
    assert planned(under_way(waiting=1, asks=unsure.name)).untried(wanted) == 0
    busy = planned(under_way(running=3, asks=unsure.name))
    assert busy.untried(wanted) == 3
    busy.ordered["v", unsure, None] += 2
    assert busy.untried(wanted) == 1
    assert planned().untried(work(GPU, hosts={0: WITH_GPUS})) == planned().room
