"""The pool of connections, and the transaction of a handler, which stores state and messages in one commit."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from wms.db.sql import load
from wms.errors import Unavailable, WmsError
from wms.messages.wire import encode

T = TypeVar("T")

Connection: TypeAlias = asyncpg.Connection | PoolConnectionProxy

Outgoing: TypeAlias = dict[str, tuple[list[bytes], list[bytes]]]
"""Messages to send: the keys and the payloads of each topic, in step."""

SQL = load(__file__)


class StatementTimeout(WmsError):  # noqa: N818 - an outcome
    """A statement was stopped after its time limit and rolled back. The database is reachable; the request was too large."""


RETRIED = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    StatementTimeout,
)
"""Errors that end a transaction for a temporary reason, so that the caller tries it again."""

GONE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # A connection that is cut during an operation may raise this instead.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    # Not the statement's fault: it works again once there is room.
    asyncpg.DiskFullError,
)
"""Errors that mean that the database cannot be reached. A commit in progress may or may not have taken effect."""


READY = 3
"""The number of connections opened at the start, so that the first requests need not wait for new ones."""


class Parcel(msgspec.Struct, frozen=True):
    """The messages of one transaction to one topic."""

    outbox_id: int | None
    """The id of the outbox row; None if the messages are only in memory."""
    topic: str
    keys: Sequence[bytes]
    payloads: Sequence[bytes]


class Transaction:
    """A database transaction with an outbox. Its messages are sent if it commits, and only then."""

    def __init__(self, connection: Connection, *, wary: bool = False) -> None:
        self.connection = connection
        self.wary = wary
        """Whether to check for a lock before waiting for it. It is set after a lock of another transaction stopped the first try."""
        self._outgoing: Outgoing = {}
        self._replies: Outgoing = {}
        self._undo: list[Callable[[], None]] = []
        self._now: datetime | None = None
        self.on_statement: Callable[[], None] = lambda: None
        """A function that is called after each statement."""

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Register a function that is called if the transaction does not commit, to undo assumptions in memory."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Call the functions of `on_failure`, last one first."""
        for each in reversed(self._undo):
            each()

    def send(self, topic: str, key: str, message: msgspec.Struct) -> None:
        """Write the message to the outbox, from which it is sent after the commit. Raise Rejected if it is too large."""
        _put(self._outgoing, topic, key, message)

    def reply(self, topic: str, key: str, message: msgspec.Struct) -> None:
        """Send a reply after the commit, without the outbox. If it is lost, the client repeats the request and gets the same reply.

        Raise Rejected if it is too large.
        """
        _put(self._replies, topic, key, message)

    async def fetch(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """Return all rows of a statement."""
        rows: list[asyncpg.Record] = await self.connection.fetch(query, *args)
        self.on_statement()
        return rows

    async def fetchrow(self, query: str, *args: Any) -> asyncpg.Record | None:
        """Return the first row of a statement, or None."""
        row = await self.connection.fetchrow(query, *args)
        self.on_statement()
        return row

    async def fetchval(self, query: str, *args: Any) -> Any:
        """Return the first column of the first row of a statement, or None."""
        value = await self.connection.fetchval(query, *args)
        self.on_statement()
        return value

    async def execute(self, query: str, *args: Any) -> int:
        """Run a statement; return the number of rows that it affected."""
        status = await self.connection.execute(query, *args)
        self.on_statement()
        return int(status.rpartition(" ")[2]) if status[-1:].isdigit() else 0

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows by COPY, which for many rows is cheaper than an insert statement."""
        await self.connection.copy_records_to_table(table, records=rows, columns=columns)
        self.on_statement()

    def learn_now(self, now: datetime) -> None:
        """Keep the database's time that an earlier statement returned, so that `now` need not ask for it."""
        self._now = now

    async def now(self) -> datetime:
        """Return the database's time at the start of the transaction. Leases use no other clock."""
        if self._now is None:
            self._now = await self.connection.fetchval(SQL["now"])
            assert self._now is not None
        return self._now

    async def post(self) -> list[Parcel]:
        """Write the messages into the outbox just before the commit; return them, and the replies, as parcels."""
        posted = await self._post() if self._outgoing else []
        return posted + [Parcel(None, topic, *messages) for topic, messages in self._replies.items()]

    async def _post(self) -> list[Parcel]:
        keys = [key for topic_keys, _ in self._outgoing.values() for key in topic_keys]
        payloads = [payload for _, topic_payloads in self._outgoing.values() for payload in topic_payloads]
        ends = list(accumulate(len(topic_keys) for topic_keys, _ in self._outgoing.values()))
        lows = [1, *(end + 1 for end in ends[:-1])]
        rows = await self.connection.fetch(SQL["post"], list(self._outgoing), lows, ends, keys, payloads)
        return [
            Parcel(outbox_id, topic, *self._outgoing[topic])
            for outbox_id, topic in sorted((row["outbox_id"], row["topic"]) for row in rows)
        ]


def _put(outgoing: Outgoing, topic: str, key: str, message: msgspec.Struct) -> None:
    payload = encode(message)
    keys, payloads = outgoing.setdefault(topic, ([], []))
    payloads.append(payload)
    keys.append(key.encode())


class Database:
    """A pool of connections to one Postgres server."""

    def __init__(self, pool: asyncpg.Pool, most: int | None = None) -> None:
        self._pool = pool
        self._turns = contextlib.nullcontext() if most is None else asyncio.Semaphore(most)
        self.on_posted: Callable[[list[Parcel]], None] = lambda _: None
        """A function that receives the messages of each committed transaction, so that the relay sends them at once."""

    def limited(self, left: int) -> "Database":
        """Return the same pool for less urgent work: `left` connections stay reserved for urgent work."""
        limited = Database(self._pool, max(1, self._pool.get_max_size() - left))
        # Looked up each time, as the relay registers itself later.
        limited.on_posted = lambda parcels: self.on_posted(parcels)  # noqa: PLW0108
        return limited

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        size: int = 6,
        ready: int = READY,
        application: str = "wms",
        statement_seconds: float = 60,
    ) -> "Database":
        """Open a pool of up to `size` connections, `ready` of them at once. Raise Unavailable if that fails."""
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=min(ready, size),
                max_size=size,
                # Connections are kept open: the server may have none left when they are needed again.
                max_inactive_connection_lifetime=0,
                timeout=10,
                command_timeout=statement_seconds,
                reset=_nothing_to_reset,
                server_settings={
                    "application_name": application[:60],
                    "idle_in_transaction_session_timeout": "60000",
                    "lock_timeout": "20000",
                },
            )
        except GONE as error:
            raise Unavailable(f"no connection to Postgres: {error}") from error
        return cls(pool)

    async def close(self) -> None:
        """Close every connection; after 5 seconds by force."""
        try:
            async with asyncio.timeout(5):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def attempt(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work in a transaction. If that waited too long for a lock, run it once more in a wary transaction."""
        try:
            async with self.transaction() as tx:
                return await work(tx)
        except asyncpg.LockNotAvailableError:
            async with self.transaction(wary=True) as tx:
                return await work(tx)

    @asynccontextmanager
    async def transaction(self, *, wary: bool = False) -> AsyncIterator[Transaction]:
        """Begin a transaction. At the end of the block commit and publish its messages; roll back on any error."""
        tx: Transaction | None = None
        try:
            async with self._turns, self._pool.acquire() as connection, connection.transaction():
                tx = Transaction(connection, wary=wary)
                # Only within the block: a time-out of connecting or committing means that the database cannot be reached.
                try:
                    yield tx
                    parcels = await tx.post()
                except (TimeoutError, asyncpg.QueryCanceledError) as slow:
                    raise StatementTimeout(f"a statement was stopped: {slow!r}") from slow
        except BaseException:
            if tx is not None:
                tx.undo()
            raise
        if parcels:
            self.on_posted(parcels)


async def _nothing_to_reset(_: Connection) -> None:
    """Skip asyncpg's reset of connections. Settings are local to transactions, and no session holds locks or listens."""
