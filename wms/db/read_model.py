"""Queries for what is shown to people: a single job in full, task queues, computing elements. They only read."""

from typing import NamedTuple

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
    """Return the job's index in its array (None outside arrays), its own parameters, and its description as JSON."""
    row = await tx.fetchrow(SQL["description"], job_id)
    assert row is not None
    return row["array_index"], msgspec.json.decode(row["parameters"] or "{}"), row["body"]


async def attempts(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the rows of a job's attempts, the first one first."""
    return await tx.fetch(SQL["attempts"], job_id)


async def history(tx: Transaction, job_id: JobId) -> list[asyncpg.Record]:
    """Return the rows of a job's history, oldest first."""
    return await tx.fetch(SQL["history"], job_id)


class PrintedTail(NamedTuple):
    """The stored end of an output, and how many bytes were printed before it; None: not known, or none if it is short."""

    text: str
    start: int | None


class Tails(NamedTuple):
    """The stored ends of what an attempt printed."""

    stdout: PrintedTail
    stderr: PrintedTail


async def tails(tx: Transaction, job_id: JobId) -> Tails:
    """Return the last lines of standard output and standard error of the job's last attempt. Both are empty if it had none."""
    row = await tx.fetchrow(SQL["tails"], job_id)
    if row is None:
        return Tails(PrintedTail("", None), PrintedTail("", None))
    return Tails(
        PrintedTail(row["stdout_tail"] or "", row["stdout_from"]),
        PrintedTail(row["stderr_tail"] or "", row["stderr_from"]),
    )


async def queues(tx: Transaction, scope: Scope, limit: int, *, watched: bool) -> list[asyncpg.Record]:
    """Return rows of up to `limit` task queues with waiting jobs that the user with this scope may see, fullest first.

    If `watched`, the numbers come from a matcher's statistics; otherwise the jobs are counted.
    """
    query = SQL["watched_queues" if watched else "queues"]
    return await tx.fetch(query, scope.owner, scope.group, scope.vo, limit)


async def isolation_of_last_attempt(tx: Transaction, job_id: JobId) -> str:
    """Return how the pilot of a job's last attempt isolates payloads, in the word that it reported; empty if that is unknown."""
    found: str | None = await tx.fetchval(SQL["isolation_of_last_attempt"], job_id)
    return found or ""


async def places(tx: Transaction, vo: str) -> list[tuple[KnownElement, PilotCounts]]:
    """Return every computing element that has an ad, even an expired one, with the numbers of the VO's live pilots there."""
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
    """Return, for each computing element, how many pilots ended within the last hour, and how many failed before they sent a message."""
    rows = await tx.fetch(SQL["losses"])
    return {CeId(row["site"], row["ce"]): PilotLosses(row["ended"], row["lost"]) for row in rows}


async def sites(
    tx: Transaction, after: int, limit: int, site: str = "", ce: str = ""
) -> list[asyncpg.Record]:
    """Return rows of up to `limit` computing elements, after the first `after` ones, with the numbers of their pilots and running jobs.

    An empty `site` or `ce` means all. Elements whose ads expired over a day ago are left out.
    """
    return await tx.fetch(SQL["sites"], after, limit, site, ce)
