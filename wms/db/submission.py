"""Commands of users that were executed, in the database. A repeated command has no effect and gets the same answer."""

from collections.abc import Sequence

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CommandId

SQL = load(__file__)

PARTS_AT_ONCE = 100
"""How many parts of a submission one statement reads."""
PARTS_LIMIT = 10_000
"""The most parts of one submission; each part has up to 2,000 descriptions."""

_ranges = msgspec.json.Decoder(list[tuple[int, int]])


class ExecutedCommand(msgspec.Struct, frozen=True):
    """An executed command: its id, the digest of its content, and its answer as JSON."""

    command_id: CommandId
    digest: bytes
    answer: str


async def taken(
    tx: Transaction, owner: str, command_ids: Sequence[CommandId]
) -> dict[CommandId, ExecutedCommand]:
    """Return those of these commands of the owner that were executed before, by command id."""
    rows = await tx.fetch(SQL["taken"], owner, command_ids)
    return {
        row["command_id"]: ExecutedCommand(row["command_id"], row["body_digest"], row["ids"]) for row in rows
    }


async def take(tx: Transaction, owner: str, commands: Sequence[ExecutedCommand]) -> None:
    """Store that these commands of the owner are executed by this transaction, with their answers."""
    if commands:
        await tx.execute(
            SQL["take"],
            owner,
            [each.command_id for each in commands],
            [each.digest for each in commands],
            [each.answer for each in commands],
        )


async def ids(tx: Transaction, owner: str, submission_id: str) -> list[tuple[int, int]]:
    """Return the ranges of job ids that a submission of the owner made, ends included; empty if there is none.

    Clients send a submission in parts with command ids `ID/0`, `ID/1`, and so on.
    """
    found: list[tuple[int, int]] = []
    for start in range(0, PARTS_LIMIT, PARTS_AT_ONCE):
        names = [f"{submission_id}/{n}" for n in range(start, start + PARTS_AT_ONCE)]
        rows = await tx.fetch(SQL["ids"], owner, names)
        found += [each for row in rows for each in _ranges.decode(row["ids"])]
        if len(rows) < PARTS_AT_ONCE:
            break
    return found
