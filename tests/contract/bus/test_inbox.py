"""An inbox sees what is sent after it was opened, and nothing makes it stop."""

import uuid
from typing import Any

from tests.contract.bus.instances import Bus, Note
from tests.waiting import eventually
from wms.bus.inbox import Inbox
from wms.bus.topics import Topic
from wms.messages.wire import Codec, encode


def topic() -> Topic:
    return Topic(f"test.inbox.{uuid.uuid4().hex}", 1, 1)


async def arrived(inbox: Inbox[Any], count: int) -> list[int]:
    found: list[int] = []

    async def enough() -> bool:
        found.extend(each.n for each in await inbox.poll(0.2))
        return len(found) >= count

    await eventually(enough)
    return found


async def put(bus: Bus, where: Topic, *numbers: int, key: bytes = b"me") -> None:
    notes = [encode(Note(n=n)) for n in numbers]
    await bus.kafka.send_many(where.name, [key] * len(notes), notes)


async def test_what_is_sent_after_it_opened_is_seen(bus: Bus) -> None:
    where = topic()
    await bus.kafka.ensure([where])
    await put(bus, where, *range(100))
    inbox = Inbox(bus.kafka, where, Codec[Note](Note))
    await inbox.start()
    await put(bus, where, 100, 101)
    await put(bus, where, 102)

    found = await arrived(inbox, 3)
    # A broker may tell the end of the log a batch too early; never too late.
    while found[-1] != 102:
        found += await arrived(inbox, 1)

    assert found == list(range(found[0], 103))
    assert found[0] <= 100
    await inbox.close()


async def test_two_read_one_topic_and_each_keeps_its_own(bus: Bus) -> None:
    where = topic()
    mine, yours = (Inbox(bus.kafka, where, Codec[Note](Note), {key}) for key in (b"me", b"you"))
    await mine.start()
    await yours.start()
    await put(bus, where, 1, 2)
    await put(bus, where, 3, key=b"you")
    await put(bus, where, 4)

    assert await arrived(mine, 3) == [1, 2, 4]
    assert await arrived(yours, 1) == [3]
    await mine.close()
    await yours.close()


async def test_what_cannot_be_read_is_passed_over(bus: Bus) -> None:
    where = topic()
    inbox = Inbox(bus.kafka, where, Codec[Note](Note), {b"me"})
    await inbox.start()
    junk = [b"", b"{", b"\xff\xfe", b'{"type":"other"}', b'{"type":"note","n":"x"}', b"[" * 100_000]
    await bus.kafka.send_many(where.name, [b"me"] * len(junk), junk)
    await put(bus, where, 7)

    assert await arrived(inbox, 1) == [7]
    await inbox.close()


async def test_one_that_was_never_opened_closes(bus: Bus) -> None:
    await Inbox(bus.kafka, topic(), Codec[Note](Note)).close()
