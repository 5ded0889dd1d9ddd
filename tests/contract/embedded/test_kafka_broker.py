"""Both brokers keep the same promises to whoever starts, stops and kills them, and to an ordinary client."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from tests.conftest import skip_without_apache_kafka
from tests.contract.embedded.topics import consume, make_topic
from tests.waiting import eventually
from wms.bus.connection_settings import KafkaSettings
from wms.bus.topics import SHARED
from wms.bus.unix_socket import SCHEME
from wms.embedded.apache_kafka import ApacheKafka
from wms.embedded.kafka_broker import KafkaBroker, cluster_id_of
from wms.embedded.network_namespace import isolation
from wms.embedded.server import KafkaServer
from wms.errors import Rejected

BROKERS = [
    pytest.param(KafkaBroker, id="embedded"),
    pytest.param(ApacheKafka, id="apache", marks=pytest.mark.kafka),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=BROKERS)
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[KafkaServer]:
    if request.param is ApacheKafka:
        skip_without_apache_kafka()
    async with request.param(tmp_path_factory.mktemp("with space") / "kafka") as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def server(shared: KafkaServer) -> KafkaServer:
    if not shared.running:
        await shared.start()
    return shared


def make(kind: Any, data_dir: Path) -> KafkaServer:
    return cast("KafkaServer", kind(data_dir))


async def produce(bootstrap: str, topic: str, count: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type="lz4") as producer:
        for n in range(count):
            await producer.send(topic, str(n).encode(), key=str(n).encode(), headers=[("h", b"v")])
        await producer.flush()


async def test_what_is_produced_is_consumed(server: KafkaServer) -> None:
    topic = await make_topic(server.bootstrap)
    await produce(server.bootstrap, topic, 500)
    assert await consume(server.bootstrap, topic, 500) == list(range(500))


async def test_listens_on_loopback_only(server: KafkaServer) -> None:
    assert server.pid is not None
    sockets = [c for c in psutil.Process(server.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert server.port in {c.laddr.port for c in sockets}
    assert {c.laddr.ip.removeprefix("::ffff:") for c in sockets} == {"127.0.0.1"}


async def test_second_on_its_directory_is_refused_by_name(server: KafkaServer) -> None:
    with pytest.raises(Rejected, match=rf"in use by process {os.getpid()}"):
        await make(type(server), server.data_dir).start()
    assert server.running


async def test_after_a_kill_it_is_the_same_cluster_only_if_it_kept_its_topics(server: KafkaServer) -> None:
    topic = await make_topic(server.bootstrap)
    await produce(server.bootstrap, topic, 100)
    before, bootstrap = await cluster_id_of(server), server.bootstrap
    await server.kill()
    assert not server.running
    assert await cluster_id_of(server) is None
    await server.start()
    assert server.bootstrap == bootstrap
    same = await cluster_id_of(server) == before
    assert same is isinstance(server, ApacheKafka)
    if same:
        assert await consume(bootstrap, topic, 100) == list(range(100))
    else:
        assert topic not in await topics(msgspec.convert(server.access, KafkaSettings))


async def test_wiped_broker_is_a_new_cluster_without_topics(server: KafkaServer) -> None:
    topic = await make_topic(server.bootstrap)
    before = await cluster_id_of(server)
    await server.kill()
    await server.wipe()
    await server.start()
    assert await cluster_id_of(server) not in (before, None)
    assert topic not in await topics(msgspec.convert(server.access, KafkaSettings))


async def topics(settings: KafkaSettings) -> list[str]:
    admin = AIOKafkaAdminClient(**settings.connection())
    await admin.start()
    try:
        return list(await admin.list_topics())
    finally:
        await admin.close()


PARENT = """
import asyncio, importlib, sys
from pathlib import Path

async def main():
    module, name = sys.argv[1].rsplit(".", 1)
    server = getattr(importlib.import_module(module), name)(Path(sys.argv[2]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(KafkaBroker, id="embedded"),
        pytest.param(ApacheKafka, id="apache", marks=pytest.mark.slow),
    ],
)
async def test_ends_with_its_parent_however_that_dies(tmp_dir: Path, kind: type[KafkaServer]) -> None:
    if kind is ApacheKafka:
        skip_without_apache_kafka()
    command = [sys.executable, "-c", PARENT, f"{kind.__module__}.{kind.__name__}", str(tmp_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(await asyncio.to_thread(parent.stdout.readline))
        process = psutil.Process(pid)
        parent.send_signal(signal.SIGKILL)
    await eventually(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.skipif(
    isolation() is None, reason="THE BROKER IS OPEN HERE: this machine allows no network namespace"
)
async def test_nobody_reaches_it_before_the_shared_topics_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it makes a topic, it takes messages that it then forgets, and tells others that the topic exists."""
    broker = KafkaBroker(tmp_path, isolate=isolation())
    door = Path(broker.bootstrap.removeprefix(SCHEME))
    make, reachable = broker._make_topics, []

    async def watched(bootstrap: str) -> bool:
        made = await make(bootstrap)
        reachable.append(door.exists())
        return made

    monkeypatch.setattr(broker, "_make_topics", watched)
    async with broker:
        assert True not in reachable
        assert {each.name for each in SHARED} <= {
            *await topics(msgspec.convert(broker.access, KafkaSettings))
        }
        await broker.kill()
        await broker.start()
        assert True not in reachable
