"""The resource broker over a world of services: its steps done one by one, its ads as a test says."""

from typing import Any

import msgspec

from services.resource_broker.broken_groups import BrokenGroups
from services.resource_broker.brokering import Brokering
from services.resource_broker.config import BrokeringSettings, RequestedIndexSettings
from services.resource_broker.grid_snapshot import reader_of_offers
from services.resource_broker.incoming_jobs import IncomingJobs
from services.resource_broker.record_upkeep import RecordUpkeep
from services.resource_broker.requested_indexes import RequestedIndexes
from tests.services.world import World
from wms.audit.auditor import audit
from wms.bus.consumer import Delivery
from wms.db import job, job_record, placement
from wms.db.job import JobMove
from wms.db.job_record import JobRecord
from wms.db.placement import Placement
from wms.ids import InstanceId, JobId
from wms.job.job import path
from wms.job.reasons import Code, Reason
from wms.job.state import Event
from wms.messages import broker
from wms.site import ComputingElement

_ORDERS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(broker.ToBroker)


class BrokerWorld:
    """A broker and what it works on."""

    def __init__(
        self, world: World, name: str = "b-1", *, indexes: RequestedIndexes | None = None, **settings: Any
    ) -> None:
        self.world = world
        self.settings = BrokeringSettings(**{"look_again_seconds": 0.5} | settings)
        self.indexes = indexes or RequestedIndexes(RequestedIndexSettings())
        self.brokering = Brokering(world.db, self.settings, self.indexes, InstanceId(name))
        self.orders = IncomingJobs(world.db, lambda: None)
        self.upkeep = RecordUpkeep(world.db, kept_days=90.0)
        self.regrouping = BrokenGroups(world.db)

    async def advertise(self, site: str, ce: str = "ce", *, slots: int = 8, **attributes: Any) -> None:
        """Store the ad of an element."""
        element = ComputingElement(site=site, ce=ce, slots=slots, max_cpu_time=10**6, setup="default")
        await self.world.sql(
            "insert into ad (site, ce, element, attributes, advertised_at, expires_at)"
            " values ($1, $2, $3::text::jsonb, $4::text::jsonb, now(), now() + interval '1 h')"
            " on conflict (site, ce) do update set element = excluded.element, attributes = excluded.attributes,"
            " received_at = now()",
            *(site, ce, msgspec.json.encode(element).decode(), msgspec.json.encode(attributes).decode()),
        )

    async def reserves(self, site: str) -> None:
        """Let a site decide on offers for its element `ce`, by a service that sends heartbeats."""
        await self.world.sql(
            "insert into agreement_element (site, ce, cpus, template, told_until)"
            " values ($1, 'ce', 8, '{}', now() + interval '1 h') on conflict do nothing",
            site,
        )
        await self.world.sql(
            "insert into service_instance (instance_id, service, consumers, host, pid, version, heartbeat_at)"
            " values ('agreement-' || $1, 'agreement', $2, 'host', 1, '1', now() + interval '1 h') on conflict do nothing",
            *(site, [reader_of_offers(site)]),
        )

    async def submitted(self, count: int = 1, **description: Any) -> list[JobId]:
        """Submit jobs that the broker is to place."""
        return await self.world.submitted(count, **{"preferences": {}} | description)

    async def told(self) -> None:
        """Hand the broker what it was told."""
        messages = [_ORDERS.decode(each) for each in self.world.take(broker.TOPIC)]
        async with self.world.db.transaction() as tx:
            await self.orders.handle(tx, [Delivery(None, each) for each in messages])

    async def step(self) -> None:
        """Hand the broker what it was told, and do all steps that are due."""
        await self.told()
        while await self.brokering.step():
            pass

    async def due(self) -> None:
        """Let all steps be due now."""
        await self.world.sql("update job_record set due_at = now() where phase <> 'Over'")

    async def record(self, job_id: int) -> JobRecord:
        async with self.world.db.transaction() as tx:
            found = await job_record.of_job(tx, JobId(job_id))
        assert found is not None
        return found

    async def placements(self, job_id: int) -> list[Placement]:
        async with self.world.db.transaction() as tx:
            return await placement.of_job(tx, JobId(job_id))

    async def fail(self, job_id: int, text: str = "no room") -> None:
        """Let the job's placement fail, as the pilot submitter tells it."""
        await self.world.sql(
            "update placement set state = 'Failed', reason = 'REFUSED', reason_text = $2 where job_id = $1"
            " and state in ('Ordered', 'Sent')",
            *(job_id, text),
        )
        await back_to_broker(self.world, job_id)


async def back_to_broker(world: World, job_id: int) -> None:
    """Bring a waiting job back to the broker."""
    async with world.db.transaction() as tx:
        (found,) = (await job.lock(tx, [JobId(job_id)])).values()
        steps = path(found.state, (Event.CHECK, Reason(Code.PLACEMENT_FAILED, "no room")))
        moved = JobMove(job=found, steps=steps, attempts=found.attempts, unstarted=found.unstarted)
        await job.move(tx, [moved], "pilot_submitter")
        tx.send(
            broker.TOPIC,
            str(job_id),
            broker.PlacementFailed(
                job_id=JobId(job_id),
                seq=found.event_seq + len(steps),
                attempt=1,
                site="A",
                ce="ce",
                code="REFUSED",
                at=await tx.now(),
            ),
        )


async def sound(world: World) -> None:
    """Check the database by the auditor's rules."""
    report = await audit(world.url)
    assert report.ok, report.text(brief=True)
