"""Writes the audit trail: each order with its answer, and each refusal. Entries are written in the transaction that carries out the order."""

from typing import Any

import msgspec

from wms.auth.principal import Principal
from wms.db import audit_record
from wms.db.audit_record import AuditEntry
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import Identity
from wms.messages import replies
from wms.messages.commands import AddChunks, Command, Control, RuleSite, StartPilots, Submit

LEFT_OUT = ("type", "command_id", "client", "jobs", "lists", "changes")
"""The fields of a command that audit entries omit: ids, and job descriptions, which only the owners of the jobs may see."""


async def carried_out(tx: Transaction, principal: Principal, command: Command, answer: str) -> None:
    """Record in this transaction an order that was carried out, and its answer in words."""
    await audit_record.record(tx, principal.identity, principal.token_id, _entry(command, answer=answer))


async def refused(tx: Transaction, principal: Principal, command: Command, fault: Rejected) -> None:
    """Record in this transaction an order that was refused, and why."""
    entry = _entry(command, code=fault.code, answer=fault.message)
    await audit_record.record(tx, principal.identity, principal.token_id, entry)


async def unaccepted(tx: Transaction, owner: str, command: Command, fault: Rejected) -> None:
    """Record an order that was refused because its token, of this owner, was expired or revoked. Other refusals of tokens are not recorded."""
    if not fault.code.startswith(("TOKEN_", "ISSUER_")):
        return
    entry = _entry(command, code=fault.code, answer=fault.message)
    await audit_record.record(tx, Identity(owner, "", ""), "", entry)


def in_words(answer: replies.Controlled) -> str:
    """Return the result of an order on jobs as text."""
    return f"{answer.changed:,} changed, {answer.unchanged_total:,} not"


def _entry(command: Command, *, code: str = "", answer: str = "") -> AuditEntry:
    return AuditEntry(
        command_id=command.command_id,
        action=command.action if isinstance(command, Control) else _tag(command),
        subject=_subject(command),
        jobs=command.selector.ids if isinstance(command, Control) else (),
        site=command.site if isinstance(command, RuleSite | StartPilots) else "",
        code=code,
        answer=answer,
    )


def _tag(command: Command) -> str:
    return str(type(command).__struct_config__.tag)


def _subject(command: Command) -> str:
    """Return the command as JSON, without the fields in LEFT_OUT and those with their default values."""
    if isinstance(command, Submit | AddChunks):
        return "{}"
    said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(command))
    kept = {name: _brief(value) for name, value in said.items() if name not in LEFT_OUT}
    return msgspec.json.encode({name: value for name, value in kept.items() if value}).decode()


def _brief(value: Any) -> Any:
    return {name: each for name, each in value.items() if each} if isinstance(value, dict) else value
