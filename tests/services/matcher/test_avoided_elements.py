"""Which elements are avoided, told to an index when it changes."""

from tests.services.world import World, pilot
from wms.db import ce_state
from wms.ids import CeId
from wms.provisioning.health import Event, HealthChange, HealthPolicy


async def say(the_world: World, event: Event, place: CeId = CeId("A", "ce")) -> None:  # noqa: B008 - a value
    async with the_world.db.transaction() as tx:
        await ce_state.move(tx, place, HealthChange(event, "why not", "oz"), HealthPolicy())


async def given(the_world: World) -> int:
    held = await the_world.match(pilot(), 10)
    await the_world.report(pilot(), decline=tuple(held))
    return len(held)


async def test_an_element_that_is_avoided_gets_no_jobs_from_the_next_look_on(the_world: World) -> None:
    await the_world.submitted(3)
    await say(the_world, "ban")
    assert await given(the_world) == 3, "nobody has looked"
    await the_world.standing.refresh()
    assert await given(the_world) == 0
    await say(the_world, "unban")
    await the_world.standing.refresh()
    assert await given(the_world) == 3


async def test_a_whole_site_is_avoided_with_all_of_its_elements(the_world: World) -> None:
    await the_world.submitted(2)
    await say(the_world, "drain", CeId("A", ""))
    await the_world.standing.refresh()
    assert await given(the_world) == 0
    assert len(await the_world.match(pilot("p-B", site="B"), 10)) == 2


async def test_what_an_element_is_avoided_for_is_told_to_pilots(the_world: World) -> None:
    await the_world.submitted()
    await say(the_world, "ban")
    await the_world.standing.refresh()
    assert await the_world.match() == []
    assert the_world.index.closed("A", "ce") == {("work", "")}
