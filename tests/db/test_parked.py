"""Parked messages: kept in their order until their owners' turn comes, and handled once."""

import json
from typing import Any

import asyncpg

from wms.db import parked
from wms.db.database import Transaction
from wms.db.dead_letter import DeadLetter
from wms.db.offset import ConsumedTopic
from wms.db.parked import Head
from wms.ids import InstanceId

FEED = ConsumedTopic("cluster", "job-manager", "wms.job.commands")
ME, OTHER = InstanceId("me"), InstanceId("other")
ALL = Head(limit=100, size=10**6)


def letter(offset: int, *, partition: int = 0, payload: bytes = b"12345") -> DeadLetter:
    return DeadLetter(
        partition=partition,
        offset=offset,
        key=b"k",
        payload=payload,
        principal=json.dumps({"owner": "x"}),
        error="",
    )


async def park(tx: Transaction, owner: str, *letters: DeadLetter) -> None:
    await parked.park(tx, FEED, [(owner, each) for each in letters])


async def first(
    tx: Transaction, owner: str = "ann", partition: int = 0, head: Head = ALL
) -> list[asyncpg.Record]:
    return await parked.first(tx, FEED.consumer, (partition, owner), head, ME)


def offsets(rows: list[asyncpg.Record]) -> list[int]:
    return [row["message_offset"] for row in rows]


async def test_messages_are_an_owners_and_a_partitions_in_their_order(tx: Transaction) -> None:
    await park(tx, "ann", letter(1), letter(2))
    await park(tx, "bob", letter(3))
    await park(tx, "ann", letter(4), letter(1, partition=1))
    assert offsets(await first(tx)) == [1, 2, 4]
    assert offsets(await first(tx, partition=1)) == [1]
    assert offsets(await first(tx, "bob")) == [3]
    assert await first(tx, "eve") == []


async def test_as_many_are_taken_as_fit_but_the_first_whatever_its_size(tx: Transaction) -> None:
    await park(tx, "ann", letter(1), letter(2), letter(3, payload=b"x" * 100), letter(4))
    assert offsets(await first(tx, head=Head(limit=2, size=10**6))) == [1, 2]
    assert offsets(await first(tx, head=Head(limit=9, size=14))) == [1, 2]
    assert offsets(await first(tx, head=Head(limit=9, size=1))) == [1]


async def test_what_waits_is_counted_by_partition_and_owner(tx: Transaction) -> None:
    await park(tx, "ann", letter(1), letter(2), letter(1, partition=1))
    await park(tx, "bob", letter(3, payload=b"x" * 100))
    rows = await parked.waiting(tx, FEED.consumer, [0])
    assert sorted((row["owner"], row["messages"], row["bytes"]) for row in rows) == [
        ("ann", 2, 10),
        ("bob", 1, 100),
    ]
    assert await parked.waiting(tx, "matcher", [0, 1]) == []


async def test_a_message_is_handled_once(tx: Transaction) -> None:
    await park(tx, "ann", letter(1), letter(2))
    ids = [row["parked_id"] for row in await first(tx)]
    assert await parked.remove(tx, ids[:1]) == {ids[0]}
    assert await parked.remove(tx, ids) == {ids[1]}, "the first was handled by another"


async def marks(tx: Transaction) -> list[tuple[Any, ...]]:
    return [(row["message_offset"], row["is_suspect"], row["taken_alone"]) for row in await first(tx)]


async def test_a_message_that_somebody_died_with_is_a_suspect(tx: Transaction) -> None:
    await park(tx, "ann", letter(1), letter(2))
    ids = [row["parked_id"] for row in await first(tx)]
    await parked.take(tx, ids, OTHER)
    assert await marks(tx) == [(1, True, False), (2, True, False)]
    await parked.take(tx, ids[:1], OTHER)
    assert await marks(tx) == [(1, True, True), (2, True, False)]
    await tx.execute(
        "insert into service_instance (instance_id, service, consumers, host, pid, version) values ($1, 's', '{}', 'h', 1, '0')",
        OTHER,
    )
    assert [is_suspect for _, is_suspect, _ in await marks(tx)] == [False, False], "it lives"
    await parked.take(tx, ids, ME)
    assert [is_suspect for _, is_suspect, _ in await marks(tx)] == [False, False], "they are in our own hands"
    await parked.take(tx, ids, None)
    assert [is_suspect for _, is_suspect, _ in await marks(tx)] == [False, False]
