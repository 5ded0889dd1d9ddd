"""The audit trail in the database: orders of users and operators, and refusals, stored in the transaction that carries out the order.

The table refuses updates, and the deletion of entries younger than seven days.
"""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
import msgspec

from wms.db.array import multirange
from wms.db.database import Transaction
from wms.db.sql import load
from wms.errors import shown
from wms.ids import Identity

SQL = load(__file__)

TEXT_LENGTH = 4_096


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An order of a user or operator, what it is on, and its answer. `code` is the error code; empty if the order was carried out."""

    command_id: str
    action: str
    subject: str
    jobs: Sequence[tuple[int, int]] = ()
    """Ranges of ids of the jobs that the order names, both ends included."""
    site: str = ""
    code: str = ""
    answer: str = ""


class SoughtAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions by which entries of the audit trail are listed. An empty value, or None, sets no condition."""

    owner: str = ""
    action: str = ""
    site: str = ""
    job_id: int | None = None
    refused: bool = False
    since: datetime | None = None
    before: int | None = None
    """Only entries with numbers below this one are returned; None: all."""


async def record(tx: Transaction, who: Identity, token_id: str, entry: AuditEntry) -> None:
    """Store an entry of the audit trail: who gave the order, with which token, and the answer."""
    await tx.execute(
        SQL["record"],
        shown(who.owner),
        shown(who.group),
        shown(who.vo),
        shown(token_id),
        shown(entry.command_id),
        entry.action,
        shown(entry.subject)[:TEXT_LENGTH],
        multirange(entry.jobs),
        shown(entry.site),
        entry.code,
        shown(entry.answer)[:TEXT_LENGTH],
    )


async def page(
    tx: Transaction, sought: SoughtAudit, limit: int, *, owner: str | None = None, vo: str | None = None
) -> list[asyncpg.Record]:
    """Return up to `limit` entries that meet the conditions, newest first. With `owner` or `vo`, only entries of that owner or VO."""
    return await tx.fetch(
        SQL["page"],
        owner,
        vo,
        sought.owner,
        sought.action,
        sought.site,
        sought.job_id,
        sought.refused,
        sought.since,
        sought.before,
        limit,
    )


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` entries older than `age` seconds, but none younger than seven days. Return the number of deleted entries."""
    return await tx.execute(SQL["forget"], age, limit)
