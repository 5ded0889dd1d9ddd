"""A service put together as its main file does, on a database and a broker of the tests, its loops not yet begun."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from wms.auth.keys import generate_keys
from wms.bus.connection_settings import KafkaSettings
from wms.bus.kafka import Kafka
from wms.bus.topics import SHARED
from wms.db.database import Database
from wms.runtime.config import ServiceConfig
from wms.runtime.every import Every
from wms.runtime.host import Host

C = TypeVar("C", bound=ServiceConfig)


def settings(directory: Path, database: str, bootstrap: str) -> dict[str, Any]:
    """Return what every service is told, with keys of its own below the directory."""
    generate_keys(directory / "keys")
    return {
        "auth": {"jwks": str(directory / "keys" / "jwks.json")},
        "postgres": {"url": database},
        "kafka": msgspec.to_builtins(KafkaSettings(bootstrap=bootstrap, idempotent=False, fetch_wait_ms=0)),
    }


@contextlib.asynccontextmanager
async def hosted(service: str, config: C, build: Callable[[Host, C], Awaitable[None]]) -> AsyncIterator[Host]:
    """Put a service together; afterwards let go of what it stands on."""
    db = await Database.connect(config.postgres.url, size=config.postgres.pool, application=service)
    kafka = Kafka(config.kafka, service)
    try:
        await kafka.start(SHARED)
        host = Host(service, config, db, kafka)
        await build(host, config)
        yield host
        host.slices.close()
    finally:
        await kafka.close()
        await db.close()


def shown(host: Host) -> dict[str, Any]:
    """Return what the service tells with its heartbeat."""
    health: dict[str, Any] = msgspec.json.decode(host._health())
    return health


async def do_each_once(host: Host) -> set[str]:
    """Do one round of each loop that does something every so often, but for probes; return their names."""
    loops = [each for each in host._loops if isinstance(each, Every) and not each.name.endswith(".probe")]
    for each in loops:
        await each._act()
    return {each.name for each in loops}
