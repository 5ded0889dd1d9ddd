"""The links of an agent whose system is played by a test: to a real broker itself, or through a real gateway before it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from services.gateway.application import application
from services.gateway.authentication import Authentication
from services.gateway.config import GatewaySettings, RequestLimits
from services.gateway.event_feed import EventFeed
from services.gateway.http_connection import ConnectionBounds
from services.gateway.http_server import HttpServer
from services.gateway.older_events import OlderEvents
from services.gateway.pilot_exchanges import ExchangeAnswers
from services.gateway.service_channels import ServiceChannels
from services.gateway.service_requests import Desk, PilotDesk
from services.gateway.site_inboxes import SiteInboxes
from services.job_agent.https_link import HttpsLink
from services.job_agent.kafka_link import KafkaLink
from services.job_agent.link import AgentLink
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys, PilotCredential
from wms.auth.principal import Principal
from wms.auth.revocations import Revocations
from wms.auth.token import Claims, Verifier, mint
from wms.bus.grouped_sends import GroupedSends
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import SHARED, find
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.process import free_port
from wms.ids import PilotId
from wms.messages import events
from wms.parsing.parser_pool import ParserPool
from wms.runtime import clock
from wms.runtime.pilot_config import GatewayAccess

LINKS = ("kafka", "gateway")


def broker_settings(broker: KafkaBroker) -> KafkaSettings:
    return KafkaSettings(bootstrap=broker.bootstrap, idempotent=False, fetch_wait_ms=0)


class PilotsGateway:
    """A gateway for pilots over the broker: its parts, put together as its service does."""

    def __init__(self, kafka: Kafka, root: Path, limits: RequestLimits, port: int = 0, **said: float) -> None:
        generate_keys(root / "keys")
        self.root = root
        self.orders = OrderKeys.from_file(root / "keys" / "orders.key")
        self.revocations = Revocations()
        self.verifier = Verifier.from_file(root / "keys" / "jwks.json", revocations=self.revocations)
        self.settings = GatewaySettings(port=port or free_port(), **said)  # type: ignore[arg-type]
        outbox = GroupedSends(kafka)
        self.pilots = PilotDesk(outbox, SiteInboxes(kafka), ExchangeAnswers(kafka, outbox))
        services = ServiceChannels(kafka.settings)
        self.desk = Desk(
            settings=self.settings,
            authentication=Authentication(self.verifier, limits),
            services=services,
            feed=EventFeed(kafka, find(events.TOPIC)),
            older=OlderEvents(kafka, find(events.TOPIC)),
            parsers=ParserPool(),
            pilots=self.pilots,
            store=None,
        )
        bounds = ConnectionBounds(self.settings)
        self.server = HttpServer(application(self.desk), self.settings, bounds, self.desk.end, services.close)

    @property
    def access(self) -> GatewayAccess:
        return GatewayAccess(url=self.settings.url)

    @property
    def url(self) -> str:
        return f"{self.settings.url}/api/v1"

    def token(self, pilot_id: str, site: str, lifetime: float = 3_600, **more: object) -> str:
        claims = Claims(
            kind="pilot",
            owner="tests",
            group="pilot",
            vo="v",
            pilot_id=pilot_id,
            site=site,
            ce="ce",
            **more,  # type: ignore[arg-type]
        )
        return mint(load_key(self.root / "keys" / "pilots.pem"), claims, lifetime, clock.timestamp())

    def verified(self, token: str) -> Principal:
        return self.verifier.verify(token, clock.timestamp())

    def headers(self, pilot_id: str, site: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(pilot_id, site)}"}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for loop in (self.pilots.inboxes, self.pilots.exchanges, self.server):
                group.create_task(loop.run())


@contextlib.asynccontextmanager
async def pilots_gateway(
    broker: KafkaBroker, root: Path, limits: RequestLimits | None = None, port: int = 0, **said: float
) -> AsyncIterator[PilotsGateway]:
    """Run a gateway for pilots."""
    kafka = Kafka(broker_settings(broker), "gateway")
    await kafka.start(SHARED)
    gateway = PilotsGateway(kafka, root, limits or RequestLimits(), port, **said)
    running = asyncio.create_task(gateway.run())
    try:
        await eventually(lambda: gateway.server.is_listening, within=30)
        yield gateway
    finally:
        running.cancel()
        await asyncio.wait([running])
        await kafka.close()


@contextlib.asynccontextmanager
async def agent_link(
    kind: str, broker: KafkaBroker, root: Path, pilot_id: str, site: str, orders: OrderKeys
) -> AsyncIterator[AgentLink]:
    """Return the link of one pilot, not yet open, with the gateway that it needs. `orders` has the pilot's key."""
    key = orders.of_pilot(pilot_id)
    if kind == "kafka":
        yield KafkaLink(broker_settings(broker), PilotId(pilot_id), site, PilotCredential("", key))
        return
    async with pilots_gateway(broker, root) as gateway:
        credential = PilotCredential(gateway.token(pilot_id, site), key)
        yield HttpsLink(gateway.access, PilotId(pilot_id), site, credential)
