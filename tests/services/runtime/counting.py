"""The counting service as a process: told numbers by Kafka, killed, started again, and asked what it did."""

import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from tests.services.runtime.counting_service import PASSED_ON, TOLD, Number
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.bus.kafka import Kafka, KafkaSettings
from wms.embedded.process import Child
from wms.embedded.server import KafkaServer
from wms.errors import Unavailable
from wms.messages.wire import Codec, encode


class Counting:
    """The service, its database, and who tells it numbers."""

    def __init__(self, directory: Path, url: str, server: KafkaServer, *, idempotent: bool) -> None:
        self.directory = directory
        self.server = server
        self.settings = KafkaSettings(
            bootstrap=server.bootstrap, idempotent=idempotent, fetch_wait_ms=100 if idempotent else 0
        )
        generate_keys(directory / "keys")
        self._key = load_key(directory / "keys" / "issuer.pem")
        self._url = url
        self._kafka: Kafka | None = None
        self._database: asyncpg.Connection | None = None
        self._children: list[Child] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Counting"]:
        self._database = await asyncpg.connect(self._url)
        try:
            await self._database.execute("create table effect (n bigint not null)")
            self._write_config()
            yield self
        finally:
            for child in self._children:
                await child.stop(grace=5)
            await self.hang_up()
            await self._database.close()

    def _write_config(self) -> None:
        self.config.write_text(
            f"""
            [postgres]
            url = "{self._url}"
            [kafka]
            bootstrap = "{self.settings.bootstrap}"
            idempotent = {str(self.settings.idempotent).lower()}
            fetch_wait_ms = {self.settings.fetch_wait_ms}
            [auth]
            jwks = "{self.directory / "keys" / "jwks.json"}"
            """,
            "utf-8",
        )

    @property
    def config(self) -> Path:
        return self.directory / "counting.toml"

    async def start(self, **environment: str) -> Child:
        """Start a service; its log goes on where the last one's ended."""
        child = await Child.start(
            [sys.executable, "-m", "tests.services.runtime.counting_service", "--config", str(self.config)],
            log_path=self.directory / "counting.log",
            cwd=Path(__file__).parents[3],
            env={**_environment(), **environment},
        )
        self._children.append(child)
        return child

    async def tell(self, numbers: Sequence[int]) -> None:
        """Send numbers until a broker has them, connecting afresh if need be. Some may arrive twice."""
        claims = Claims(kind="user", owner="ann", group="physics", vo="lhcb")
        token = mint(self._key, claims, 600, time.time())
        headers = [("authorization", f"Bearer {token}".encode())]
        payloads = [encode(Number(n=n)) for n in numbers]

        async def told() -> bool:
            try:
                kafka = await self._connected()
                await kafka.send_many(TOLD.name, [b"%d" % n for n in numbers], payloads, headers)
            except Unavailable:
                await self.hang_up()
                return False
            return True

        await eventually(told, 60)

    async def _connected(self) -> Kafka:
        if self._kafka is None:
            kafka = Kafka(self.settings, "test")
            await kafka.start([TOLD, PASSED_ON])
            self._kafka = kafka
        return self._kafka

    async def hang_up(self) -> None:
        kafka, self._kafka = self._kafka, None
        if kafka is not None:
            await kafka.close()

    async def effects(self) -> list[int]:
        return [row["n"] for row in await self.sql("select n from effect order by n")]

    async def took_effect(self, numbers: Sequence[int], within: float = 60) -> list[int]:
        """Wait until all these did, and return all effects."""

        async def all_did() -> bool:
            return set(numbers) <= set(await self.effects())

        await eventually(all_did, within)
        return await self.effects()

    async def outbox_is_empty(self) -> None:
        async def empty() -> bool:
            return not await self.sql("select 1 from outbox")

        await eventually(empty, 60)

    async def passed_on(self) -> list[int]:
        """Return the numbers in its outgoing topic."""
        kafka = await self._connected()
        reader = await kafka.reader(PASSED_ON.name)
        reader.assign({0: 0})
        codec = Codec[Number](Number)
        found: list[int] = []

        async def all_read() -> bool:
            found.extend(codec.decode(each.payload).n for each in await reader.poll(0.3, 5_000))
            return reader.answered_at() > 0 and await reader.unread() == 0

        try:
            await eventually(all_read, 30)
        finally:
            await reader.close()
        return found

    async def sql(self, statement: str, *args: Any) -> list[Any]:
        assert self._database is not None
        rows: list[Any] = await self._database.fetch(statement, *args)
        return rows


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("WMS_")}
