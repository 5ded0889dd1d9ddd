"""The embedded Postgres keeps what was committed through any death, and leaves nothing running."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psutil
import pytest
import pytest_asyncio

from tests.conftest import execute
from tests.waiting import eventually
from wms.embedded import privilege
from wms.embedded.postgres import Postgres
from wms.embedded.sockets import socket_directory
from wms.errors import Rejected, Unavailable


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared(quick_dir: Path) -> AsyncIterator[Postgres]:
    async with Postgres(quick_dir / "with space" / "pg", durable=False) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def postgres(shared: Postgres) -> Postgres:
    """One for all these tests, since making a cluster takes most of a second; running, whatever the last test did."""
    if not shared.running:
        await shared.start()
    return shared


@pytest_asyncio.fixture(loop_scope="session")
async def stopped(shared: Postgres) -> Path:
    """Return the directory of their cluster, on which no server runs."""
    await shared.stop()
    return shared.data_dir


async def fetch_value(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def lives(pid: int) -> bool:
    """Whether a process runs; a zombie that PID 1 of a container does not reap is dead."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_serves_below_a_path_with_a_space(postgres: Postgres) -> None:
    assert " " in str(postgres.data_dir)
    assert await fetch_value(postgres.url, "SELECT 1") == 1


async def test_password_is_for_us_alone_and_needed(postgres: Postgres) -> None:
    assert stat.S_IMODE((postgres.data_dir / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE(postgres.data_dir.stat().st_mode) == 0o700
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(postgres.url, password="wrong")


async def test_listens_on_no_port(postgres: Postgres) -> None:
    assert postgres.pid is not None
    assert not psutil.Process(postgres.pid).net_connections("inet")
    assert stat.S_IMODE(postgres.sockets.stat().st_mode) == 0o700


async def test_a_path_that_is_too_long_for_a_socket_has_one_elsewhere(quick_tmp: Path) -> None:
    server = Postgres(quick_tmp / ("long" * 20), durable=False)
    async with server:
        elsewhere = server.sockets
        assert not elsewhere.is_relative_to(quick_tmp)
        assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
        assert await fetch_value(server.url, "SELECT 1") == 1
        elsewhere.chmod(0o755)
        with pytest.raises(Rejected, match="others may use the sockets"):
            socket_directory(server.data_dir)
        elsewhere.chmod(0o700)
    assert not elsewhere.exists()


async def test_committed_rows_survive_kill_of_the_postmaster(postgres: Postgres) -> None:
    await execute(postgres.url, "CREATE TABLE row_kept AS SELECT generate_series(1, 1000) AS n")
    url = postgres.url
    await postgres.kill()
    assert not postgres.running
    await postgres.start()
    assert postgres.url == url
    assert await fetch_value(url, "SELECT count(*) FROM row_kept") == 1000


async def test_busy_backends_of_a_dead_postmaster_do_not_stop_the_next(postgres: Postgres) -> None:
    connection = await asyncpg.connect(postgres.url)
    await connection.execute("CREATE TABLE big AS SELECT generate_series(1, 100000) AS n")
    backend = await connection.fetchval("SELECT pg_backend_pid()")
    # A backend in mid-computation does not look whether its postmaster lives; it is the one that holds the memory.
    busy = asyncio.create_task(connection.execute("SELECT count(*) FROM big a, big b"))
    await eventually(lambda: psutil.Process(backend).cpu_times().user > 0.05)
    await postgres.kill()
    await postgres.start()
    assert await fetch_value(postgres.url, "SELECT count(*) FROM big") == 100_000
    with pytest.raises((asyncpg.PostgresError, OSError, asyncpg.InterfaceError)):
        await busy
    assert not lives(backend)


async def test_stops_quickly_with_clients_connected(postgres: Postgres) -> None:
    connection = await asyncpg.connect(postgres.url)
    await asyncio.wait_for(postgres.stop(), 10)
    assert not postgres.running
    connection.terminate()
    assert "database system is shut down" in postgres.log_path.read_text()


async def test_second_start_on_its_directory_is_refused_by_name(postgres: Postgres) -> None:
    with pytest.raises(Rejected, match=rf"in use by process {os.getpid()}"):
        await Postgres(postgres.data_dir).start()
    assert await fetch_value(postgres.url, "SELECT 1") == 1


async def test_foreign_pid_in_the_pid_file_is_not_believed(postgres: Postgres) -> None:
    await postgres.kill()
    pid_file = postgres.cluster / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getppid()), *lines[1:]]) + "\n")
    await postgres.start()
    assert await fetch_value(postgres.url, "SELECT 1") == 1


async def test_half_made_cluster_is_made_anew(quick_tmp: Path) -> None:
    (quick_tmp / "pg" / "cluster.new" / "base").mkdir(parents=True)
    async with Postgres(quick_tmp / "pg", durable=False) as server:
        assert await fetch_value(server.url, "SELECT 1") == 1


async def test_settings_reach_the_server(stopped: Path) -> None:
    async with Postgres(stopped, durable=False, settings={"work_mem": "3MB"}) as server:
        assert await fetch_value(server.url, "SHOW work_mem") == "3MB"
        assert await fetch_value(server.url, "SHOW jit") == "off"
        assert await fetch_value(server.url, "SHOW synchronous_commit") == "on"


async def test_wrong_setting_is_said_with_the_log(stopped: Path) -> None:
    with pytest.raises(Unavailable, match="no_such_setting"):
        await Postgres(stopped, durable=False, settings={"no_such_setting": "1"}).start()


async def test_default_is_durable(stopped: Path) -> None:
    async with Postgres(stopped) as server:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert await fetch_value(server.url, f"SHOW {setting}") == "on"


PARENT = """
import asyncio, sys
from pathlib import Path
from wms.embedded import privilege
from wms.embedded.postgres import Postgres

async def main():
    postgres_user = privilege.PostgresUser(sys.argv[2])
    privilege.postgres_user = lambda: postgres_user
    server = Postgres(Path(sys.argv[1]), durable=False)
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def postgres_users() -> list[privilege.PostgresUser]:
    return (
        [privilege.PostgresUser.NAMESPACE, privilege.PostgresUser.OTHER]
        if os.geteuid() == 0
        else [privilege.PostgresUser.SELF]
    )


@pytest.mark.parametrize("postgres_user", postgres_users(), ids=lambda postgres_user: postgres_user.value)
async def test_ends_with_its_parent_however_that_dies(
    quick_tmp: Path, postgres_user: privilege.PostgresUser
) -> None:
    if postgres_user is not privilege.PostgresUser.SELF and not privilege.works(postgres_user):
        pytest.skip(f"no {postgres_user.value} here")
    command = [sys.executable, "-c", PARENT, str(quick_tmp / "pg"), postgres_user.value]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        postmaster = int(await asyncio.to_thread(parent.stdout.readline))
        children = [child.pid for child in psutil.Process(postmaster).children(recursive=True)]
        assert children
        parent.send_signal(signal.SIGKILL)
    await eventually(lambda: not any(lives(pid) for pid in (postmaster, *children)))
    # And the next life finds its data, whoever ran it before.
    async with Postgres(quick_tmp / "pg", durable=False) as server:
        assert await fetch_value(server.url, "SELECT 1") == 1
