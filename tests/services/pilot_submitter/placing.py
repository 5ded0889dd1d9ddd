"""A pilot submitter at one element that sends what the broker placed."""

import asyncio
from collections.abc import Sequence
from typing import Any

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.placement_execution import Placing
from services.pilot_submitter.placement_watch import PlacementWatch
from tests.services.pilot_submitter.elements import ENDS, Site
from tests.services.placing import brokered, placed, placements, told_broker
from wms.audit import audit
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import Dispatcher, PilotRequest, PilotSighting
from wms.ids import CeId, InstanceId, JobId, PilotId

SLURM = EndpointSettings(kind="slurm", asks=HostRequestTerms(kind="slurm", walltime_seconds=90_000))


class FakeRefusal(LocalDispatcher):
    """Stands for a batch system that refuses every job."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        return [
            PilotSighting(pilot_id=each.pilot_id, state="Failed", reason="refused: no such reservation")
            for each in orders
        ]


class FakeQueue(LocalDispatcher):
    """Stands for a batch system with a long queue, and shows what it was told."""

    taken: tuple[PilotRequest, ...] = ()
    cancelled: tuple[PilotId, ...] = ()

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        self.taken += tuple(orders)
        return [PilotSighting(pilot_id=each.pilot_id, state="Submitted", reference="1") for each in orders]

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        self.cancelled += tuple(pilot_ids)


class FakeFrozen(FakeQueue):
    """Stands for a batch system that answers once it is thawed."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.thawed = asyncio.Event()

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        await self.thawed.wait()
        return await super().send(orders)


class Submitter:
    """A pilot submitter at one element, and the world around it."""

    def __init__(self, site: Site, dispatcher: Dispatcher, terms: EndpointSettings = SLURM) -> None:
        self.world = site.world
        self.endpoint = CeEndpoint(CeId("A", "first"), dispatcher, lambda: site.now, terms)
        endpoints = CeEndpoints(
            LocalDispatcher(site.place / "local", ENDS, {}), lambda: site.now, [self.endpoint]
        )
        self.following = PilotTracking(site.world.db, endpoints, settled_seconds=0.0)
        self.placing = Placing(site.world.db, endpoints, site.maker, self.following, InstanceId("s-1"))
        self.watch = PlacementWatch(site.world.db, endpoints, over_seconds=0.0)

    async def pilot_of(self, job_id: JobId) -> str:
        (one,) = [each for each in await placements(self.world, job_id) if each.is_open]
        assert one.pilot_id is not None
        return one.pilot_id

    async def last(self, job_id: JobId) -> tuple[str, str]:
        one = (await placements(self.world, job_id))[-1]
        return one.state, one.reason

    async def audited(self) -> None:
        report = await audit(self.world.url)
        assert report.ok, report.text(brief=True)


async def order(site: Site, **more: Any) -> JobId:
    """Submit a job, and place it at the first element."""
    await site.advertise("first")
    job_id = await brokered(site.world, cpu_time=400, **more.pop("job", {}))
    assert await placed(site.world, job_id, ce="first", **more) == [job_id]
    told_broker(site.world)
    return job_id
