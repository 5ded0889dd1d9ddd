"""A job manager that runs as a process, a real broker and a real database, and what clients need to reach them."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.conftest import _fresh_database as fresh_database
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.client import ClientSettings
from wms.embedded.kafka_broker import KafkaBroker
from wms.files import write_secret
from wms.runtime import clock

NUMBERS = itertools.count(1)


class Place:
    """A job manager, and what clients need to reach it."""

    def __init__(self, root: Path, broker: KafkaBroker, postgres: str) -> None:
        self.root = root
        self.broker = broker
        self.postgres = postgres
        self.process: asyncio.subprocess.Process | None = None
        self.issuers = ""
        """Tables of trusted issuers, for the next start."""
        generate_keys(root / "keys")

    def token(self, owner: str, lifetime: float = 3600.0, rights: tuple[str, ...] = ()) -> Path:
        claims = Claims(kind="user", owner=owner, group="users", vo="atlas", rights=frozenset(rights))
        issued = clock.timestamp() + min(lifetime - 3600.0, 0.0)
        path = self.root / f"{owner}.token"
        write_secret(path, mint(load_key(self.root / "keys" / "issuer.pem"), claims, 3600.0, issued))
        return path

    def settings(self, owner: str, lifetime: float = 3600.0, rights: tuple[str, ...] = ()) -> ClientSettings:
        return msgspec.convert(
            {
                "kafka": self.kafka(),
                "auth": {
                    "token_file": str(self.token(owner, lifetime, rights)),
                    "jwks": str(self.root / "keys/jwks.json"),
                },
                "sandboxes": {"url": str(self.root / "sandboxes")},
            },
            ClientSettings,
        )

    def kafka(self) -> dict[str, object]:
        return {"bootstrap": self.broker.bootstrap, "fetch_wait_ms": 0, "idempotent": False}

    async def start(self) -> None:
        config = self.root / "job_manager.toml"
        config.write_text(
            f'[auth]\njwks = "{self.root}/keys/jwks.json"\n[postgres]\nurl = "{self.postgres}"\n'
            f'[kafka]\nbootstrap = "{self.broker.bootstrap}"\nfetch_wait_ms = 0\nidempotent = false\n{self.issuers}'
        )
        with (self.root / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "services.job_manager", "--config", config, stderr=log, stdout=log
            )

    async def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        await self.process.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template: str
) -> AsyncIterator[Place]:
    root = tmp_path_factory.mktemp("place")
    async for database in fresh_database(postgres_server, template):
        async with KafkaBroker(root / "broker") as broker:
            place = Place(root, broker, database)
            await place.start()
            yield place
            await place.stop()


@pytest.fixture
def owner() -> str:
    """Return a user of the test's own, who has no jobs yet."""
    return f"user{next(NUMBERS)}"
