"""Brokered jobs as tests have them: submitted, and placed by hand."""

from typing import Any

import msgspec
import pytest

from services.job_manager.submission import brokered_jobs
from tests.services.world import World
from wms.db import placement
from wms.db.placement import NewPlacement, Placement
from wms.ids import JobId
from wms.messages import broker

BROKERED: dict[str, Any] = {"job_type": "Brokered"}


def brokered_by_type(patch: pytest.MonkeyPatch) -> None:
    """Let the broker place jobs of one type, until descriptions can say so."""
    patch.setattr(brokered_jobs, "brokered", lambda each: each.job_type == "Brokered")


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


async def placements(world: World, job_id: int) -> list[Placement]:
    async with world.db.transaction() as tx:
        return await placement.of_job(tx, JobId(job_id))


def told_broker(world: World) -> list[Any]:
    """Return, once, what the broker was told."""
    return [_TO_BROKER.decode(payload) for payload in world.take(broker.TOPIC)]
