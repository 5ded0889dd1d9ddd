"""The audit trail: orders and refusals, written in the transaction of what they did. The table refuses to be rewritten."""

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
    """An order, on what it was, and its answer; `code` is empty if it was carried out."""

    command_id: str
    action: str
    subject: str
    jobs: Sequence[tuple[int, int]] = ()
    """The jobs that it names by their ids."""
    site: str = ""
    code: str = ""
    answer: str = ""


class SoughtAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on entries; empty ones stand for all."""

    owner: str = ""
    action: str = ""
    site: str = ""
    job_id: int | None = None
    refused: bool = False
    since: datetime | None = None
    before: int | None = None
    """Only entries with lower numbers."""


async def record(tx: Transaction, who: Identity, token_id: str, entry: AuditEntry) -> None:
    """Write down who ordered what, with which token, and the answer."""
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
    """Return entries, the latest first; with `owner` or `vo` only theirs, whatever is sought."""
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
    """Delete at most `limit` entries older than `age` seconds, and seven days; return how many."""
    return await tx.execute(SQL["forget"], age, limit)
