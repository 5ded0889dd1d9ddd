"""Queries for people: one job as a whole, queues, sites. Reads only."""

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db import ad
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId, JobId
from wms.provisioning.known_elements import KnownElement, PilotCounts, PilotLosses

SQL = load(__file__)


async def description(tx: Transaction, job_id: JobId) -> tuple[int | None, dict[str, str], str]:
    """Return the job's place in its sweep, its own parameters, and its description as JSON."""
    row = await tx.fetchrow(SQL["description"], job_id)
    assert row is not None
    return row["array_index"], msgspec.json.decode(row["parameters"] or "{}"), row["body"]


async def attempts(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the job's attempts in order."""
    return await tx.fetch(SQL["attempts"], job_id)


async def history(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the job's moves in order."""
    return await tx.fetch(SQL["history"], job_id)


async def tails(tx: Transaction, job_id: JobId) -> tuple[str, str]:
    """Return the ends of the standard output and error of the job's last attempt."""
    row = await tx.fetchrow(SQL["tails"], job_id)
    return (row["stdout_tail"] or "", row["stderr_tail"] or "") if row else ("", "")


async def queues(tx: Transaction, scope: Scope, limit: int, *, watched: bool) -> list[asyncpg.Record]:
    """Return task queues with waiting jobs; where no matcher watches them their jobs are counted."""
    query = SQL["watched_queues" if watched else "queues"]
    return await tx.fetch(query, scope.owner, scope.group, scope.vo, limit)


async def places(tx: Transaction, vo: str) -> list[tuple[KnownElement, PilotCounts]]:
    """Return every computing element within memory, with the pilots that a VO has there."""
    rows = await tx.fetch(SQL["places"], vo)
    elements = await ad.elements(tx, rows)
    return [
        (
            KnownElement(elements[CeId(row["site"], row["ce"])], row["fresh"]),
            PilotCounts(row["running"], row["coming"], row["slots"], row["free_slots"]),
        )
        for row in rows
        if CeId(row["site"], row["ce"]) in elements
    ]


async def losses(tx: Transaction) -> dict[CeId, PilotLosses]:
    """Return the losses among pilots that ended lately, by element."""
    rows = await tx.fetch(SQL["losses"])
    return {CeId(row["site"], row["ce"]): PilotLosses(row["ended"], row["lost"]) for row in rows}


async def sites(
    tx: Transaction, after: int, limit: int, site: str = "", ce: str = ""
) -> list[asyncpg.Record]:
    """Return computing elements as they advertise themselves, of one site or all: at most so many after the first `after`."""
    return await tx.fetch(SQL["sites"], after, limit, site, ce)
