"""Gaps in a log are named until an operator has looked at them, and what is kept aside for one stays until it is decided on."""

from datetime import UTC, datetime
from typing import Any

from wms.db import dead_letter, log_gap, offset
from wms.db.database import Transaction
from wms.db.dead_letter import DeadLetter, LetterRoom
from wms.db.log_gap import LogGap
from wms.db.offset import ConsumedTopic

FEED = ConsumedTopic("cluster", "test", "topic")
GAP = LogGap(partition=0, cause="restored", first_offset=2, until_offset=5, goes_on_at=datetime.now(UTC))


async def recorded(tx: Transaction, gap: LogGap = GAP) -> Any:
    await offset.begin(tx, FEED, [0])
    await offset.advance(tx, FEED, {0: (0, 2)})
    await log_gap.record(tx, FEED, gap)
    await log_gap.record(tx, FEED, gap)
    (found,) = await log_gap.page(tx)
    return found


async def keep(tx: Transaction, log_gap_id: int, number: int, owner: str) -> None:
    principal = f'{{"owner":"{owner}"}}'
    letter = DeadLetter(
        partition=0, offset=number, key=None, payload=b"{}", principal=principal, error="kept", log_gap_id=log_gap_id
    )  # fmt: skip
    await dead_letter.bury(tx, FEED, letter)


async def test_a_gap_is_stored_once_with_the_time_of_the_last_message_before_it(tx: Transaction) -> None:
    found = await recorded(tx)
    assert (found["first_offset"], found["until_offset"], found["is_read"]) == (2, 5, True)
    assert found["handled_at"] is not None
    ahead = await log_gap.restored(tx, FEED, [0, 1])
    assert {partition: each.until_offset for partition, each in ahead.items()} == {0: 5}
    await offset.advance(tx, FEED, {0: (2, 5)})
    assert await log_gap.restored(tx, FEED, [0, 1]) == {}


async def test_a_gap_stays_until_each_of_its_messages_is_decided_on(tx: Transaction) -> None:
    gap_id = (await recorded(tx))["log_gap_id"]
    assert await log_gap.acknowledge(tx, [gap_id]) == [], "its messages are not read yet"
    await keep(tx, gap_id, 2, "ann")
    await keep(tx, gap_id, 3, "bob")
    await offset.advance(tx, FEED, {0: (2, 5)})
    assert [each["sender"] for each in await log_gap.kept(tx, [gap_id])] == ["ann", "bob"]
    assert await log_gap.acknowledge(tx, [gap_id]) == []
    of_ann = await log_gap.undecided(tx, [gap_id], "ann")
    await dead_letter.ask_replay(tx, of_ann)
    assert len(await log_gap.undecided(tx, [gap_id])) == 1
    await dead_letter.drop(tx, await log_gap.undecided(tx, [gap_id], "bob"))
    assert await log_gap.unacknowledged(tx, [gap_id]) == [gap_id]
    assert await log_gap.acknowledge(tx, [gap_id]) == [gap_id]
    assert await log_gap.page(tx) == []
    assert len(await log_gap.page(tx, acknowledged=True)) == 1


async def test_a_gap_without_kept_messages_is_acknowledged_at_once(tx: Transaction) -> None:
    found = await recorded(tx, LogGap(partition=0, cause="begun anew", first_offset=2, until_offset=None))
    assert await log_gap.acknowledge(tx, [found["log_gap_id"]]) == [found["log_gap_id"]]


async def test_what_is_kept_aside_is_neither_bounded_nor_forgotten(tx: Transaction) -> None:
    gap_id = (await recorded(tx))["log_gap_id"]
    for number in range(5):
        await keep(tx, gap_id, number, "ann")
    assert await dead_letter.bound(tx, LetterRoom(letters=1, bytes=1)) == 0
    assert await dead_letter.forget(tx, -1.0) == 0
    (one, *_) = await log_gap.undecided(tx, [gap_id])
    await dead_letter.replayed(tx, one)
    assert await dead_letter.forget(tx, -1.0) == 1


async def test_what_fails_when_it_is_taken_in_is_a_letter_as_others(tx: Transaction) -> None:
    gap_id = (await recorded(tx))["log_gap_id"]
    await keep(tx, gap_id, 2, "ann")
    (one,) = await log_gap.undecided(tx, [gap_id])
    await dead_letter.replay_failed(tx, one, "no")
    assert await log_gap.kept(tx, [gap_id]) == []
    assert len(await dead_letter.whole(tx, [one])) == 1
