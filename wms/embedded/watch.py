"""Watches the processes of a system and kills those that hang (stopped, deadlocked or with dead loops), so that they are restarted."""

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
"""An ApiVersions request of the Kafka protocol, which every broker answers.

Its fields are size, API key, version, correlation id, and a null client id.
"""


class SystemWatch:
    """Checks signs of life: heartbeats of services in the database, and answers of Postgres and the Kafka broker.

    A process without a new sign for `hung_after` seconds is killed, and the supervisor restarts it. `postgres` says whether the system runs
    Postgres itself. `broker` is the Kafka broker that it runs; None: it runs elsewhere.
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
        """Check all processes every two seconds, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Check all processes once, and kill those that hang. The supervisor then restarts them."""
        services, _ = await asyncio.gather(self._look_at_postgres(), self._look_at_broker())
        signs: dict[str, Hashable] = {**services, **self._servers()}
        for name in self._detector.look(signs, time.monotonic()):
            why = f"it gave no sign of life for {self._hung_after:g} s"
            await self._supervisor.restart(name, why)

    def _servers(self) -> dict[str, Hashable]:
        """Return, for each running server (Postgres, broker), its pid and how often it has answered.

        Servers that are not running or run elsewhere are absent.
        """
        names = [("postgres", "postgres")] if self._watches_postgres else []
        names += [("broker", self._broker.name)] if self._broker is not None else []
        return {
            name: (self._supervisor.pid_of(name), self._answers[server])
            for server, name in names
            if self._supervisor.pid_of(name) is not None
        }

    async def _look_at_postgres(self) -> dict[str, Hashable]:
        """Return, by service, its pid and the time of its last heartbeat; empty if Postgres does not answer in time or refuses."""
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
        beats = {(row["service"], row["pid"]): row["heartbeat_at"] for row in rows}
        # An advertiser's heartbeat passes through a matcher: its silence does not say which of them hangs.
        pids = {name: self._supervisor.pid_of(name) for name in self._services if name != instance.ADVERTISER}
        return {name: (pid, beats[name, pid]) for name, pid in pids.items() if (name, pid) in beats}

    async def _look_at_broker(self) -> None:
        if self._broker is None or await answers(self._broker):
            self._answers["broker"] += 1


async def answers(broker: KafkaServer) -> bool:
    """Return whether a Kafka broker on this machine responds: it answers a request, or refuses or closes the connection.

    False if it accepts a connection and sends nothing within 2.5 s.
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
