"""Whether the database is the one that the log was written for: looked at when a service starts, and with each heartbeat."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import structlog

from wms.bus.database_marks import DatabaseMarks
from wms.db import incarnation
from wms.db.database import Database, Transaction
from wms.db.incarnation import DatabaseReplaced, Incarnation, Standing
from wms.errors import Unavailable
from wms.messages.database_marks import DatabaseMark

log = structlog.get_logger()

Begin: TypeAlias = Callable[[Incarnation | None, DatabaseMark | None, int], Awaitable[None]]
"""A function that begins an incarnation of the database.

It gets the one before, the last mark in the log that the database does not know, and the offset up to which the marks were read.
"""


class IncarnationWatch:
    """Compares the database with the marks in the log, and later with what this process has seen of it."""

    def __init__(self, db: Database, marks: DatabaseMarks) -> None:
        self._db = db
        self._marks = marks
        self._seen: Standing | None = None
        self.begin: Begin | None = None
        """Begins an incarnation. None in services other than the job manager: they wait for that one."""

    async def settle(self) -> None:
        """Return once the database is the one that the log was written for.

        If the database was restored or replaced, a job manager begins a new incarnation of it. Raise Unavailable in other services, while
        services that work with another database write to the log, and if the broker does not answer.
        """
        async with self._db.transaction() as tx:
            now = await incarnation.current(tx)
        since = now.known_until if now is not None and now.cluster_id == self._marks.kafka.cluster_id else 0
        logged = await self._marks.read(since)
        unknown = [mark for mark in logged.marks if now is None or not now.knows(mark)]
        if unknown:
            await self._take_the_log(now, unknown[-1], logged.until)
        elif now is None and self.begin is not None:
            await self.begin(None, None, logged.until)

    async def _take_the_log(self, now: Incarnation | None, last: DatabaseMark, until: int) -> None:
        if (await self._marks.read_news(until)).marks:
            raise Unavailable(
                "services that work with another database, or another copy of it, write to this log"
            )
        if self.begin is None:
            raise Unavailable("the database was restored or replaced: a job manager must start first")
        await self.begin(now, last, until)

    async def look(self, tx: Transaction) -> None:
        """Raise DatabaseReplaced if the database has gone back, or a new incarnation of it has begun, since this process saw it first."""
        found = await incarnation.standing(tx)
        seen = self._seen
        if seen is not None and (found is None or found.number != seen.number or found.age < seen.age):
            raise DatabaseReplaced(f"the database is at {found}, and was at {seen}: beginning afresh")
        self._seen = found
