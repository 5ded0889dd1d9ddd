"""The real servers the tests stand on: one Postgres and one broker a worker, a database of its own a test.

WMS_TEST_POSTGRES=URL takes a server that runs already; WMS_TEST_BACKEND=docker takes one in a container where a
Docker daemon answers; else the embedded one is started, in a directory of the session's.
"""

import contextlib
import gc
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psutil
import pytest
import pytest_asyncio
import structlog
from hypothesis import settings

from tests.middleware import Sites, a_testbed
from tests.openid_provider import OpenIdProvider
from tests.order import in_shares
from tests.s3_proxy import S3_PROXY, S3Proxy
from wms.embedded.apache_kafka import APACHE_KAFKA, ApacheKafka
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.postgres import Postgres

_numbers = itertools.count(1)
_owners: dict[str, asyncpg.Connection] = {}
"""A connection to each server, over which databases are made and dropped: a new one costs half as much as a database."""

# Many a test has jobs write where it reads, which those in containers cannot; those that test containers ask for them.
os.environ.setdefault("WMS_ISOLATION", "none")

# Users' Python does not write each line at once either.
os.environ.pop("PYTHONUNBUFFERED", None)

# How long an example takes says how busy the machine is. Where a change is judged its examples are the same each time: it
# answers for itself, and what luck finds is found where somebody can look at it.
settings.register_profile("wms", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("wms")

# Without the decoration that takes longer than what is tested: rich renders a traceback in 0.3 s of processor time.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
)

IN_MEMORY = Path("/dev/shm")
IN_MEMORY_PREFIX = "wms-tests-"
ROOM_BYTES = 2 * 1024**3
"""What has to be free there: each process that runs tests keeps its databases in it."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what was collected: thirteen thousand tests, which live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order what several workers share; each orders the same."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        kafka = {_file_of(item) for item in items if item.get_closest_marker("kafka")}
        items[:] = in_shares(items, workers, _file_of, kafka)


_skipped: list[str] = []
"""The tests that were skipped, in the process that collects the reports of all."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write which tests were skipped to the file that WMS_TEST_SKIPPED names, a line each: a later run may make up for them."""
    if (file := os.environ.get("WMS_TEST_SKIPPED")) and not hasattr(config, "workerinput"):
        Path(file).write_text("".join(f"{each}\n" for each in dict.fromkeys(_skipped)))


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def with_database(url: str, database: str) -> str:
    """Return `url` with its database replaced."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


async def execute(url: str, statement: str) -> None:
    """Run one statement outside any transaction."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def quick_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a directory in memory, if there is room: a database of a test's own is 400 files, which a disk makes slowly."""
    with contextlib.ExitStack() as stack:
        if os.access(IN_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES:
            _remove_left_behind()
            own = tempfile.TemporaryDirectory(prefix=f"{IN_MEMORY_PREFIX}{os.getpid()}-", dir=IN_MEMORY)
            yield Path(stack.enter_context(own))
        else:
            yield tmp_path_factory.mktemp("quick")


def _remove_left_behind() -> None:
    """Remove the directories of test processes that were killed: each holds a hundred megabytes of memory."""
    for each in IN_MEMORY.glob(f"{IN_MEMORY_PREFIX}*-*"):
        pid = each.name.removeprefix(IN_MEMORY_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(each, ignore_errors=True)


@pytest.fixture
def quick_tmp(quick_dir: Path) -> Iterator[Path]:
    """Yield a directory of the test's own below that, whose name has a space in it; for servers, not for jobs."""
    with tempfile.TemporaryDirectory(prefix="a test ", dir=quick_dir) as path:
        yield Path(path)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_server(quick_dir: Path) -> AsyncIterator[str]:
    """Yield the URL of a Postgres server on which databases may be made."""
    if given := os.environ.get("WMS_TEST_POSTGRES"):
        async with _owned(given):
            yield given
    elif os.environ.get("WMS_TEST_BACKEND") == "docker":
        for url in _postgres_in_docker():
            async with _owned(url):
                yield url
    else:
        # To drop a database Postgres looks through all of its buffers.
        small = {"shared_buffers": "64MB", "min_wal_size": "32MB", "max_wal_size": "256MB"}
        async with Postgres(quick_dir / "postgres", durable=False, settings=small) as server:
            await _hash_the_password_once(server.url)
            async with _owned(server.url):
                yield server.url


@contextlib.asynccontextmanager
async def _owned(url: str) -> AsyncIterator[None]:
    _owners[url] = await asyncpg.connect(url)
    yield
    await _owners.pop(url).close()


async def _hash_the_password_once(url: str) -> None:
    """Have whoever connects by the owner's password hash it once, not 4,096 times, which is half the cost of a connection."""
    owner = urlsplit(url)
    await execute(url, f"SET scram_iterations = 1; ALTER ROLE {owner.username} PASSWORD '{owner.password}'")


def _postgres_in_docker() -> Iterator[str]:
    import docker  # type: ignore[import-untyped]
    from testcontainers.community.postgres import PostgresContainer

    try:
        docker.from_env(timeout=3).ping()
    except docker.errors.DockerException as error:
        pytest.fail(f"WMS_TEST_BACKEND=docker, but no Docker daemon answers: {error}")
    with PostgresContainer("postgres:18", driver=None) as container:
        yield container.get_connection_url()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def template(postgres_server: str) -> AsyncIterator[str]:
    """Yield the name of a database into which the migrations were applied, for others to be copied from."""
    from wms.db.migrate import migrate

    name = f"wms_template_{os.getpid()}"
    await execute(postgres_server, f"CREATE DATABASE {name}")
    await migrate(with_database(postgres_server, name))
    yield name
    await execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest_asyncio.fixture(loop_scope="session")
async def empty_database(postgres_server: str) -> AsyncIterator[str]:
    """Yield the URL of a database with nothing in it, dropped afterwards."""
    async for url in _fresh_database(postgres_server, "template0"):
        yield url


@pytest_asyncio.fixture(loop_scope="session")
async def database(postgres_server: str, template: str) -> AsyncIterator[str]:
    """Yield the URL of a migrated database of the test's own, dropped afterwards."""
    async for url in _fresh_database(postgres_server, template):
        yield url


async def _fresh_database(server: str, template: str) -> AsyncIterator[str]:
    name = f"wms_test_{os.getpid()}_{next(_numbers)}"
    await _owners[server].execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield with_database(server, name)
    await _owners[server].execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KafkaBroker]:
    """Yield the session's embedded broker; a test that stops or kills one starts its own."""
    async with KafkaBroker(tmp_path_factory.mktemp("with space") / "broker") as server:
        yield server


@pytest.fixture
def kafka(broker: KafkaBroker) -> str:
    """Return the bootstrap address of the session's broker, HOST:PORT; prefix your topics."""
    return broker.bootstrap


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApacheKafka]:
    """Yield the session's Apache Kafka."""
    skip_without_apache_kafka()
    async with ApacheKafka(tmp_path_factory.mktemp("with space") / "apache_kafka") as server:
        yield server


def skip_without_apache_kafka() -> None:
    """Skip the test, saying what is missing, where Apache Kafka cannot run."""
    if lack := APACHE_KAFKA.missing():
        pytest.skip(f"APACHE KAFKA NOT TESTED: this machine lacks {lack}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def s3_proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[S3Proxy]:
    """Yield the session's S3 server; each test makes buckets of its own there."""
    if lack := S3_PROXY.missing():
        pytest.skip(f"S3 NOT TESTED: this machine lacks {lack}")
    async with S3Proxy(tmp_path_factory.mktemp("with space") / "s3_proxy") as server:
        yield server


@pytest.fixture(scope="session")
def testbed() -> Iterator[Sites]:
    """Yield real clusters and computing elements, started once a session; mark who asks for them `testbed`."""
    with a_testbed() as sites:
        yield sites


@pytest.fixture
def tmp_dir(tmp_path: Path) -> Path:
    """Return a directory of the test's own whose name has a space in it."""
    path = tmp_path / "with space"
    path.mkdir()
    return path


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[OpenIdProvider]:
    """Yield a real OpenID provider, not yet started."""
    made = OpenIdProvider(tmp_path)
    yield made
    made.stop()
