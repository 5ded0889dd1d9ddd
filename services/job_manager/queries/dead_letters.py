"""Answers operators' queries about dead letters: messages that could not be handled."""

from typing import Any, Final

import msgspec

from services.job_manager.queries.paging import fitting
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import dead_letter
from wms.db.database import Transaction
from wms.db.dead_letter import LetterPage
from wms.errors import Rejected
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.wire import type_of

SHOWN: Final = 100_000
"""The most characters of a payload or a key in an answer. As JSON they take up to six times as many bytes."""


async def list_letters(
    tx: Transaction, principal: Principal, query: asked.ListDeadLetters
) -> replies.DeadLetters:
    """Return a page of dead letters, the newest first. Raise Rejected if the asker is no operator."""
    check_right(principal)
    wanted = LetterPage(
        limit=query.limit, before=query.before, replayed=query.replayed, consumer=query.consumer
    )
    rows = await dead_letter.page(tx, wanted)
    lines = fitting(_line(row, row["beginning"], row["size"], row["sender"]) for row in rows)
    is_last = len(lines) == len(rows) < query.limit
    return replies.DeadLetters(
        query_id=query.query_id,
        client=query.client,
        letters=tuple(lines),
        before=None if is_last or not lines else lines[-1].number,
    )


async def show_letter(
    tx: Transaction, principal: Principal, query: asked.ShowDeadLetter
) -> replies.DeadLetterDetail:
    """Return all that is stored of a dead letter. Raise Rejected if it does not exist, or the asker is no operator."""
    check_right(principal)
    found = await dead_letter.whole(tx, [query.letter])
    if not found:
        raise no_such_letter(query.letter)
    row, payload = found[0], found[0]["payload"]
    sender = _sender(row["principal"])
    text, is_cut = _text(payload)
    return replies.DeadLetterDetail(
        query_id=query.query_id,
        client=query.client,
        letter=_line(row, payload, len(payload), sender.owner if sender else None),
        cluster_id=row["cluster_id"],
        key=_text(row["key"] or b"")[0],
        sender=sender,
        payload=text,
        is_cut=is_cut,
    )


def check_right(principal: Principal) -> None:
    """Raise Rejected unless the principal is an operator."""
    if not allowed(principal, "administer", "", "", ""):
        raise Rejected("NOT_ALLOWED", "you have no right over dead letters", "operators have: right operator")


def no_such_letter(*numbers: int) -> Rejected:
    """Return, not raise, the Rejected for dead letters with these ids, which do not exist."""
    named = ", ".join(map(str, numbers[:10])) + (" ..." if numbers[10:] else "")
    return Rejected("NO_SUCH_LETTER", f"there is no dead letter {named}", "`wms dead-letters` lists them")


def _line(row: Any, payload: bytes, size: int, sender: str | None) -> replies.DeadLetterLine:
    return replies.DeadLetterLine(
        number=row["dead_letter_id"],
        consumer=row["consumer"],
        topic=row["topic"],
        partition=row["partition"],
        offset=row["message_offset"],
        arrived_at=row["arrived_at"],
        size=size,
        type=type_of(payload),
        sender=sender or "",
        error=row["error"],
        state="replayed" if row["replayed_at"] else "asked" if row["replay_requested_at"] else "dead",
    )


def _sender(principal: str | None) -> replies.LetterSender | None:
    if principal is None:
        return None
    said = msgspec.json.decode(principal, type=Principal)
    return replies.LetterSender(
        kind=said.kind,
        owner=said.owner,
        owner_group=said.group,
        vo=said.vo,
        token_id=said.token_id,
    )


def _text(data: bytes) -> tuple[str, bool]:
    """Return bytes as text without NUL characters, cut to `SHOWN` characters, and whether it was cut."""
    text = data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")
    return text[:SHOWN], len(text) > SHOWN
