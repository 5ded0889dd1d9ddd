"""Transactions: what was sent goes out if, and only if, they commit; and how connections are shared."""

import asyncio
import contextlib
from typing import Any

import asyncpg
import pytest

from tests.waiting import eventually
from wms.db.database import GONE, IDLE_SECONDS, LOCK_SECONDS, Database, Parcel, StatementTimeout, Transaction
from wms.errors import Rejected, Unavailable
from wms.messages import queue_changes

SAID = queue_changes.RulesChanged()
LOCKED = "lock table job in exclusive mode"


class FaultError(Exception):
    """A fault injected by a test."""


async def stored(db: Database) -> list[str]:
    async with db.transaction() as tx:
        return [row["topic"] for row in await tx.fetch("select topic from outbox order by outbox_id")]


@pytest.fixture
def posted(db: Database) -> list[Parcel]:
    found: list[Parcel] = []
    db.on_posted = found.extend
    return found


async def test_what_is_sent_is_stored_and_told_once_it_has_committed(
    db: Database, posted: list[Parcel]
) -> None:
    async with db.transaction() as tx:
        tx.send("one", "k1", SAID)
        tx.send("two", "k2", SAID)
        tx.send("one", "k3", SAID)
        assert posted == []
    assert await stored(db) == ["one", "two"]
    assert [(each.topic, list(each.keys)) for each in posted] == [("one", [b"k1", b"k3"]), ("two", [b"k2"])]
    assert all(each.outbox_id is not None for each in posted)


async def test_an_answer_is_told_from_memory_alone(db: Database, posted: list[Parcel]) -> None:
    async with db.transaction() as tx:
        tx.reply("inbox", "k", SAID)
    assert await stored(db) == []
    assert [(each.topic, each.outbox_id) for each in posted] == [("inbox", None)]


async def test_of_a_transaction_that_fails_nothing_is_left(db: Database, posted: list[Parcel]) -> None:
    undone: list[int] = []

    async def failing(tx: Transaction) -> None:
        await tx.execute(
            "insert into operator_order (operator, action, subject, reason) values ('o', 'a', 's', '')"
        )
        tx.on_failure(lambda: undone.append(1))
        tx.on_failure(lambda: undone.append(2))
        tx.send("one", "k", SAID)
        tx.reply("inbox", "k", SAID)
        raise FaultError

    with pytest.raises(FaultError):
        await db.attempt(failing)
    assert posted == []
    assert await stored(db) == []
    assert undone == [2, 1], "the last first"
    async with db.transaction() as tx:
        assert await tx.fetchval("select count(*) from operator_order") == 0


async def test_memory_keeps_what_it_took_for_granted_if_the_transaction_commits(db: Database) -> None:
    undone: list[int] = []
    async with db.transaction() as tx:
        tx.on_failure(lambda: undone.append(1))
    assert undone == []


async def test_what_waits_for_the_commit_is_called_after_it_and_not_without(db: Database) -> None:
    called: list[int] = []
    async with db.transaction() as tx:
        tx.on_commit(lambda: called.append(1))
        tx.on_commit(lambda: called.append(2))
        assert called == []
    assert called == [1, 2]

    async def failing(tx: Transaction) -> None:
        tx.on_commit(lambda: called.append(3))
        raise FaultError

    with pytest.raises(FaultError):
        await db.attempt(failing)
    assert called == [1, 2]


async def test_a_message_that_is_too_large_is_rejected_as_it_is_sent(tx: Transaction) -> None:
    with pytest.raises(Rejected):
        tx.send("t", "k", queue_changes.Left(job_ids=tuple(range(10**15, 10**15 + 100_000))))  # type: ignore[arg-type]  # plain numbers


async def test_how_many_rows_a_statement_touched_is_told(tx: Transaction) -> None:
    assert await tx.execute("create temporary table seen (n integer)") == 0
    assert await tx.execute("insert into seen select generate_series(1, 3)") == 3
    assert await tx.execute("update seen set n = 0 where n > 1") == 2
    await tx.copy("seen", ["n"], [(7,), (8,)])
    assert [row["n"] for row in await tx.fetch("select n from seen order by n")] == [0, 0, 1, 7, 8]
    row = await tx.fetchrow("select max(n) from seen")
    assert row is not None
    assert row[0] == 8
    assert await tx.fetchrow("select 1 from seen where n = 99") is None


async def test_a_statement_that_takes_too_long_is_stopped_and_says_so(database: str) -> None:
    db = await Database.connect(database, size=1, ready=1, statement_seconds=0.2)
    try:
        with pytest.raises(StatementTimeout):
            async with db.transaction() as tx:
                await tx.fetchval("select pg_sleep(30)")
        async with db.transaction() as tx:
            assert await tx.fetchval("select 1") == 1
    finally:
        await db.close()


async def test_work_whose_way_a_lock_was_in_is_done_again_and_looks_out(db: Database) -> None:
    seen: list[bool] = []

    async def work(tx: Transaction) -> str:
        seen.append(tx.wary)
        if not tx.wary:
            raise asyncpg.LockNotAvailableError("somebody has it")
        return "done"

    assert await db.attempt(work) == "done"
    assert seen == [False, True]


async def test_work_that_waits_leaves_connections_to_what_cannot(database: str) -> None:
    db = await Database.connect(database, size=3, ready=1)
    begun: list[Any] = []
    release = asyncio.Event()

    async def hold(pool: Database) -> None:
        async with pool.transaction() as tx:
            begun.append(tx)
            await release.wait()

    limited = db.limited(1)
    tasks = [asyncio.create_task(hold(limited)) for _ in range(5)]
    try:
        await eventually(lambda: len(begun) == 2)
        async with asyncio.timeout(10), db.transaction() as tx:
            assert await tx.fetchval("select 1") == 1
        assert len(begun) == 2
    finally:
        release.set()
        await asyncio.gather(*tasks)
        await db.close()
    assert len(begun) == 5


async def test_a_relay_that_makes_itself_known_later_hears_of_limited_work_too(db: Database) -> None:
    limited = db.limited(1)
    posted: list[Parcel] = []
    db.on_posted = posted.extend
    async with limited.transaction() as tx:
        tx.send("one", "k", SAID)
    assert [each.topic for each in posted] == ["one"]


async def test_a_database_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="Postgres"):
        await Database.connect("postgresql://127.0.0.1:1/none", size=1)


async def test_nobody_waits_for_long_for_the_lock_of_an_idle_transaction(database: str, db: Database) -> None:
    idle = await Database.connect(database, size=1, ready=1, application="idle")

    async def is_free() -> bool:
        async with db.transaction() as tx:
            await tx.execute("set local lock_timeout = '1s'")
            with contextlib.suppress(asyncpg.LockNotAvailableError):
                await tx.execute(LOCKED)
                return True
        return False

    async def held() -> None:
        async with idle.transaction() as tx:
            await tx.execute(LOCKED)
            await eventually(is_free, within=5 * IDLE_SECONDS)
            await tx.execute("select 1")

    with pytest.raises(GONE):
        await held()
    assert LOCK_SECONDS < IDLE_SECONDS, (
        "or a stopped process would get the lock, and hold it for as long again"
    )
    await idle.close()
