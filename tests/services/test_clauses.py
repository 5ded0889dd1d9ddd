"""Fields of descriptions as clauses of matching: from a submission over queue, index and claim to the reason of a refusal."""

from typing import Any

import pytest

from services.matcher.ads import AdSync
from tests.services.test_two_sided import advertise, why
from tests.services.world import World, pilot
from wms.ids import JobId

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def given(world: World, site: str = "A", slots: int = 1, **offered: Any) -> list[JobId]:
    await AdSync(world.db, world.index).refresh()
    return [job_id for job_id, _ in await world.match(pilot(f"p-{site}", site=site), slots, **offered)]


@pytest.mark.parametrize(
    ("asked", "short", "enough"),
    [
        ({"disk_mb": 2_000}, {"disk_mb": 1_900}, {"disk_mb": 2_000}),
        ({"disk_mb": 2_000}, {"disk_mb": 1_900}, {}),
        ({"memory_mb": 2_000, "max_memory_mb": 9_000}, {"memory_mb": 1_999}, {"memory_mb": 2_000}),
        ({"memory_mb": 2_000}, {"memory_mb": 0}, {"memory_mb": 2_000}),
        ({"whole_node": True}, {"processors": 8}, {"processors": 8, "tags": ("wholenode",)}),
        ({"min_processors": 4, "max_processors": 8}, {"processors": 3}, {"processors": 4}),
        ({"min_processors": 1, "max_processors": 8}, {"processors": 1}, {"processors": 2}),
        ({"tags": ["GPU"]}, {}, {"tags": ("gpu",)}),
        ({"container": "docker://a/b"}, {"tags": ("any",)}, {"tags": ("container",)}),
        ({"network": "none"}, {"tags": ("any",)}, {"tags": ("privatenetwork",)}),
        ({"tags": ["GPU"]}, {"tags": ("ssd",)}, {"tags": ("ANY",)}),
        ({"platforms": ["Linux-X86_64"]}, {"platforms": ("Linux-i386",)}, {"platforms": ("linux-x86_64",)}),
        ({"job_type": "Test"}, {"job_types": ("User",)}, {"job_types": ("TEST",)}),
    ],
)
async def test_a_job_goes_to_what_it_asks_for_and_to_no_other(
    the_world: World, asked: dict[str, Any], short: dict[str, Any], enough: dict[str, Any]
) -> None:
    [job_id] = await the_world.submitted(**asked)
    assert not await given(the_world, **short)
    assert await given(the_world, **enough) == [job_id]


async def test_sites_and_elements_are_named_in_any_case(the_world: World) -> None:
    [wanted] = await the_world.submitted(sites=["a"], grid_ces=["CE"])
    await the_world.submitted(banned_sites=["a"])
    assert not await given(the_world, "B", job_types=("none",))
    assert await given(the_world, "A") == [wanted]
    assert not await given(the_world, "A")


async def test_a_site_both_wanted_and_banned_is_subtracted(the_world: World) -> None:
    [job_id] = await the_world.submitted(sites=["A", "B"], banned_sites=["a"])
    assert not await given(the_world, "A")
    assert await given(the_world, "B") == [job_id]


async def test_a_job_runs_where_one_of_its_stations_is(the_world: World) -> None:
    [job_id] = await the_world.submitted(stations=["FNAL-farm", "elsewhere"])
    await advertise(the_world, attributes={"StationNames": ["cern"]})
    assert not await given(the_world)
    await advertise(the_world, attributes={"StationNames": ["cern", "fnal-FARM"]})
    assert await given(the_world) == [job_id]


async def test_jobs_beside_each_other_share_the_disk_and_no_whole_node(the_world: World) -> None:
    await the_world.submitted(3, disk_mb=2_000)
    assert len(await given(the_world, slots=4, disk_mb=5_000)) == 2
    [whole] = await the_world.submitted(whole_node=True)
    await the_world.order("kill", *range(1, whole))
    [plain] = await the_world.submitted()
    both = await given(the_world, slots=8, tags=("WholeNode",))
    assert both in ([whole], [plain]), "beside another there is no whole node"


async def test_why_names_the_disk_and_what_would_do(the_world: World) -> None:
    [job_id] = await the_world.submitted(disk_mb=50_000)
    await advertise(the_world, disk_mb=40_000)
    told = await why(the_world, job_id)
    assert "50000 MB of disk" in str(told)
    assert "disk 40000 MB instead of 50000" in str(told)
