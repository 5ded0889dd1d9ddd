"""Another user of the machine reaches neither the database nor the broker of a `wms up`, nor reads a file of it."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

from tests.conftest import skip_without_apache_kafka
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import SHARED
from wms.bus.unix_socket import SCHEME
from wms.embedded.apache_kafka import ApacheKafka
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.network_namespace import isolation
from wms.embedded.postgres import Postgres
from wms.embedded.system import System
from wms.errors import Unavailable

TRY = """
import pathlib, socket, sys
for path in sys.argv[1:]:
    try:
        if pathlib.Path(path).is_socket() or path.endswith(".sock"):
            socket.socket(socket.AF_UNIX).connect(path)
        else:
            pathlib.Path(path).read_bytes()
        print("reached", path)
    except OSError as error:
        print(type(error).__name__)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    root = tmp_path_factory.mktemp("owner")
    for each in (root, *root.parents):  # what is closed is to be closed by the system, not by pytest above it
        if each.stat().st_uid == os.geteuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o055)
    before = os.umask(0)
    try:
        async with System(root / "data", durable=False, services=()) as made:
            yield made
    finally:
        os.umask(before)


async def as_nobody(*paths: object) -> list[str]:
    """Try to reach these as another user; return what came of each."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    process = await asyncio.create_subprocess_exec(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-I", "-c", TRY, *map(str, paths),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    return said.decode().splitlines()


def listening(pid: int | None) -> list[object]:
    assert pid is not None
    return [
        each.laddr
        for each in psutil.Process(pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]


@pytest.mark.skipif(
    isolation() is None, reason="THE BROKER IS OPEN HERE: this machine allows no network namespace"
)
async def test_the_broker_is_behind_a_door_that_only_its_owner_opens(system: System) -> None:
    assert isinstance(system.broker, KafkaBroker)
    assert not system.exposed
    assert not listening(system.broker.pid)
    door = Path(system.broker.bootstrap.removeprefix(SCHEME))
    assert stat.S_IMODE(door.parent.stat().st_mode) == 0o700
    kafka = Kafka(
        KafkaSettings(bootstrap=system.broker.bootstrap, idempotent=False, fetch_wait_ms=0), "owner"
    )
    await kafka.start(SHARED)
    await kafka.close()
    assert await as_nobody(door) == ["PermissionError"]


async def test_the_database_has_no_port_and_a_socket_for_its_owner(system: System) -> None:
    assert isinstance(system.postgres, Postgres)
    assert not listening(system.postgres.pid)
    socket = system.postgres.sockets / ".s.PGSQL.5432"
    assert socket.is_socket()
    assert await as_nobody(socket) == ["PermissionError"]


async def test_no_file_can_be_read_whatever_the_umask(system: System) -> None:
    root = system.layout.root
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    files = [each for each in root.rglob("*") if each.is_file()]
    assert files
    # What Postgres makes itself is closed by it, and by the directories above.
    public = system.layout.jwks
    ours = [each for each in (root, *root.rglob("*")) if "cluster" not in each.parts and each != public]
    open_ = [each for each in ours if not each.is_socket() and stat.S_IMODE(each.stat().st_mode) & 0o077]
    assert not open_
    assert set(await as_nobody(*files[:50])) == {"PermissionError"}


async def test_where_the_broker_is_open_it_is_said(tmp_path: Path, database: str) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    async with System(tmp_path / "data", kafka="loopback", postgres=database, services=()) as system:
        assert stat.S_IMODE(system.layout.root.stat().st_mode) == 0o700
        assert "every user of this machine can reach the broker" in system.exposed


@pytest.mark.kafka
@pytest.mark.slow
async def test_apache_kafka_serves_only_who_knows_the_password(tmp_path: Path) -> None:
    skip_without_apache_kafka()
    async with ApacheKafka(tmp_path / "kafka", closed=True) as server:
        kafka = Kafka(msgspec.convert(server.access, KafkaSettings), "owner")
        await kafka.start(SHARED)
        await kafka.send("wms.job.events", "k", b"{}")
        await kafka.close()
        for stranger in (
            KafkaSettings(bootstrap=server.bootstrap),
            msgspec.convert({**server.access, "password": "guessed"}, KafkaSettings),
        ):
            refused = Kafka(stranger, "stranger")
            with pytest.raises(Unavailable):
                await refused.start()
        assert stat.S_IMODE((server.data_dir / "server.properties").stat().st_mode) == 0o600
        assert str(server.access["password"]) not in repr(msgspec.convert(server.access, KafkaSettings))
