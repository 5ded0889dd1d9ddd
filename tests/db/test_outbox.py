"""The outbox: messages of committed transactions until the broker has acknowledged them."""

from wms.db import outbox
from wms.db.database import Database, Parcel, Transaction
from wms.messages import queue_changes


async def send(db: Database, *topics: str) -> list[Parcel]:
    posted: list[Parcel] = []
    db.on_posted = posted.extend
    async with db.transaction() as tx:
        for topic in topics:
            tx.send(topic, f"key of {topic}", queue_changes.RulesChanged())
    return posted


async def due(tx: Transaction, *, ago: float = 1.0) -> None:
    await tx.execute("update outbox set due_at = now() - make_interval(secs => $1)", ago)


async def test_what_a_transaction_sent_is_there_as_it_was_told(db: Database) -> None:
    posted = await send(db, "one", "two", "one")
    async with db.transaction() as tx:
        assert await outbox.take_due(tx, 10, 5) == [], "its own relay has two seconds"
        await due(tx)
        taken = await outbox.take_due(tx, 10, 5)
    assert taken == posted
    assert [(each.topic, list(each.keys)) for each in taken] == [
        ("one", [b"key of one"] * 2),
        ("two", [b"key of two"]),
    ]


async def test_what_is_taken_is_its_takers_for_a_while(db: Database) -> None:
    await send(db, "one", "two")
    async with db.transaction() as tx:
        await due(tx)
        assert len(await outbox.take_due(tx, 1, 60)) == 1
        assert [each.topic for each in await outbox.take_due(tx, 10, 60)] == ["two"]
        assert await outbox.take_due(tx, 10, 60) == []


async def test_relays_at_once_share_what_is_due(db: Database) -> None:
    await send(db, *(f"t{n}" for n in range(4)))
    async with db.transaction() as tx:
        await due(tx)
    async with db.transaction() as one, db.transaction() as other:
        mine = await outbox.take_due(one, 3, 60)
        theirs = await outbox.take_due(other, 10, 60)
    assert len(mine) == 3
    assert {each.topic for each in mine} | {each.topic for each in theirs} == {"t0", "t1", "t2", "t3"}


async def test_what_the_broker_has_is_forgotten(db: Database) -> None:
    posted = await send(db, "one", "two")
    async with db.transaction() as tx:
        await outbox.delete(tx, [each.outbox_id for each in posted if each.topic == "one" and each.outbox_id])
        assert await tx.fetchval("select count(*) from outbox") == 1
