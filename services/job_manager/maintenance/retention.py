"""Deletes old rows in small batches, and creates table partitions before new rows need them."""

from collections.abc import Awaitable, Callable

import structlog

from services.job_manager.config import RetentionSettings
from wms.db import (
    audit_record,
    canary,
    ce_state,
    dead_letter,
    operator_order,
    pilot,
    pilot_order,
    retention,
    revocation,
    skip_order,
)
from wms.db.database import Database, Transaction
from wms.db.dead_letter import LetterRoom
from wms.db.retention import Ages, RetentionRound

log = structlog.get_logger()

AHEAD = 4
"""How many unused partitions each table has in advance. They suffice for twenty million jobs between two rounds."""
BATCH = 2_000
BATCHES = 50
"""The most batches that one round deletes of each kind of row. The rest is left to the next rounds."""
SWEEPS = 100
PARTS = 100


class Retention:
    """Keeps the tables from growing without end, by the ages and sizes that the configuration gives."""

    def __init__(self, db: Database, settings: RetentionSettings) -> None:
        self._db = db
        self._settings = settings
        self._ages = Ages(ended=settings.ended_jobs_seconds, deleted=settings.deleted_jobs_seconds)
        self._after_job = 0
        self._after_sweep = 0

    async def make_room(self) -> None:
        """Create the next partitions of tables if fewer than AHEAD are empty."""
        async with self._db.transaction() as tx:
            made = await retention.make_partitions(tx, AHEAD)
        if made:
            log.info("partitions made", tables=made)

    async def forget(self) -> None:
        """Delete a limited number of rows of each kind that are older than configured. Submissions are deleted before their jobs."""
        settings = self._settings
        counts = {
            "submissions": await self._batches(
                lambda tx: retention.forget_submissions(tx, settings.submissions_seconds, BATCH)
            ),
            "jobs": await self._batches(self._jobs),
            "sweeps": await self._sweeps(),
            "jobs_of_sweeps": await self._batches(lambda tx: retention.forget_rows(tx, BATCH)),
            "pilots": await self._batches(self._pilots),
            "moves_of_elements": await self._batches(self._moves_of_elements),
            "parts_of_lists": await self._batches(
                lambda tx: retention.forget_parts(tx, settings.unused_parts_seconds, PARTS)
            ),
            "pilot_orders": await self._batches(
                lambda tx: pilot_order.forget(tx, settings.ended_jobs_seconds, BATCH)
            ),
            "audit_trail": await self._batches(
                lambda tx: audit_record.forget(tx, settings.audit_trail_seconds, BATCH)
            ),
            "canaries": await self._batches(lambda tx: canary.forget(tx, settings.ended_jobs_seconds, BATCH)),
        }
        async with self._db.transaction() as tx:
            counts["dead_letters"] = await dead_letter.forget(tx, settings.dead_letters_seconds)
            counts["orders"] = await operator_order.forget(tx, settings.ended_jobs_seconds)
            counts["skips"] = await skip_order.forget(tx, settings.dead_letters_seconds)
            counts["revocations"] = await revocation.forget(tx)
            counts["offsets"] = await retention.forget_offsets(tx, settings.offsets_seconds)
        async with self._db.transaction() as tx:
            counts["partitions"] = await retention.drop_partitions(tx)
        if any(counts.values()):
            log.info("old rows deleted", **{name: count for name, count in counts.items() if count})

    async def bound_dead_letters(self) -> None:
        """Delete the dead letters (messages that could not be handled) that exceed the configured number or size, oldest first."""
        room = LetterRoom(letters=self._settings.dead_letters_most, bytes=self._settings.dead_letters_bytes)
        async with self._db.transaction() as tx:
            gone = await dead_letter.bound(tx, room)
        if gone:
            log.warning("dead letters dropped, there were too many", letters=gone)

    async def _batches(self, forget: Callable[[Transaction], Awaitable[int]]) -> int:
        total = 0
        for _ in range(BATCHES):
            async with self._db.transaction() as tx:
                found = await forget(tx)
            total += max(found, 0)
            if not found:
                break
        return total

    async def _jobs(self, tx: Transaction) -> int:
        """Delete ended jobs among the next page of jobs. Return their number; -1 if none was deleted and there are more."""
        look = await retention.forget_jobs(tx, self._after_job, BATCH, self._ages)
        self._after_job = look.last or 0
        if look.forgotten:
            await self._attempts_went(tx)
        return look.forgotten or (-1 if look.last else 0)

    async def _pilots(self, tx: Transaction) -> int:
        forgotten = await pilot.forget(tx, self._settings.pilots_seconds, BATCH)
        if forgotten:
            await retention.mark(tx, "pilot", self._settings.pilots_seconds)
        return forgotten

    async def _moves_of_elements(self, tx: Transaction) -> int:
        forgotten = await ce_state.forget(tx, self._settings.ended_jobs_seconds, BATCH)
        if forgotten:
            await retention.mark(tx, "ce_move", self._settings.ended_jobs_seconds)
        return forgotten

    async def _sweeps(self) -> int:
        async with self._db.transaction() as tx:
            look: RetentionRound = await retention.begin_forgetting_sweeps(
                tx, self._after_sweep, SWEEPS, self._ages
            )
            if look.forgotten:
                await self._attempts_went(tx)
        self._after_sweep = look.last or 0
        return look.forgotten

    async def _attempts_went(self, tx: Transaction) -> None:
        """Store the time since which no attempt has been deleted. Checks of usage must not count on older attempts."""
        await retention.mark(tx, "attempt", min(self._ages.ended, self._ages.deleted))
