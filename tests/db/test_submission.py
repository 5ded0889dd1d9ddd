"""Commands that were taken: known by their owner and id, with what they were answered."""

import asyncpg
import pytest

from wms.db import submission
from wms.db.database import Transaction
from wms.db.submission import PARTS_AT_ONCE, ExecutedCommand
from wms.ids import CommandId

ONE = ExecutedCommand(CommandId("one"), b"digest", "[[1, 5]]")


async def test_a_command_is_known_with_its_digest_and_its_answer(tx: Transaction) -> None:
    await submission.take(tx, "ann", [ONE])
    await submission.take(tx, "ann", [])
    assert await submission.taken(tx, "ann", [CommandId("one"), CommandId("two")]) == {ONE.command_id: ONE}


async def test_one_id_of_two_owners_is_two_commands(tx: Transaction) -> None:
    await submission.take(tx, "ann", [ONE])
    assert await submission.taken(tx, "bob", [CommandId("one")]) == {}
    await submission.take(tx, "bob", [ExecutedCommand(CommandId("one"), b"other", "[]")])
    assert (await submission.taken(tx, "ann", [ONE.command_id]))[ONE.command_id].digest == b"digest"


async def test_a_command_is_taken_once(tx: Transaction) -> None:
    await submission.take(tx, "ann", [ONE])
    with pytest.raises(asyncpg.UniqueViolationError):
        async with tx.connection.transaction():
            await submission.take(tx, "ann", [ONE])


async def test_the_ids_of_a_submission_are_those_of_all_its_parts(tx: Transaction) -> None:
    parts = PARTS_AT_ONCE + 3
    await submission.take(
        tx,
        "ann",
        [ExecutedCommand(CommandId(f"s/{n}"), b"", f"[[{10 * n}, {10 * n + 4}]]") for n in range(parts)],
    )
    await submission.take(tx, "ann", [ExecutedCommand(CommandId("s2/0"), b"", "[[9999, 9999]]")])
    found = await submission.ids(tx, "ann", "s")
    assert sorted(found) == [(10 * n, 10 * n + 4) for n in range(parts)]
    assert await submission.ids(tx, "bob", "s") == []


async def test_a_command_that_was_answered_words_made_no_jobs(tx: Transaction) -> None:
    await submission.take(tx, "ann", [ExecutedCommand(CommandId("s/0"), b"", '"A is banned"')])
    assert await submission.ids(tx, "ann", "s") == []
