"""Marks in the log how far the database has come, and begins a new incarnation of a database that was restored or replaced.

Such a database must not obey what the log holds for the state that the restore has undone. Orders in it are kept aside (`wms.db.log_gap`): they name
jobs by ids that this database may give to other jobs. It gives out ids far behind the last one in the marks, so that no id of a job is given out
twice. Epochs of leases are raised likewise (`claim.sql`), so that reports in the log concern only leases that the database knows; those go on for as
long as they had when the restored state was stored.
"""

from collections.abc import Sequence
from typing import Final

import structlog

from wms.bus.database_marks import DatabaseMarks
from wms.bus.kafka import Kafka
from wms.bus.probe import new_probe
from wms.bus.topics import find
from wms.db import attempt, incarnation, log_gap, offset
from wms.db.database import Database, Transaction
from wms.db.incarnation import Incarnation
from wms.db.log_gap import LogGap
from wms.db.offset import ConsumedTopic
from wms.messages.database_marks import DatabaseMark

log = structlog.get_logger()

MARK_SECONDS: Final = 1.0
"""How often, in seconds, the state of the database is marked in the log. A restore that undoes less than that is not noticed."""


class Incarnations:
    """Writes the marks of the database, and begins its incarnations.

    `feeds` are the consumers whose topics hold orders. `longest_seconds` is the longest time for which a lease is granted.
    """

    def __init__(
        self, db: Database, marks: DatabaseMarks, feeds: Sequence[ConsumedTopic], longest_seconds: float
    ) -> None:
        self._db = db
        self._marks = marks
        self._feeds = feeds
        self._longest_seconds = longest_seconds
        self._written_at = 0

    @property
    def _kafka(self) -> Kafka:
        return self._marks.kafka

    async def mark(self) -> None:
        """Mark the state of the database in the log, unless another job manager has just done so."""
        async with self._db.transaction() as tx:
            due = await incarnation.next_mark(
                tx, self._kafka.cluster_id, self._written_at, 0.9 * MARK_SECONDS
            )
        # The mark is stored first: so the log has none that this database does not know.
        if due is not None:
            self._written_at = await self._marks.write(due)

    async def begin(self, before: Incarnation | None, last: DatabaseMark | None, until: int) -> None:
        """Begin the incarnation after `before`. `last` is the last mark in the log that it does not know, read up to the offset `until`.

        Without `last` the database is new, and nothing else changes.
        """
        ends = {feed: await self._ends(feed) for feed in self._feeds} if last is not None else {}
        async with self._db.transaction() as tx:
            predecessor = "" if last is None else last.incarnation_id
            if not await incarnation.begin(tx, before, self._kafka.cluster_id, until, predecessor):
                return
            if last is not None:
                await self._leave_the_past(tx, before, last, ends)

    async def _ends(self, feed: ConsumedTopic) -> dict[int, int]:
        """Return the present end of each partition of a topic, found by a probe that is sent there: some brokers tell it wrongly."""
        count = find(feed.topic).partitions
        return {number: await self._kafka.append(feed.topic, number, new_probe()) for number in range(count)}

    async def _leave_the_past(
        self,
        tx: Transaction,
        before: Incarnation | None,
        last: DatabaseMark,
        ends: dict[ConsumedTopic, dict[int, int]],
    ) -> None:
        await incarnation.skip_job_ids(tx, last.last_job_id)
        if before is not None:
            lost_seconds = (await tx.now() - before.marked_at).total_seconds()
            await attempt.clock_set(tx, max(0.0, lost_seconds), self._longest_seconds)
        for feed, until in ends.items():
            for partition, first in (await offset.begin(tx, feed, list(until))).items():
                if first < until[partition]:
                    gap = LogGap(
                        partition=partition,
                        cause="restored",
                        first_offset=first,
                        until_offset=until[partition],
                        goes_on_at=await tx.now(),
                    )
                    await log_gap.record(tx, feed, gap)
        log.error(
            "the database was restored or replaced: orders in the log are kept aside",
            restored=before and before.marked_at.isoformat(),
            last_mark=last.marked_at.isoformat(),
            last_job_id=last.last_job_id,
        )
