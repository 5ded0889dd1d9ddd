"""Messages of many senders go together, each under its own headers and in its order."""

import asyncio
import uuid

import pytest

from tests.contract.bus.instances import Bus
from tests.waiting import eventually
from wms.bus.grouped_sends import GroupedSends
from wms.bus.kafka import Message, OutgoingMessage, bearing
from wms.bus.topics import Topic
from wms.errors import Rejected, Unavailable


def topic() -> Topic:
    return Topic(f"test.grouped.{uuid.uuid4().hex}", 1, 1)


async def test_each_message_keeps_its_token_and_its_order(bus: Bus) -> None:
    where = topic()
    await bus.kafka.ensure([where])
    sends = GroupedSends(bus.kafka)
    reader = await bus.kafka.reader(where.name)
    await reader.assign_end()
    messages = [bearing("k", b"%d" % n, f"token-{n}") for n in range(300)]
    await asyncio.gather(*(sends.send(where.name, each) for each in messages))
    read: list[Message] = []

    async def all_came() -> bool:
        read.extend(await reader.poll(0.2, 1_000))
        return len(read) >= len(messages)

    await eventually(all_came)
    assert [each.payload for each in read] == [each.payload for each in messages]
    assert [each.token for each in read] == [f"token-{n}" for n in range(300)]
    assert not sends._waiting
    await reader.close()


async def test_one_sender_who_goes_away_takes_no_other_along(bus: Bus) -> None:
    where = topic()
    sends = GroupedSends(bus.kafka)
    one, other = (asyncio.create_task(sends.send(where.name, bearing("k", b"x", ""))) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await other
    assert one.cancelled()


async def test_a_message_that_is_too_large_is_refused(bus: Bus) -> None:
    with pytest.raises(Rejected, match="MESSAGE_TOO_LARGE"):
        await GroupedSends(bus.kafka).send(topic().name, OutgoingMessage(b"k", b"x" * 1_100_000))


async def test_what_is_not_stored_at_the_end_is_unavailable(bus: Bus) -> None:
    sends = GroupedSends(bus.kafka)
    sending = [asyncio.create_task(sends.send(topic().name, bearing("k", b"x", ""))) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    sends.close()
    await asyncio.wait(sending)
    assert {type(each.exception()) for each in sending} == {Unavailable}
