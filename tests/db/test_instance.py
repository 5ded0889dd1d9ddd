"""Running instances of services: who lives, and so who shares a consumer's partitions."""

import asyncio
from collections import Counter

import asyncpg

from tests.waiting import eventually
from wms.db import instance
from wms.db.database import Database, Transaction
from wms.db.instance import DEAD_AFTER_SECONDS, FORGOTTEN_AFTER_SECONDS, Beat
from wms.ids import InstanceId

LOCKED = "lock table job in exclusive mode"


def beat(name: str, *consumers: str, health: str = "{}") -> Beat:
    return Beat(
        instance_id=InstanceId(name),
        service="s",
        consumers=consumers,
        host="h",
        pid=1,
        version="0",
        health=health,
    )


async def silent(tx: Transaction, name: str, seconds: float) -> None:
    await tx.execute(
        "update service_instance set heartbeat_at = now() - make_interval(secs => $2) where instance_id = $1",
        name,
        seconds,
    )


async def test_those_that_live_share_a_consumer_in_one_order(tx: Transaction) -> None:
    await instance.beat(tx, beat("b", "reports", "commands"))
    assert await instance.beat(tx, beat("a", "commands")) == {"commands": ["a", "b"], "reports": ["b"]}
    await silent(tx, "b", DEAD_AFTER_SECONDS + 1)
    assert await instance.beat(tx, beat("a", "commands")) == {"commands": ["a"]}
    assert await instance.beat(tx, beat("b", "commands")) == {"commands": ["a", "b"]}, (
        "it reads no reports now"
    )


async def test_who_leaves_is_gone_at_once(tx: Transaction) -> None:
    await instance.beat(tx, beat("a", "commands"))
    await instance.leave(tx, InstanceId("a"))
    assert await instance.beat(tx, beat("b", "commands")) == {"commands": ["b"]}


async def test_who_died_without_a_word_is_known_for_an_hour(tx: Transaction) -> None:
    for name in ("long dead", "dead", "leaving"):
        await instance.beat(tx, beat(name))
    await silent(tx, "long dead", FORGOTTEN_AFTER_SECONDS + 1)
    await silent(tx, "dead", FORGOTTEN_AFTER_SECONDS - 60)
    await instance.leave(tx, InstanceId("leaving"))
    (left,) = await instance.instances(tx)
    assert (left["instance_id"], left["alive"]) == ("dead", False)


async def test_the_last_beat_says_how_an_instance_does(tx: Transaction) -> None:
    await instance.beat(tx, beat("a", health='{"loops": 1}'))
    (first,) = await instance.instances(tx)
    await instance.beat(tx, beat("a", health='{"loops": 2}'))
    (found,) = await instance.instances(tx)
    assert found["health"] == '{"loops": 2}'
    assert found["alive"]
    assert found["started_at"] == first["started_at"]


async def in_transaction(url: str, name: str) -> asyncpg.Connection:
    """Return a connection of that name with a transaction open, which no time limit of Postgres ends."""
    connection = await asyncpg.connect(url, server_settings={"application_name": name})
    await connection.execute("begin")
    return connection


async def test_transactions_of_an_instance_that_is_silent_are_ended(database: str, db: Database) -> None:
    """Also one that waits for another, so that it does not get the lock next."""
    frozen, waiting, lasting = [await in_transaction(database, each) for each in ("a", "a", "b")]
    await frozen.execute(LOCKED)
    blocked = asyncio.create_task(waiting.execute(LOCKED))
    async with db.transaction() as tx:
        await instance.beat(tx, beat("a"))
        await instance.beat(tx, beat("b"))
        await silent(tx, "a", DEAD_AFTER_SECONDS + 1)
    ended: Counter[str] = Counter()

    async def both() -> bool:
        async with db.transaction() as tx:
            await instance.beat(tx, beat("b"))
            ended.update(await instance.end_silent(tx))
        return bool(frozen.is_closed() and waiting.is_closed())

    await eventually(both, within=30)
    await asyncio.wait([blocked])
    # One that is about to end may be counted again.
    assert (set(ended), lasting.is_closed()) == ({"a"}, False)
    assert ended.total() >= 2
    await lasting.execute(LOCKED)
    await lasting.close()
