"""Records that are in memory no more."""

import asyncio
import contextlib

from services.gateway.event_cursor import EventCursor
from services.gateway.event_record import EventRecord
from services.gateway.older_events import OlderEvents
from tests.system.place import Place
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings
from wms.bus.topics import find
from wms.messages.events import TOPIC

START = EventCursor("x", (0, 0, 0, 0))


async def test_they_are_read_from_a_place_on_one_reader_of_an_owner_at_a_time(place: Place) -> None:
    settings = KafkaSettings(bootstrap=place.broker.bootstrap, fetch_wait_ms=0, idempotent=False)
    kafka = Kafka(settings, "test")
    await kafka.start([find(TOPIC)])
    await kafka.send_many(TOPIC, [b"%d" % n for n in range(20)], [b"{}"] * 20)
    older = OlderEvents(kafka, find(TOPIC))
    seen: dict[str, list[EventRecord]] = {"first": [], "second": [], "other": []}

    async def read(name: str, owner: str) -> None:
        async with contextlib.aclosing(older.read(owner, START)) as batches:
            async for records in batches:
                seen[name] += records

    first = asyncio.create_task(read("first", "alice"))
    await eventually(lambda: len(seen["first"]) >= 20)
    second, other = (asyncio.create_task(read(*each)) for each in (("second", "alice"), ("other", "bob")))
    await eventually(lambda: len(seen["other"]) >= 20)
    assert not seen["second"]
    first.cancel()
    await eventually(lambda: len(seen["second"]) >= 20)
    places = [(each.partition, each.offset) for each in seen["second"]]
    assert len(places) == len(set(places))
    for task in (second, other):
        task.cancel()
        await asyncio.wait([task])
    await kafka.close()
