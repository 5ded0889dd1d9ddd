"""Applies migrations of the database schema: plain SQL files, forward only, one process at a time.

The digest of each applied file is stored. `NNNN_pre_*.sql` is safe before the new code runs, `NNNN_post_*.sql` after the last of the old
code is gone. A file whose first line is `-- no transaction` runs outside a transaction (CREATE INDEX CONCURRENTLY), each of its statements, which
end at an empty line, by itself. Processes poll for the lock instead of waiting for it. A waiting session would hold a snapshot, and a
concurrent index build waits for such sessions.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import asyncpg
import msgspec

from wms.db import queue_keys
from wms.db.database import Connection, connect_once
from wms.errors import Rejected

_LOCK = 7100
_END = re.compile(r"(?<=;)\n\n+")
_CREATE = """
    create table if not exists schema_migration (
        name text primary key, digest text not null, applied_at timestamptz not null default now()
    )
"""


FORMER_DIGESTS: Final[Mapping[str, str]] = {
    # A comment in it named another module.
    "0017_pre_supply": "563289526a93932be23caea460bd4847768ac9c6492cb3ef835ba03f305458c3",
    # It made two more indexes, which 0091_pre_former_job_pages drops.
    "0061_pre_job_pages": "de1a511036804989962af1f02c943b9d4bedf98af2f815fc9097f467f65ab695",
}
"""The digests of migrations that were edited after somebody had applied them. No other may ever be: a new one mends its fault."""
STEPS: Final[Mapping[str, Callable[[Connection], Awaitable[None]]]] = {
    "0092_pre_queue_keys": queue_keys.recompute,
    "0096_pre_queue_keys": queue_keys.recompute,
}
"""What SQL cannot compute: functions that run in the transaction of a migration, after its text."""


class Migration(msgspec.Struct, frozen=True):
    """One migration file: its name without `.sql`, and its text."""

    name: str
    sql: str

    @property
    def digest(self) -> str:
        """The SHA-256 of the file's text, in hexadecimal digits."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """Whether the file runs inside a transaction. It does not if it begins with `-- no transaction`."""
        return not self.sql.startswith("-- no transaction")

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements of the file, which run one by one if it runs outside a transaction.

        Each ends with a semicolon and an empty line.
        """
        return tuple(each for each in _END.split(self.sql) if each.strip())


def migrations() -> tuple[Migration, ...]:
    """Return all migrations that belong to this version of the code, in the order of their names."""
    return tuple(sorted(_read(), key=lambda migration: migration.name))


def _read() -> Iterator[Migration]:
    packaged = resources.files("wms.db") / "migrations"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"
    for entry in folder.iterdir():
        if entry.name.endswith(".sql"):
            yield Migration(entry.name.removesuffix(".sql"), entry.read_text("utf-8"))


async def migrate(url: str) -> list[str]:
    """Apply all missing migrations to the database at `url`; return the names of those applied. Several processes may call it at once.

    Raise Rejected if the database has unknown or changed migrations or another owner, Unavailable if it cannot be reached.
    """
    connection = await connect_once(url)
    try:
        # Postgres reports a free lock only to those who wait in it.
        while not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        missing = await _missing(connection)
        if missing:
            await connection.execute(_CREATE)
        return [await _apply(connection, migration) for migration in missing]
    except asyncpg.InsufficientPrivilegeError as error:
        raise Rejected(
            "NOT_THE_OWNER", f"this role may not change the schema: {error}", "give the URL of its owner"
        ) from error
    finally:
        await connection.close()


async def check(url: str) -> None:
    """Raise Rejected, with a remedy, if the schema of the database at `url` is not that of this version.

    Raise Unavailable if the database cannot be reached.
    """
    connection = await connect_once(url)
    try:
        missing = await _missing(connection)
    finally:
        await connection.close()
    if missing:
        names = ", ".join(each.name for each in missing)
        raise Rejected("SCHEMA_OLD", f"the database lacks {names}", "run `wms migrate`")


async def _missing(connection: Connection) -> list[Migration]:
    """Return the migrations that the database lacks. Raise Rejected if it has unknown or changed ones."""
    exists = await connection.fetchval("select to_regclass('schema_migration')")
    applied = await _applied(connection) if exists else {}
    _check_known(applied)
    return [migration for migration in migrations() if migration.name not in applied]


async def _applied(connection: Connection) -> dict[str, str]:
    rows = await connection.fetch("select name, digest from schema_migration")
    return {row["name"]: row["digest"] for row in rows}


def _check_known(applied: dict[str, str]) -> None:
    known = {migration.name: migration.digest for migration in migrations()}
    newer = sorted(applied.keys() - known.keys())
    if newer:
        raise Rejected(
            "SCHEMA_NEW", f"the database has {', '.join(newer)}", "run a version of wms that knows it"
        )
    edited = sorted(
        name for name, digest in applied.items() if digest not in (known[name], FORMER_DIGESTS.get(name))
    )
    if edited:
        raise Rejected(
            "SCHEMA_DRIFT", f"{', '.join(edited)} changed after it was applied", "write a new migration"
        )


async def _apply(connection: Connection, migration: Migration) -> str:
    if migration.in_transaction:
        async with connection.transaction():
            await connection.execute(migration.sql)
            if step := STEPS.get(migration.name):
                await step(connection)
            await _record(connection, migration)
    else:
        # Several statements that are sent at once would be one transaction.
        for statement in migration.statements:
            await connection.execute(statement)
        await _record(connection, migration)
    return migration.name


async def _record(connection: Connection, migration: Migration) -> None:
    await connection.execute(
        "insert into schema_migration (name, digest) values ($1, $2)", migration.name, migration.digest
    )
