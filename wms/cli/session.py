"""The connection of one command to the system: connect, do the command's work, close, and return the exit code."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from wms.cli.options import CommonOptions

if TYPE_CHECKING:
    from wms.bus.kafka import Kafka
    from wms.client import Client, ClientSettings
    from wms.db.database import Database

T = TypeVar("T")

OK = 0
SOME_FAILED = 1
BAD_INPUT = 2
NOT_ALLOWED = 3
FAULT = 70
UNAVAILABLE = 75
INTERRUPTED = 130

DOWN_SECONDS = 2.0


def with_client(common: CommonOptions, work: "Callable[[Client], Awaitable[int]]") -> int:
    """Connect to the user's system, run `work` with the client, and return the exit code that `work` returns.

    Raise Rejected if there is no system or no valid token, Unavailable if the system does not answer.
    """

    async def run() -> int:
        from wms.client import Client, read_settings
        from wms.client.query_client import CONNECT_SECONDS

        quiet()
        settings = read_settings(common.data, token=common.token)
        patience = DOWN_SECONDS if _is_down(common) else CONNECT_SECONDS
        async with (
            _renewed(settings),
            Client.connect(settings, timeout=common.timeout, patience=patience) as client,
        ):
            return await work(client)

    return _run(common, run())


def _run(common: CommonOptions, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. If something is unavailable and `wms up` does not run in the data directory, that is what the error says."""
    from wms.client.settings import data_directory
    from wms.errors import Unavailable

    try:
        return run_async(work)
    except Unavailable:
        if not _is_down(common):
            raise
        directory = data_directory(common.data)
        raise Unavailable(f"the system in {directory} does not run", "`wms up` starts it") from None


@asynccontextmanager
async def _renewed(settings: "ClientSettings") -> "AsyncIterator[None]":
    """Keep the token of a login renewed while the `async with` block runs. A token that is not of a login is left alone."""
    from pathlib import Path

    token_file = Path(settings.auth.token_file)
    if not token_file.with_name("login.json").exists():
        yield
        return
    import asyncio

    from wms.client import login
    from wms.runtime import clock

    await login.renew(token_file, clock.timestamp())
    renewing = asyncio.create_task(login.keep_fresh(token_file, clock.timestamp))
    try:
        yield
    finally:
        renewing.cancel()


def _is_down(common: CommonOptions) -> bool:
    """Return whether `wms up` is known not to run in the data directory, though it did."""
    from wms.client.settings import data_directory
    from wms.embedded.lock import holder
    from wms.embedded.supervisor import LOCK_FILE

    lock = data_directory(common.data) / LOCK_FILE
    return lock.exists() and not holder(lock)


def with_database(common: CommonOptions, work: "Callable[[Database], Awaitable[int]]") -> int:
    """Connect to the system's database, run `work` with it, and return its exit code.

    Raise Rejected if the settings name no database, as is so for users who are no operators.
    """

    async def run() -> int:
        from wms.db.database import Database

        quiet()
        db = await Database.connect(postgres_url(common), size=2, application="wms-cli")
        try:
            return await work(db)
        finally:
            await db.close()

    return _run(common, run())


def with_database_and_broker(
    common: CommonOptions, work: "Callable[[Database, Kafka, ClientSettings], Awaitable[int]]"
) -> int:
    """Connect to the system's database and broker, run `work` with them and the settings, and return its exit code.

    Raise Rejected if the settings name no database, as is so for users who are no operators.
    """

    async def run() -> int:
        from wms.bus.kafka import Kafka
        from wms.client.settings import read_settings
        from wms.db.database import Database

        quiet()
        settings = read_settings(common.data, token=common.token)
        kafka = Kafka(settings.kafka, "wms-cli")
        db = await Database.connect(postgres_url(common), size=2, application="wms-cli")
        try:
            await kafka.start()
            return await work(db, kafka, settings)
        finally:
            await kafka.close()
            await db.close()

    return _run(common, run())


def operator_name(common: CommonOptions) -> str:
    """Return the name under which an operator's actions are recorded.

    It is the owner of the token in use if the system's keys verify it, else the local user and machine.
    """
    import getpass
    import platform
    from pathlib import Path

    from wms.auth.token import Verifier
    from wms.client.credential import TokenFile
    from wms.client.settings import read_settings
    from wms.errors import Rejected
    from wms.runtime import clock

    settings, now = read_settings(common.data, token=common.token), clock.timestamp()
    try:
        token = TokenFile(Path(settings.auth.token_file)).read(now).token
        return Verifier.from_file(Path(settings.auth.jwks)).verify(token, now).owner
    except Rejected:
        return f"{getpass.getuser()}@{platform.node()}"


def postgres_url(common: CommonOptions) -> str:
    """Return the URL of the system's database. Raise Rejected if the settings name none."""
    from wms.client import read_settings
    from wms.errors import Rejected

    postgres = read_settings(common.data, token=common.token).postgres
    if postgres is None:
        raise Rejected(
            "NOT_AN_OPERATOR",
            "this is for operators: the settings name no database",
            "set url in [postgres] of client.toml, or WMS_POSTGRES__URL",
        )
    return postgres.url


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result. Ctrl-C cancels it.

    Raise Unavailable if anything but Ctrl-C cancelled it.
    """
    import asyncio

    from wms.errors import Unavailable

    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise Unavailable("what was under way was cancelled from inside") from None


def quiet() -> None:
    """Suppress log lines of libraries, unless WMS_DEBUG is set. Log lines never go to standard output."""
    import logging
    import os

    from wms.telemetry import logs

    debug = bool(os.environ.get("WMS_DEBUG"))
    logs.configure("wms", "debug" if debug else "error", as_json=False)
    for library in ("aiokafka", "asyncio", "asyncpg"):
        logging.getLogger(library).setLevel(logging.DEBUG if debug else logging.CRITICAL + 1)
