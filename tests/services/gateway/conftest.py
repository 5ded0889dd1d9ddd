"""A gateway in this process, beside a job manager that runs as one, a real broker and a real database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest_asyncio

from services.gateway.config import Config
from services.gateway.event_feed import EventFeed
from services.gateway.http_connection import ConnectionBounds
from services.gateway.http_server import HttpServer
from services.gateway.pilot_exchanges import ExchangeAnswers
from services.gateway.service import build
from services.gateway.service_channels import ServiceChannels
from services.gateway.site_inboxes import SiteInboxes
from tests.services.hosting import hosted
from tests.system.place import Place, owner, place
from tests.waiting import eventually
from wms.auth.revocations import Revocations
from wms.embedded.process import free_port
from wms.parsing.parser_pool import ParserPool

__all__ = ["owner", "place"]


class Door:
    """A running gateway, and requests to it."""

    def __init__(
        self,
        place: Place,
        url: str,
        session: aiohttp.ClientSession,
        bounds: ConnectionBounds,
        revocations: Revocations,
    ) -> None:
        self.place = place
        self.url = url
        self.session = session
        self.bounds = bounds
        self.revocations = revocations

    def headers(self, owner: str, **more: str) -> dict[str, str]:
        token = self.place.token(owner).read_text().strip()
        return {"Authorization": f"Bearer {token}", **more}

    async def ask(self, owner: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the parsed body of the answer."""
        async with self.session.request(
            method, f"{self.url}/api/v1{path}", json=body, headers=self.headers(owner)
        ) as answer:
            return answer.status, msgspec.json.decode(await answer.read())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def door(place: Place) -> AsyncIterator[Door]:
    async with a_gateway(place) as door:
        yield door


@contextlib.asynccontextmanager
async def a_gateway(place: Place, **said: Any) -> AsyncIterator[Door]:
    """Run a gateway, and end it as its host does."""
    port = said.pop("port", 0) or free_port()
    beside = {name: said.pop(name) for name in ("requests", "sandboxes") if name in said}
    told = configuration(place.root, place.postgres, place.kafka(), {"port": port, **said})
    config = msgspec.convert(told | beside, Config)
    async with hosted("gateway", config, build) as host, aiohttp.ClientSession() as session:
        (server,) = [each for each in host._loops if isinstance(each, HttpServer)]
        readers = EventFeed | SiteInboxes | ExchangeAnswers | ServiceChannels | ParserPool
        others = [each for each in host._loops if isinstance(each, readers)]
        serving = asyncio.create_task(server.run())
        running = [asyncio.create_task(each.run()) for each in others]
        await eventually(lambda: server.is_listening, within=30)
        yield Door(place, config.gateway.url, session, server.bounds, host.revocations)
        for each in (serving, *running):
            each.cancel()
            await asyncio.wait([each])


def configuration(
    root: Path, postgres: str, kafka: dict[str, object], gateway: dict[str, Any]
) -> dict[str, Any]:
    return {
        "auth": {"jwks": str(root / "keys" / "jwks.json")},
        "postgres": {"url": postgres},
        "kafka": kafka,
        "gateway": gateway,
        "sandboxes": {"url": (root / "sandboxes").as_uri()},
    }
