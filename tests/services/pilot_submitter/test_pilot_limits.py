"""Pilots that are about to be sent, against what the ads of their elements let come."""

from services.pilot_submitter.pilot_limits import let_come
from tests.services.world import World
from wms.db import limit
from wms.db.limit import AdAllowance
from wms.db.pilot import NewPilot
from wms.ids import CeId, PilotId


def pilots(ce: str, count: int) -> list[NewPilot]:
    return [
        NewPilot(pilot_id=PilotId(f"{ce}-{n}"), site="A", ce=ce, vo="lhcb", dispatcher="slurm", slots=1)
        for n in range(count)
    ]


async def test_no_more_come_than_the_ad_of_their_element_lets(the_world: World) -> None:
    async with the_world.db.transaction() as tx:
        await limit.advertise(tx, {CeId("A", "full"): AdAllowance(2, 900.0)})
        kept = await let_come(tx, [*pilots("full", 3), *pilots("free", 3)])
        assert [each.pilot_id for each in kept] == ["full-0", "full-1", "free-0", "free-1", "free-2"]
        assert await let_come(tx, pilots("full", 1)) == []
        assert await let_come(tx, []) == []
