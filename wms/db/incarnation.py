"""The incarnations of the database. One that was restored to an earlier state, or takes another's place at a log, begins a new one."""

import uuid
from datetime import datetime

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import WmsError
from wms.ids import JobId
from wms.messages.database_marks import DatabaseMark

SQL = load(__file__)


class DatabaseReplaced(WmsError):  # noqa: N818 - an outcome, not a fault
    """The database is not the one that this process has worked with, but an earlier state or a new incarnation: it must start again."""


class Standing(msgspec.Struct, frozen=True, order=True):
    """How far a database has come. It never goes back, unless the database is restored."""

    number: int
    """The number of the incarnation, from 1."""
    age: int
    """How many marks it had."""


class Incarnation(msgspec.Struct, frozen=True, kw_only=True):
    """The present incarnation of a database."""

    number: int
    incarnation_id: str
    age: int
    marked_at: datetime
    """When its last mark was stored."""
    cluster_id: str
    known_until: int
    """The marks of the Kafka cluster `cluster_id` before this offset are known."""
    known: frozenset[str]
    """The ids of all incarnations of the database, and of those whose place they took."""

    def knows(self, told: DatabaseMark) -> bool:
        """Return whether the database has this mark behind it."""
        if told.incarnation_id == self.incarnation_id:
            return told.age <= self.age
        return told.incarnation_id in self.known


async def current(tx: Transaction) -> Incarnation | None:
    """Return the present incarnation; None if no job manager has worked with the database yet."""
    row = await tx.fetchrow(SQL["current"])
    if row is None:
        return None
    return Incarnation(**{**row, "known": frozenset(row["known"])})


async def standing(tx: Transaction) -> Standing | None:
    """Return how far the database has come; None if no job manager has worked with it yet."""
    row = await tx.fetchrow(SQL["standing"])
    return None if row is None else Standing(row["number"], row["age"])


async def begin(
    tx: Transaction, before: Incarnation | None, cluster_id: str, known_until: int, predecessor: str
) -> bool:
    """Begin the incarnation after `before`. Return whether it was begun, and not by another process.

    `known_until` is the offset up to which the marks of the cluster were read, `predecessor` the incarnation of the last one.
    """
    number = 1 if before is None else before.number + 1
    row = await tx.fetchrow(SQL["begin"], number, uuid.uuid4().hex, cluster_id, known_until, predecessor)
    return row is not None


async def skip_job_ids(tx: Transaction, last_job_id: JobId) -> None:
    """Let job ids go on far behind `last_job_id`, the last one that the log tells, so that none is given out a second time."""
    await tx.fetchval(SQL["skip_job_ids"], last_job_id)


async def next_mark(
    tx: Transaction, cluster_id: str, known_until: int, seconds: float
) -> DatabaseMark | None:
    """Count a mark and return it, to be sent once the transaction has committed. None if another was counted within `seconds` seconds."""
    row = await tx.fetchrow(SQL["next_mark"], cluster_id, known_until, seconds)
    return None if row is None else DatabaseMark(**row)
