"""A pilot submitter that sends jobs directly, and the services that it talks to."""

import os
from pathlib import Path
from typing import Any

import msgspec

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.config import PilotSandboxSettings
from services.pilot_submitter.direct_jobs import DirectJobs
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.placement_execution import Placing
from services.pilot_submitter.placement_watch import PlacementWatch
from tests.services.pilot_submitter.elements import ENDS, Site
from tests.services.pilot_submitter.placing import SLURM
from tests.services.placing import placed, placements, told_broker
from tests.waiting import eventually
from wms.audit import audit
from wms.auth.token import Verifier
from wms.bus.consumer import Delivery
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import Dispatcher
from wms.ids import CeId, InstanceId, JobId
from wms.messages import match_requests, reports
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import FromAgent
from wms.runtime import clock
from wms.transfer import SandboxStore, open_store

TRUSTING = SLURM._replace(direct_trusted=("*/*/*",))
_REPORTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(FromAgent)


class Door:
    """Stands for the broker: it hands each message, with its verified token, to the service that reads the topic."""

    def __init__(self, site: Site) -> None:
        self._world = site.world
        self._verifier = Verifier.from_file(site.place / "keys" / "jwks.json")
        self.sent: list[Any] = []

    async def send(self, topic: str, key: str, payload: bytes, token: str = "") -> None:
        principal = self._verifier.verify(token, clock.timestamp())
        assert principal.pilot_id == key
        if topic == match_requests.TOPIC:
            request = msgspec.json.decode(payload, type=MatchRequest)
            await self._world.reconcile()
            await self._world.db.attempt(
                lambda tx: self._world._matching.handle(tx, [Delivery(principal, request)])
            )
        else:
            assert topic == reports.TOPIC
            report = _REPORTS.decode(payload)
            self.sent.append(report)
            async with self._world.db.transaction() as tx:
                await self._world._reports.handle(tx, [Delivery(principal, report)])


class DirectSubmitter:
    """A pilot submitter at one element, which holds the leases of the jobs that it sends there."""

    def __init__(
        self, site: Site, dispatcher: Dispatcher, name: str = "s-1", *, terms: EndpointSettings = TRUSTING
    ) -> None:
        self.site, self.world = site, site.world
        endpoint = CeEndpoint(CeId("A", "first"), dispatcher, lambda: site.now, terms)
        endpoints = CeEndpoints(LocalDispatcher(site.place / "local", ENDS, {}), lambda: site.now, [endpoint])
        following = PilotTracking(site.world.db, endpoints, settled_seconds=0.0)
        self.placing = Placing(site.world.db, endpoints, site.maker, following, InstanceId(name))
        self.watch = PlacementWatch(site.world.db, endpoints, over_seconds=0.0)
        self.tracking = following
        self.endpoint = Door(site)
        self.direct = DirectJobs(
            site.world.db,
            self.endpoint,
            endpoints,
            site.maker,
            InstanceId(name),
            sandboxes=PilotSandboxSettings(url=store_of(site).as_uri()),
            directory=site.place / "inputs",
        )

    async def round(self) -> None:
        """Have every loop do a round."""
        await self.placing.send()
        await self.tracking.follow()
        await self.watch.look()
        await self.direct.look()
        await self.watch.clear()

    async def until(self, job_id: JobId, *states: str, within: float = 60.0) -> None:
        """Do rounds until the job is in one of these states."""

        async def there() -> bool:
            await self.round()
            assert await self.world.state(job_id) in states
            return True

        await eventually(there, within=within)

    async def last(self, job_id: JobId) -> tuple[str, str]:
        one = (await placements(self.world, job_id))[-1]
        return one.state, one.reason

    async def audited(self) -> None:
        report = await audit(self.world.url)
        assert report.ok, report.text(brief=True)


def store_of(site: Site) -> Path:
    return site.place / "sandboxes"


def store(site: Site) -> SandboxStore:
    return open_store(store_of(site).as_uri())


def local(site: Site, name: str = "first") -> LocalDispatcher:
    return LocalDispatcher(site.place / name, ENDS, {"PATH": os.environ["PATH"]})


async def direct_job(site: Site, *argv: str, placement: dict[str, Any] | None = None, **job: Any) -> JobId:
    """Submit a job to be sent directly, and place it at the first element."""
    if not await site.world.sql("select from ad"):
        await site.advertise("first")
    (job_id,) = await site.world.submitted(
        **{"executable": argv[0], "arguments": argv[1:], "dispatch": "direct", "cpu_time": 400, **job}
    )
    assert await placed(site.world, job_id, ce="first", dispatch="direct", **(placement or {})) == [job_id]
    told_broker(site.world)
    return job_id
