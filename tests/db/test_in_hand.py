"""Notes of what consumers have had in hand for long: what one that died may have died of."""

import pytest

from wms.db import in_hand
from wms.db.database import Database, Transaction
from wms.db.offset import ConsumedTopic
from wms.ids import InstanceId

FEED = ConsumedTopic("cluster", "job-manager", "wms.job.commands")
DEAD, ALIVE, ME = InstanceId("dead"), InstanceId("alive"), InstanceId("me")
BEAT = "insert into service_instance (instance_id, service, consumers, host, pid, version, heartbeat_at)"


async def beat(tx: Transaction, instance: str, seconds_ago: float) -> None:
    await tx.execute(
        f"{BEAT} values ($1, 's', '{{}}', 'h', 1, '0', now() - make_interval(secs => $2))",
        instance,
        seconds_ago,
    )


async def left(tx: Transaction, feed: ConsumedTopic = FEED) -> dict[int, tuple[int, int]]:
    found = await in_hand.left(tx, feed, [0, 1, 2, 3], ME)
    return {partition: (each.first, each.last) for partition, each in found.items()}


async def test_what_an_instance_left_is_what_it_noted_before_it_died(tx: Transaction) -> None:
    await beat(tx, DEAD, 60)
    await beat(tx, ALIVE, 1)
    await in_hand.note(tx, FEED, {0: (10, 19), 1: (5, 5)}, DEAD)
    await in_hand.note(tx, FEED, {2: (7, 8)}, ALIVE)
    await in_hand.note(tx, FEED, {3: (1, 2)}, ME)
    assert await left(tx) == {0: (10, 19), 1: (5, 5)}
    assert (await in_hand.left(tx, FEED, [1], ME)).keys() == {1}
    assert await left(tx, ConsumedTopic("another cluster", FEED.consumer, FEED.topic)) == {}


async def test_who_never_beat_is_dead_too(tx: Transaction) -> None:
    await in_hand.note(tx, FEED, {0: (1, 1)}, DEAD)
    assert await left(tx) == {0: (1, 1)}


async def test_the_last_note_of_a_partition_counts_whoever_made_it(tx: Transaction) -> None:
    await beat(tx, ALIVE, 1)
    await in_hand.note(tx, FEED, {0: (1, 9)}, DEAD)
    await in_hand.note(tx, FEED, {0: (5, 6)}, DEAD)
    assert await left(tx) == {0: (5, 6)}
    await in_hand.note(tx, FEED, {0: (5, 6)}, ALIVE)
    assert await left(tx) == {}


async def test_each_process_that_dies_with_the_same_messages_is_counted(tx: Transaction) -> None:
    await in_hand.note(tx, FEED, {0: (5, 9)}, DEAD)
    (first,) = (await in_hand.left(tx, FEED, [0], ME)).values()
    assert first == (5, 9, 1)
    await in_hand.note(tx, FEED, {0: (5, 5)}, DEAD, first.deaths)
    assert await in_hand.left(tx, FEED, [0], ME) == {0: (5, 5, 2)}


async def test_an_instance_takes_back_its_own_notes_alone(tx: Transaction) -> None:
    await in_hand.note(tx, FEED, {0: (1, 1), 1: (2, 2)}, DEAD)
    await in_hand.forget(tx, FEED, [0, 1], ALIVE)
    assert await left(tx) == {0: (1, 1), 1: (2, 2)}
    await in_hand.forget(tx, FEED, [0], DEAD)
    assert await left(tx) == {1: (2, 2)}


async def test_notes_of_several_feeds_are_written_by_a_connection_of_their_own(
    database: str, db: Database
) -> None:
    other = ConsumedTopic("cluster", "matcher", "wms.match.requests")
    await in_hand.note_alone(database, {FEED: {0: (1, 2)}, other: {1: (3, 4)}}, DEAD, within=10)
    async with db.transaction() as tx:
        # It knows that it dies of them, so that one death is enough.
        assert await in_hand.left(tx, FEED, [0], ME) == {0: (1, 2, 2)}
        assert await left(tx, other) == {1: (3, 4)}


async def test_a_note_that_waits_for_a_lock_is_given_up(database: str, db: Database) -> None:
    async with db.transaction() as tx:
        await in_hand.note(tx, FEED, {0: (1, 2)}, DEAD)
        with pytest.raises(TimeoutError):
            await in_hand.note_alone(database, {FEED: {0: (1, 2)}}, ALIVE, within=0.3)
