"""The pool of database connections, and the transaction of a handler, which stores state and messages in one commit."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from wms.db.sql import load
from wms.errors import Rejected, Unavailable, WmsError
from wms.messages.wire import encode

T = TypeVar("T")

Connection: TypeAlias = asyncpg.Connection | PoolConnectionProxy

Outgoing: TypeAlias = dict[str, tuple[list[bytes], list[bytes]]]
"""Messages to send, by topic: the keys, and the payloads in the same order."""

SQL = load(__file__)


class StatementTimeout(WmsError):  # noqa: N818 - an outcome
    """The transaction was rolled back as a statement took longer than its time limit. The database is reachable; the request was too large."""


RETRIED = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    StatementTimeout,
)
"""Errors that ended a transaction for a temporary reason, so that the caller runs it again."""

GONE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # A connection that is cut during an operation may raise this instead.
    asyncpg.InternalClientError,
    # The server starts or ends, or an operator ended the session.
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.TooManyConnectionsError,
    # The process stood still, so that its transaction was ended.
    asyncpg.IdleInTransactionSessionTimeoutError,
    # A standby that will be the primary, or was.
    asyncpg.ReadOnlySQLTransactionError,
    # Not the statement's fault: it works again once there is room.
    asyncpg.DiskFullError,
)
"""Errors that mean that the database cannot be reached or does not work just now. A commit in progress may or may not have taken effect.

They are never the fault of a statement or a message.
"""


NOT_LET_IN = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
"""Errors by which a server refuses a connection for good: it does not know the role, the password or the database."""

IDLE_SECONDS = 15
"""Seconds for which a transaction may be idle, as its process does nothing. Then Postgres ends the connection, and its locks are free."""
LOCK_SECONDS = 12
"""Seconds for which a statement waits for a lock. It is less than `IDLE_SECONDS`, so that a process that stopped gets no lock of its own
that just became free, and holds it for `IDLE_SECONDS` more."""
LATE_SECONDS = 5
"""Seconds after a statement's time limit at which Postgres stops it, if the process that sent it has not."""

READY = 3
"""The number of connections that a pool opens at its start, so that the first requests need not wait for new ones."""


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Translate errors on opening a connection: Unavailable if no server answers, Rejected if it refuses the role, password or database."""
    try:
        yield
    except GONE as error:
        raise Unavailable(f"no connection to Postgres: {error}") from error
    except NOT_LET_IN as error:
        raise Rejected(
            "NOT_LET_IN",
            f"Postgres refuses the connection: {error}",
            "let url in [postgres] name a role, its password and a database of the server",
        ) from error


async def connect_once(url: str) -> Connection:
    """Open one connection to the database at `url`, without a pool.

    Raise Unavailable if no server answers, Rejected if it refuses the role, password or database.
    """
    with opening():
        return await asyncpg.connect(url, timeout=10)


class Parcel(msgspec.Struct, frozen=True):
    """The messages that one transaction sends to one topic: keys and payloads in the same order."""

    outbox_id: int | None
    """The id of the outbox row that holds the messages; None for replies, which are in memory alone."""
    topic: str
    keys: Sequence[bytes]
    payloads: Sequence[bytes]


class Transaction:
    """A database transaction with an outbox. Messages given to `send` and `reply` go out if it commits, and only then."""

    def __init__(self, connection: Connection, *, wary: bool = False) -> None:
        self.connection = connection
        self.wary = wary
        """Whether statements leave out rows that others have locked. It is set for the second try, after a lock stopped the first."""
        self._outgoing: Outgoing = {}
        self._replies: Outgoing = {}
        self._undo: list[Callable[[], None]] = []
        self._done: list[Callable[[], None]] = []
        self._now: datetime | None = None
        self.on_statement: Callable[[], None] = lambda: None
        """A function without arguments that is called after each statement."""

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Register a function that is called if the transaction does not commit. It restores what the caller changed in memory."""
        self._undo.append(undo)

    def on_commit(self, act: Callable[[], None]) -> None:
        """Register a function that is called once the transaction has committed, such as one that wakes a loop."""
        self._done.append(act)

    def committed(self) -> None:
        """Call the functions that `on_commit` registered, the first one first. The database is not touched."""
        for each in self._done:
            each()

    def undo(self) -> None:
        """Call the functions that `on_failure` registered, the last one first. The database is not touched."""
        for each in reversed(self._undo):
            each()

    def send(self, topic: str, key: str, message: msgspec.Struct) -> None:
        """Send a message to a Kafka topic after the commit, by way of the outbox. `key` chooses the partition.

        Raise Rejected if the message is too large.
        """
        _put(self._outgoing, topic, key, message)

    def reply(self, topic: str, key: str, message: msgspec.Struct) -> None:
        """Send a reply to a Kafka topic after the commit, without the outbox. `key` chooses the partition.

        If it is lost, the client repeats the request and gets the same reply. Raise Rejected if it is too large.
        """
        _put(self._replies, topic, key, message)

    async def fetch(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """Run a statement with its parameters; return all rows."""
        rows: list[asyncpg.Record] = await self.connection.fetch(query, *args)
        self.on_statement()
        return rows

    async def fetchrow(self, query: str, *args: Any) -> asyncpg.Record | None:
        """Run a statement with its parameters; return the first row, or None if there is none."""
        row = await self.connection.fetchrow(query, *args)
        self.on_statement()
        return row

    async def fetchval(self, query: str, *args: Any) -> Any:
        """Run a statement with its parameters; return the first column of the first row, or None if there is no row."""
        value = await self.connection.fetchval(query, *args)
        self.on_statement()
        return value

    async def execute(self, query: str, *args: Any) -> int:
        """Run a statement with its parameters; return the number of rows that it affected."""
        status = await self.connection.execute(query, *args)
        self.on_statement()
        return int(status.rpartition(" ")[2]) if status[-1:].isdigit() else 0

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows into a table by COPY, which is cheaper than an insert statement for many rows. `columns` names the values of a row."""
        await self.connection.copy_records_to_table(table, records=rows, columns=columns)
        self.on_statement()

    def learn_now(self, now: datetime) -> None:
        """Set the result of `now` to a time that an earlier statement of this transaction returned. This saves a query."""
        self._now = now

    async def now(self) -> datetime:
        """Return the database's time at the start of the transaction. Leases use no other clock."""
        if self._now is None:
            self._now = await self.connection.fetchval(SQL["now"])
            assert self._now is not None
        return self._now

    async def post(self) -> list[Parcel]:
        """Write the messages given to `send` into the outbox, just before the commit.

        Return messages and replies, one parcel for each topic.
        """
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
    """A pool of connections to one Postgres server, which runs transactions."""

    def __init__(self, pool: asyncpg.Pool, most: int | None = None) -> None:
        self._pool = pool
        self._turns = contextlib.nullcontext() if most is None else asyncio.Semaphore(most)
        self.on_posted: Callable[[list[Parcel]], None] = lambda _: None
        """A function that receives the messages of each committed transaction. The relay sets it, to send them to Kafka at once."""

    def limited(self, left: int) -> "Database":
        """Return a view of the same pool for less urgent work, which leaves at least `left` connections free for urgent work."""
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
        """Open a pool of up to `size` connections, `ready` of them at once.

        `application` names the connections in Postgres. A statement is stopped after `statement_seconds` seconds. Raise Unavailable if no
        server answers, Rejected if it refuses the role, password or database.
        """
        with opening():
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
                    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
                    "lock_timeout": f"{LOCK_SECONDS}s",
                    "statement_timeout": f"{1000 * (statement_seconds + LATE_SECONDS):.0f}ms",
                },
            )
        return cls(pool)

    async def close(self) -> None:
        """Close all connections of the pool; those still in use after 5 seconds are cut."""
        try:
            async with asyncio.timeout(5):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def attempt(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in a transaction and return its result. If a lock stopped it, run it once more in a transaction with `wary` set."""
        try:
            async with self.transaction() as tx:
                return await work(tx)
        except asyncpg.LockNotAvailableError:
            async with self.transaction(wary=True) as tx:
                return await work(tx)

    @asynccontextmanager
    async def transaction(self, *, wary: bool = False) -> AsyncIterator[Transaction]:
        """Begin a transaction for a `with` block. When the block ends, commit and send the messages; on any error, roll back.

        Raise StatementTimeout if a statement exceeded its time limit.
        """
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
        tx.committed()


async def _nothing_to_reset(_: Connection) -> None:
    """Replace asyncpg's reset of connections by nothing. Settings are local to transactions, and no session holds locks or listens."""
