"""A site with elements of processes, and a pilot submitter that sends there."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.world import World
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.errors import Unavailable
from wms.ids import CeId, PilotId
from wms.provisioning.plan import PilotCaps
from wms.runtime.config import AuthSettings
from wms.site import ComputingElement

ENDS = ["/bin/sh", "-c", "echo my last words; exit 0"]


STAYS = ["/bin/sh", "-c", "echo here; exec sleep 600"]


class FakeAway(LocalDispatcher):
    """Stands for a middleware that does not answer, until it is told to."""

    away = True

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        if self.away:
            raise Unavailable("no route")
        return await super().send(orders)

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        if self.away:
            raise Unavailable("no route")
        return await super().follow(pilot_ids)


class Site:
    """A pilot submitter with two elements, `first` and `second`, of which the first is preferred for nothing."""

    def __init__(self, world: World, place: Path) -> None:
        self.world = world
        self.place = place
        self.now = 1_000.0
        generate_keys(place / "keys")
        pilots = PilotFactorySettings(directory=str(place / "pilots"), keys=str(place / "keys"))
        config = Config(
            auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
        )
        self.maker = PilotFactory(config, load_key(place / "keys" / "pilots.pem"), OrderKeys([b"k" * 32]))

    def build(
        self, terms: EndpointSettings | None = None, **dispatchers: LocalDispatcher
    ) -> tuple[Provisioning, PilotTracking]:
        clock = lambda: self.now  # noqa: E731 - a clock that the test sets
        asked = terms or EndpointSettings(kind="slurm")
        ways = [CeEndpoint(CeId("A", ce), each, clock, asked) for ce, each in dispatchers.items()]
        endpoints = CeEndpoints(
            LocalDispatcher(self.place / "local", ENDS, {}), clock, ways, local_sites=["*"]
        )
        following = PilotTracking(self.world.db, endpoints, settled_seconds=0.0)
        return Provisioning(self.world.db, endpoints, self.maker, PilotCaps(pilots=8), following), following

    def dispatcher(self, kind: type[LocalDispatcher], name: str, argv: Sequence[str]) -> LocalDispatcher:
        return kind(self.place / name, argv, {"PATH": os.environ["PATH"]})

    async def advertise(self, *names: str) -> None:
        for ce in names:
            element = ComputingElement(
                site="A", ce=ce, slots=1, max_cpu_time=10**6, setup="default", dispatcher="slurm"
            )
            await self.world.sql(
                "insert into ad (site, ce, element, advertised_at, expires_at)"
                " values ('A', $1, $2::text::jsonb, now(), now() + interval '1 h')",
                *(ce, msgspec.json.encode(element).decode()),
            )

    async def pilots(self) -> list[tuple[str, str]]:
        rows = await self.world.sql("select ce, state from pilot order by submitted_at")
        return [(row["ce"], row["state"]) for row in rows]


def living(seconds: float) -> EndpointSettings:
    return EndpointSettings(kind="slurm", lifetime_seconds=seconds)
