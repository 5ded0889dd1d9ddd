"""Brokered jobs as tests have them: submitted, and placed by hand."""

from typing import Any

import msgspec

from tests.services.world import World, pilot
from wms.auth.principal import Principal
from wms.db import placement
from wms.db.placement import NewPlacement, Placement
from wms.ids import JobId
from wms.messages import broker

BROKERED: dict[str, Any] = {"dispatch": "pilot"}


_TO_BROKER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(broker.ToBroker)


async def brokered(world: World, **description: Any) -> JobId:
    """Submit a job that the broker is to place."""
    (job_id,) = await world.submitted(**BROKERED, **description)
    return job_id


async def placed(world: World, job_id: int, site: str = "A", ce: str = "ce", **more: Any) -> list[JobId]:
    """Place a job as the broker does; return what was placed."""
    async with world.db.transaction() as tx:
        new = NewPlacement(job_id=JobId(job_id), site=site, ce=ce, **more)
        return await placement.order(tx, [new], "resource_broker")


async def bound(world: World, job_id: JobId, pilot_id: str = "p-bound") -> Principal:
    """Return the pilot that was sent for the job's open placement."""
    await world.sql(
        "update placement set pilot_id = $2 where job_id = $1 and state = 'Ordered'", job_id, pilot_id
    )
    return pilot(pilot_id, job_id=job_id)


async def placements(world: World, job_id: int) -> list[Placement]:
    async with world.db.transaction() as tx:
        return await placement.of_job(tx, JobId(job_id))


def told_broker(world: World) -> list[Any]:
    """Return, once, what the broker was told."""
    return [_TO_BROKER.decode(payload) for payload in world.take(broker.TOPIC)]
