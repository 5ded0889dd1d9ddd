"""Watches the processes of a system, and has those restarted that hang: stopped, deadlocked, or without their loops."""

import asyncio
import struct
import time
from collections.abc import Hashable, Sequence

import asyncpg

from wms.db import instance
from wms.db.database import GONE, Transaction
from wms.embedded.hang import HUNG_AFTER_SECONDS, HangDetector
from wms.embedded.server import KafkaServer
from wms.embedded.supervisor import Supervisor

LOOK_SECONDS = 2.0
ANSWER_SECONDS = 2.5
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""An ApiVersions request, which every Kafka broker answers.

Its fields are size, key, version, correlation id, and no client id.
"""


class SystemWatch:
    """Looks for signs of life: heartbeats of services, and answers of Postgres and the Kafka broker.

    A process without any for `hung_after` seconds is killed, and the supervisor starts it again. `postgres` says whether Postgres is
    embedded.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        postgres_url: str,
        services: Sequence[str],
        *,
        postgres: bool,
        broker: KafkaServer | None,
        hung_after: float = HUNG_AFTER_SECONDS,
    ) -> None:
        self._supervisor = supervisor
        self._url = postgres_url
        self._services = services
        self._watches_postgres = postgres
        self._broker = broker
        self._hung_after = hung_after
        self._detector = HangDetector(hung_after)
        self._answers = {"postgres": 0, "broker": 0}

    async def run(self) -> None:
        """Look for processes that hang, every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look once, and kill the processes that hang. The supervisor starts them again."""
        services, _ = await asyncio.gather(self._look_at_postgres(), self._look_at_broker())
        signs: dict[str, Hashable] = {**services, **self._servers()}
        for name in self._detector.look(signs, time.monotonic()):
            why = f"it gave no sign of life for {self._hung_after:g} s"
            await self._supervisor.restart(name, why)

    def _servers(self) -> dict[str, Hashable]:
        """Return how often each embedded server has answered, with its pid. Servers that do not run are absent."""
        names = [("postgres", "postgres")] if self._watches_postgres else []
        names += [("broker", self._broker.name)] if self._broker is not None else []
        return {
            name: (self._supervisor.pid_of(name), self._answers[server])
            for server, name in names
            if self._supervisor.pid_of(name) is not None
        }

    async def _look_at_postgres(self) -> dict[str, Hashable]:
        """Return the last heartbeat of each service; empty while Postgres does not answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                beats = await self._heartbeats()
        except TimeoutError:
            return {}
        except (*GONE, asyncpg.PostgresError):
            # A refusal counts as an answer.
            beats = {}
        self._answers["postgres"] += 1
        return beats

    async def _heartbeats(self) -> dict[str, Hashable]:
        connection = await asyncpg.connect(self._url)
        try:
            rows = await instance.instances(Transaction(connection))
        finally:
            connection.terminate()
        beats = {row["pid"]: row["heartbeat_at"] for row in rows}
        pids = {name: self._supervisor.pid_of(name) for name in self._services}
        return {name: (pid, beats[pid]) for name, pid in pids.items() if pid in beats}

    async def _look_at_broker(self) -> None:
        if self._broker is None or await answers(self._broker):
            self._answers["broker"] += 1


async def answers(broker: KafkaServer) -> bool:
    """Return whether a Kafka broker on this machine answers a request, or refuses the connection.

    It is false if the broker takes a request and sends nothing.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await broker.open_stream()
            try:
                writer.write(_API_VERSIONS)
                await reader.read(8)
            finally:
                writer.close()
    except TimeoutError:
        return False
    except OSError:
        return True
    return True
