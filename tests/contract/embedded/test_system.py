"""A system on one machine comes up, mends itself, ends whole, and comes up again with what it had."""

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import psutil
import pytest

from tests.conftest import execute
from tests.contract.embedded.conftest import BARE
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings
from wms.embedded.layout import SERVICES
from wms.embedded.leftover_processes import members, system_id
from wms.embedded.lifeline import Lifeline
from wms.embedded.postgres import Postgres
from wms.embedded.system import System, down
from wms.errors import Rejected


def client_file(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "client.toml").read_text())


async def count_tables(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM information_schema.tables"))
    finally:
        await connection.close()


async def test_its_users_find_all_they_need_in_one_file(system: System) -> None:
    told = client_file(system.layout.root)
    assert await count_tables(told["postgres"]["url"]) > 0
    kafka = Kafka(msgspec.convert(told["kafka"], KafkaSettings), "test")
    await kafka.start()
    assert kafka.cluster_id
    await kafka.close()
    assert Path(told["auth"]["jwks"]).is_file()
    assert Path(told["auth"]["token_file"]).is_file()


async def test_what_is_secret_is_for_its_owner_alone(system: System) -> None:
    layout = system.layout
    for path in (layout.client, layout.user_token, layout.root / "state.json", *layout.keys.glob("*.pem")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(layout.root.stat().st_mode) & 0o077 == 0


async def test_killed_servers_come_back_where_they_were(system: System) -> None:
    assert system.postgres is not None
    assert system.broker is not None
    url, bootstrap = system.postgres.url, system.broker.bootstrap
    before = {name: child.starts for name, child in system.state().children.items()}
    for server in (system.postgres, system.broker):
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
    await eventually(
        lambda: all(child.starts > before[name] for name, child in system.state().children.items())
    )
    assert (system.postgres.url, system.broker.bootstrap) == (url, bootstrap)
    await execute(url, "SELECT 1")


async def test_tools_cannot_take_the_connections_of_services(system: System) -> None:
    assert system.facts is not None
    url = client_file(system.layout.root)["postgres"]["url"]
    held: list[asyncpg.Connection] = []
    try:
        with contextlib.suppress(asyncpg.TooManyConnectionsError):
            while len(held) < 250:
                held.append(await asyncpg.connect(url))
        assert 50 < len(held) <= 100
        await execute(system.facts.postgres_url, "select 1")
        assert await held[0].fetchval("select current_user") == "wms_tools"
        assert await held[0].fetchval("show idle_session_timeout") == "10min"
    finally:
        await asyncio.gather(*(each.close() for each in held))


async def test_second_on_its_directory_is_refused_by_name(system: System) -> None:
    with pytest.raises(Rejected, match=rf"in use by process {os.getpid()}"):
        await System(system.layout.root, services=BARE).start()
    assert system.broker is not None
    assert system.broker.running


async def test_unknown_broker_is_refused(quick_tmp: Path) -> None:
    with pytest.raises(Rejected, match="no broker is named"):
        await System(quick_tmp, kafka="rabbit", durable=False, services=BARE).start()
    assert not members(system_id(quick_tmp))


async def test_nothing_is_up_so_nothing_comes_down(quick_tmp: Path) -> None:
    assert not await down(quick_tmp)


@pytest.mark.slow
async def test_every_service_runs_and_comes_back_when_killed(quick_tmp: Path) -> None:
    async with System(quick_tmp, durable=False) as system:
        assert set(system.state().children) == {"postgres", "broker", *SERVICES}
        for name in SERVICES:
            pid = system.supervisor.pid_of(name)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        await eventually(lambda: all(system.state().children[name].starts == 2 for name in SERVICES))
        await system.wait_beating()
    assert of_system(quick_tmp) == []


async def test_what_clients_are_told_is_what_they_read(system: System) -> None:
    from wms.client.settings import read_settings

    settings = read_settings(system.layout.root, {})
    assert system.broker is not None
    assert settings.kafka.bootstrap == system.broker.bootstrap
    assert settings.sandboxes is not None
    assert settings.sandboxes.address == system.layout.sandboxes.as_uri()


UP = """
import asyncio, sys
from pathlib import Path
from wms.embedded.system import System

async def main():
    async with System(Path(sys.argv[1]), durable=False, services=()) as system:
        print("up", flush=True)
        await system.until_told()

asyncio.run(main())
"""


def start_process(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", UP, str(root)], stdout=subprocess.PIPE, text=True)


async def is_up(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return await asyncio.to_thread(process.stdout.readline) != ""


def of_system(root: Path) -> list[int]:
    """Return what lives of a system: what carries its mark, and Postgres, which overwrites its environment."""
    cluster = root / "postgres" / "cluster"
    found = {each.pid for each in members(system_id(root))}
    for each in psutil.process_iter(["pid", "name"]):
        try:
            if each.status() != psutil.STATUS_ZOMBIE and Path(each.cwd()) == cluster:
                found.add(each.pid)
        except (psutil.Error, OSError):
            continue
    return sorted(found)


async def test_killed_whole_it_leaves_nothing_and_comes_back_with_its_rows(quick_tmp: Path) -> None:
    with start_process(quick_tmp) as first:
        assert await is_up(first)
        told = client_file(quick_tmp)["postgres"]["url"]
        url = Postgres(quick_tmp / "postgres").url_of("wms")
        await execute(url, "CREATE TABLE kept AS SELECT 1 AS n")
        assert of_system(quick_tmp)
        first.kill()
    await eventually(lambda: of_system(quick_tmp) == [])
    with start_process(quick_tmp) as second:
        assert await is_up(second)
        assert client_file(quick_tmp)["postgres"]["url"] == told
        await execute(url, "SELECT n FROM kept")
        lifeline = Lifeline.open(quick_tmp / "up.lock")
        assert lifeline.pid == second.pid
        assert await down(quick_tmp)
        assert second.wait(10) == 0
    lifeline.close()
    assert of_system(quick_tmp) == []
