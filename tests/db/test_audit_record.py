"""The audit trail in the database, which refuses to be rewritten."""

from typing import Any

import asyncpg
import pytest

from wms.db import audit_record
from wms.db.audit_record import AuditEntry, SoughtAudit
from wms.db.database import Database, Transaction
from wms.ids import Identity

ANN = Identity("ann", "physics", "lhcb")
KILL = AuditEntry(command_id="c-1", action="kill", subject="{}", jobs=((5, 9),), answer="5 changed, 0 not")
BAN = AuditEntry(
    command_id="c-2", action="rule-site", subject="{}", site="A", code="NOT_ALLOWED", answer="no right"
)


async def found(tx: Transaction, owner: str | None = None, vo: str | None = None, **sought: Any) -> list[str]:
    rows = await audit_record.page(tx, SoughtAudit(**sought), 10, owner=owner, vo=vo)
    return [row["command_id"] for row in rows]


async def test_entries_are_found_by_what_they_say(tx: Transaction) -> None:
    await audit_record.record(tx, ANN, "t", KILL)
    await audit_record.record(tx, Identity("bob", "physics", "cms"), "t", BAN)
    assert await found(tx) == ["c-2", "c-1"]
    assert await found(tx, owner="ann") == await found(tx, vo="lhcb") == ["c-1"]
    assert await found(tx, job_id=7) == await found(tx, action="kill") == ["c-1"]
    assert await found(tx, site="A") == await found(tx, refused=True) == ["c-2"]
    assert await found(tx, job_id=10) == await found(tx, owner="ann", job_id=4) == []
    (last,) = await audit_record.page(tx, SoughtAudit(), 1)
    assert await found(tx, before=last["audit_record_id"]) == ["c-1"]


@pytest.mark.parametrize(
    "statement",
    ["update audit_record set owner = 'eve'", "delete from audit_record", "truncate audit_record"],
)
async def test_nobody_rewrites_an_entry(db: Database, statement: str) -> None:
    async with db.transaction() as tx:
        await audit_record.record(tx, ANN, "t", KILL)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="not rewritten"):
        async with db.transaction() as tx:
            await tx.execute(statement)
    async with db.transaction() as tx:
        assert await found(tx) == ["c-1"]


async def test_old_entries_are_forgotten_and_young_ones_never(db: Database) -> None:
    async with db.transaction() as tx:
        await audit_record.record(tx, ANN, "t", KILL)
        await audit_record.record(tx, ANN, "t", BAN)
        await tx.execute("alter table audit_record disable trigger audit_record_kept")
        await tx.execute("update audit_record set at = now() - interval '8 days' where command_id = 'c-1'")
        await tx.execute("alter table audit_record enable trigger audit_record_kept")
    async with db.transaction() as tx:
        assert await audit_record.forget(tx, 7 * 86_400, 10) == 1
        assert await found(tx) == ["c-2"]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction() as tx:
            await audit_record.forget(tx, 0, 10)


async def test_what_is_written_is_printable(tx: Transaction) -> None:
    odd = AuditEntry(command_id="c\x1b", action="kill", subject="\x00", answer="a\nb")
    await audit_record.record(tx, Identity("a\x1bb", "", ""), "t", odd)
    (row,) = await audit_record.page(tx, SoughtAudit(), 1)
    assert "".join(row[name] for name in ("owner", "command_id", "subject", "answer")).isprintable()
