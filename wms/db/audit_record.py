"""The audit trail in the database: orders and refusals, written in the transaction of their effects.

The table refuses changes.
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
    """An order, its subject, and its answer. `code` is empty if the order was carried out."""

    command_id: str
    action: str
    subject: str
    jobs: Sequence[tuple[int, int]] = ()
    """Ranges of ids of the jobs that the order names, both ends included."""
    site: str = ""
    code: str = ""
    answer: str = ""


class SoughtAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on entries of the audit trail. An empty value sets none."""

    owner: str = ""
    action: str = ""
    site: str = ""
    job_id: int | None = None
    refused: bool = False
    since: datetime | None = None
    before: int | None = None
    """Only entries with numbers below this; None: all."""


async def record(tx: Transaction, who: Identity, token_id: str, entry: AuditEntry) -> None:
    """Record who gave an order with which token, and the answer."""
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
    """Return entries that meet the conditions, the latest first, at most `limit`. With `owner` or `vo`, only theirs."""
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
    """Delete at most `limit` entries older than `age` seconds and than seven days. Return their number."""
    return await tx.execute(SQL["forget"], age, limit)
